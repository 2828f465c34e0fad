"""A parallel crawl in simulated time: n partitions in one process, for experiments. Each partition is a complete
simulated crawler with a frontier, connections and a network link. Only links to pages of other partitions pass between
them.

Time advances in steps. During a step every partition crawls by itself; at the end of the step, links that are due are
sent, and arrive. So a URL reaches its owner at most one step (`step_s`) after it was found, or later if links are sent
only after several pages (`every_pages`). All other events happen at their exact time. The crawl ends when every
partition is idle and nothing is left to send.
"""

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trapline.compiled import jit
from trapline.compiled.array_handles import Pin, handle_table
from trapline.errors import ConfigError, nearest
from trapline.frontier import Rules
from trapline.frontier.layout import DRAINED, NEED_ROOM, Array
from trapline.graph import Graph
from trapline.parallel import CROSS_OVER as CROSS_OVER
from trapline.parallel import EXCHANGE as EXCHANGE
from trapline.parallel import FIREWALL as FIREWALL
from trapline.parallel.partition import Partitioning
from trapline.parallel.simulated.loop import (
    FAULT,
    GOAL,
    LINKS,
    LOOP,
    NEED_LOG,
    NEED_OUTBOX,
    NOTHING,
    PAGES,
    PARTITION,
    SENDING,
    LoopState,
    PartitionState,
    run_partitions,
)
from trapline.parallel.simulated.partition_view import PartitionView, own_numbers, own_views, whole_view
from trapline.parallel.simulated.url_exchange import FILTERS, NOBODY, LinkOutbox, PageOwners, by_coordinator, fixed
from trapline.progress import CountCallback
from trapline.servers.sampled import Servers
from trapline.simulator.driver import PAUSED, SLICE, Run, begin
from trapline.simulator.log import FetchLog
from trapline.simulator.network import Network
from trapline.strategies import Strategy
from trapline.strategies.base.url_inputs import STATE_PAGES, first_pages

INDEPENDENT, DYNAMIC = "independent", "dynamic"  # modes that only simulated crawls have
MODES = (FIREWALL, CROSS_OVER, EXCHANGE, INDEPENDENT, DYNAMIC)
GRAINS = ("site", "page")
Ids = NDArray[np.int32]
MOST = 2**62  # more pages than any crawl fetches


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
            raise ConfigError(f"unknown mode {self.mode!r}; {nearest(self.mode, MODES)}")
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


@dataclass(frozen=True, slots=True)
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
    progress: CountCallback | None = None,
) -> ParallelCrawl:
    """Crawl the graph with n partitions of `connections` connections each, until every reachable page, or `most` pages,
    are fetched."""
    if strategy.page.scores:
        raise ConfigError(
            f"strategy {strategy.name!r} needs the links of all partitions at one place; choose another strategy"
        )
    started = time.perf_counter()
    if plan.exchange.replicated is not None:
        # Every partition knows them, so their owners do.
        seeds = np.union1d(seeds, plan.exchange.replicated).astype(np.int32)
    owned = _ownership(graph, plan, seeds)
    number = own_numbers(owned.owner, plan.partitions) if plan.mode in (FIREWALL, EXCHANGE) else np.zeros(0, np.int32)
    own_seeds = [seeds[owned.of_pages()[seeds] == partition] for partition in range(plan.partitions)]
    partitions = []
    for partition, view in enumerate(_views(graph, plan, owned, number)):
        own = {name: _own(name, view.of_pages(values)) for name, values in (inputs or {}).items()}
        run = begin(
            view.graph, strategy, rules, view.numbers_here(own_seeds[partition]), connections, view.servers(servers),
            network or Network(), own, seed,
        )  # fmt: skip
        partitions.append(_Partition(view, run, plan.exchange.outbox()))
    _keep_to_own(partitions, graph, plan, owned)
    crawl = _Crawl(graph, plan, owned, number, partitions, connections)
    drained = crawl.run(most, progress)
    return ParallelCrawl(
        logs=[one.log() for one in partitions],
        seeds=seeds,
        traffic=crawl.traffic(),
        owner=np.full(graph.pages, NOBODY, np.int32) if plan.mode == INDEPENDENT else owned.of_pages(),
        connections=connections,
        wall_seconds=time.perf_counter() - started,
        drained=drained,
        batches=crawl.batches,
    )


def _own(name: str, values: Array) -> Array:
    """Return an input for the pages of a partition. Page numbers become numbers of the partition's own pages."""
    return first_pages(values) if name in STATE_PAGES else values


def _ownership(graph: Graph, plan: ParallelPlan, seeds: Ids) -> PageOwners:
    if plan.mode != DYNAMIC:
        return fixed(plan.partitioning.owners(graph))
    owned = by_coordinator(graph, plan.partitions, plan.grain)
    owned.give_out(seeds)
    return owned


def _views(graph: Graph, plan: ParallelPlan, owned: PageOwners, number: Ids) -> list[PartitionView]:
    if plan.mode in (FIREWALL, EXCHANGE):
        return own_views(graph, owned.owner, number, plan.partitions)
    return [whole_view(graph)] * plan.partitions


def _keep_to_own(partitions: "list[_Partition]", graph: Graph, plan: ParallelPlan, owned: PageOwners) -> None:
    """Let each partition with a whole view follow only links to its own pages."""
    if plan.mode not in (CROSS_OVER, DYNAMIC):
        return
    # With dynamic assignment, owners are known only later: every link is ELSEWHERE at first.
    owner = owned.owner if plan.mode == CROSS_OVER else np.full(graph.pages, NOBODY, np.int32)
    for number, one in enumerate(partitions):
        one.run.keep_to_own(owner, number)


class _Partition:
    """One partition: its crawl, and its outbox."""

    def __init__(self, view: PartitionView, run: Run, outbox: LinkOutbox) -> None:
        self.run, self.outbox = run, outbox
        self.pages = np.zeros(0, np.int32) if view.pages is None else view.pages
        run.world.clock["most"] = view.graph.pages + 1  # more than there are: it ends only when no page is left
        run.make_room()

    def pin(self) -> Pin:
        return Pin(PartitionState(self.run.world, self.outbox.arrays, self.pages))

    def log(self) -> FetchLog:
        """Return the fetch log, with the page numbers of the whole graph."""
        log = self.run.log
        return log._replace(page=self.pages[log.page]) if len(self.pages) else log


class _Crawl:
    """The Python side of the loop over partitions (loop.py): provides memory, and reports progress."""

    def __init__(
        self, graph: Graph, plan: ParallelPlan, owned: PageOwners, number: Ids, partitions: list[_Partition], connections: int
    ) -> None:  # fmt: skip
        self._partitions, self._owned = partitions, owned
        self._goal = plan.most_fetches(graph.pages)
        self.batches: list[tuple[int, int, Array]] = []
        self._loop = np.zeros(1, LOOP)
        loop = self._loop[0]
        loop.step_s, loop.pause_at, loop.sendings, loop.show = plan.step_s, SLICE, 1, plan.keep_batches
        loop.every_pages, loop.crossing_pages = plan.exchange.every_pages, plan.crossing_pages or connections
        loop.exchange = {CROSS_OVER: PAGES, EXCHANGE: LINKS, DYNAMIC: LINKS}.get(plan.mode, NOTHING)
        loop.column = partitions[0].run.frontier.strategy.page.handed_on
        records, page = np.zeros(len(partitions), PARTITION), np.zeros(1, np.int32)
        self._state = LoopState(self._loop, records, graph.offsets, graph.targets, owned, number, page)
        self._pins = [one.pin() for one in partitions]
        self._handles = handle_table([one.handle for one in self._pins])
        self._frontiers = handle_table([one.run.frontier.handle for one in partitions])
        jit.ready(run_partitions)

    def run(self, most: int | None, progress: CountCallback | None) -> bool:
        """Run the crawl. Return True if no page was left, False if `most` pages were fetched."""
        loop, goal = self._loop[0], self._goal if most is None else most
        loop.most = MOST if most is None else most
        answer = PAUSED
        while answer not in (DRAINED, GOAL):
            which = int(loop.which)
            answer = self._partitions[which].run.frontier.run_kernel(self._continue, which)
            if answer == SENDING:
                self._keep_batches(int(loop.which))
            elif answer in (NEED_LOG, NEED_OUTBOX):
                self._make_room(int(loop.which), answer)
            elif progress is not None:
                progress(min(int(loop.fetched), goal), goal)  # the last step may fetch more than `most`
        return answer == DRAINED

    def _continue(self, frontier: int, which: int) -> int:
        """Call the kernel. `run_kernel` of partition `which` calls this, so that it raises the faults of this partition's
        frontier and grows it; in both cases another partition must be called in the same way."""
        self._frontiers[which] = frontier
        answer = run_partitions(self._frontiers, self._handles, self._state)
        needs_its_frontier = answer in (NEED_ROOM, FAULT) and self._loop[0].which != which
        return PAUSED if needs_its_frontier else answer

    def _make_room(self, which: int, answer: int) -> None:
        one = self._partitions[which]
        if answer == NEED_LOG:
            one.run.make_room()
        else:
            one.outbox.reserve(int(self._loop[0].need))
        self._pins[which] = one.pin()
        self._handles[which] = self._pins[which].handle

    def _keep_batches(self, which: int) -> None:
        entries = self._partitions[which].outbox.entries
        for owner in np.unique(entries["owner"]).tolist():
            if owner != which:
                self.batches.append((which, owner, entries[entries["owner"] == owner]))

    def traffic(self) -> Traffic:
        loop, tallies = self._loop[0], [one.outbox.arrays.tally[0] for one in self._partitions]
        return Traffic(
            replicated=sum(int(tally.replicated) for tally in tallies),
            filtered=sum(int(tally.filtered) for tally in tallies),
            urls=int(loop.urls),
            messages=int(loop.messages),
            exchanges=int(loop.exchanges),
            owner_requests=int(self._owned.requested.sum()),
        )
