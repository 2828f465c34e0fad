"""How many processes a crawl needs, and in which mode: arithmetic by Cho and Garcia-Molina 2002 ("Example: generic search engine" and the
two that follow), with costs measured here. It crawls nothing.

    D = N s / T            bytes a second: N pages of s bytes every T seconds
    n = ceil(D / B)        B: the link of one process, in bytes a second; at least N / T / (pages a second of one process)
    u = U c / s            the share that exchange adds to the page bytes: U URLs sent per page, c bytes each
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from trapline.errors import ConfigError
from trapline.parallel import MOST_PARTITIONS
from trapline.parallel.costs import (
    BYTES_PER_URL,
    EXCHANGES,
    FIREWALL_COVERAGE,
    FIREWALL_ENOUGH,
    FIREWALL_PROCESSES,
    FIREWALL_SHARE,
    PAGES_PER_SECOND,
    URLS_PER_PAGE,
)

ONE, FIREWALL, EXCHANGE = "one process", "firewall", "exchange"


@dataclass(frozen=True, slots=True)
class Task:
    pages: int
    every_s: float
    link_bytes_per_s: float
    """of each process"""
    page_bytes: float
    web_pages: int = 0
    """how many there are to choose from; 0: all are fetched"""

    def __post_init__(self) -> None:
        if 0 < self.web_pages < self.pages:
            raise ConfigError(f"--pages {self.pages} of --web-pages {self.web_pages}: there are not so many")

    @property
    def share(self) -> float:
        """Of the web, that is fetched."""
        return self.pages / self.web_pages if self.web_pages else 1.0

    @property
    def bytes_per_s(self) -> float:
        return self.pages * self.page_bytes / self.every_s

    @property
    def processes(self) -> int:
        """
        >>> Task(10**9, 30 * 86_400.0, 1.25e6, 10_000.0).processes
        4
        """
        by_link = self.bytes_per_s / self.link_bytes_per_s
        by_processor = self.pages / self.every_s / PAGES_PER_SECOND
        return max(1, math.ceil(by_link), math.ceil(by_processor))


@dataclass(frozen=True, slots=True)
class Expected:
    """What n processes reach without and with exchange, and what they send each other."""

    firewall_coverage: float
    exchange_coverage: float
    urls_per_page: float
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class CrawlPlan:
    task: Task
    processes: int
    needed: int
    mode: str
    expected: Expected
    coverage: float
    exchanges: int
    """of each process, during one round of the crawl"""
    round_s: float
    """how long the pages take with these processes"""

    @property
    def other_modes(self) -> dict[str, float]:
        """What the modes cover that were not chosen; one process has none."""
        each = {FIREWALL: self.expected.firewall_coverage, EXCHANGE: self.expected.exchange_coverage}
        return {mode: coverage for mode, coverage in each.items() if mode != self.mode and self.mode != ONE}

    @property
    def exchange_every_s(self) -> float:
        return self.round_s / self.exchanges if self.exchanges else math.inf

    @property
    def exchange_share(self) -> float:
        """Bytes of exchange, as a share of those of pages."""
        return self.expected.urls_per_page * BYTES_PER_URL / self.task.page_bytes if self.exchanges else 0.0


def assumed(processes: int) -> Expected:
    """As measured on a generated web."""
    return Expected(between(FIREWALL_COVERAGE, processes), FIREWALL_COVERAGE[1], between(URLS_PER_PAGE, processes))


def between(table: Mapping[int, float], processes: int) -> float:
    """By the logarithm of the number; beyond the table, its last.

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


def affordable(task: Task, processes_most: int | None) -> int:
    """How many processes there will be."""
    if task.processes > MOST_PARTITIONS and processes_most is None:
        raise ConfigError(
            f"{task.processes:,} processes are needed, more than {MOST_PARTITIONS}; give a faster --link or a longer --every"
        )
    return min(task.processes, processes_most or task.processes)


def plan(task: Task, processes: int, expected: Expected) -> CrawlPlan:
    mode = mode_for(processes, expected, task.share)
    exchanges = EXCHANGES if mode == EXCHANGE else 0
    coverage = expected.firewall_coverage if mode == FIREWALL else expected.exchange_coverage
    by_link = task.pages * task.page_bytes / (processes * task.link_bytes_per_s)
    by_processor = task.pages / (processes * PAGES_PER_SECOND)
    round_s = max(task.every_s if processes >= task.processes else 0.0, by_link, by_processor)
    return CrawlPlan(task, processes, task.processes, mode, expected, coverage, exchanges, round_s)


def mode_for(processes: int, expected: Expected, share: float = 1.0) -> str:
    """Firewall for few that reach enough, and fetch most of the web, so that it does not matter which pages come first: it needs no
    messages at all. Else exchange, which reaches what one process does, and as good pages."""
    if processes == 1:
        return ONE
    enough = expected.firewall_coverage >= FIREWALL_ENOUGH * expected.exchange_coverage
    return FIREWALL if processes <= FIREWALL_PROCESSES and enough and share >= FIREWALL_SHARE else EXCHANGE
