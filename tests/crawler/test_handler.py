"""A handler receives every page of a crawl at least once: across stops, kills and --resume, in one process and in several."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import trapline
from tests.cli.crawling import FAST, Captured, CrawlResult
from tests.cli.test_crawl import error_line
from tests.crawler.small_server import NOT_FOUND, SmallServer, page, small_server
from tests.effort import slow
from tests.export.written_crawl import WrittenCrawl
from trapline.cli import run
from trapline.crawler.engine.records import ROBOTS_FILE
from trapline.crawler.files.handled import HandledCounts, HandledMark, handled_in
from trapline.crawler.handler.unhandled import has_unhandled
from trapline.errors import ConfigError

PAGES = 60
COUNTING = """
import os, signal, time
from pathlib import Path

LOG = Path(__file__).with_name("handled.txt")

def note(page):
    with LOG.open("a") as file:
        print(page.url.rpartition("/")[2] or 0, file=file)
    return len(LOG.read_text().split())

def fails_at_7(page):
    note(page)
    if page.url.endswith("/7"):
        raise ValueError("seven")

def killed_at_20(page):
    if note(page) == 20:
        os.kill(os.getpid(), signal.SIGKILL)

def interrupted_at_20(page):
    if note(page) == 20:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)  # until the crawl has heard the signal

class Several:
    async def page(self, page):
        note(page)
    def failed(self, fetch):
        with LOG.open("a") as file:
            print(f"{fetch.status}:{fetch.url.rpartition('/')[2]}", file=file)
    def close(self):
        with LOG.open("a") as file:
            print("closed", file=file)
"""


def tree(host: str, target: str) -> bytes:
    if not target[1:].isdecimal() and target != "/":
        return NOT_FOUND
    number = int(target[1:] or 0)
    gone = ("/gone",) if number == 3 else ()
    return page(*(f"/{child}" for child in (2 * number + 1, 2 * number + 2) if child < PAGES), *gone)


@pytest.fixture
def server() -> Iterator[SmallServer]:
    with small_server(tree, ("127.0.0.1",)) as found:
        yield found


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.py"
    file.write_text(COUNTING)
    return file


def begin(server: SmallServer, folder: Path, handler: str, *more: str) -> list[str]:
    url = f"http://127.0.0.1:{server.port}/"
    return ["crawl", url, *FAST, "--strategy", "breadth-first", "--handler", handler, "-o", str(folder), *more]


def handled(shop: Path) -> list[str]:
    return shop.with_name("handled.txt").read_text().split()


def in_words(number: int) -> list[str]:
    return [str(one) for one in range(number)]


def test_a_handler_receives_every_page_and_its_errors_are_logged(
    server: SmallServer, shop: Path, capsys: Captured
) -> None:
    folder = shop.with_name("out")
    arguments = [word for word in begin(server, folder, f"{shop}:fails_at_7") if word != "--quiet"]
    assert run([*arguments, "--plain"]) == 0
    assert sorted(handled(shop)) == sorted(in_words(PAGES))
    summary, log = CrawlResult(folder).summary, (folder / "handler.log").read_text()
    assert (summary["pages_handled"], summary["handler_errors"]) == (PAGES, 1)
    assert f":{server.port}/7\n" in log and "ValueError: seven" in log and "in fails_at_7" in log
    assert f"handler: {PAGES} pages, 1 error, see {folder}/handler.log" in capsys.readouterr().out
    assert run(["crawl", "--resume", str(folder), "--quiet"]) == 0
    assert len(handled(shop)) == PAGES  # nothing is handed over twice


def test_a_killed_crawl_hands_over_the_rest_after_a_resume(server: SmallServer, shop: Path) -> None:
    """The handler is killed in the middle of page 20. Pages that are on disk come again, from there on."""
    folder = shop.with_name("out")
    program = f"from trapline.cli import run; run({begin(server, folder, f'{shop}:killed_at_20')!r})"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=120).returncode == -signal.SIGKILL
    assert len(handled(shop)) == 20
    before = handled_in(folder)
    assert before is not None and before.pages == 19
    assert run(["crawl", "--resume", str(folder), "--quiet"]) == 0
    found = Counter(handled(shop))
    assert sorted(found) == sorted(in_words(PAGES))
    assert [one for one, times in found.items() if times > 1] == [handled(shop)[19]]
    assert CrawlResult(folder).summary["pages_handled"] == PAGES


def test_ctrl_c_ends_the_handler_after_its_page_and_a_resume_hands_over_the_rest(
    server: SmallServer, shop: Path
) -> None:
    folder = shop.with_name("out")
    assert run(begin(server, folder, f"{shop}:interrupted_at_20")) == 0
    assert len(handled(shop)) == 20 and CrawlResult(folder).summary["stopped_by"] == "interrupted"
    assert run(["crawl", "--resume", str(folder), "--handler", f"{shop}:note", "--quiet"]) == 0
    assert sorted(handled(shop)) == sorted(in_words(PAGES))


def test_a_class_receives_pages_failures_and_the_end(server: SmallServer, shop: Path) -> None:
    folder = shop.with_name("out")
    assert run(begin(server, folder, f"{shop}:Several", "--max-pages", "20")) == 0
    assert sorted(handled(shop)) == sorted([*in_words(20), "404:gone", "closed"]) and handled(shop)[-1] == "closed"


@slow
def test_a_handler_that_is_given_later_receives_the_pages_from_then_on(server: SmallServer, shop: Path) -> None:
    folder = shop.with_name("out")
    arguments = begin(server, folder, "none", "--max-pages", "10")
    assert run(arguments) == 0
    resumed = ["crawl", "--resume", str(folder), "--max-pages", "30", "--handler", f"{shop}:note", "--quiet"]
    assert run(resumed) == 0
    assert len(handled(shop)) == 20
    without = ["crawl", "--resume", str(folder), "--max-pages", "40", "--handler", "none", "--quiet"]
    assert run(without) == 0 and len(handled(shop)) == 20
    assert "pages_handled" not in CrawlResult(folder).summary


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("handler", "said"),
    [
        ("shop", "not the name of a function; give FILE.py:FUNCTION or MODULE:FUNCTION"),
        ("{}/none.py:note", "no such file; give FILE.py:FUNCTION or MODULE:FUNCTION"),
        ("no_such_module:note", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("{}/shop.py:nite", "the module has no function 'nite'; did you mean 'note'?"),
        ("{}/empty.py:note", "the module has no function 'note'; define a function or class of this name"),
        ("{}/shop.py:LOG", "LOG is neither a function nor a class"),
        ("{}/shop.py:Path", "the class has no method `page`"),
        ("{}/broken.py:note", "SyntaxError: '(' was never closed"),
    ],
)
def test_a_handler_that_cannot_be_imported_is_one_line_before_the_crawl_begins(
    tmp_path: Path, capsys: Captured, handler: str, said: str
) -> None:
    (tmp_path / "broken.py").write_text("print(")
    (tmp_path / "empty.py").write_text("")
    url = ["http://127.0.0.1:9/", "--allow-private", "-o", tmp_path / "out"]
    assert said in error_line(capsys, *url, "--handler", handler.format(tmp_path))
    assert not (tmp_path / "out").exists()


@slow
def test_every_process_calls_the_handler_for_its_own_pages(tmp_path: Path, shop: Path) -> None:
    """One process is killed in its handler; its supervisor starts it again."""
    with small_server(tree, ("127.0.0.1", "127.0.0.2", "127.0.0.3")) as server:
        urls = [f"http://127.0.0.{host}:{server.port}/" for host in (1, 2, 3)]
        folder = tmp_path / "out"
        arguments = [*FAST, "--processes", "2", "--handler", f"{shop}:killed_at_20", "-o", str(folder)]
        assert run(["crawl", *urls, *arguments]) == 0
    found = Counter(handled(shop))
    assert sorted(found) == sorted(in_words(PAGES)) and 3 * PAGES <= sum(found.values()) <= 3 * PAGES + 1
    assert CrawlResult(folder).summary["pages_handled"] == 3 * PAGES


def test_a_page_whose_record_is_damaged_is_handed_over_as_failed(server: SmallServer, tmp_path: Path) -> None:
    url, options = f"http://127.0.0.1:{server.port}/", {"allow_private": True, "delay": 0, "max_pages": 10}
    for _ in trapline.crawl(url, output=tmp_path / "out", **options):  # type: ignore[arg-type]
        break
    (place,) = CrawlResult(tmp_path / "out").rows("select offset + length / 2 from fetch where result = 3 limit 1")
    (archive,) = (tmp_path / "out" / "warc").iterdir()
    with archive.open("r+b") as file:
        file.seek(place[0])
        file.write(b"damaged!")
    failed: list[trapline.FailedFetch] = []
    rest = list(trapline.crawl(resume=tmp_path / "out", on_error=failed.append))
    assert [(one.url, one.error) for one in failed] == [(url, "archive")] and url not in {one.url for one in rest}


def test_the_robots_txt_of_another_site_is_not_handed_over_after_a_resume(tmp_path: Path) -> None:
    crawl = WrittenCrawl("http://a.test/")
    crawl.fetched("http://a.test/rules", b"User-agent: *", head="Content-Type: text/plain", marks=ROBOTS_FILE)
    folder = crawl.write(tmp_path / "c")
    HandledMark(folder, last_fetch=0).close()
    assert not has_unhandled(folder)


# ---- the file


def test_the_mark_is_overwritten_in_place_and_never_ahead_of_the_database(tmp_path: Path) -> None:
    mark = HandledMark(tmp_path, last_fetch=0)
    size = (tmp_path / "handled.json").stat().st_size
    for number in (1, 12, 10**15):
        mark.advance(number, errors=number == 12)
        assert (tmp_path / "handled.json").stat().st_size == size
    mark.close()
    assert handled_in(tmp_path) == HandledCounts(10**15, 3, 1)
    assert json.loads((tmp_path / "handled.json").read_text())["fetch"] == 10**15
    assert HandledMark(tmp_path, last_fetch=40).counts == HandledCounts(40, 3, 1)  # crawl.db is an older copy


def test_without_a_mark_only_new_pages_are_handed_over_and_a_damaged_one_is_reported(tmp_path: Path) -> None:
    assert handled_in(tmp_path) is None
    assert HandledMark(tmp_path, last_fetch=7).counts == HandledCounts(7)
    for damaged in ("", "[]", '{"fetch": -1}', '{"fetch": "x"}', '{"other": 1}'):
        (tmp_path / "handled.json").write_text(damaged)
        with pytest.raises(
            ConfigError,
            match=r"handled\.json: cannot be read: .*; delete this file to let the handler receive only new pages",
        ):
            handled_in(tmp_path)
    os.unlink(tmp_path / "handled.json")
