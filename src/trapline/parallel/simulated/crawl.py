"""A parallel crawl in simulated time: n partitions in one process, for experiments. Each partition is a complete
simulated crawler with a frontier, connections and a network link. Only links to pages of other partitions pass between
them.

Time advances in steps. During a step every partition crawls by itself; at the end of the step, links that are due are
sent, and arrive. So a URL reaches its owner at most one step (`step_s`) after it was found, or later if links are sent
only after several pages (`every_pages`). All other events happen at their exact time. The crawl ends when every
partition is idle and nothing is left to send.
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
from trapline.parallel.partition import Partitioning
from trapline.parallel.simulated.partition_process import PartitionView, Process, own_views, whole_view
from trapline.parallel.simulated.url_exchange import FILTERS, NOBODY, LinkOutbox, PageOwners, by_coordinator, fixed
from trapline.simulate.driver import begin
from trapline.simulate.log import FetchLog
from trapline.simulate.servers import Network, Servers
from trapline.strategies import Strategy

FIREWALL, CROSS_OVER, EXCHANGE, INDEPENDENT, DYNAMIC = "firewall", "cross-over", "exchange", "independent", "dynamic"
MODES = (FIREWALL, CROSS_OVER, EXCHANGE, INDEPENDENT, DYNAMIC)
GRAINS = ("site", "page")
Ids = NDArray[np.int32]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, slots=True)
class ExchangeRules:
    """How links to pages of other partitions are sent."""

    every_pages: int = 1
    """number of fetched pages after which a partition sends; it also sends when it is idle"""
    filter_size: int = 0
    """number of sent URLs that a partition remembers, and does not send again; 0: none"""
    filter_policy: str = "lru"
    replicated: Ids | None = None
    """pages that every partition knows, and that are never sent"""

    def __post_init__(self) -> None:
        if self.every_pages < 1:
            raise ConfigError(f"an exchange every {self.every_pages} pages: give at least 1")
        if self.filter_policy not in FILTERS:
            raise ConfigError(f"filter {self.filter_policy!r}: {nearest(self.filter_policy, FILTERS)}")

    def outbox(self) -> LinkOutbox:
        return LinkOutbox(self.filter_size, self.filter_policy, self.replicated)


@dataclass(frozen=True, eq=False, slots=True)
class ParallelPlan:
    """The settings of a simulated parallel crawl."""

    mode: str
    partitioning: Partitioning
    exchange: ExchangeRules = field(default_factory=ExchangeRules)
    grain: str = "site"
    """what a coordinator assigns as one unit, with dynamic assignment"""
    step_s: float = 1.0
    crossing_pages: int = 0
    """cross-over: how many pages of others a partition takes at once when it has no own pages left; 0: as many as it
    has connections"""
    keep_batches: bool = False

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(f"mode {self.mode!r}: {nearest(self.mode, MODES)}")
        if self.grain not in GRAINS:
            raise ConfigError(f"grain {self.grain!r}: {nearest(self.grain, GRAINS)}")
        if not self.step_s > 0:
            raise ConfigError(f"a step of {self.step_s} s: it must be more than 0")

    @property
    def partitions(self) -> int:
        return self.partitioning.partitions

    @property
    def fetches_again(self) -> bool:
        """Whether a partition may fetch pages that another one has fetched already."""
        return self.mode in (CROSS_OVER, INDEPENDENT)

    def most_fetches(self, pages: int) -> int:
        """Return the largest possible number of fetches in a web of `pages` pages."""
        return pages * self.partitions if self.fetches_again else pages


@dataclass(slots=True)
class Traffic:
    """Counts of the messages between partitions, and between partitions and a coordinator."""

    replicated: int = 0  # links not sent because every partition knows their target
    filtered: int = 0  # links not sent because they were sent before
    urls: int = 0  # URLs sent
    messages: int = 0  # batches, each to one partition
    exchanges: int = 0  # times at which a partition sent
    owner_requests: int = 0  # requests to a coordinator for the owner of a unit


@dataclass(frozen=True, eq=False, slots=True)
class ParallelCrawl:
    logs: list[FetchLog]  # of each partition, with the page numbers of the whole graph
    seeds: Ids
    traffic: Traffic
    owner: Ids  # [pages] NOBODY: no partition owns the page
    connections: int  # of each partition
    wall_seconds: float
    drained: bool
    batches: list[tuple[int, int, Array]]
    """sender, receiver and entries of each batch, if `keep_batches` is set"""


def simulate_parallel(
    graph: Graph,
    strategy: Strategy,
    rules: Rules,
    plan: ParallelPlan,
    *,
    seeds: Ids,
    servers: Servers,
    network: Network | None = None,
    connections: int = 1,
    most: int | None = None,
    inputs: dict[str, Array] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> ParallelCrawl:
    """Crawl the graph with n partitions of `connections` connections each, until every reachable page, or `most` pages,
    are fetched."""
    if strategy.page.scores:
        raise ConfigError(
            f"strategy {strategy.name!r} needs the links of all partitions at one place; choose another strategy"
        )
    started = time.perf_counter()
    if plan.exchange.replicated is not None:
        seeds = np.union1d(seeds, plan.exchange.replicated).astype(
            np.int32
        )  # every partition knows them, so their owners do
    owned = _ownership(graph, plan, seeds)
    views = _views(graph, plan, owned)
    own_seeds = [seeds[owned.of_pages()[seeds] == number] for number in range(plan.partitions)]
    processes = []
    for number, view in enumerate(views):
        own = {name: view.of_pages(values) for name, values in (inputs or {}).items()}
        run = begin(
            view.graph, strategy, rules, view.own_numbers(own_seeds[number]), connections, view.servers(servers),
            network or Network(), own, seed,
        )  # fmt: skip
        processes.append(Process(number, view, run, plan.exchange.outbox()))
    crawl = _Crawl(graph, plan, owned, processes, connections)
    drained = crawl.run(most, progress)
    return ParallelCrawl(
        logs=[one.log() for one in processes],
        seeds=seeds,
        traffic=crawl.counted(),
        owner=np.full(graph.pages, NOBODY, np.int32) if plan.mode == INDEPENDENT else owned.of_pages(),
        connections=connections,
        wall_seconds=time.perf_counter() - started,
        drained=drained,
        batches=crawl.batches,
    )


def _ownership(graph: Graph, plan: ParallelPlan, seeds: Ids) -> PageOwners:
    if plan.mode != DYNAMIC:
        return fixed(plan.partitioning.owners(graph))
    owned = by_coordinator(graph, plan.partitions, plan.grain)
    owned.give_out(seeds)
    return owned


def _views(graph: Graph, plan: ParallelPlan, owned: PageOwners) -> list[PartitionView]:
    numbers = range(plan.partitions)
    if plan.mode in (FIREWALL, EXCHANGE):
        return own_views(graph, owned.owner, plan.partitions)
    if plan.mode == CROSS_OVER:
        return [whole_view(graph, owned.owner, number) for number in numbers]
    # With dynamic assignment, owners are known only later: every link is ELSEWHERE at first.
    nobody = np.full(graph.pages, -1, np.int32) if plan.mode == DYNAMIC else None
    return [whole_view(graph, nobody, number) for number in numbers]


class _Crawl:
    """The loop over steps, and the exchange at the end of each step."""

    def __init__(
        self, graph: Graph, plan: ParallelPlan, owned: PageOwners, processes: list[Process], connections: int
    ) -> None:
        self.graph, self.plan, self.owned, self.processes, self.connections = graph, plan, owned, processes, connections
        self.traffic = Traffic()
        self.batches: list[tuple[int, int, Array]] = []

    def run(self, most: int | None, progress: Progress | None) -> bool:
        """Run the crawl. Return True if no page was left, False if `most` pages were fetched."""
        goal, fetched = self.plan.most_fetches(self.graph.pages) if most is None else most, 0
        while True:
            now = min(one.next_moment for one in self.processes)
            if now == np.inf:
                return True
            end = (np.floor(now / self.plan.step_s) + 1.0) * self.plan.step_s
            busy = [one for one in self.processes if one.next_moment <= end]
            fetched += sum(one.crawl(end) for one in busy)
            if progress is not None:
                progress(min(fetched, goal), goal)  # the last step may fetch more than `most`
            if most is not None and fetched >= most:
                return False
            if self.plan.mode not in (FIREWALL, INDEPENDENT):
                self._pass_on(busy, end)

    def _pass_on(self, busy: list[Process], now: float) -> None:
        for one in busy:
            one.collect_links(self.graph, self.owned)
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
        """Let a partition that has no own pages left take pages of others."""
        if one.idle and len(pages := one.next_foreign(self.plan.crossing_pages or self.connections)):
            one.discover(pages, now)

    def _sent(self, one: Process) -> Array:
        """Return what a partition sends now, and count it as one message to each owner."""
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
        """Deliver entries to their owners: one call per owner with the entries of all senders, in the order of senders.
        One call per sender and owner would take most of the time with 64 partitions."""
        by_owner = entries[np.argsort(entries["owner"], kind="stable")]
        owners, first = np.unique(by_owner["owner"], return_index=True)
        for number, batch in zip(owners.tolist(), np.split(by_owner, first[1:]), strict=True):
            self.processes[number].receive(batch, now)

    def counted(self) -> Traffic:
        tallies = [one.outbox.arrays.tally[0] for one in self.processes]
        for name in ("replicated", "filtered"):
            setattr(self.traffic, name, sum(int(tally[name]) for tally in tallies))
        self.traffic.owner_requests = int(self.owned.requested.sum())
        return self.traffic
