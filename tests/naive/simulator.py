"""The slow and simple simulator: a loop over the frontier's interface that follows docs/simulator.md line by line.

It uses events in a heap and Python floats, and shares the link by water-filling from scratch whenever a transfer starts
or ends. It knows nothing of trapline.simulate. Two things are given to both simulators: the numbers by which fetches
fail (`draw`), and the scores that answer a `Rescore` (`score`).

"""

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from trapline.frontier import FAILED, FETCHED, REFUSED, Drained, Frontier, Outcome, Rescore, Rules, Visit, WaitUntil
from trapline.frontier.layout import CHOSEN
from trapline.graph import Graph
from trapline.simulator import Network, Servers
from trapline.strategies import Strategy

Draw = Callable[[int, int], float]  # for a page and its number of failed tries: a number in [0, 1)
Score = Callable[[Frontier], Any]  # PageRank of the known graph


class Row(NamedTuple):
    """One fetch, as the log has it."""

    page: int
    visit: int
    start: float
    first_byte: float
    end: float
    result: int


class Flow(NamedTuple):
    """Bytes per second of every transfer on the shared link, between two moments."""

    since: float
    until: float
    rates: dict[int, float]  # by serial of the page


def water_filling(caps: Sequence[float], bandwidth: float) -> list[float]:
    """Max-min fair shares: in order of rising cap, each gets its cap or an equal share of what is left."""
    rates, left = [0.0] * len(caps), bandwidth
    for done, i in enumerate(sorted(range(len(caps)), key=lambda i: caps[i])):
        rates[i] = min(caps[i], left / (len(caps) - done))
        left -= rates[i]
    return rates


class Tour:
    """The way of a connection through one visit."""

    def __init__(self, visit: Visit, number: int, now: float) -> None:
        self.visit, self.number = visit, number
        self.at = 0  # the number of the page in the visit
        self.before = 0  # requests on the connection before the first page: 1 if robots.txt was fetched
        self.serial = 0  # of the page: the number of pages begun before it
        self.start = now  # of the page, as logged
        self.wait_s = 0.0
        self.sent = 0.0  # bytes that the server has sent on this connection
        self.first_byte = now
        self.result = FETCHED

    @property
    def page(self) -> int:
        return self.visit.pages[self.at]


class Transfer:
    """The bytes of a page that are still to come over the shared link."""

    def __init__(self, tour: Tour, left: float, cap: float) -> None:
        self.tour, self.left, self.cap = tour, left, cap
        self.serial, self.rate = tour.serial, 0.0


class Twin:
    def __init__(
        self,
        graph: Graph,
        strategy: Strategy,
        rules: Rules,
        *,
        connections: int,
        servers: Servers,
        network: Network,
        inputs: dict[str, Any],
        draw: Draw,
        seeds: Iterable[int] | None = None,
        seed: int = 0,
        score: Score | None = None,
    ) -> None:
        self.graph, self.servers, self.network, self.draw, self.score = graph, servers, network, draw, score
        self.free = self.connections = connections
        self.frontier = Frontier(strategy, rules, seed=seed)
        self.frontier.add_sites(graph.sites, 0.0, graph.ips)
        self.frontier.add_pages(graph.site, graph.dynamic)
        for name, values in inputs.items():
            self.frontier.set_column(name, values)
        self.frontier.discover(graph.home if seeds is None else list(seeds), 0.0)
        self.events: list[tuple[float, int, Callable[[float, Tour], None], Tour]] = []
        self.serials = itertools.count()
        self.transfers: list[Transfer] = []
        self.moved_at = 0.0  # the time until which transfers are computed
        self.tries = [0] * graph.pages
        self.visits = 0
        self.visited: set[int] = set()  # sites with a visit that has ended
        self.batch_visits: list[int] = []  # the first visit of each batch
        self.drained = False
        self.rows: list[Row] = []
        self.flows: list[Flow] = []
        self.size_of: dict[int, float] = {}  # of each transfer over the shared link

    # ---- time

    def run(self, most: int = 2**31) -> list[Row]:
        """Run until this number of pages is fetched, or nothing more can happen."""
        now = 0.0
        while now < math.inf and not self.drained and self.fetched < most:
            if not self.step(now):  # at one moment, completions come before new visits
                now = min(self.ask(now), self.next_event(), self.next_end())
        return self.rows

    @property
    def fetched(self) -> int:
        return sum(row.result == FETCHED for row in self.rows)

    def step(self, now: float) -> bool:
        """Run the first event that is due now, by time and then by serial of the page. Return whether there was one."""
        ends = [(self.end_of(t), t.serial) for t in self.transfers]
        first = min([*ends, *((time, serial) for time, serial, _, _ in self.events[:1])], default=(math.inf, 0))
        if first[0] > now:
            return False
        if first in ends:
            self.stop_transfer(now, self.transfers[ends.index(first)])
        else:
            _, _, action, tour = heapq.heappop(self.events)
            action(now, tour)
        return True

    def at(self, time: float, action: Callable[[float, Tour], None], tour: Tour) -> None:
        heapq.heappush(self.events, (time, tour.serial, action, tour))

    def ask(self, now: float) -> float:
        """Let a free connection ask, if there is one. Return when to ask again if nothing else happens."""
        if not self.free:
            return math.inf
        chosen = self.chosen_ever
        answer = self.frontier.next(now)
        if self.chosen_ever > chosen and self.batch_visits[-1:] != [self.visits]:
            self.batch_visits.append(self.visits)
        if isinstance(answer, WaitUntil):
            return answer.time
        if isinstance(answer, Visit):
            self.begin_visit(now, answer)
        elif isinstance(answer, Rescore):
            assert self.score is not None
            self.frontier.rescore(self.score(self.frontier), now)
        self.drained = isinstance(answer, Drained)
        return now

    @property
    def chosen_ever(self) -> int:
        """Number of pages that were chosen for a batch until now."""
        return int(np.count_nonzero(self.frontier.state.page["marks"] & CHOSEN))

    def next_event(self) -> float:
        return self.events[0][0] if self.events else math.inf

    # ---- a visit

    def begin_visit(self, now: float, visit: Visit) -> None:
        self.free -= 1
        tour = Tour(visit, self.visits, now)
        self.visits += 1
        if self.network.robots and visit.site not in self.visited:
            self.begin_robots(now, tour)
        else:
            self.begin_page(now, tour)

    def begin_robots(self, now: float, tour: Tour) -> None:
        """Open the connection of the first visit to a site, and fetch robots.txt."""
        site = tour.visit.site
        tour.serial, tour.before = next(self.serials), 1
        closing_s = of(self.servers.closing_s, site) if self.is_last(tour, 1) else 0.0
        self.at(now + self.connection_s(tour) + of(self.servers.robots_s, site) + closing_s, self.end_robots, tour)

    def end_robots(self, now: float, tour: Tour) -> None:
        if self.is_last(tour, 1):
            self.end_visit(now, tour, False, 0)
        else:
            self.begin_page(now if self.network.protocol == "pipelining" else now + self.network.pause_s, tour)

    def begin_page(self, now: float, tour: Tour) -> None:
        """Open a connection if needed, and request the page."""
        network, page = self.network, tour.page
        tour.serial, tour.start = next(self.serials), now
        opens = tour.at + tour.before == 0 or network.protocol == "http/1.0"
        sent_at = now + self.connection_s(tour) if opens else now
        tour.wait_s = self.wait_s(tour)
        draw = self.draw(page, self.tries[page])
        if draw < network.failed:
            tour.result, tour.first_byte = FAILED, sent_at + network.timeout_s
            self.at(tour.first_byte, self.end_page, tour)
            return
        tour.result, tour.first_byte = FETCHED, sent_at + tour.wait_s
        if draw < network.failed + network.refused:
            tour.result = REFUSED
            self.at(tour.first_byte + self.tcp_s(tour, 0.0), self.end_page, tour)
            return
        size = self.size(page)
        begins = tour.first_byte + self.tcp_s(tour, size)
        if self.shared and size > 0:
            self.at(begins, self.start_transfer, tour)
        else:
            self.at(begins + size / self.cap(tour), self.end_page, tour)

    def end_page(self, now: float, tour: Tour) -> None:
        page, result, visit = tour.page, tour.result, tour.visit
        links = self.graph.targets_of(page) if result == FETCHED else ()
        response_s = math.nan if result == FAILED else tour.wait_s + (now - tour.first_byte)
        assert self.frontier.report(visit, page, result, now, links, response_s)
        self.tries[page] += result == FAILED
        self.rows.append(Row(page, tour.number, tour.start, tour.first_byte, now, result))
        requested = tour.at + 1
        over = requested == len(visit.pages) or result == FAILED
        closed = self.server_closes(visit.site, tour.before + requested, over)
        if over or closed:
            self.end_visit(now, tour, closed, tour.before + requested)
            return
        tour.at += 1
        self.begin_page(now if self.network.protocol == "pipelining" else now + self.network.pause_s, tour)

    def end_visit(self, now: float, tour: Tour, closed: bool, served: int) -> None:
        outcome = Outcome(connection_s=self.connection_s(tour), closed=closed, served=served if closed else 0)
        assert self.frontier.finish(tour.visit, outcome, now)
        self.visited.add(tour.visit.site)
        self.free += 1

    def is_last(self, tour: Tour, requests: int) -> bool:
        """Whether the server closes the connection after this many requests."""
        return bool(self.network.protocol == "http/1.0" or requests == of(self.servers.requests, tour.visit.site))

    def server_closes(self, site: int, requested: int, over: bool) -> bool:
        """Whether the server closes, because of its number of requests or because of the pause that follows unless the
        visit is over."""
        network = self.network
        if network.protocol == "http/1.0":
            return False
        idle = network.protocol == "keep-alive" and network.pause_s > of(self.servers.keep_alive_s, site)
        return bool(requested == of(self.servers.requests, site) or (idle and not over))

    # ---- the duration of a page

    @property
    def shared(self) -> bool:
        return not self.network.per_connection and self.network.bandwidth < math.inf

    def connection_s(self, tour: Tour) -> float:
        return of(self.servers.connection_s, tour.visit.site)

    def wait_s(self, tour: Tour) -> float:
        latency_s = of(self.servers.latency_s, tour.page)
        if self.network.protocol == "pipelining" and tour.at > 0:
            return max(0.0, latency_s - self.connection_s(tour))
        return latency_s

    def tcp_s(self, tour: Tour, size: float) -> float:
        """The time that slow start and closing add."""
        site, old = tour.visit.site, self.network.protocol == "http/1.0"
        if old or tour.at == 0:
            tour.sent = 0.0
        closes = self.is_last(tour, tour.before + tour.at + 1)
        stalled = slow_start_stall_s(
            size, self.cap(tour), self.connection_s(tour), of(self.servers.initial_window, site), tour.sent
        )
        tour.sent += size
        return stalled + (of(self.servers.closing_s, site) if closes else 0.0)

    def size(self, page: int) -> float:
        return of(self.servers.size, page)

    def cap(self, tour: Tour) -> float:
        speed = of(self.servers.speed, tour.visit.site)
        return min(speed, self.network.bandwidth) if self.network.per_connection else speed

    # ---- the shared link

    def start_transfer(self, now: float, tour: Tour) -> None:
        self.move(now)
        self.size_of[tour.serial] = self.size(tour.page)
        self.transfers.append(Transfer(tour, self.size(tour.page), self.cap(tour)))
        self.share()

    def stop_transfer(self, now: float, transfer: Transfer) -> None:
        self.move(now)
        self.transfers.remove(transfer)
        self.share()
        self.end_page(now, transfer.tour)

    def move(self, now: float) -> None:
        """Count the bytes that arrived since the last start or end."""
        passed_s = now - self.moved_at
        for transfer in self.transfers:
            transfer.left -= transfer.rate * passed_s
        self.flows.append(Flow(self.moved_at, now, {t.serial: t.rate for t in self.transfers}))
        self.moved_at = now

    def share(self) -> None:
        rates = water_filling([t.cap for t in self.transfers], self.network.bandwidth)
        for transfer, rate in zip(self.transfers, rates, strict=True):
            transfer.rate = rate

    def end_of(self, transfer: Transfer) -> float:
        return self.moved_at + max(0.0, transfer.left) / transfer.rate

    def next_end(self) -> float:
        return min((self.end_of(t) for t in self.transfers), default=math.inf)


def slow_start_stall_s(size: float, rate: float, round_trip_s: float, initial_window: float, sent: float) -> float:
    """How much later than without slow start the last byte is sent, by following the rounds one after the other.

    `sent`: bytes sent on this connection before, all acknowledged.
    """
    if initial_window == 0 or size == 0:
        return 0.0
    begins, left, acknowledged = 0.0, size, sent
    while True:
        window = initial_window + acknowledged
        # The last round, or one in which acknowledgements come in time
        if left <= window or window / rate >= round_trip_s:
            return begins - (size - left) / rate
        begins, left, acknowledged = begins + round_trip_s, left - window, acknowledged + window


def of(values: Any, item: int) -> Any:
    """One value for each item, or one for all."""
    return values[item if len(values) > 1 else 0].item()
