"""The virtual-time driver of a web that changes: new pages are fetched and old ones fetched again, by the agenda of a live crawl.

A plain loop over the faces of frontier, refresher and agenda, which decide everything; it owns time and truth, and tells them what a
crawler would see: whether a copy differs, and what sites tell of pages that were fetched. Laws: docs/simulator.md, "A web that changes".
Where nothing is fetched again it makes the crawl of driver.py, which is compiled.
"""

import heapq
import itertools
import math
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from trapline.frontier import FAILED, FETCHED, Drained, Frontier, Outcome, Rescore, Rules, Visit, WaitUntil
from trapline.frontier.layout import Array
from trapline.refresh import Policy, Refresher
from trapline.refresh.agenda import Agenda
from trapline.refresh.turns import Turns
from trapline.simulate.changing_robots import Timing, Tour, response_s
from trapline.simulate.changing_web import ChangingWeb
from trapline.simulate.driver import prepare
from trapline.simulate.log import Log, log_of
from trapline.simulate.scores import KnownGraph
from trapline.simulate.servers import Network, Servers, constant_servers
from trapline.strategies import Strategy

PING, SCHEDULE = 0, 4  # the channels by which sites tell, as numbered in signals/inbox.py
_ASK_EVERY_S = 1.0  # while nothing is worth its price: the refresher cannot say when that will change
_SLICE = 2_000  # rows between two reports of progress


@dataclass(frozen=True, slots=True)
class Refresh:
    """How pages are fetched again; see refresh/turns.py."""

    policy: Policy
    share: float = 0.5
    price: float | None = None
    rate: float = math.inf


@dataclass(frozen=True, slots=True)
class ChangingCrawl:
    """What a simulated crawl of a changing web did, and under which conditions."""

    web: ChangingWeb
    log: Log
    again: Array  # bool[rows]: the crawl had the page
    changed: Array  # bool[rows]: and found it changed
    strategy: Strategy
    rules: Rules
    refresh: Refresh | None
    wall_seconds: float


def simulate_changing(
    web: ChangingWeb,
    strategy: Strategy,
    rules: Rules,
    refresh: Refresh | None,
    *,
    robots: int = 1,
    servers: Servers | None = None,
    network: Network | None = None,
    seeds: Array | None = None,
    inputs: Mapping[str, Array] | None = None,
    quality: Array | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> ChangingCrawl:
    """Crawl for `web.until_s`. `refresh` None: every page once. `quality`: what a page is worth to the refresher; without, all the same."""
    servers = servers or constant_servers(1.0)
    servers.check(web.graph)
    timing = Timing(servers, network or Network(), seed)
    frontier = prepare(web.graph, strategy, rules, dict(inputs or {}), robots, seed)
    frontier.discover(web.graph.home if seeds is None else seeds, 0.0)
    worth = [1.0] * web.graph.pages if quality is None else quality.tolist()
    run = _Run(web, frontier, _agenda(frontier, refresh), timing, robots, worth)
    started = time.perf_counter()
    run.until(web.until_s, progress)
    wall_seconds = time.perf_counter() - started
    return ChangingCrawl(
        web=web,
        log=log_of(*run.seen.rows),
        again=np.array(run.seen.again, np.bool_),
        changed=np.array(run.seen.changed, np.bool_),
        strategy=strategy,
        rules=rules,
        refresh=refresh,
        wall_seconds=wall_seconds,
    )


def _agenda(frontier: Frontier, refresh: Refresh | None) -> Agenda | None:
    if refresh is None:
        return None
    turns = Turns(refresh.share, refresh.price, refresh.rate)
    return Agenda(frontier, Refresher(refresh.policy, started=0.0), turns, continuous=True)


@dataclass(slots=True)
class _Seen:
    """What is logged, row by row."""

    rows: list[tuple[float, ...]] = field(default_factory=list)
    again: list[bool] = field(default_factory=list)
    changed: list[bool] = field(default_factory=list)


class _Copies:
    """The truth: which version of each page the crawl has. Who fills it: `take`."""

    def __init__(self, web: ChangingWeb) -> None:
        self._offsets, self._at_s = web.changes.offsets.tolist(), web.changes.at_s.tolist()
        self._version: dict[int, int] = {}

    def take(self, page: int, answered: float) -> bool | None:
        """A new copy, as the page was at this moment. Whether it differs from the old one; None: there was none."""
        found = bisect_right(self._at_s, answered, self._offsets[page], self._offsets[page + 1])
        old = self._version.get(page)
        self._version[page] = found
        return None if old is None else found != old


class _Run:
    """The loop. `events`: pages under way, by when they are in, then by how many were begun before; filled by `_begin_page`, emptied by
    `_step`."""

    def __init__(
        self,
        web: ChangingWeb,
        frontier: Frontier,
        agenda: Agenda | None,
        timing: Timing,
        robots: int,
        worth: list[float],
    ) -> None:
        self._web, self._frontier, self._agenda, self._timing, self._worth = web, frontier, agenda, timing, worth
        self._free, self._visits, self._serials = robots, itertools.count(), itertools.count()
        self._events: list[tuple[float, int, Tour]] = []
        self._signals, self._heard = web.signals if agenda else ([], []), 0
        self._copies, self._tries = _Copies(web), [0] * web.graph.pages
        self._known = KnownGraph(web.graph) if frontier.strategy.page.scores else None
        self._ask_at = 0.0  # -inf: something happened, so ask at once
        self._over = False
        self.seen = _Seen()

    def until(self, until_s: float, progress: Callable[[int, int], None] | None) -> None:
        now, told = 0.0, 0
        while now <= until_s and not self._over:
            self._hear(now)
            if self._step(now):  # at one moment, completions before new visits
                continue
            now = min(self._ask(now), self._next_event(), self._next_signal())
            if progress is not None and len(self.seen.rows) >= told + _SLICE:
                told = len(self.seen.rows)
                progress(int(min(now, until_s)), int(until_s))

    # ---- what happens

    def _next_event(self) -> float:
        return self._events[0][0] if self._events else math.inf

    def _next_signal(self) -> float:
        return self._signals[0][self._heard] if self._heard < len(self._signals[0]) else math.inf

    def _hear(self, now: float) -> None:
        """Signals of pages that the crawl has not are lost, as they are live."""
        while self._next_signal() <= now:
            assert self._agenda is not None  # else there are no signals
            moment, page = self._signals[0][self._heard], self._signals[1][self._heard]
            self._heard += 1
            if self._agenda.refresher.signalled(page, PING, moment, moment):
                self._ask_at = -math.inf

    def _step(self, now: float) -> bool:
        """If a page is in now, let the first be."""
        if self._next_event() > now:
            return False
        _, _, tour = heapq.heappop(self._events)
        self._end_page(now, tour)
        self._ask_at = -math.inf
        return True

    # ---- decisions

    def _ask(self, now: float) -> float:
        """A free robot asks, if there is one and the last answer does not hold any more. When to go on, if nothing else happens."""
        if not self._free:
            return math.inf
        if now < self._ask_at:
            return self._ask_at
        answer = self._frontier.next(now) if self._agenda is None else self._agenda.next(now)
        if isinstance(answer, WaitUntil):
            self._ask_at = answer.time if answer.time > now else now + _ASK_EVERY_S
            return self._ask_at
        if isinstance(answer, Visit):
            self._free -= 1
            self._begin_page(Tour(answer, next(self._visits), now))
        elif isinstance(answer, Rescore):
            assert self._known is not None  # only a page rank that has scores asks for them
            self._frontier.rescore(self._known.scores(self._frontier.state.state), now)
        self._over = isinstance(answer, Drained)
        self._ask_at = -math.inf
        return now

    # ---- a visit

    def _begin_page(self, tour: Tour) -> None:
        page = tour.page
        moment = self._timing.begin_page(tour, self._tries[page])
        self._tries[page] += 1
        heapq.heappush(self._events, (moment, next(self._serials), tour))

    def _end_page(self, now: float, tour: Tour) -> None:
        page, result, visit = tour.page, tour.result, tour.visit
        links = self._web.graph.targets_of(page) if result == FETCHED else ()
        self._frontier.report(visit, page, result, now, links, response_s(tour, now))
        self._note(now, tour, self._copies.take(page, tour.first_byte) if result == FETCHED else None)
        asked_for = tour.at + 1
        over = asked_for == len(visit.pages) or result == FAILED
        closed = self._timing.has_closed(visit.site, asked_for, over)
        if over or closed:
            self._end_visit(now, visit, asked_for if closed else 0)
            return
        tour.at, tour.start = asked_for, now + self._timing.pause_s
        self._begin_page(tour)

    def _note(self, now: float, tour: Tour, changed: bool | None) -> None:
        """In the log, and to the refresher, who hears what a page publishes whenever it is fetched."""
        page, result = tour.page, tour.result
        again = self._agenda is not None and page in self._agenda.under_way
        self.seen.rows.append((page, tour.number, tour.start, tour.first_byte, now, result))
        self.seen.again.append(again)
        self.seen.changed.append(bool(changed))
        if self._agenda is None:
            return
        self._agenda.came(page, tour.visit.site, result, now, changed, self._worth[page])
        if result == FETCHED and page in self._web.points:
            self._agenda.refresher.publish(page, SCHEDULE, self._web.points_after(page, now), now)

    def _end_visit(self, now: float, visit: Visit, served: int) -> None:
        outcome = Outcome(connection_s=self._timing.connection_s(visit.site), closed=served > 0, served=served)
        self._frontier.finish(visit, outcome, now)
        self._free += 1
        if self._agenda is not None:
            self._agenda.over(visit, now)
