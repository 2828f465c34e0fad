"""Parallel crawls of one graph, for `cho`. A crawl is given by a setting and a draw of the seeds.

This module does not know what the paper expects. As in the paper, time is counted in pages: a partition has one connection, every
page takes a second, and sites have no delay. A step is many pages long where its length does not matter: coverage and links between
partitions do not depend on it.
"""

import hashlib
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trapline.frontier import Rules
from trapline.frontier.layout import FETCHED
from trapline.graph import Graph
from trapline.parallel.partition import Partitioning
from trapline.parallel.simulated.crawl import (
    CROSS_OVER,
    INDEPENDENT,
    ExchangeRules,
    ParallelCrawl,
    ParallelPlan,
    simulate_parallel,
)
from trapline.parallel.simulated.measures import ParallelRecord, judge, merged, random_seeds
from trapline.rng import uniform
from trapline.servers.sampled import constant_servers
from trapline.strategies import load_strategy

SEEDS = 5  # random pages per partition, as published, to the best of our knowledge
RULES = Rules(delay_s=0.0, per_connection=1)
SERVERS = constant_servers(1.0)
STEPS = 256  # number of steps in which a partition fetches its share of the pages
# Number of steps of all partitions together, and the least of one, where order does not matter: messages between 64
# would take most time
STEPS_WHOLE, STEPS_LEAST = 128, 4
_STREAMS = 4096  # random streams per draw: one for each partition
_HALVES = 1 << 30  # the random stream that selects half of the sites; different from all streams of seeds
Ids = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting of a crawl.

    `seeds`: number of seeds in all; 0: five per partition. `seeded_as`: number of partitions for which the seeds are drawn;
    0: the number of partitions of the crawl.
    """

    mode: str
    partitions: int
    kind: str = "site-hash"
    strategy: str = "breadth-first"
    most: int | None = None
    every_pages: int = 1
    filter_size: int = 0
    filter_policy: str = "lru"
    replicated: int = 0
    seeds: int = 0
    seeded_as: int = 0
    grain: str = "site"
    half: bool = False
    suffixes: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        """Everything that differs from the defaults, in one line."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "suffixes"}
        if self.suffixes:
            values["suffixes"] = hashlib.sha256(repr(self.suffixes).encode()).hexdigest()[:12]
        kept = [f"{name} {value}" for name, value in values.items() if value != _DEFAULTS.get(name)]
        return ", ".join(kept)

    @property
    def alone(self) -> "Setting":
        """The setting of one process with the same seeds."""
        seeded_as = self.seeded_as or self.partitions
        return replace(self, mode="firewall", partitions=1, kind="site-hash", seeded_as=seeded_as, every_pages=1)


_DEFAULTS = {entry.name: entry.default for entry in fields(Setting)}


@dataclass(frozen=True, slots=True)
class CrawlResult:
    """The measures of one crawl."""

    record: ParallelRecord
    quality: float
    """share of the `most` best pages that was fetched, however many pages were fetched"""
    links_per_page: float
    """mean number of links on the fetched pages"""
    course: Floats
    """[2, rows] coverage of all pages, and overlap, after each page; only for cross-over and independent crawls"""

    @property
    def links_sent_at_once(self) -> float:
        """URLs sent per page if each link is sent when it is found; 0 for a mode that sends none."""
        record = self.record
        if not record.urls_exchanged:
            return 0.0
        return (record.links_between_partitions - record.links_replicated) / max(1, record.pages_downloaded)


@dataclass(frozen=True, eq=False)
class CrawledWeb:
    """A graph to crawl. `name` says everything that decides its pages and links."""

    name: str
    graph: Graph
    _halves: dict[int, Graph] = field(default_factory=dict)

    @cached_property
    def by_links(self) -> Ids:
        """Pages by the number of links to them, largest number first."""
        return np.argsort(-backlinks(self.graph), kind="stable").astype(np.int32)

    def crawl(self, setting: Setting, draw: int) -> CrawlResult:
        graph = self._half(draw) if setting.half else self.graph
        partitioning = Partitioning(setting.kind, setting.partitions, dict(setting.suffixes))
        seeds = draw_seeds(graph, self._seeding(setting), setting.seeds, draw)
        crawl = simulate_parallel(
            graph, load_strategy(setting.strategy), RULES, self._plan(setting, partitioning, graph.pages),
            seeds=seeds, servers=SERVERS, connections=1, most=setting.most,
        )  # fmt: skip
        page_values = backlinks(graph)
        record = judge(crawl, graph, RULES, SERVERS, page_values, setting.most)
        best = share_of_best(crawl, page_values, min(setting.most or graph.pages, graph.pages))
        twice = setting.mode in (CROSS_OVER, INDEPENDENT)
        curve = course(crawl, graph.pages) if twice else np.zeros((2, 0))
        return CrawlResult(record, best, links_per_page(crawl, graph), curve)

    def _seeding(self, setting: Setting) -> Partitioning:
        """Return the partitioning by which seeds are drawn, also where a coordinator assigns pages or one process has all of them."""
        return Partitioning("site-hash", setting.seeded_as or setting.partitions)

    def _plan(self, setting: Setting, partitioning: Partitioning, pages: int) -> ParallelPlan:
        known = self.by_links[: setting.replicated] if setting.replicated else None
        exchange = ExchangeRules(setting.every_pages, setting.filter_size, setting.filter_policy, known)
        step = float(step_pages(setting, pages))
        return ParallelPlan(
            setting.mode, partitioning, exchange, grain=setting.grain, step_s=step, crossing_pages=int(step)
        )  # fmt: skip

    def _half(self, draw: int) -> Graph:
        if draw not in self._halves:
            kept = [uniform(_HALVES + draw, site) < 0.5 for site in range(self.graph.sites)]
            self._halves[draw] = with_sites(self.graph, np.array(kept))
        return self._halves[draw]


def step_pages(setting: Setting, pages: int) -> int:
    """Return the length of a step: the number of pages that each partition fetches before links are passed on."""
    own = (setting.most or pages) / setting.partitions
    if setting.every_pages > 1:
        return max(1, setting.every_pages // 4)
    steps = STEPS if setting.most else max(STEPS_LEAST, STEPS_WHOLE // setting.partitions)
    return max(1, int(own / steps))


def backlinks(graph: Graph) -> Floats:
    """Return the number of links to each page."""
    return np.bincount(graph.targets, minlength=graph.pages).astype(np.float64)


def draw_seeds(graph: Graph, partitioning: Partitioning, seeds: int, draw: int) -> Ids:
    """Draw random pages of each partition as seeds: five, or its share of `seeds` in all."""
    each = SEEDS if seeds == 0 else max(1, seeds // partitioning.partitions)
    return random_seeds(partitioning.owners(graph), partitioning.partitions, each, draw * _STREAMS)


def with_sites(graph: Graph, kept: NDArray[np.bool_]) -> Graph:
    """Return the graph of the pages of these sites and the links between them."""
    pages = np.flatnonzero(kept[graph.site])
    number = np.full(graph.pages, -1, np.int32)
    number[pages] = np.arange(len(pages), dtype=np.int32)
    source = number[np.repeat(np.arange(graph.pages), np.diff(graph.offsets))]
    inside = (source >= 0) & (number[graph.targets] >= 0)
    degree = np.bincount(source[inside], minlength=len(pages))
    sites, site = np.unique(graph.site[pages], return_inverse=True)
    return Graph(
        offsets=np.concatenate(([0], np.cumsum(degree))).astype(np.int64),
        targets=number[graph.targets[inside]],
        site=site.astype(np.int32),
        home=number[graph.home[sites]],
        dynamic=graph.dynamic[pages],
        ips=np.arange(len(sites), dtype=np.int32),
    )


def share_of_best(crawl: ParallelCrawl, page_values: Floats, number: int) -> float:
    """Return the share of the `number` best pages that is among the first `number` fetched pages. Ties with the last page count.

    `measures.quality` uses the number of fetched pages in place of `number`, which would favour a firewall crawl that ran out
    of pages early.
    """
    log, _ = merged(crawl.logs, number)
    pages = np.unique(log.page[log.result == FETCHED])
    least = np.partition(page_values, len(page_values) - number)[len(page_values) - number]
    better = int((page_values > least).sum())
    ours = page_values[pages]
    return (int((ours > least).sum()) + min(int((ours == least).sum()), number - better)) / number


def links_per_page(crawl: ParallelCrawl, graph: Graph) -> float:
    """Return the mean number of links on the fetched pages."""
    fetched = np.concatenate([log.page[log.result == FETCHED] for log in crawl.logs])
    return float(np.diff(graph.offsets)[fetched].mean()) if len(fetched) else 0.0


def course(crawl: ParallelCrawl, pages: int) -> Floats:
    """Return coverage and overlap after each fetched page."""
    log, _ = merged(crawl.logs)
    fetched = log.page[log.result == FETCHED]
    first = np.zeros(len(fetched), np.bool_)
    first[np.unique(fetched, return_index=True)[1]] = True
    distinct = np.cumsum(first)
    return np.stack([distinct / pages, np.arange(1, len(fetched) + 1) / distinct - 1.0])
