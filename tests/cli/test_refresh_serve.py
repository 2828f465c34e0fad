"""`trapline refresh serve` and `trapline refresh subscribe`: the endpoint as a process, Ctrl-C, and errors in one line."""

import json
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from tests.crawler.small_server import NOT_FOUND, small_server, text
from tests.signals.crawled import crawl_of
from trapline.cli import run
from trapline.cli.refresh.serve import RATES, Rated
from trapline.signals.endpoint.intake import SenderRates
from trapline.signals.endpoint.rate_limits import RequestRate

TRAPLINE = [sys.executable, "-c", "import sys; from trapline.cli import main; main()"]


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    return crawl_of(tmp_path / "crawl", ["http://a.test/"])


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_endpoint_serves_until_ctrl_c_and_prints_what_arrived(crawl: Path, how: signal.Signals) -> None:
    token = crawl.parent / "token.txt"
    token.write_text("a-token-that-nobody-guesses")
    command = [*TRAPLINE, "refresh", "serve", str(crawl), "--listen", "127.0.0.1:0", "--token", str(token), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        started = json.loads(process.stdout.readline())
        assert started["sites_known"] == 1
        status = urllib.request.Request(f"http://127.0.0.1:{started['port']}/status")
        status.add_header("Authorization", f"Bearer {token.read_text()}")
        with urllib.request.urlopen(status, timeout=20) as answer:
            assert json.loads(answer.read())["sites_known"] == 1
        process.send_signal(how)
        ended = json.loads(process.stdout.read())
        assert process.wait(20) == 0 and process.stderr.read() == ""
    assert ended["requests"] == 1


def with_a_newer_database(crawl: Path) -> None:
    with closing(sqlite3.connect(crawl / "signals.db")) as database, database:
        database.execute("create table meta (key text primary key, value text)")
        database.execute("insert into meta values ('format', '99')")


def test_a_database_of_a_newer_version_is_named(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_a_newer_database(crawl)
    assert run(["refresh", "serve", str(crawl)]) == 2
    assert "signals database of format 99, but this version reads format 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    "args, says",
    [
        (["nowhere"], "nowhere: no such folder; name the folder of a crawl"),
        (["{crawl}", "--listen", "8080"], "not HOST:PORT"),
        (["{crawl}", "--listen", "127.0.0.1:99999"], "the port is not between 0 and 65,535"),
        (["{crawl}", "--listen", "203.0.113.1:8080"], "not an address of this machine"),
        (["{crawl}", "--listen", "no.such.host.invalid:8080"], "not an address of this machine"),
        (["{crawl}", "--public-url", "nonsense"], "not an http or https URL"),
        (["{crawl}", "--public-url", "http://ours.test"], "give an https URL"),
        (["{crawl}", "--proxy", "foo"], "--proxy foo: not an IP address; give one such as 127.0.0.1"),
        (["{crawl}", "--proxy", "http://127.0.0.1/"], "not an IP address"),
        (["{crawl}", "--token", "nowhere"], "does not exist"),
        (["{crawl}", "--site-rate", "many"], "--site-rate many: not N or N:BURST"),
        (["{crawl}", "--total-rate", "0:5"], "N above 0"),
        (["{crawl}", "--token", "short"], "16 or more"),
        (["{crawl}", "--hosts", "nowhere"], "does not exist"),
        (["{crawl}", "--keep", "1s"], "1s"),
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
    Path("short").write_text("short")
    assert run(["refresh", "serve", *(arg.format(crawl=crawl) for arg in args)]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


def test_a_port_in_use_is_reported_without_an_errno(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with small_server(feed_site) as server:
        assert run(["refresh", "serve", str(crawl), "--listen", f"127.9.0.1:{server.port}"]) == 2
    said = capsys.readouterr().err
    assert "address already in use" in said and "Errno" not in said


def test_default_rates_equal_the_endpoints() -> None:
    assert Rated(*(default for _, _, _, default, _ in RATES.rows)).rates() == SenderRates()


def test_each_rate_option_sets_its_own_rate() -> None:
    rated = Rated("1:2", "3:4", "5:6", "7:8", "9")
    assert rated.rates() == SenderRates(
        RequestRate(1, 2), RequestRate(3, 4), RequestRate(7, 8), RequestRate(5, 6), RequestRate(9, 180)
    )


def feed_site(host: str, target: str) -> bytes:
    """/feed names a hub. /alias says that its URL is /feed. /liar says that its URL belongs to another site."""
    named = {
        "/feed": "</hub>; rel=hub",
        "/alias": "</hub>; rel=hub, </feed>; rel=self",
        "/liar": "</hub>; rel=hub, </plain>; rel=self",
    }
    return (
        text("feed", f"Link: {named[target]}\r\n")
        if target in named
        else text("x")
        if target == "/plain"
        else NOT_FOUND
    )


@pytest.mark.parametrize(
    "args, says",
    [
        (["--leave"], "--leave has no effect without a URL"),
        (["--wait", "9"], "--wait has no effect without a URL"),
        (["http://a.test/", "--leave", "--wait", "9"], "--wait has no effect with --leave"),
    ],
)
def test_an_option_of_subscribe_that_would_do_nothing_is_refused(
    crawl: Path, args: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["refresh", "subscribe", str(crawl), *args]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "target, code, says",
    [
        ("/feed", 0, "/feed: the hub has not been asked yet; to ask it, run: trapline refresh serve"),
        ("/alias", 0, "/feed: the hub has not been asked yet"),
        ("/liar", 2, "/plain: names no hub"),
        ("/plain", 2, "names no hub"),
        ("/absent", 2, "the server answered 404"),
    ],
)
def test_a_topic_is_subscribed_to_by_its_self_link(
    tmp_path: Path, target: str, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_server(feed_site) as server:
        folder = crawl_of(tmp_path / "crawl", [f"http://127.9.0.1:{server.port}/"])
        url = f"http://127.9.0.1:{server.port}{target}"
        assert run(["refresh", "subscribe", str(folder), url, "--allow-private", "--wait", "0"]) == code
        said = capsys.readouterr()
        assert says in said.out + said.err and (said.out + said.err).count("\n") == 1
        assert run(["refresh", "subscribe", str(folder)]) == 0
        said = capsys.readouterr()
        assert ("/feed: wanted, hub" in said.out) == (code == 0) == ("no subscriptions yet" not in said.out)


def test_a_topic_on_a_private_address_or_another_site_is_refused(
    tmp_path: Path, crawl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_server(feed_site) as server:
        url = f"http://127.9.0.1:{server.port}/feed"
        assert run(["refresh", "subscribe", str(crawl), url]) == 2
        assert "give --allow-private" in capsys.readouterr().err and not server.connections
        assert run(["refresh", "subscribe", str(crawl), url, "--allow-private"]) == 2
        assert "does not know this site" in capsys.readouterr().err
        assert run(["refresh", "subscribe", str(crawl), "nonsense"]) == 2
        assert run(["refresh", "subscribe", str(crawl), url, "--leave"]) == 2
        assert "no such subscription" in capsys.readouterr().err
