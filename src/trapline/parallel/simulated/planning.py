"""Planning of a parallel crawl: how many processes it needs, and in which mode. The arithmetic is that of Cho and
Garcia-Molina 2002 ("Example: generic search engine" and the two examples that follow), with costs that we measured.
This module fetches nothing.

    D = N s / T            bytes per second: N pages of s bytes every T seconds
    n = ceil(D / B)        B: the link of one process, in bytes per second; at least N / T / (pages per second of one process)
    u = U c / s            bytes of exchange as a share of the page bytes: U URLs sent per page, c bytes each
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from trapline.errors import ConfigError
from trapline.frontier import Rules
from trapline.graph import Graph
from trapline.parallel import MOST_PARTITIONS
from trapline.parallel.partition import Partitioning
from trapline.parallel.simulated.crawl import (
    EXCHANGE,
    FIREWALL,
    ExchangeRules,
    ParallelCrawl,
    ParallelPlan,
    simulate_parallel,
)
from trapline.parallel.simulated.measures import random_seeds
from trapline.progress import CountCallback
from trapline.servers.sampled import constant_servers
from trapline.strategies import load_strategy

# ---- What a plan assumes about the cost and the coverage of parallel crawls. Every number has its source; there are no
# others.
#
# Your web differs from the webs that were measured: `trapline parallel plan --graph` simulates yours instead.

# README.md, `make bench-live`: one loop and its store, 9 kB pages, on loopback, where no link is the limit.
PAGES_PER_SECOND = 3_800.0

# docs/parallel.md, `bench/exchange.py` on uci-ics-crawl, links sent every 100 pages: encoded, with the number of links.
BYTES_PER_URL = 26.0

# docs/reproduce-cho.md, table 1a, the generated web of 200,000 pages: coverage in firewall mode, as a share of all
# pages, by number of partitions.
FIREWALL_COVERAGE = {1: 0.977, 2: 0.960, 4: 0.924, 8: 0.863, 16: 0.767, 32: 0.655, 64: 0.577}

# The same, tables 4a to 4c: with this number of exchanges, every number of partitions has at least 90 % of the quality of one
# process, and four times as many add less than 0.02.
EXCHANGES = 16

# The same, table 4d: URLs sent per page with that number of exchanges, after a fifth of the pages, by number of partitions.
URLS_PER_PAGE = {1: 0.0, 2: 0.708, 8: 1.378, 64: 1.823}

# Cho and Garcia-Molina 2002, conclusions: firewall mode is good for a "small number" of processes (to the best of our
# knowledge, the published number is 4), and if quality matters little because a "relatively large fraction" is
# downloaded. How large that fraction must be, and which share of the coverage of exchange mode firewall mode must
# reach, are our choices.
FIREWALL_PROCESSES = 4
FIREWALL_ENOUGH = 0.9
FIREWALL_SHARE = 0.5


# ---- planning

ONE, PLANNED_FIREWALL, PLANNED_EXCHANGE = "one process", "firewall", "exchange"


@dataclass(frozen=True, slots=True)
class CrawlTask:
    pages: int
    every_s: float
    link_bytes_per_s: float
    """of each process"""
    page_bytes: float
    web_pages: int = 0
    """number of pages to choose from; 0: all pages are fetched"""

    def __post_init__(self) -> None:
        if 0 < self.web_pages < self.pages:
            raise ConfigError(f"--pages {self.pages} is more than --web-pages {self.web_pages}; give fewer pages")

    @property
    def share(self) -> float:
        """Share of the web that is fetched."""
        return self.pages / self.web_pages if self.web_pages else 1.0

    @property
    def bytes_per_s(self) -> float:
        return self.pages * self.page_bytes / self.every_s

    @property
    def processes(self) -> int:
        """Number of processes that the task needs.

        >>> CrawlTask(10**9, 30 * 86_400.0, 1.25e6, 10_000.0).processes
        4
        """
        by_link = self.bytes_per_s / self.link_bytes_per_s
        by_processor = self.pages / self.every_s / PAGES_PER_SECOND
        return max(1, math.ceil(by_link), math.ceil(by_processor))


@dataclass(frozen=True, slots=True)
class Expected:
    """What n processes cover without and with exchange, and what they send each other."""

    firewall_coverage: float
    exchange_coverage: float
    urls_per_page: float
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class CrawlPlan:
    task: CrawlTask
    processes: int
    needed: int
    mode: str
    expected: Expected
    coverage: float
    exchanges: int
    """of each process, during one round of the crawl"""
    round_s: float
    """time in which these processes fetch the pages once"""

    @property
    def other_modes(self) -> dict[str, float]:
        """Coverage of the modes that were not chosen; empty for one process."""
        each = {PLANNED_FIREWALL: self.expected.firewall_coverage, PLANNED_EXCHANGE: self.expected.exchange_coverage}
        return {mode: coverage for mode, coverage in each.items() if mode != self.mode and self.mode != ONE}

    @property
    def exchange_every_s(self) -> float:
        return self.round_s / self.exchanges if self.exchanges else math.inf

    @property
    def exchange_share(self) -> float:
        """Bytes of exchange, as a share of the page bytes."""
        return self.expected.urls_per_page * BYTES_PER_URL / self.task.page_bytes if self.exchanges else 0.0


def assumed(processes: int) -> Expected:
    """Return what to expect, as measured on a generated web."""
    return Expected(between(FIREWALL_COVERAGE, processes), FIREWALL_COVERAGE[1], between(URLS_PER_PAGE, processes))


def between(table: Mapping[int, float], processes: int) -> float:
    """Interpolate in a table by the logarithm of the number of processes; beyond the table, return its last value.

    >>> round(between({1: 1.0, 4: 0.5}, 2), 9), between({1: 1.0, 4: 0.5}, 9)
    (0.75, 0.5)
    """
    known = sorted(table)
    high = next((n for n in known if n >= processes), known[-1])
    low = max((n for n in known if n <= processes), default=known[0])
    if low >= high:
        return table[high]
    part = math.log2(processes / low) / math.log2(high / low)
    return table[low] + part * (table[high] - table[low])


def affordable(task: CrawlTask, processes_most: int | None) -> int:
    """Return the number of processes: as many as are needed, but at most `processes_most`."""
    if task.processes > MOST_PARTITIONS and processes_most is None:
        raise ConfigError(
            f"{task.processes:,} processes are needed, but {MOST_PARTITIONS:,} are the maximum; give a faster --link or a longer --every"
        )
    return min(task.processes, processes_most or task.processes)


def plan(task: CrawlTask, processes: int, expected: Expected) -> CrawlPlan:
    mode = mode_for(processes, expected, task.share)
    exchanges = EXCHANGES if mode == PLANNED_EXCHANGE else 0
    coverage = expected.firewall_coverage if mode == PLANNED_FIREWALL else expected.exchange_coverage
    by_link = task.pages * task.page_bytes / (processes * task.link_bytes_per_s)
    by_processor = task.pages / (processes * PAGES_PER_SECOND)
    round_s = max(task.every_s if processes >= task.processes else 0.0, by_link, by_processor)
    return CrawlPlan(task, processes, task.processes, mode, expected, coverage, exchanges, round_s)


def mode_for(processes: int, expected: Expected, share: float = 1.0) -> str:
    """Choose the mode. Firewall, which needs no messages at all, if the processes are few, cover enough, and fetch most
    of the web, so that it does not matter which pages come first. Otherwise exchange, which covers what one process
    covers, with pages of the same quality."""
    if processes == 1:
        return ONE
    enough = expected.firewall_coverage >= FIREWALL_ENOUGH * expected.exchange_coverage
    return (
        PLANNED_FIREWALL if processes <= FIREWALL_PROCESSES and enough and share >= FIREWALL_SHARE else PLANNED_EXCHANGE
    )


# ---- A plan tried on a graph: what n partitions cover with firewall and with exchange, and what they send. The crawls
# are simulated, with one second per page and one connection per partition; only shares are taken from them.


def rehearse(graph: Graph, processes: int, seeds: int, progress: CountCallback, seed: int = 0) -> Expected:
    """Simulate the plan on a graph. `seeds`: number of random seed pages of each process. `progress`: receives the
    progress. Coverage is a share of all pages of the graph."""
    partitioning = Partitioning("site-hash", processes)
    sampled = random_seeds(partitioning.owners(graph), processes, seeds, seed)
    every = max(1, graph.pages // (processes * EXCHANGES))

    def crawl(mode: str) -> ParallelCrawl:
        plan = ParallelPlan(mode, partitioning, ExchangeRules(every_pages=every), step_s=float(max(1, every // 4)))
        return simulate_parallel(
            graph, load_strategy("backlink-count"), Rules(delay_s=0.0), plan,
            seeds=sampled, servers=constant_servers(1.0), progress=progress,
        )  # fmt: skip

    firewall, exchange = crawl(FIREWALL), crawl(EXCHANGE)
    pages = fetched(exchange)
    sent = exchange.traffic.urls / max(1, pages)
    return Expected(fetched(firewall) / graph.pages, pages / graph.pages, sent, simulated=True)


def fetched(crawl: ParallelCrawl) -> int:
    """Return the number of fetched pages. Neither mode fetches a page twice, and no fetch fails in this simulation."""
    return sum(len(log.page) for log in crawl.logs)
