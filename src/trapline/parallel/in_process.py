"""n partitions of a crawl in one process and in simulated time: the experiments' world. Each partition is a whole simulated
crawler: frontier, robots, a connection to the web; only links that others own pass between them.

Time goes in steps. In a step every partition crawls for itself; at its end links that are due are sent, and arrive. So a URL
reaches its owner at most a step after it was found (`step_s`), with batches after up to so many pages; everything else is to the
moment. The crawl ends when every partition is idle and nothing is left to send: counted, not timed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError, nearest
from trapline.frontier import Rules
from trapline.frontier.layout import Array
from trapline.graph import Graph
from trapline.parallel.ownership import NOBODY, Ownership, by_coordinator, fixed
from trapline.parallel.partition import Partitioning
from trapline.parallel.post import FILTERS, Outbox
from trapline.parallel.process import Process
from trapline.parallel.territory import View, own_views, whole_view
from trapline.simulate.driver import begin
from trapline.simulate.log import Log
from trapline.simulate.servers import Network, Servers
from trapline.strategies import Strategy

FIREWALL, CROSS_OVER, EXCHANGE, INDEPENDENT, DYNAMIC = "firewall", "cross-over", "exchange", "independent", "dynamic"
MODES = (FIREWALL, CROSS_OVER, EXCHANGE, INDEPENDENT, DYNAMIC)
GRAINS = ("site", "page")
Ids = NDArray[np.int32]
Told = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, slots=True)
class Exchange:
    """How links that others own are sent."""

    every_pages: int = 1
    """a partition sends after so many pages of its own, and when it has nothing else to do"""
    filter_size: int = 0
    """URLs that it remembers having sent, and does not send again; 0: none"""
    filter_policy: str = "lru"
    replicated: Ids | None = None
    """pages known everywhere and never sent"""

    def __post_init__(self) -> None:
        if self.every_pages < 1:
            raise ConfigError(f"an exchange every {self.every_pages} pages; give at least 1")
        if self.filter_policy not in FILTERS:
            raise ConfigError(f"filter {self.filter_policy!r}: {nearest(self.filter_policy, FILTERS)}")

    def outbox(self) -> Outbox:
        return Outbox(self.filter_size, self.filter_policy, self.replicated)


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """A parallel crawl that is to be simulated."""

    mode: str
    partitioning: Partitioning
    exchange: Exchange = field(default_factory=Exchange)
    grain: str = "site"
    """what a coordinator gives out, with dynamic assignment"""
    step_s: float = 1.0
    crossing_pages: int = 0
    """cross-over: pages of others that a partition takes at once when it has run out of its own; 0: as many as it has robots"""
    keep_batches: bool = False

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(f"mode {self.mode!r}: {nearest(self.mode, MODES)}")
        if self.grain not in GRAINS:
            raise ConfigError(f"grain {self.grain!r}: {nearest(self.grain, GRAINS)}")
        if not self.step_s > 0:
            raise ConfigError(f"a step of {self.step_s} s; it must be more than 0")

    @property
    def partitions(self) -> int:
        return self.partitioning.partitions

    @property
    def fetches_again(self) -> bool:
        """Whether a partition may fetch pages that another one has fetched."""
        return self.mode in (CROSS_OVER, INDEPENDENT)

    def most_fetches(self, pages: int) -> int:
        """How many there can be in a web of so many pages."""
        return pages * self.partitions if self.fetches_again else pages


@dataclass(slots=True)
class Traffic:
    """What passed between partitions, and between them and a coordinator."""

    replicated: int = 0  # links not sent because what they lead to is known everywhere
    filtered: int = 0  # not sent because sent before
    urls: int = 0  # sent
    messages: int = 0  # batches, each to one partition
    exchanges: int = 0  # moments at which a partition sent
    asked: int = 0  # questions to a coordinator: who owns this


@dataclass(frozen=True, eq=False, slots=True)
class ParallelCrawl:
    logs: list[Log]  # of each partition, by the graph's page numbers
    seeds: Ids
    traffic: Traffic
    owner: Ids  # [pages] NOBODY: of no partition
    robots: int  # of each partition
    wall_seconds: float
    drained: bool
    batches: list[tuple[int, int, Array]]
    """sender, receiver, entries of what was sent, if it was to be kept"""


def simulate_parallel(
    graph: Graph,
    strategy: Strategy,
    rules: Rules,
    plan: Plan,
    *,
    seeds: Ids,
    servers: Servers,
    network: Network | None = None,
    robots: int = 1,
    most: int | None = None,
    inputs: dict[str, Array] | None = None,
    seed: int = 0,
    progress: Told | None = None,
) -> ParallelCrawl:
    """Crawl the graph with n partitions of `robots` robots each, until all is fetched that they can reach, or `most` pages in all."""
    if strategy.page.scores:
        raise ConfigError(f"strategy {strategy.name!r} needs the links of all partitions at one place; use another")
    started = time.perf_counter()
    if plan.exchange.replicated is not None:
        seeds = np.union1d(seeds, plan.exchange.replicated).astype(np.int32)  # known everywhere, so to their owners too
    owned = _ownership(graph, plan, seeds)
    views = _views(graph, plan, owned)
    given = [seeds[owned.of_pages()[seeds] == number] for number in range(plan.partitions)]
    processes = []
    for number, view in enumerate(views):
        own = {name: view.of_pages(values) for name, values in (inputs or {}).items()}
        run = begin(
            view.graph, strategy, rules, view.own_numbers(given[number]), robots, view.servers(servers),
            network or Network(), own, seed,
        )  # fmt: skip
        processes.append(Process(number, view, run, plan.exchange.outbox()))
    crawl = _Crawl(graph, plan, owned, processes, robots)
    drained = crawl.run(most, progress)
    return ParallelCrawl(
        logs=[one.log() for one in processes],
        seeds=seeds,
        traffic=crawl.counted(),
        owner=np.full(graph.pages, NOBODY, np.int32) if plan.mode == INDEPENDENT else owned.of_pages(),
        robots=robots,
        wall_seconds=time.perf_counter() - started,
        drained=drained,
        batches=crawl.batches,
    )


def _ownership(graph: Graph, plan: Plan, seeds: Ids) -> Ownership:
    if plan.mode != DYNAMIC:
        return fixed(plan.partitioning.owners(graph))
    owned = by_coordinator(graph, plan.partitions, plan.grain)
    owned.give_out(seeds)
    return owned


def _views(graph: Graph, plan: Plan, owned: Ownership) -> list[View]:
    numbers = range(plan.partitions)
    if plan.mode in (FIREWALL, EXCHANGE):
        return own_views(graph, owned.owner, plan.partitions)
    if plan.mode == CROSS_OVER:
        return [whole_view(graph, owned.owner, number) for number in numbers]
    nobody = (
        np.full(graph.pages, -1, np.int32) if plan.mode == DYNAMIC else None
    )  # which pages are its own, shows later
    return [whole_view(graph, nobody, number) for number in numbers]


class _Crawl:
    """The loop of steps, and what passes at the end of each."""

    def __init__(self, graph: Graph, plan: Plan, owned: Ownership, processes: list[Process], robots: int) -> None:
        self.graph, self.plan, self.owned, self.processes, self.robots = graph, plan, owned, processes, robots
        self.traffic = Traffic()
        self.batches: list[tuple[int, int, Array]] = []

    def run(self, most: int | None, progress: Told | None) -> bool:
        """Whether the crawl came to its end; else it has as many pages as were asked for."""
        goal, fetched = self.plan.most_fetches(self.graph.pages) if most is None else most, 0
        while True:
            now = min(one.next_moment for one in self.processes)
            if now == np.inf:
                return True
            end = (np.floor(now / self.plan.step_s) + 1.0) * self.plan.step_s
            busy = [one for one in self.processes if one.next_moment <= end]
            fetched += sum(one.crawl(end) for one in busy)
            if progress is not None:
                progress(min(fetched, goal), goal)  # the last step may bring more than were asked for
            if most is not None and fetched >= most:
                return False
            if self.plan.mode not in (FIREWALL, INDEPENDENT):
                self._pass_on(busy, end)

    def _pass_on(self, busy: list[Process], now: float) -> None:
        for one in busy:
            one.post(self.graph, self.owned)
        if self.plan.mode == CROSS_OVER:
            for one in busy:
                self._cross_over(one, now)
            return
        due = [one for one in busy if len(one.outbox) and self._is_due(one)]
        if due:
            self._deliver(np.concatenate([self._sent(one) for one in due]), now)

    def _is_due(self, one: Process) -> bool:
        return one.idle or one.fetched - one.sent_at >= self.plan.exchange.every_pages

    def _cross_over(self, one: Process, now: float) -> None:
        """A partition that has run out of own pages takes some of others."""
        if one.idle and len(pages := one.next_foreign(self.plan.crossing_pages or self.robots)):
            one.discover(pages, now)

    def _sent(self, one: Process) -> Array:
        """What it sends now, counted as one message to each owner."""
        entries = one.outbox.take()
        one.sent_at = one.fetched
        away = entries[entries["owner"] != one.number]
        owners = np.unique(away["owner"]).tolist()
        self.traffic.exchanges += bool(owners)
        self.traffic.urls += len(away)
        self.traffic.messages += len(owners)
        if self.plan.keep_batches:
            self.batches += [(one.number, number, away[away["owner"] == number]) for number in owners]
        return entries

    def _deliver(self, entries: Array, now: float) -> None:
        """To each owner all at once, in the order of senders: one by one, 64 partitions would do little else than receive."""
        by_owner = entries[np.argsort(entries["owner"], kind="stable")]
        owners, first = np.unique(by_owner["owner"], return_index=True)
        for number, batch in zip(owners.tolist(), np.split(by_owner, first[1:]), strict=True):
            self.processes[number].receive(batch, now)

    def counted(self) -> Traffic:
        tallies = [one.outbox.post.tally[0] for one in self.processes]
        for name in ("replicated", "filtered"):
            setattr(self.traffic, name, sum(int(tally[name]) for tally in tallies))
        self.traffic.asked = int(self.owned.asked.sum())
        return self.traffic
