"""The virtual-time driver for a web that changes: it fetches new pages and refetches old ones, by the agenda of a live
crawl.

The driver is a plain loop over the interfaces of frontier, refresher and agenda, which make all decisions. It owns the
time and the true state of the web, and tells them only what a crawler would see: whether a page differs from its copy,
and what sites signal about fetched pages. Laws: docs/simulator.md, "A web that changes". Without refetching, it
produces the same crawl as the compiled driver.py.
"""

import heapq
import itertools
import math
import time
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from trapline.frontier import FAILED, FETCHED, Drained, Frontier, Outcome, Rescore, Rules, Visit, WaitUntil
from trapline.frontier.layout import Array
from trapline.progress import CountCallback
from trapline.refresh import Policy, Refresher
from trapline.refresh.live.agenda import Agenda, Turns
from trapline.simulator.changing_web import ChangingWeb, Timing, Tour, response_s
from trapline.simulator.driver import prepare
from trapline.simulator.log import FetchLog, log_of
from trapline.simulator.scores import KnownGraph
from trapline.strategies import Strategy

PING, SCHEDULE = 0, 4  # the channels of signals from sites, as numbered in signals/inbox.py
_ASK_EVERY_S = 1.0  # while no page is worth the price: the refresher cannot say when that will change
_SLICE = 2_000  # rows of the log between two progress reports


@dataclass(frozen=True, slots=True)
class Refresh:
    """How pages are refetched; see refresh/live/agenda.py."""

    policy: Policy
    share: float = 0.5
    price: float | None = None
    rate: float = math.inf
    quality: Array | None = None  # the value of each page for the refresher; None: all pages have the same value


@dataclass(frozen=True, slots=True)
class ChangingCrawl:
    """What a simulated crawl of a changing web did, and under which conditions."""

    web: ChangingWeb
    log: FetchLog
    is_refetch: Array  # bool[rows]: the fetch was a refetch
    changed: Array  # bool[rows]: the page differed from the crawl's copy
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
    connections: int = 1,
    seeds: Array | None = None,
    inputs: Mapping[str, Array] | None = None,
    seed: int = 0,
    progress: CountCallback | None = None,
) -> ChangingCrawl:
    """Crawl for `web.until_s` seconds. `refresh` None: fetch every page once."""
    web.servers.check(web.graph)
    timing = Timing(web.servers, web.network, seed)
    frontier = prepare(web.graph, strategy, rules, dict(inputs or {}), connections, seed)
    frontier.discover(web.graph.home if seeds is None else seeds, 0.0)
    quality = None if refresh is None else refresh.quality
    values = [1.0] * web.graph.pages if quality is None else quality.tolist()
    run = _Run(web, frontier, _agenda(frontier, refresh), timing, connections, values)
    started = time.perf_counter()
    run.until(web.until_s, progress)
    wall_seconds = time.perf_counter() - started
    return ChangingCrawl(
        web=web,
        log=log_of(*run.seen.rows),
        is_refetch=np.array(run.seen.is_refetch, np.bool_),
        changed=np.array(run.seen.changed, np.bool_),
        strategy=strategy,
        rules=rules,
        refresh=refresh,
        wall_seconds=wall_seconds,
    )


def _agenda(frontier: Frontier, refresh: Refresh | None) -> Agenda | None:
    if refresh is None:
        return None
    turns = Turns(refresh.share, refresh.price, refresh.rate, refresh.policy.least)
    return Agenda(frontier, Refresher(refresh.policy, started=0.0), turns, continuous=True)


@dataclass(slots=True)
class _Seen:
    """The rows of the log, with two more columns."""

    rows: list[tuple[float, ...]] = field(default_factory=list)
    is_refetch: list[bool] = field(default_factory=list)
    changed: list[bool] = field(default_factory=list)


class _Copies:
    """The true state of the crawl's copies: which version of each page it has. `take` updates it."""

    def __init__(self, web: ChangingWeb) -> None:
        self._offsets, self._at_s = web.changes.offsets.tolist(), web.changes.at_s.tolist()
        self._version: dict[int, int] = {}

    def take(self, page: int, answered: float) -> bool | None:
        """Store a new copy of the page as it was at time `answered`. Return whether it differs from the old copy; None:
        there was none."""
        found = bisect_right(self._at_s, answered, self._offsets[page], self._offsets[page + 1])
        old = self._version.get(page)
        self._version[page] = found
        return None if old is None else found != old


class _Run:
    """The event loop. `_events` holds the pages in flight, ordered by completion time, then by the order in which they
    were requested. `_begin_page` adds them, `_step` removes them."""

    def __init__(
        self,
        web: ChangingWeb,
        frontier: Frontier,
        agenda: Agenda | None,
        timing: Timing,
        connections: int,
        quality: list[float],
    ) -> None:
        self._web, self._frontier, self._agenda, self._timing, self._quality = web, frontier, agenda, timing, quality
        self._free, self._visits, self._serials = connections, itertools.count(), itertools.count()
        self._events: list[tuple[float, int, Tour]] = []
        self._signals, self._signals_taken = web.signals if agenda else ([], []), 0
        self._copies, self._tries = _Copies(web), [0] * web.graph.pages
        self._known = KnownGraph(web.graph) if frontier.strategy.page.scores else None
        self._ask_at = 0.0  # when to ask for the next visit; -inf: something happened, so ask at once
        self._over = False
        self.seen = _Seen()

    def until(self, until_s: float, progress: CountCallback | None) -> None:
        now, reported = 0.0, 0
        while now <= until_s and not self._over:
            self._take_signals(now)
            if self._step(now):  # at the same moment, completions come before new visits
                continue
            now = min(self._ask(now), self._next_event(), self._next_signal())
            if progress is not None and len(self.seen.rows) >= reported + _SLICE:
                reported = len(self.seen.rows)
                progress(int(min(now, until_s)), int(until_s))

    # ---- events

    def _next_event(self) -> float:
        return self._events[0][0] if self._events else math.inf

    def _next_signal(self) -> float:
        return self._signals[0][self._signals_taken] if self._signals_taken < len(self._signals[0]) else math.inf

    def _take_signals(self, now: float) -> None:
        """Pass signals to the refresher. Signals about pages that were not fetched yet are lost, as in a live crawl."""
        while self._next_signal() <= now:
            assert self._agenda is not None  # without an agenda there are no signals
            moment, page = self._signals[0][self._signals_taken], self._signals[1][self._signals_taken]
            self._signals_taken += 1
            if self._agenda.refresher.signalled(page, PING, moment, moment):
                self._ask_at = -math.inf

    def _step(self, now: float) -> bool:
        """Process the first page that is complete by now. Return False if there is none."""
        if self._next_event() > now:
            return False
        _, _, tour = heapq.heappop(self._events)
        self._end_page(now, tour)
        self._ask_at = -math.inf
        return True

    # ---- decisions

    def _ask(self, now: float) -> float:
        """Let a free connection ask for a visit, if there is one and the last answer has expired. Return the time at
        which to continue if nothing else happens before."""
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
            assert self._known is not None  # only a page rank with scores requests them
            self._frontier.rescore(self._known.scores(self._frontier.page_states), now)
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
        requested = tour.at + 1
        over = requested == len(visit.pages) or result == FAILED
        closed = self._timing.has_closed(visit.site, requested, over)
        if over or closed:
            self._end_visit(now, visit, requested if closed else 0)
            return
        tour.at, tour.start = requested, now + self._timing.pause_s
        self._begin_page(tour)

    def _note(self, now: float, tour: Tour, changed: bool | None) -> None:
        """Write a row of the log, and inform the refresher. On every fetch, it also learns the schedule that the page
        publishes."""
        page, result = tour.page, tour.result
        is_refetch = self._agenda is not None and page in self._agenda.under_way
        self.seen.rows.append((page, tour.number, tour.start, tour.first_byte, now, result))
        self.seen.is_refetch.append(is_refetch)
        self.seen.changed.append(bool(changed))
        if self._agenda is None:
            return
        self._agenda.came(page, tour.visit.site, result, now, changed, self._quality[page])
        if result == FETCHED and page in self._web.points:
            self._agenda.refresher.publish(page, SCHEDULE, self._web.points_after(page, now), now)

    def _end_visit(self, now: float, visit: Visit, served: int) -> None:
        outcome = Outcome(connection_s=self._timing.connection_s(visit.site), closed=served > 0, served=served)
        self._frontier.finish(visit, outcome, now)
        self._free += 1
        if self._agenda is not None:
            self._agenda.over(visit, now)
