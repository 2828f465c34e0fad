"""Measures the cost of the frontier's calls from Python: python bench/calls.py

1. One `next` with 10^3 and with 10^6 sites waiting, and their ratio.
2. The pattern of a live crawl: one `finish` with 20 links and one `next` per page.
3. Snapshot and restore, and replay per page.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

from trapline.cli.warmup import compile_all
from trapline.frontier import FETCHED, Frontier, Outcome, Result, Rules, Visit, snapshot
from trapline.frontier.journal import Journal
from trapline.frontier.replay import replay
from trapline.strategies import pair

ROUNDS = 5


def full_frontier(sites: int) -> Frontier:
    """Return a frontier in which every site has one waiting page and its own address."""
    frontier = Frontier(pair("opic", "top-page"), Rules(delay_s=1e6))
    frontier.add_sites(sites, 0.0, np.arange(sites))
    frontier.add_pages(np.arange(sites))
    frontier.discover(np.random.default_rng(1).permutation(sites), 0.0)
    return frontier


def next_us(frontier: Frontier, calls: int) -> float:
    """Return the microseconds of one `next`; the `finish` that returns the lease is not timed."""
    spent, done = 0.0, Outcome()
    for _ in range(calls):
        started = time.perf_counter()
        visit = frontier.next(0.0)
        spent += time.perf_counter() - started
        assert isinstance(visit, Visit)
        frontier.finish(visit, done, 0.0)
    return spent / calls * 1e6


def next_at_sizes() -> None:
    small, large = full_frontier(1_000), full_frontier(1_000_000)
    costs = []
    for _ in range(ROUNDS):
        costs.append((next_us(small, 150), next_us(large, 150)))
    least_small, least_large = (min(column) for column in zip(*costs, strict=True))
    print(f"next, 10^3 sites   {least_small:6.2f} us")
    print(f"next, 10^6 sites   {least_large:6.2f} us   {least_large / least_small:.2f} times that at 10^3")


def live_like(page_rank: str, site_rank: str, journal: Journal | None = None) -> tuple[Frontier, float]:
    """Crawl 100 sites, 30,000 pages, 20 links each, without delay; return the frontier and microseconds per page."""
    pages, rng = 30_000, np.random.default_rng(1)
    frontier = Frontier(pair(page_rank, site_rank), Rules(delay_s=0.0), journal=journal)
    frontier.add_sites(100, 0.0, np.arange(100))
    frontier.add_pages(np.arange(pages) % 100)
    frontier.discover(np.arange(100), 0.0)
    links = rng.integers(0, pages, (pages, 20)).astype(np.int32)
    fetched, now = 0, 0.0
    started = time.perf_counter()
    while isinstance(visit := frontier.next(now), Visit):
        page = visit.pages[0]
        now += 0.001
        frontier.finish(visit, Outcome((Result(page, FETCHED, links[page], 0.01),), 0.02), now)
        fetched += 1
    return frontier, (time.perf_counter() - started) / fetched * 1e6


def live_patterns() -> None:
    for page_rank, site_rank in (("fifo", "larger-sites-first"), ("opic", "top-page"), ("opic", "crawl-ability")):
        cost = min(live_like(page_rank, site_rank)[1] for _ in range(ROUNDS))
        print(f"finish with 20 links + next, {page_rank} x {site_rank:20} {cost:6.2f} us a page")


def durability() -> None:
    runs = []
    for _ in range(ROUNDS):
        journal = Journal()
        frontier, cost = live_like("opic", "top-page", journal)
        runs.append(cost)
    log = journal.take()
    print(
        f"opic x top-page with a log of calls         {min(runs):6.2f} us a page, {len(log) / 30_000:.0f} bytes a page"
    )
    with tempfile.TemporaryDirectory() as scratch:
        started = time.perf_counter()
        snapshot.save(frontier, Path(scratch) / "snapshot")
        saved = time.perf_counter()
        snapshot.load(Path(scratch) / "snapshot", frontier.strategy)
        print(f"snapshot {(saved - started) * 1e3:.0f} ms, restore {(time.perf_counter() - saved) * 1e3:.0f} ms")
    costs = []
    for _ in range(ROUNDS):
        empty = Frontier(frontier.strategy, frontier.rules)
        started = time.perf_counter()
        replay(empty, log)
        costs.append(time.perf_counter() - started)
    print(f"replay of the whole log                     {min(costs) / 30_000 * 1e6:6.2f} us a page")


if __name__ == "__main__":
    compile_all()
    next_at_sizes()
    live_patterns()
    durability()
