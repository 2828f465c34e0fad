"""Parallel crawls of one graph, for `cho`: what is crawled is a setting and a draw of the seeds. The same crawl is run once, however
many experiments look at it. It knows nothing of what is expected.

As in the paper, time is pages: a partition has one robot, every page takes a second, sites need no rest. A step is many pages long
where it decides nothing: coverage and links between partitions do not depend on it.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trapline.frontier import Rules
from trapline.frontier.layout import FETCHED
from trapline.graph import Graph
from trapline.parallel.in_process import CROSS_OVER, INDEPENDENT, Exchange, ParallelCrawl, Plan, simulate_parallel
from trapline.parallel.measures import ParallelRecord, judge, merged
from trapline.parallel.partition import Partitioning
from trapline.parallel.seeds import random_seeds
from trapline.rng import uniform
from trapline.simulate.servers import constant_servers
from trapline.strategies import load_strategy

SEEDS = 5  # random pages a partition, as published, to the best of our knowledge
RULES = Rules(delay_s=0.0, per_connection=1)
SERVERS = constant_servers(1.0)
STEPS = 256  # of a partition, for its share of the pages
STEPS_WHOLE, STEPS_LEAST = (
    128,
    4,
)  # of all partitions together, where no order is asked for: messages between 64 would take most of the time
_STREAMS = 4096  # of chance: a draw has one for each partition
_HALVES = 1 << 30  # the stream by which sites are left out is none of theirs
Ids = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Setting:
    """A crawl. `seeds`: how many in all; 0: five a partition. `seeded_as`: seeds as for so many partitions; 0: as many as there are."""

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
    def alone(self) -> "Setting":
        """One process that begins with the same seeds."""
        as_many = self.seeded_as or self.partitions
        return replace(self, mode="firewall", partitions=1, kind="site-hash", seeded_as=as_many, every_pages=1)


@dataclass(frozen=True, slots=True)
class Found:
    record: ParallelRecord
    quality: float
    """the share that was fetched of the `most` best pages, however many were fetched"""
    links_per_page: float
    """on the pages that came in"""
    course: Floats
    """[2, rows] coverage of all pages, and overlap, after each page; of cross-over and independent crawls alone"""

    @property
    def links_sent_at_once(self) -> float:
        """URLs sent per page, if each link is sent when it is found; of a mode that sends none, 0."""
        record = self.record
        if not record.urls_exchanged:
            return 0.0
        return (record.links_between_partitions - record.links_replicated) / max(1, record.pages_downloaded)


@dataclass(frozen=True, eq=False)
class CrawledWeb:
    name: str
    graph: Graph
    _found: dict[tuple[Setting, int], Found] = field(default_factory=dict)
    _halves: dict[int, Graph] = field(default_factory=dict)

    @cached_property
    def by_links(self) -> Ids:
        """Pages by the number of links to them, most first."""
        return np.argsort(-backlinks(self.graph), kind="stable").astype(np.int32)

    def crawl(self, setting: Setting, draw: int) -> Found:
        if (setting, draw) not in self._found:
            self._found[setting, draw] = self._crawled(setting, draw)
        return self._found[setting, draw]

    def _crawled(self, setting: Setting, draw: int) -> Found:
        graph = self._half(draw) if setting.half else self.graph
        partitioning = Partitioning(setting.kind, setting.partitions, dict(setting.suffixes))
        seeds = draw_seeds(graph, self._seeding(setting), setting.seeds, draw)
        crawl = simulate_parallel(
            graph, load_strategy(setting.strategy), RULES, self._plan(setting, partitioning, graph.pages),
            seeds=seeds, servers=SERVERS, robots=1, most=setting.most,
        )  # fmt: skip
        worth = backlinks(graph)
        record = judge(crawl, graph, RULES, SERVERS, worth, setting.most)
        best = share_of_best(crawl, worth, min(setting.most or graph.pages, graph.pages))
        twice = setting.mode in (CROSS_OVER, INDEPENDENT)
        curve = course(crawl, graph.pages) if twice else np.zeros((2, 0))
        return Found(record, best, links_per_page(crawl, graph), curve)

    def _seeding(self, setting: Setting) -> Partitioning:
        """Who would own the seeds: also where a coordinator gives them out, or one process has them all."""
        return Partitioning("site-hash", setting.seeded_as or setting.partitions)

    def _plan(self, setting: Setting, partitioning: Partitioning, pages: int) -> Plan:
        known = self.by_links[: setting.replicated] if setting.replicated else None
        exchange = Exchange(setting.every_pages, setting.filter_size, setting.filter_policy, known)
        step = float(step_pages(setting, pages))
        return Plan(
            setting.mode, partitioning, exchange, grain=setting.grain, step_s=step, crossing_pages=int(step)
        )  # fmt: skip

    def _half(self, draw: int) -> Graph:
        if draw not in self._halves:
            kept = [uniform(_HALVES + draw, site) < 0.5 for site in range(self.graph.sites)]
            self._halves[draw] = with_sites(self.graph, np.array(kept))
        return self._halves[draw]


def step_pages(setting: Setting, pages: int) -> int:
    """How many pages each partition fetches between two moments at which links are passed on."""
    own = (setting.most or pages) / setting.partitions
    if setting.every_pages > 1:
        return max(1, setting.every_pages // 4)
    steps = STEPS if setting.most else max(STEPS_LEAST, STEPS_WHOLE // setting.partitions)
    return max(1, int(own / steps))


def backlinks(graph: Graph) -> Floats:
    return np.bincount(graph.targets, minlength=graph.pages).astype(np.float64)


def draw_seeds(graph: Graph, partitioning: Partitioning, seeds: int, draw: int) -> Ids:
    """Random pages of each partition: five, or its share of so many in all."""
    each = SEEDS if seeds == 0 else max(1, seeds // partitioning.partitions)
    return random_seeds(partitioning.owners(graph), partitioning.partitions, each, draw * _STREAMS)


def with_sites(graph: Graph, kept: NDArray[np.bool_]) -> Graph:
    """The pages of these sites and the links between them."""
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


def share_of_best(crawl: ParallelCrawl, worth: Floats, number: int) -> float:
    """Of the `number` best pages, how many are among the first so many that were fetched. Pages as good as the last are as good as it.

    `measures.quality` asks for as many as were fetched; a firewall crawl that ran out early would look better by it.
    """
    log, _ = merged(crawl.logs, number)
    pages = np.unique(log.page[log.result == FETCHED])
    least = np.partition(worth, len(worth) - number)[len(worth) - number]
    better = int((worth > least).sum())
    ours = worth[pages]
    return (int((ours > least).sum()) + min(int((ours == least).sum()), number - better)) / number


def links_per_page(crawl: ParallelCrawl, graph: Graph) -> float:
    came = np.concatenate([log.page[log.result == FETCHED] for log in crawl.logs])
    return float(np.diff(graph.offsets)[came].mean()) if len(came) else 0.0


def course(crawl: ParallelCrawl, pages: int) -> Floats:
    log, _ = merged(crawl.logs)
    came = log.page[log.result == FETCHED]
    first = np.zeros(len(came), np.bool_)
    first[np.unique(came, return_index=True)[1]] = True
    distinct = np.cumsum(first)
    return np.stack([distinct / pages, np.arange(1, len(came) + 1) / distinct - 1.0])
