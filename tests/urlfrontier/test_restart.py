"""What a service keeps when its process ends, in order or by SIGKILL: URLs that were acknowledged, dates, reservations, delays, blocks,
limits, and whether it is active."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.effort import PROOF, slow
from tests.urlfrontier.service_world import Client, known, new, running, started
from trapline.urlfrontier import messages as m
from trapline.urlfrontier.messages import OK

A, B, C = (f"http://a.example/{name}" for name in "abc")


def fill(client: Client) -> None:
    """A queue for each thing that is kept."""
    client.put(
        new(A, metadata={"x": ["1"]}), new(B), known(C, 0), *(new(f"http://{key}/") for key in ("d", "e", "f", "g"))
    )
    assert client.urls(key="a.example", most=1, hold_s=3600, crawlID="") == [A]
    client.set_delay("d", 3600)
    assert client.urls(key="d", hold_s=1, crawlID="") == ["http://d/"]
    client.block("e", int(time.time()) + 3600)
    client.limit("f", 1)
    client.put(known("http://f/2", 0), known("http://g/2", 1, crawl="other"))
    client.stub.SetActive(m.Active(state=False))


def check(client: Client) -> None:
    """`fill` was called before the process ended. The delay of `d` goes on: its reservation is over, and it is not given."""
    assert not client.stub.GetActive(m.Local()).state
    client.stub.SetActive(m.Active(state=True))
    time.sleep(1.1)
    assert sorted(client.urls(hold_s=3600)) == [B, "http://g/", "http://g/2"]
    assert client.status(C).known.refetchable_from_date == 0
    assert client.status(A).known.info.metadata["x"].values == ["1"]
    client.block("e", 0)
    client.limit("f", 0)
    client.set_delay("a.example", 0)
    assert sorted(client.urls()) == ["http://e/", "http://f/"]
    client.put(known(A, 1))
    assert client.urls(key="a.example", crawlID="") == [A]


def test_a_restart_keeps_everything(tmp_path: Path) -> None:
    with running(tmp_path / "f") as client:
        fill(client)
    with running(tmp_path / "f") as client:
        check(client)


STRATEGY = """
from trapline.frontier.ranking import page_rank, site_rank
from trapline.strategies import PageRank, SiteRank, Strategy


@page_rank
def not_the_fourth(s, page, source, links, is_new):
    return float("nan") if page == 3 else 1.0


@site_rank
def not_half(s, site, queue):
    return float("nan") if queue.waiting == 1 and site.known == 2 else 1.0


STRATEGY = Strategy(
    "faulty", PageRank("not-the-fourth", not_the_fourth), SiteRank("not-half", not_half, reads=("waiting",))
)
"""


@slow
def test_a_faulty_strategy_ends_the_service_and_harms_no_folder(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its URLs are not acknowledged: SKIPPED would mean that they are known."""
    (tmp_path / "faulty.py").write_text(STRATEGY)
    options = ("--strategy", str(tmp_path / "faulty.py"), "--delay", "0")
    with started(tmp_path / "f", *options) as (process, client):
        for known in ("http://one/", "http://more/1", "http://more/2"):
            assert client.put(new(known)) == [OK]
        with pytest.raises(grpc.RpcError):
            client.put(*(new(f"http://more/{number}") for number in range(3, 8)))
        assert process.wait(20) == 2
    assert "rank 'not-the-fourth' of page 3 is not a finite number" in capfd.readouterr().err
    with started(tmp_path / "f", *options) as (process, client):
        assert client.stats().size == 3 and client.put(new("http://one/")) == [m.SKIPPED]
        with pytest.raises(grpc.RpcError) as caught:
            for _ in range(3):
                client.get(most=1)
                time.sleep(0.01)
        assert caught.value.code() == grpc.StatusCode.INTERNAL and process.wait(20) == 2
    assert "rank 'not-half'" in capfd.readouterr().err


@slow
def test_a_kill_keeps_everything(tmp_path: Path) -> None:
    with started(tmp_path / "f", "--delay", "0") as (_, client):
        fill(client)  # `started` ends with SIGKILL
    with running(tmp_path / "f") as client:
        check(client)


def test_a_removed_queue_stays_removed(tmp_path: Path) -> None:
    with running(tmp_path / "f") as client:
        client.put(new(A), new("http://b/"), new("http://c/", crawl="two"))
        client.stub.DeleteQueue(m.QueueWithinCrawlParams(key="a.example"))
        client.stub.DeleteCrawl(m.DeleteCrawlMessage(value="two"))
        client.put(new(B))
    with running(tmp_path / "f") as client:
        assert client.queues() == ["b", "a.example"] and list(client.stub.ListCrawls(m.Local()).values) == ["DEFAULT"]
        assert client.put(new(A), new(B)) == [OK, m.SKIPPED]
        assert client.urls() == ["http://b/", B, A]


def test_a_clock_that_is_set_back_stops_nothing(tmp_path: Path) -> None:
    with running(tmp_path / "f") as client:
        client.put(new(A), new(B))
        client.skip(7200)
        assert client.urls(most=1, hold_s=1) == [A]
        client.skip(-3600)
        time.sleep(1.1)
        assert client.urls(most=1, hold_s=1) == [A]
    with running(tmp_path / "f") as client:  # a process whose clock is two hours behind the last one's
        time.sleep(1.1)
        assert client.urls() == [A, B]


class Putter(threading.Thread):
    """A client that puts URLs in a stream until the server is gone, and remembers what was acknowledged."""

    def __init__(self, client: Client, first: int) -> None:
        super().__init__(daemon=True)
        self.client, self.first, self.acknowledged = client, first, list[str]()

    def run(self) -> None:
        def items() -> Any:
            for number in range(self.first, self.first + 1_000_000):
                item = new(f"http://s{number % 7}/{number}", metadata={"n": [str(number)]})
                item.ID = item.discovered.info.url
                yield item

        try:
            for ack in self.client.stub.PutURLs(items()):
                assert ack.status == OK
                self.acknowledged.append(ack.ID)
        except grpc.RpcError:
            pass


def kill_and_count(folder: Path, rounds: int, acknowledged: int) -> None:
    """Kill the server in the middle of a stream of URLs and of their retrieval, as often as asked."""
    stored: set[str] = set()
    reserved: set[str] = set()
    for number in range(rounds):
        with started(folder, "--delay", "0") as (process, client):
            assert not reserved & set(client.urls(most=20, hold_s=3600))
            putter = Putter(client, number * 1_000_000)
            putter.start()
            end = time.monotonic() + 20
            while len(putter.acknowledged) < acknowledged and time.monotonic() < end:
                reserved.update(client.urls(queues=1, most=5, hold_s=3600))
            process.send_signal(signal.SIGKILL)
            putter.join(20)
            assert len(putter.acknowledged) >= acknowledged
            stored.update(putter.acknowledged)
    with running(folder) as client:
        listed = {
            item.known.info.url: item.known.info for item in client.stub.ListURLs(m.ListUrlParams(size=10_000_000))
        }
        assert stored <= set(listed) and reserved
        assert all(info.metadata["n"].values == [url.rpartition("/")[2]] for url, info in listed.items())
        given = set(client.urls(most=1_000))
        assert not reserved & given


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    kill_and_count(tmp_path / "f", rounds=1, acknowledged=300)


@slow
def test_many_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    kill_and_count(tmp_path / "f", rounds=20 if PROOF else 5, acknowledged=2_000)


def test_two_servers_cannot_share_a_folder_or_a_port(tmp_path: Path) -> None:
    with running(tmp_path / "f") as client:
        from trapline.cli import run

        port = next(iter(client.stub.ListNodes(m.Empty()).values)).rpartition(":")[2]
        assert run(["serve", "urlfrontier", str(tmp_path / "f"), "--listen", "127.0.0.1:0"]) == 2
        arguments = ["serve", "urlfrontier", str(tmp_path / "g"), "--listen", f"127.0.0.1:{port}"]
        command = [sys.executable, "-c", "from trapline.cli import main; main()", *arguments]
        ended = subprocess.run(command, stderr=subprocess.PIPE, text=True)  # gRPC writes to the descriptor itself
        assert ended.returncode == 2
        assert "another server uses this port" in ended.stderr and ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--listen", "7071"], "--listen 7071: not HOST:PORT"),
        (["--listen", "999.1.1.1:7071"], "cannot listen there; if another server"),
        (["--strategy", "pagerank"], "pagerank"),
        (["--strategy", "batch-pagerank"], "choose another"),
        (["--strategy", "breadth-first"], "was made with strategy"),
    ],
)
def test_invalid_options_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    from trapline.cli import run

    with running(tmp_path / "f") as client:
        client.put(new(A))
    assert run(["serve", "urlfrontier", str(tmp_path / "f"), *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
