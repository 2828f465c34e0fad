"""The slow and simple parallel crawl: the loop over partitions and their exchange, in plain Python.

In a copy of the graph for each partition, links to pages of others are ELSEWHERE; outboxes are dictionaries, and the filter is
a list of lists. The views (partition_view.py), the simulator of one partition (`Run`) and the frontier are Trapline's: they have
tests of their own. docs/parallel.md and crawl.py define the steps.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from trapline.frontier import Rules
from trapline.frontier.core.arrivals import Arrivals
from trapline.frontier.layout import DRAINED, ELSEWHERE, FETCHED, UNKNOWN, WAIT
from trapline.graph import Graph
from trapline.parallel.simulated.crawl import (
    CROSS_OVER,
    DYNAMIC,
    EXCHANGE,
    FIREWALL,
    INDEPENDENT,
    ParallelPlan,
    Traffic,
)
from trapline.parallel.simulated.partition_view import PartitionView, own_numbers, own_views
from trapline.parallel.simulated.url_exchange import WAYS
from trapline.rng import mixed
from trapline.servers.sampled import Servers
from trapline.simulator.driver import Run, begin
from trapline.simulator.log import FetchLog
from trapline.simulator.network import Network
from trapline.strategies import Strategy


class Owners:
    """The owner of each page: known from the start, or assigned by a coordinator when a unit is first found."""

    def __init__(self, graph: Graph, plan: ParallelPlan, seeds: list[int]) -> None:
        self.dynamic = plan.mode == DYNAMIC
        self.unit = graph.site.tolist() if self.dynamic and plan.grain == "site" else list(range(graph.pages))
        self.asked: set[tuple[int, int]] = set()
        self.units_of = [0] * plan.partitions
        self.owner: dict[int, int] = {}
        if not self.dynamic:
            self.owner = dict(enumerate(plan.partitioning.owners(graph).tolist()))
            return
        for turn, unit in enumerate(sorted({self.unit[page] for page in seeds})):
            self._give(unit, turn % plan.partitions)

    def _give(self, unit: int, partition: int) -> None:
        self.owner[unit] = partition
        self.units_of[partition] += 1

    def of(self, page: int) -> int | None:
        return self.owner.get(self.unit[page])

    def found(self, page: int, by: int) -> int:
        """The owner of a page that partition `by` has found."""
        unit = self.unit[page]
        if self.dynamic:
            self.asked.add((by, unit))
        if unit not in self.owner:
            self._give(unit, self.units_of.index(min(self.units_of)))
        return self.owner[unit]


@dataclass
class Entry:
    owner: int
    depth: int
    links: int = 0
    share: float = 0.0


@dataclass
class Sent:
    """A key in a bucket of the filter."""

    key: int
    last_used: int
    times: int = 1


class Filter:
    """The URLs that were sent, as many as there is room for; evicts as docs/parallel.md says."""

    def __init__(self, size: int, policy: str) -> None:
        buckets = 1 << max(0, (size // WAYS - 1).bit_length()) if size else 0
        self.buckets: list[list[Sent]] = [[] for _ in range(buckets)]
        self.popular, self.moment = policy == "popular", 0

    def _bucket(self, key: int) -> list[Sent]:
        return self.buckets[mixed(mixed(key)) & (len(self.buckets) - 1)]

    def knows(self, key: int) -> bool:
        if not self.buckets:
            return False
        self.moment += 1
        for one in self._bucket(key):
            if one.key == key:
                one.last_used, one.times = self.moment, one.times + 1
                return True
        return False

    def remember(self, key: int) -> None:
        if not self.buckets:
            return
        self.moment += 1
        bucket = self._bucket(key)
        if len(bucket) == WAYS:
            bucket.remove(min(bucket, key=lambda one: (one.times if self.popular else 0, one.last_used)))
        bucket.append(Sent(key, self.moment))


@dataclass
class Partition:
    number: int
    view: PartitionView
    run: Run
    filter: Filter
    idle: bool = False
    next: float = 0.0
    sent_at: int = 0
    collected: int = 0
    crossed: int = 0
    outbox: dict[int, Entry] = field(default_factory=dict)

    @property
    def fetched(self) -> int:
        return int(self.run.world.clock["fetched"][0])

    def crawl(self, until_s: float, pages: int) -> None:
        clock = self.run.world.clock
        clock["until"] = until_s
        self.idle = self.run.until(pages + 1, None) in (DRAINED, WAIT)
        self.next = math.inf if self.idle else float(clock["next"][0])
        clock["now"] = max(float(clock["now"][0]), until_s)

    def wake(self, now: float) -> None:
        clock = self.run.world.clock
        self.idle, self.next = False, now
        clock["now"] = max(float(clock["now"][0]), now)


class Partitions:
    """A parallel crawl of the twin. `run` crawls; the logs and the traffic are then those of `simulate_parallel`."""

    def __init__(
        self, graph: Graph, strategy: Strategy, rules: Rules, plan: ParallelPlan, seeds: list[int], servers: Servers,
        connections: int, network: Network | None = None,
    ) -> None:  # fmt: skip
        self.graph, self.plan, self.connections = graph, plan, connections
        self.everywhere = set() if plan.exchange.replicated is None else set(plan.exchange.replicated.tolist())
        seeds = sorted({*seeds, *self.everywhere})
        self.owners, self.traffic = Owners(graph, plan, seeds), {"urls": 0, "messages": 0, "exchanges": 0}
        self.replicated = self.filtered = 0
        self.column = strategy.page.handed_on
        self.partitions = []
        for number in range(plan.partitions):
            own = np.array([page for page in seeds if self.owners.of(page) == number], np.int32)
            view = self._view(number)
            own = view.numbers_here(own)
            run = begin(view.graph, strategy, rules, own, connections, servers, network or Network(), {}, 0)
            sent = Filter(plan.exchange.filter_size, plan.exchange.filter_policy)
            self.partitions.append(Partition(number, view, run, sent))

    def _view(self, number: int) -> PartitionView:
        if self.plan.mode == INDEPENDENT:
            return PartitionView(self.graph, None, None)
        if self.plan.mode in (FIREWALL, EXCHANGE):
            owner = np.array([self.owners.of(page) for page in range(self.graph.pages)], np.int32)
            return own_views(self.graph, owner, own_numbers(owner, self.plan.partitions), self.plan.partitions)[number]
        owner = [None if self.owners.dynamic else self.owners.of(page) for page in self.graph.targets.tolist()]
        targets = [t if o == number else ELSEWHERE for t, o in zip(self.graph.targets.tolist(), owner, strict=True)]
        return PartitionView(replace(self.graph, targets=np.array(targets, np.int32)), None, None)

    def run(self, most: int | None = None) -> bool:
        """Whether no page was left."""
        while True:
            now = min(one.next for one in self.partitions)
            if now == math.inf:
                return True
            end = (math.floor(now / self.plan.step_s) + 1) * self.plan.step_s
            busy = [one for one in self.partitions if one.next <= end]
            for one in busy:
                one.crawl(end, self.graph.pages)
            if most is not None and sum(one.fetched for one in self.partitions) >= most:
                return False
            if self.plan.mode not in (FIREWALL, INDEPENDENT):
                self._exchange(busy, end)

    def _exchange(self, busy: list[Partition], now: float) -> None:
        for one in busy:
            self._collect(one)
        if self.plan.mode == CROSS_OVER:
            for one in busy:
                self._cross_over(one, now)
            return
        every = self.plan.exchange.every_pages
        due = [one for one in busy if one.outbox and (one.idle or one.fetched - one.sent_at >= every)]
        for one in due:
            self._send(one, now)

    def _collect(self, one: Partition) -> None:
        log, frontier = one.run.log, one.run.frontier
        for row in range(one.collected, len(log.page)):
            page = int(log.page[row])
            if log.result[row] == FETCHED:
                links = self.graph.targets_of(int(one.view.whole_numbers(log.page[row]))).tolist()
                share = float(frontier.column(self.column)[page]) / len(links) if self.column >= 0 and links else 0.0
                for target in links:
                    owner = self.owners.found(target, one.number)
                    if owner != one.number or self.owners.dynamic:
                        self._add(one, target, owner, share, int(frontier.page_depths[page]))
        one.collected = len(log.page)

    def _add(self, one: Partition, target: int, owner: int, share: float, depth: int) -> None:
        if target not in one.outbox:
            if target in self.everywhere:
                self.replicated += 1
                return
            if one.filter.knows(target):
                self.filtered += 1
                return
            one.outbox[target] = Entry(owner, depth)
        entry = one.outbox[target]
        entry.links, entry.share, entry.depth = entry.links + 1, entry.share + share, min(entry.depth, depth)

    def _cross_over(self, one: Partition, now: float) -> None:
        taken: list[int] = []
        found = list(one.outbox)
        while one.idle and len(taken) < (self.plan.crossing_pages or self.connections) and one.crossed < len(found):
            if one.run.frontier.page_states[found[one.crossed]] == UNKNOWN:
                taken.append(found[one.crossed])
            one.crossed += 1
        if taken:
            one.run.frontier.discover(taken, now)
            one.wake(now)

    def _send(self, one: Partition, now: float) -> None:
        entries, one.outbox, one.sent_at = one.outbox, {}, one.fetched
        away = {entry.owner for entry in entries.values()} - {one.number}
        self.traffic["urls"] += sum(entry.owner != one.number for entry in entries.values())
        self.traffic["messages"] += len(away)
        self.traffic["exchanges"] += bool(away)
        for page, entry in entries.items():
            one.filter.remember(page)
            to = self.partitions[entry.owner]
            columns = (to.view.numbers_here(np.array([page], np.int32)), [entry.links], [entry.share], [entry.depth])
            to.run.frontier.receive(Arrivals(*map(np.array, columns)), now)
            to.wake(now)

    @property
    def logs(self) -> list[FetchLog]:
        logs = [(one.view, one.run.log) for one in self.partitions]
        return [log._replace(page=view.whole_numbers(log.page)) for view, log in logs]

    def counted(self) -> Traffic:
        return Traffic(self.replicated, self.filtered, **self.traffic, owner_requests=len(self.owners.asked))
