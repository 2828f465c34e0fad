"""Live crawls in every mode and by every partition function fetch the pages that the simulator says, whatever happens to a
process."""

import json
import os
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.effort import slow
from tests.parallel.processes_world import (
    PAGES,
    PROMISE,
    crawl,
    fetched,
    graph,
    has,
    meanwhile,
    requests_of_pages,
    rows,
    served,
    wait_for,
)
from tests.parallel.ray_world import TOKEN, cluster
from trapline.cli import run
from trapline.cli.crawl.end import closing_lines
from trapline.crawler.files.lock import holder
from trapline.frontier import Rules
from trapline.graph import Graph
from trapline.graph.strings import StoredStrings
from trapline.parallel import CROSS_OVER, EXCHANGE, FIREWALL
from trapline.parallel.folder.manifest import read
from trapline.parallel.partition import Partitioning
from trapline.parallel.simulated.crawl import ExchangeRules, ParallelPlan, simulate_parallel
from trapline.servers.sampled import constant_servers
from trapline.strategies import load_strategy
from trapline.testweb import Served, check

Captured = pytest.CaptureFixture[str]
BY_NAME = ("--ip-delay", 0)  # sites on one address may have several owners
OWN = ("--own-hosts", "test")
SUFFIXES = {"site-1.test": 1, "site-2.test": 0}
# The first sites, whose home pages are seeds. A single one shows what a firewall does not reach. Owners depend on the port of the
# server: with many seeds, every partition owns one, and two partitions can overlap.
SEEDS = {FIREWALL: 1, CROSS_OVER: 12, EXCHANGE: 4}


def named(server: Served) -> Graph:
    """Return the graph with the names that the server gives to pages and sites."""
    urls = [server.web.url(page) for page in range(PAGES)]
    return replace(graph(), urls=StoredStrings.of(urls), site_names=StoredStrings.of(server.web.names))


def simulated(server: Served, mode: str, partitioning: Partitioning, replicated: Sequence[int] = ()) -> list[set[str]]:
    """Return the pages that each partition fetches in simulated time."""
    web = named(server)
    plan = ParallelPlan(mode, partitioning, ExchangeRules(replicated=np.array(replicated, np.int32)))
    crawled = simulate_parallel(
        web, load_strategy("breadth-first"), Rules(), plan, seeds=web.home[: SEEDS[mode]], servers=constant_servers(0.1)
    )
    return [{server.web.url(page) for page in log.page.tolist()} for log in crawled.logs]


def by_partition(folder: Path) -> list[set[str]]:
    return [set(fetched(part)) for part in read(folder).parts]


def seeded(server: Served, arguments: Sequence[str], mode: str) -> list[str]:
    """Return the arguments of a crawl in this mode, with its seeds."""
    return [*server.seed_urls[: SEEDS[mode]], *arguments[1:], "--mode", mode]


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


@slow
@pytest.mark.parametrize(
    ("mode", "partitioning", "options"),
    [
        (FIREWALL, Partitioning("rendezvous", 2), BY_NAME),
        pytest.param(CROSS_OVER, Partitioning("rendezvous", 2), OWN, marks=slow),
        pytest.param(EXCHANGE, Partitioning("url-hash", 2), (*OWN, "--exchange-every", 25), marks=slow),
        pytest.param(FIREWALL, Partitioning("site-hash", 3), BY_NAME, marks=slow),
        pytest.param(CROSS_OVER, Partitioning("url-hash", 3), OWN, marks=slow),
        pytest.param(EXCHANGE, Partitioning("site-hash", 3), (*BY_NAME, "--exchange-every", 1000), marks=slow),
        pytest.param(EXCHANGE, Partitioning("suffix", 3, SUFFIXES), BY_NAME, marks=slow),
    ],
    ids=lambda given: given.kind if isinstance(given, Partitioning) else given if isinstance(given, str) else "",
)
def test_each_process_fetches_what_its_partition_fetches_in_simulated_time(
    tmp_path: Path, mode: str, partitioning: Partitioning, options: tuple[object, ...]
) -> None:
    folder = tmp_path / "c"
    table = ",".join(f"{suffix}={partition}" for suffix, partition in partitioning.suffixes.items())
    typed = ("--partition", partitioning.kind, *(("--suffixes", table) if table else ()), *options)
    with served(tmp_path) as (server, arguments):
        given = seeded(server, arguments, mode)
        assert crawl(*given, "-o", folder, "--processes", partitioning.partitions, *typed) == 0
        expected, requests = simulated(server, mode, partitioning), requests_of_pages(server)
    assert by_partition(folder) == expected
    found, downloads, distinct = summary(folder), sum(map(len, expected)), len(set().union(*expected))
    assert sum(requests.values()) == downloads and len(requests) == distinct == found["pages_fetched"]
    assert (found["mode"], found["partition"], found["processes"]) == (mode, partitioning.kind, partitioning.partitions)
    assert found["overlap"] == pytest.approx((downloads - distinct) / distinct)
    assert (found["overlap"] > 0) == (mode == CROSS_OVER)
    assert (found["urls_exchanged"] > 0) == (mode == EXCHANGE)
    assert (distinct == PAGES) == (mode != FIREWALL)


def kill(folder: Path, part: str, pages: int, killed: list[int]) -> None:
    """Kill the process of a partition when it has fetched this many pages."""
    wait_for(lambda: has(folder / part, pages))
    process = holder(folder / part)
    assert process is not None
    os.kill(process, signal.SIGKILL)
    killed.append(process)


@slow
@pytest.mark.parametrize(
    ("mode", "options", "pages"),
    [(CROSS_OVER, OWN, PAGES * 2 // 3), (EXCHANGE, ("--exchange-every", 1000), 20)],
    ids=[CROSS_OVER, EXCHANGE],
)
def test_links_that_wait_survive_a_kill_and_a_stop(
    tmp_path: Path, mode: str, options: tuple[object, ...], pages: int
) -> None:
    """A partition is killed while links wait in it; later the crawl stops at a limit and is resumed. In mode cross-over the
    kill comes when the partition fetches pages of others."""
    folder, killed = tmp_path / "c", list[int]()
    with served(tmp_path, latency_s=0.02) as (server, arguments):
        given = [*seeded(server, arguments, mode), "-o", folder, "--processes", 2, *options]
        victim = max(range(2), key=lambda part: len(simulated(server, mode, owners(mode))[part]))
        with meanwhile(lambda: kill(folder, f"partition-{victim}", pages, killed)):
            assert crawl(*given, "--max-pages", PAGES - 20 if mode == EXCHANGE else 2 * PAGES - 20) == 0
        assert summary(folder)["stopped_by"] == "max-pages"
        waiting = [rows(part, "select count(*) from pending_link")[0][0] for part in read(folder).parts]
        assert crawl("--resume", folder, "--max-pages", 100_000) == 0
        findings = check(server.log(), PROMISE)
    assert killed and any(waiting)
    if mode == CROSS_OVER:
        assert by_partition(folder) == [{server.web.url(page) for page in range(PAGES)}] * 2
        assert max(count for part in read(folder).parts for count in fetched(part).values()) == 1
    else:
        assert len(fetched(folder)) == PAGES and set(fetched(folder).values()) == {1}
        assert (findings.overlaps, findings.early) == ([], [])
    assert all(rows(part, "select count(*) from pending_link") == [(0,)] for part in read(folder).parts)


def owners(mode: str) -> Partitioning:
    return Partitioning("rendezvous" if mode == CROSS_OVER else "address", 2)


@slow
def test_a_firewall_grows_and_url_hash_does_not(tmp_path: Path, capsys: Captured) -> None:
    folder, fixed = tmp_path / "c", tmp_path / "fixed"
    with served(tmp_path) as (server, arguments):
        given = seeded(server, arguments, FIREWALL)
        assert crawl(*given, "-o", folder, "--processes", 2, *BY_NAME, "--max-pages", 12) == 0
        assert crawl("--resume", folder, "--processes", 3, "--max-pages", 1000) == 0
        by_url = ("--processes", 2, "--partition", "url-hash", *OWN)
        assert crawl(*seeded(server, arguments, EXCHANGE), "-o", fixed, *by_url, "--max-pages", 5) == 0
        capsys.readouterr()
        assert crawl("--resume", fixed, "--processes", 3) == 2
        assert "cannot grow: with --partition url-hash, most pages would move" in capsys.readouterr().err
    assert set(fetched(folder).values()) == {1} and read(folder).sizes == (2, 3)
    assert summary(folder)["urls_exchanged"] == 0


@slow
def test_urls_of_an_older_crawl_are_replicated(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with served(tmp_path) as (server, arguments):
        by_site = ("--partition", "site-hash", *BY_NAME, "--processes", 2)
        assert crawl(*seeded(server, arguments, EXCHANGE), *by_site, "-o", old) == 0
        given = [*seeded(server, arguments, FIREWALL), *by_site, "--replicate", 30, "--in-links", old]
        assert crawl(*given, "-o", new) == 0
        page_of = {server.web.url(page): page for page in range(PAGES)}
        replicated = [page_of[url] for url in read(new).policy.replicated]
        expected = simulated(server, FIREWALL, Partitioning("site-hash", 2), replicated)
    web = graph()
    links = Counter(target for page in range(PAGES) for target in set(web.targets_of(page).tolist()))
    others = set(range(PAGES)) - set(replicated) - set(web.home[: SEEDS[FIREWALL]].tolist())
    assert 30 - SEEDS[FIREWALL] <= len(replicated) <= 30
    assert min(links[page] for page in replicated) >= max(links[page] for page in others)
    assert by_partition(new) == expected


@slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_modes_work_on_ray_and_every_command_reads_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    for name, value in TOKEN.items():
        monkeypatch.setenv(name, value)
    by_name = Partitioning("rendezvous", 2)
    with cluster() as address, served(tmp_path) as (server, arguments):
        for mode in (FIREWALL, CROSS_OVER):
            given = [*seeded(server, arguments, mode), *OWN, "--processes", 2, "--ray", address]
            assert crawl(*given, "-o", tmp_path / mode) == 0
            assert by_partition(tmp_path / mode) == simulated(server, mode, by_name)
        folder, page = tmp_path / CROSS_OVER, server.web.url(PAGES - 1)
    for command in (["verify", folder], ["report", folder], ["status", folder], ["explain", folder, page]):
        assert run(list(map(str, command))) == 0
    assert "mode: cross-over" in closing_lines(summary(folder), folder)
