"""Samples of what the connections of a running crawl do. Nothing is counted while pages arrive: a sample looks at what is there.

A visit under way has a state (visits/visit_state.py). For each connection that no visit uses, the frontier's arrays say why:
each address with waiting pages could use one connection, and has a reason why it does not. The reasons of many thousand sites
take milliseconds, so they are read at most once a second, and less often if that takes long.
"""

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from trapline.crawler.engine.crawler import Crawler
from trapline.crawler.speed.connection_states import (
    ConnectionStates,
    CrawlSpeed,
    StoreBacklog,
    WaitingSites,
    apportioned,
    lately,
)
from trapline.crawler.visits.visit_state import VisitState
from trapline.frontier import Frontier
from trapline.frontier.layout import BY_DELAY, FRONT, Array

_EVERY_S = 1.0  # between two looks at all sites
_MOST_SHARE = 500  # a look that takes long is repeated only after this many times its duration
_SAMPLES = 10  # of which the mean is taken: five seconds, as for rates
_OF_VISITS = {VisitState.CONNECTING: "connecting", VisitState.ROBOTS: "robots", VisitState.FETCHING: "fetching"}


class VisitsUnderWay(Protocol):
    def visits(self) -> Iterator[tuple[VisitState, bool]]:
        """Yield the state of each visit that has a connection, and whether a bandwidth limit pauses its reading."""


class ConnectionSampler:
    def __init__(
        self, crawler: Crawler, web: VisitsUnderWay, connections: int, is_handler_behind: Callable[[], bool]
    ) -> None:
        """`connections`: r. `is_handler_behind`: returns whether the crawl waits for its handler, and not for its store."""
        self._crawler, self._web, self._connections = crawler, web, connections
        self._is_handler_behind = is_handler_behind
        self._waiting = WaitingSites()
        self._looked_at = self._due_at = -math.inf

    def sample(self, now: float) -> tuple[ConnectionStates, WaitingSites]:
        """Return what each connection does now, and what is known of the sites with waiting pages."""
        self._look(now)
        found = self._visits()
        found.update(self._free(self._connections - sum(found.values())))
        return ConnectionStates(**found), self._waiting

    def _look(self, now: float) -> None:
        began = time.perf_counter()
        if now >= self._due_at or now < self._looked_at:
            self._waiting, self._looked_at = waiting_sites(self._crawler.frontier, now), now
            self._due_at = now + max(_EVERY_S, _MOST_SHARE * (time.perf_counter() - began))

    def _visits(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for state, is_throttled in self._web.visits():
            found[self._state(state, is_throttled)] += 1
        # The others wait for a second connection for robots.txt, or until a server has noticed that we hung up.
        found["site_delay"] += max(self._crawler.active - sum(found.values()), 0)
        return found

    def _state(self, state: VisitState, is_throttled: bool) -> str:
        if state in _OF_VISITS:
            return "bandwidth" if is_throttled else _OF_VISITS[state]
        return self._behind if state is VisitState.WAITS_FOR_STORE else "site_delay"

    @property
    def _behind(self) -> str:
        return "handler" if self._is_handler_behind() else "store"

    def _free(self, free: int) -> Counter[str]:
        """Divide the connections that no visit uses among the reasons."""
        crawler, waiting = self._crawler, self._waiting
        if crawler.stopped_by or crawler.is_paused:
            return Counter(paused=free)
        if crawler.used >= crawler.most_pages:
            return Counter(nothing_to_do=free)
        ready = {self._behind if crawler.full() else "connecting": waiting.ready_addresses}
        found = Counter(apportioned(free, {**waiting.by_reason, **ready}))
        found["nothing_to_do"] = free - sum(found.values())
        return found


class _Addresses(NamedTuple):
    """The addresses of sites with waiting pages that no visit uses."""

    site_ready_at: Array  # of the site that may be visited first
    delay_rule: Array  # of that site
    ready_at: Array


def waiting_sites(frontier: Frontier, now: float) -> WaitingSites:
    """Return the numbers of sites and addresses with waiting pages, and why the addresses cannot be visited now."""
    queue = frontier.queue_records[:, FRONT]
    sites = np.flatnonzero(queue["planned"])
    unresolved, in_use, free = _addresses(frontier, sites)
    opens_at = np.maximum(free.site_ready_at, free.ready_at)
    waits = opens_at > now
    by_address = waits & (free.ready_at > np.maximum(free.site_ready_at, now))
    by_delay = waits & ~by_address & (free.delay_rule == BY_DELAY)
    reasons = {
        "dns": unresolved,
        "site_delay": int(by_delay.sum()),
        "address_delay": int(by_address.sum()),
        "back_off": int((waits & ~by_address & ~by_delay).sum()),
    }
    return WaitingSites(
        int(queue["waiting"][sites].sum()),
        len(sites),
        unresolved + in_use + len(waits),
        int((~waits).sum()),
        {name: number for name, number in reasons.items() if number},
        float(opens_at[waits].min()) - now if waits.any() else None,
    )


def _addresses(frontier: Frontier, sites: Array) -> tuple[int, int, _Addresses]:
    """Return the number of these sites without an address, the number of addresses that are being visited, and the others."""
    group, record = frontier.site_groups[sites], frontier.site_records
    unresolved = int((group < 0).sum())
    if unresolved:
        sites, group = sites[group >= 0], group[group >= 0]
    ready_at = record["ready_at"][sites]  # by columns: a copy of whole records takes ten times as long
    groups = frontier.group_records
    has_sites, first, rule = np.zeros(len(groups), bool), np.full(len(groups), np.inf), np.zeros(len(groups), np.int32)
    has_sites[group] = True
    np.minimum.at(first, group, ready_at)
    is_first = ready_at == first[group]
    rule[group[is_first]] = record["delay_rule"][sites[is_first]]
    free = has_sites & (groups["visit"] < 0)
    in_use = int(has_sites.sum() - free.sum())
    return unresolved, in_use, _Addresses(first[free], rule[free], groups["ready_at"][free])


class SpeedMeter:
    """Takes a sample with each status, and keeps the last ones."""

    def __init__(self, sampler: ConnectionSampler, backlog: Callable[[], StoreBacklog]) -> None:
        self._sampler, self._backlog = sampler, backlog
        self._samples: deque[ConnectionStates] = deque(maxlen=_SAMPLES)
        self._clocks: deque[tuple[float, float]] = deque(maxlen=_SAMPLES)  # time, processor time of this thread

    def speed(self, now: float) -> CrawlSpeed:
        states, waiting = self._sampler.sample(now)
        self._samples.append(states)
        self._clocks.append((time.perf_counter(), time.thread_time()))
        return CrawlSpeed(states, lately(self._samples), waiting, self._backlog(), self._loop_busy())

    def _loop_busy(self) -> float:
        (began, used_before), (now, used) = self._clocks[0], self._clocks[-1]
        return (used - used_before) / (now - began) if now > began else 0.0
