"""Staged crawls that one thing keeps from being faster: the answer names it, and what would help helps as much as it says."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trapline import cli
from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.crawler.engine.run import run_crawl
from trapline.crawler.engine.status import CrawlStatus
from trapline.crawler.files.opening import Prepared, opened
from trapline.crawler.files.resume import strategy_of
from trapline.crawler.files.status_file import read_status
from trapline.crawler.inspect.why_not_faster import SpeedAnswer
from trapline.graph import generate
from trapline.graph.graph import Graph
from trapline.testweb import Behaviour, Served, build_web, serve

PATIENCE_S = 60.0
HELD = 6  # statuses in a row with the expected answer: three seconds


@contextmanager
def until(limit: str, times: int, seen: list[CrawlStatus], act: Callable[[CrawlStatus], None]) -> Iterator[Any]:
    """Interrupt the crawl when it has given this answer so many times in a row, or patience ends."""
    began, is_sent = time.monotonic(), False

    def show(status: CrawlStatus) -> None:
        nonlocal is_sent
        act(status)
        if is_sent or status.answer is None:
            return
        seen.append(status)
        held = [one.answer.limit for one in seen[-times:] if one.answer]
        if held == [limit] * times or time.monotonic() - began > PATIENCE_S:
            is_sent = True
            signal.raise_signal(signal.SIGINT)

    yield show


def crawl_options(server: Served | None, **given: Any) -> CrawlOptions:
    fields = CrawlOptions.__dataclass_fields__
    rules = {name: given.pop(name) for name in list(given) if name not in fields}
    hosts = {name: (address,) for name, address in server.hosts.items()} if server else {}
    seeds = tuple(server.seed_urls) if server else ()
    given = {"seeds": seeds, "hosts": hosts, "allow_private": True, "pause_s": 0.0, "scope": "any", **given}
    return CrawlOptions(rules=live_rules(**{"delay_s": 0.0, **rules}), **given)


def answer(
    folder: Path,
    options: CrawlOptions,
    limit: str,
    times: int = HELD,
    act: Callable[[CrawlStatus], None] = lambda status: None,
) -> SpeedAnswer:
    """Crawl until the answer is the expected one. Return the answer."""
    seen: list[CrawlStatus] = []
    prepared = Prepared(folder, options, strategy_of(options), new=True)
    run_crawl(opened(prepared), until(limit, times, seen, act))
    last = seen[-1].answer
    assert last is not None
    assert last.limit == limit, [(one.answer.limit, one.answer.sentence) for one in seen[-8:] if one.answer]
    assert sum(last.shares.values()) == options.connections
    return last


def factor(found: SpeedAnswer, text: str) -> float:
    return next(one.factor for one in found.help if one.text.startswith(text) and one.factor)


# ---- short ones


def test_one_large_site_leaves_the_other_connections_without_work(tmp_path: Path) -> None:
    with serve(build_web(generate(3_000, 1, seed=1), Behaviour())) as server:
        options = crawl_options(server, delay_s=2.0, per_connection=5, connections=64)
        found = answer(tmp_path / "c", options, "few-sites", 2)
    assert found.sentence.startswith("63 of 64 connections have nothing to do: all ")
    assert "waiting pages are on one site, which gives 5 pages every 2" in found.sentence
    assert any(one.text.startswith("--per-connection 10 (now 5)") for one in found.help)
    record = read_status(tmp_path / "c")
    assert record is not None and record["stopped_by"] == "interrupted" and record["connections"]["limit"] == 64


def test_a_crawl_that_has_ended_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(build_web(generate(200, 10, seed=1), Behaviour())) as server:
        options = crawl_options(server)
        run_crawl(opened(Prepared(tmp_path / "c", options, strategy_of(options), new=True)), quiet())
    assert cli.run(["status", "--json", str(tmp_path / "c")]) == 0
    found = json.loads(capsys.readouterr().out)["why_not_faster"]
    assert (found["limit"], found["sentence"]) == ("drained", "Nothing is left to fetch.")
    assert cli.run(["status", str(tmp_path / "c")]) == 0
    assert "why not faster: Nothing is left to fetch." in capsys.readouterr().out


@contextmanager
def quiet() -> Iterator[Any]:
    yield lambda status: None


# ---- long ones


@pytest.mark.slow
def test_one_large_site_for_three_seconds(tmp_path: Path) -> None:
    with serve(build_web(generate(3_000, 1, seed=1), Behaviour())) as server:
        options = crawl_options(server, delay_s=2.0, per_connection=5, connections=64)
        found = answer(tmp_path / "c", options, "few-sites")
    assert found.sentence.startswith("63 of 64 connections have nothing to do") and found.shares["nothing_to_do"] == 63


@pytest.mark.slow
def test_dead_name_servers(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        seeds = tuple(f"http://host{number}.example/" for number in range(40))
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        options = crawl_options(None, seeds=seeds, nameservers=(where,), connections=32)
        found = answer(tmp_path / "c", options, "dns")
    assert found.sentence == "All 32 connections wait for DNS: name servers have not answered for 40 sites yet."


@pytest.mark.slow
def test_slow_robots_txt(tmp_path: Path) -> None:
    with serve(build_web(generate(400, 40, seed=1), Behaviour(connection_s=20.0))) as server:
        found = answer(tmp_path / "c", crawl_options(server, connections=32), "robots")
    assert found.sentence.endswith("2 connections wait for the robots.txt of their sites.")


@pytest.mark.slow
def test_a_slow_store(tmp_path: Path) -> None:
    graph = sized(generate(4_000, 40, seed=1, max_site_pages=100), 60_000)
    stopped: list[int] = []

    def act(status: CrawlStatus) -> None:
        if not stopped and status.progress.pages >= 100:
            stopped.extend(children())
            for process in stopped:
                os.kill(process, signal.SIGSTOP)

    try:
        with serve(build_web(graph, Behaviour())) as server:
            options = crawl_options(server, connections=16)
            found = answer_and_continue(tmp_path / "c", options, "store", act, stopped)
    finally:
        for process in stopped:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)
    assert " connections wait for the store, which has 1" in found.sentence
    assert found.sentence.endswith(" MB to write.")


def answer_and_continue(
    folder: Path, options: CrawlOptions, limit: str, act: Callable[[CrawlStatus], None], stopped: list[int]
) -> SpeedAnswer:
    """As `answer`, for a store that is stopped: let it go on before the crawl is interrupted, or it could not end."""
    held = 0

    def act_and_count(status: CrawlStatus) -> None:
        nonlocal held
        act(status)
        held = held + 1 if status.answer and status.answer.limit == limit else 0
        if held == HELD:
            for process in stopped:
                os.kill(process, signal.SIGCONT)

    return answer(folder, options, limit, act=act_and_count)


def children() -> list[int]:
    """Return the store process of this process: testweb's servers are children, too, and are not to be stopped."""
    found = []
    for text in Path("/proc/self/task").glob("*/children"):
        for process in map(int, text.read_text().split()):
            if b"trapline.crawler.store" in Path(f"/proc/{process}/cmdline").read_bytes():
                found.append(process)
    return found


def sized(graph: Graph, size: int) -> Graph:
    """Return the graph with pages of one size."""
    return replace(graph, sizes=np.full(graph.pages, size, np.int64))


@pytest.mark.slow
def test_all_sites_are_in_back_off(tmp_path: Path) -> None:
    with serve(build_web(generate(300, 30, seed=1), Behaviour(robots="error"))) as server:
        options = crawl_options(server, backoff_s=60.0, abandon=100, connections=64)
        found = answer(tmp_path / "c", options, "back-off")
    assert found.sentence.startswith(
        "All 30 sites with waiting pages are in back-off after failed visits; the next visit is in "
    )


@pytest.mark.slow
def test_a_drained_crawl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test_a_crawl_that_has_ended_says_why(tmp_path, capsys)


# ---- whose factors are measured


def speed(folder: Path, options: CrawlOptions, from_s: float, to_s: float) -> float:
    """Return the pages per second of a crawl, between two moments of it."""
    marks: list[tuple[float, int]] = []

    @contextmanager
    def view() -> Iterator[Any]:
        def show(status: CrawlStatus) -> None:
            now = status.progress
            if from_s <= now.seconds and not status.stopped_by:
                marks.append((now.seconds, now.pages))
                if now.seconds >= to_s:
                    signal.raise_signal(signal.SIGINT)

        yield show

    run_crawl(opened(Prepared(folder, options, strategy_of(options), new=True)), view())
    (first_s, before), (last_s, after) = marks[0], marks[-1]
    assert last_s >= to_s, f"the crawl has ended after {last_s} s with {after} pages"
    return (after - before) / (last_s - first_s)


def assert_predicted(
    folder: Path, server: Served, given: dict[str, Any], then: dict[str, Any], factor: float, from_s: float, to_s: float
) -> None:
    """Crawl with both options, and compare the speeds with the predicted factor."""
    slow = speed(folder / "slow", crawl_options(server, **given), from_s, to_s)
    fast = speed(folder / "fast", crawl_options(server, **{**given, **then}), from_s, to_s)
    assert 0.7 <= fast / slow / factor <= 1.4, (slow, fast, factor)


@pytest.mark.slow
def test_a_bandwidth_limit(tmp_path: Path) -> None:
    graph = sized(generate(3_000, 30, seed=1, max_site_pages=100), 9_000)
    given = {"bandwidth": 30e3, "connections": 16}
    with serve(build_web(graph, Behaviour())) as server:
        found = answer(tmp_path / "c", crawl_options(server, **given), "bandwidth")
        assert_predicted(tmp_path, server, given, {"bandwidth": 60e3}, factor(found, "--bandwidth 60kB"), 8.0, 20.0)
    assert found.sentence.endswith(" connections wait for --bandwidth 30 kB/s.")
    assert factor(found, "--bandwidth 60kB (now 30kB)") == 2.0


@pytest.mark.slow
def test_too_few_connections(tmp_path: Path) -> None:
    given = {"connections": 2}
    with serve(build_web(generate(3_000, 60, seed=1, max_site_pages=50), Behaviour(latency_s=0.2))) as server:
        found = answer(tmp_path / "c", crawl_options(server, **given), "connections")
        assert_predicted(tmp_path, server, given, {"connections": 4}, factor(found, "--connections 4"), 4.0, 16.0)
    assert found.sentence.startswith("Both connections are in use, and ")
    assert found.sentence.endswith(" more sites could be visited now.")


@pytest.mark.slow
def test_too_few_pages_per_connection(tmp_path: Path) -> None:
    given = {"connections": 16, "delay_s": 5.0, "per_connection": 1}
    with serve(build_web(generate(12_000, 40, seed=1, max_site_pages=300), Behaviour(latency_s=0.01))) as server:
        found = answer(tmp_path / "c", crawl_options(server, **given), "per-connection")
        predicted = factor(found, "--per-connection 2 ")
        assert_predicted(tmp_path, server, given, {"per_connection": 2}, predicted, 6.0, 26.0)
    assert found.sentence.endswith(
        " connections wait for the delay of their sites, which follows every visit of 1 page."
    )
    assert factor(found, "--per-connection 10 (now 1); for sites of your own") >= 5.0


# ---- a full disk

_FULL = """
mount -t tmpfs -o size=12m tmpfs "$1" || exit 77
folder="$2"; shift 2
"$@"
"$1" -c 'from trapline.cli import main; main()' status --json "$folder"
"""
_CRAWL = """
import sys
from contextlib import nullcontext
from pathlib import Path
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.run import open_crawl
open_crawl(CrawlOptions.from_json(sys.argv[2]), Path(sys.argv[1]), nullcontext(lambda status: None))
"""


@pytest.mark.slow
def test_a_full_disk(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is missing")
    (tmp_path / "disk").mkdir()
    graph = sized(generate(4_000, 40, seed=1, max_site_pages=100), 60_000)
    with serve(build_web(graph, Behaviour())) as server:
        folder = tmp_path / "disk" / "c"
        command = [sys.executable, "-c", _CRAWL, str(folder), crawl_options(server, connections=16).to_json()]
        script = ["unshare", "-m", "sh", "-c", _FULL, "sh", str(tmp_path / "disk"), str(folder), *command]
        done = subprocess.run(script, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(f"a disk of its own cannot be mounted: {done.stderr}")
    found = json.loads(done.stdout)
    assert (found["state"], found["why_not_faster"]["limit"]) == ("broken off", "disk")
    assert found["why_not_faster"]["sentence"] == (
        f"The crawl has stopped because the disk is full; make room and continue with --resume {folder}."
    )
