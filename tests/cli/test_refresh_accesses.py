"""`trapline refresh accesses`: what it reads from access logs, and its errors."""

import gzip
import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.signals.crawled import crawl_of
from trapline.cli import run
from trapline.crawler.files.lock import take
from trapline.signals.inbox import Inbox, Signal

LOG = b"""192.0.2.1 - - [10/Oct/2023:13:55:36 +0000] "GET /a HTTP/1.1" 200 9 "-" "Mozilla/5.0 Firefox/140.0"
192.0.2.1 - - [10/Oct/2023:13:56:36 +0000] "GET /a HTTP/1.1" 200 9 "-" "Mozilla/5.0 Firefox/140.0"
192.0.2.2 - - [10/Oct/2023:13:57:36 +0000] "GET /style.css HTTP/1.1" 200 9 "-" "Mozilla/5.0 Firefox/140.0"
192.0.2.3 - - [10/Oct/2023:13:58:36 +0000] "GET /a HTTP/1.1" 200 9 "-" "Googlebot/2.1"
nonsense
"""


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    return crawl_of(tmp_path / "crawl", ["https://a.test/a", "https://a.test/b"])


def accesses_in(folder: Path) -> list[Signal]:
    inbox = Inbox(folder)
    found = inbox.take(0, 100)
    inbox.close()
    return found


def test_a_log_becomes_accesses_of_known_pages(crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_bytes(LOG)
    assert run(["refresh", "accesses", str(crawl), str(tmp_path / "log"), "--site", "https://a.test"]) == 0
    assert [signal[2:] for signal in accesses_in(crawl)] == [
        ("api", "https://a.test/a", "access", 1696942800.0, 2.0, True)
    ]
    said = capsys.readouterr().out
    assert (
        "5 lines, 2 accesses to 1 page of the crawl" in said
        and "1 in another format" in said
        and "1 of crawlers" in said
        and "1 URL" in said
    )


def test_a_log_read_before_is_noticed_even_if_it_is_compressed(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, packed = tmp_path / "log", tmp_path / "other.gz"
    plain.write_bytes(LOG)
    packed.write_bytes(gzip.compress(LOG))
    command = ["refresh", "accesses", str(crawl), "--site", "https://a.test"]
    assert run([*command, str(packed)]) == 0
    assert run([*command, str(plain)]) == 2
    assert "this log was read before" in capsys.readouterr().err
    assert len(accesses_in(crawl)) == 1
    assert run([*command, str(plain), "--again"]) == 0
    assert len(accesses_in(crawl)) == 2


def test_two_logs_are_both_refused_if_one_was_read_before(crawl: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"https://a.test/a\t5\n")
    second.write_bytes(b"https://a.test/b\t5\n")
    assert run(["refresh", "accesses", str(crawl), str(second)]) == 0
    assert run(["refresh", "accesses", str(crawl), str(first), str(second)]) == 2
    assert run(["refresh", "accesses", str(crawl), str(first), str(first)]) == 2
    assert [signal.url for signal in accesses_in(crawl)] == ["https://a.test/b"]


def test_a_log_without_a_page_of_the_crawl_may_be_read_again(crawl: Path, tmp_path: Path) -> None:
    useless, useful = tmp_path / "useless", tmp_path / "useful"
    useless.write_bytes(b"https://a.test/unknown\t5\n")
    useful.write_bytes(b"https://a.test/b\t5\n")
    assert run(["refresh", "accesses", str(crawl), str(useless), str(useful)]) == 0
    assert [signal.url for signal in accesses_in(crawl)] == ["https://a.test/b"]
    assert run(["refresh", "accesses", str(crawl), str(useless)]) == 2
    assert run(["refresh", "accesses", str(crawl), str(useless), str(useful), "--again"]) == 0


def test_the_output_says_from_when_accesses_count(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for running, says in (
        (False, f"when it continues (trapline crawl --resume {crawl})"),
        (True, "from now on"),
    ):
        (tmp_path / "log").write_bytes(b"https://a.test/b\t%d\n" % (5 + running))
        lock = take(crawl) if running else None
        assert run(["refresh", "accesses", str(crawl), str(tmp_path / "log")]) == 0
        assert f"the crawl uses these accesses {says}, " in capsys.readouterr().out
        if lock:
            lock.release()


def test_stdin_and_hosts_in_the_lines(crawl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"".join(b"a.test:443 " + one + b"\n" for one in LOG.splitlines()[:2])
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(lines)))
    assert run(["refresh", "accesses", str(crawl), "-"]) == 0
    assert [(signal.url, signal.p) for signal in accesses_in(crawl)] == [("https://a.test/a", 2.0)]


@pytest.mark.parametrize(
    "args, says",
    [
        (["{crawl}"], "Missing argument 'LOG...'"),
        (["{crawl}", "nowhere.log"], "nowhere.log: cannot be read: No such file"),
        (["nowhere", "x"], "name the folder of a crawl"),
        (["{crawl}", "broken.gz"], "broken.gz: cannot be read"),
        (["{crawl}", "log", "--site", "nonsense"], "not a site"),
        (
            ["{crawl}", "log", "--site", "https://b.test"],
            "log: the crawl knows no page of this log, such as https://b.test/a",
        ),
        (["{crawl}", "right", "bad"], "bad: no line can be used"),
    ],
)
def test_invalid_input_is_reported_in_one_line(
    crawl: Path,
    tmp_path: Path,
    args: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.gz").write_bytes(gzip.compress(LOG)[:-20])
    Path("log").write_bytes(LOG)
    Path("right").write_bytes(b"https://a.test/a\t5\n")
    Path("bad").write_bytes(b"nonsense")
    assert run(["refresh", "accesses", *(arg.format(crawl=crawl) for arg in args)]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1
    assert not (crawl / "signals.db").exists() or not accesses_in(crawl)
