"""A simulated web that changes: a graph, the times at which its pages change, and what their sites signal about that;
with its servers and the network to them.

Pages and links stay the same; only the content changes. This module knows no crawler. Histories of changes are assigned
to pages as in testweb, so that the same trace and seed make the same web here and there. Signals and published points
are those of a replay (refresh/replay/replay_world.py), but whether they are sent is sampled per site, because a crawl learns
levels per site.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.jit import f8, i8, kernel
from trapline.errors import ConfigError
from trapline.frontier import FAILED, FETCHED, REFUSED, Visit
from trapline.graph import Graph
from trapline.refresh import ReplayConditions, Trace, draw_world
from trapline.refresh.core.layout import LEVELS, NORMAL, SUPER
from trapline.refresh.replay.replay_world import Events, ReplayWorld
from trapline.refresh.replay.trace import round_of, sampled_histories
from trapline.rng import uniform
from trapline.servers.model import NO_LIMIT
from trapline.servers.sampled import Servers, constant_servers
from trapline.servers.slow_start import stall_s
from trapline.simulator.connections import FATE
from trapline.simulator.network import Network

_LEVELS = 12  # number of a random stream
Floats = NDArray[np.float64]
Point = tuple[float, float]
"""Time of a possible change, and its probability."""


@dataclass(frozen=True, slots=True)
class ChangingWeb:
    graph: Graph
    changes: Trace
    """changes of the graph's pages, for the whole duration of the crawl"""
    level: NDArray[np.uint8]
    """[sites] provider level of each site"""
    signals: tuple[list[float], list[int]]
    """times and pages, in order of time"""
    points: Mapping[int, list[Point]]
    """published points of the pages that have any, in order of time"""
    servers: Servers = field(default_factory=lambda: constant_servers(1.0))
    network: Network = field(default_factory=Network)

    @property
    def until_s(self) -> float:
        return self.changes.horizon_s

    def points_after(self, page: int, now: float) -> list[Point]:
        points = self.points.get(page, [])
        return points[bisect_right(points, (now, math.inf)) :]


def still_web(graph: Graph, until_s: float) -> ChangingWeb:
    """Return a web that never changes."""
    nothing = np.zeros(graph.pages + 1, np.int64)
    trace = Trace("still", nothing, np.zeros(0), graph.site, until_s)
    return ChangingWeb(graph, trace, np.zeros(graph.sites, np.uint8), ([], []), {})


def changing_web(
    graph: Graph, trace: Trace, until_s: float, conditions: ReplayConditions, *, speed: float = 1.0, seed: int = 0
) -> ChangingWeb:
    """Return a web whose pages change like those of a trace. One second takes `speed` seconds of the trace, and at its
    end the trace begins again. `conditions`: what sites signal; its accesses are not used."""
    if not (speed > 0 and 0 < until_s < math.inf):
        raise ConfigError(
            f"speed is {speed:g} and the duration is {until_s:g} s; both must be above 0, and the duration finite"
        )
    changes = _repeated(sampled_histories(trace, graph.pages, seed), trace, graph, until_s, speed)
    level = _levels(graph.sites, conditions.levels, seed)
    # Sample the signals of all pages as if every site sent them, and keep those of the sites that do: so the level of
    # one site does not change the signals of the others.
    world = draw_world(changes, replace(conditions, levels={"super": 1.0}, accesses=0), seed)
    return ChangingWeb(
        graph, changes, level, _signals(world.signal, level[graph.site]), _points(world, level[graph.site])
    )


def _repeated(histories: list[Floats], trace: Trace, graph: Graph, until_s: float, speed: float) -> Trace:
    """Repeat the histories, round after round, until the end."""
    round_s = round_of(trace, speed)
    begins = np.arange(math.ceil(until_s / round_s)) * round_s
    moments = [(begins[:, None] + own / speed).ravel() for own in histories]
    moments = [own[own <= until_s] for own in moments]
    offsets = np.cumsum([0, *map(len, moments)]).astype(np.int64)
    return Trace(trace.name, offsets, np.concatenate(moments), graph.site, until_s, {**trace.origin, "speed": speed})


def _levels(sites: int, shares: Mapping[str, float], seed: int) -> NDArray[np.uint8]:
    """Return the level of each site. The shares are exact, as far as the number of sites allows; which site has which
    level is random."""
    ends = np.round(np.cumsum([shares.get(name, 0.0) for name in LEVELS]) * sites).astype(int)
    level = np.searchsorted(ends, np.arange(sites), side="right").astype(np.uint8)
    return level[np.random.default_rng((seed, _LEVELS)).permutation(sites)]


def _signals(events: Events, level: NDArray[np.uint8]) -> tuple[list[float], list[int]]:
    sent = events[level[events["page"]] != NORMAL]
    return sent["at_s"].tolist(), sent["page"].tolist()


def _points(world: ReplayWorld, level: NDArray[np.uint8]) -> dict[int, list[Point]]:
    offsets, points = world.point_offsets, world.published
    by_page = {page: points[offsets[page] : offsets[page + 1]] for page in np.flatnonzero(level == SUPER).tolist()}
    return {page: list(zip(own["at_s"].tolist(), own["p"].tolist(), strict=True)) for page, own in by_page.items()}


# ---- The duration of fetches in a simulated crawl whose loop is Python: the same model as in connections.py, which is
# compiled (docs/simulator.md, "A visit").
#
# This part knows servers and network, and computes times. The driver decides which site is visited, and processes the
# results. A link that connections share is not modelled here.

_DRAWS = 16  # random numbers of a page in one random stream, as in connections.py


@kernel(f8(i8, i8))
def drawn(seed: int, number: int) -> float:
    return uniform(seed, number)


@kernel(f8(f8, f8, f8, f8))
def stalled(size: float, rate: float, round_trip_s: float, window: float) -> float:
    return stall_s(size, rate, round_trip_s, window)


class Tour:
    """The state of a connection during one visit."""

    __slots__ = ("at", "first_byte", "number", "result", "sent", "start", "visit", "wait_s")

    def __init__(self, visit: Visit, number: int, now: float) -> None:
        self.visit, self.number = visit, number
        self.at = 0  # index of the present page in the visit
        self.start = self.first_byte = now  # times of that page, as logged
        self.wait_s = 0.0
        self.sent = 0.0  # bytes that the server has sent on this connection
        self.result = FETCHED

    @property
    def page(self) -> int:
        return self.visit.pages[self.at]


class Timing:
    """Computes when pages are complete, and when servers close connections."""

    def __init__(self, servers: Servers, network: Network, seed: int) -> None:
        if network.bandwidth < NO_LIMIT and not network.per_connection:
            raise ConfigError(
                "a changing web does not support a bandwidth limit that connections share;"
                " limit each connection (--bandwidth-per connection), or omit the limit"
            )
        if network.robots:
            raise ConfigError("a changing web does not support robots.txt files; set robots to False")
        self._network, self._seed = network, seed
        self._connection_s, self._latency_s = _values(servers.connection_s), _values(servers.latency_s)
        self._speed, self._size = _values(servers.speed), _values(servers.size)
        self._closing_s, self._initial_window = _values(servers.closing_s), _values(servers.initial_window)
        self._requests, self._keep_alive_s = _values(servers.requests), _values(servers.keep_alive_s)
        self._cap = network.bandwidth if network.per_connection else NO_LIMIT
        self.pause_s = 0.0 if network.protocol == "pipelining" else network.pause_s

    def connection_s(self, site: int) -> float:
        return float(_of(self._connection_s, site))

    def begin_page(self, tour: Tour, tries: int) -> float:
        """Request the present page of the tour at `tour.start`. Return when the page is complete."""
        network, site, page = self._network, tour.visit.site, tour.page
        opens = tour.at == 0 or network.protocol == "http/1.0"
        sent_at = tour.start + self.connection_s(site) if opens else tour.start
        tour.result, tour.wait_s = self._fate(page, tries), self._wait_s(tour)
        if tour.result == FAILED:
            tour.first_byte = sent_at + network.timeout_s
            return tour.first_byte
        tour.first_byte = sent_at + tour.wait_s
        size, rate = 0.0 if tour.result == REFUSED else _of(self._size, page), min(_of(self._speed, site), self._cap)
        return float(tour.first_byte + self._tcp_s(tour, size, rate) + size / rate)

    def _tcp_s(self, tour: Tour, size: float, rate: float) -> float:
        """Return the time that slow start and closing add to an answer of `size` bytes, and count the bytes."""
        site, added = tour.visit.site, 0.0
        closes = self._network.protocol == "http/1.0" or tour.at + 1 == _of(self._requests, site)
        if tour.at == 0 or self._network.protocol == "http/1.0":
            tour.sent = 0.0
        if window := _of(self._initial_window, site):
            added = stalled(size, rate, self.connection_s(site), window + tour.sent)
            tour.sent += size
        return added + _of(self._closing_s, site) if closes else added

    def has_closed(self, site: int, requests: int, over: bool) -> bool:
        """Return whether the server closes the connection after `requests` pages of a visit: because that is its limit
        of requests, or because the pause that follows is longer than its keep-alive time. `over`: no pause follows, the
        visit is over."""
        protocol = self._network.protocol
        if protocol == "http/1.0":
            return False
        idle = protocol == "keep-alive" and self.pause_s > _of(self._keep_alive_s, site)
        return bool(requests == _of(self._requests, site) or (idle and not over))

    def _wait_s(self, tour: Tour) -> float:
        latency_s = float(_of(self._latency_s, tour.page))
        if self._network.protocol == "pipelining" and tour.at > 0:
            return max(0.0, latency_s - self.connection_s(tour.visit.site))
        return latency_s

    def _fate(self, page: int, tries: int) -> int:
        """Return the result of the next fetch of a page. `tries`: how often the page was requested before, whatever the
        result."""
        failed, refused = self._network.failed, self._network.refused
        if failed + refused == 0.0:
            return FETCHED
        stream, number = divmod(tries, _DRAWS)
        draw = drawn(self._seed + FATE + stream, _DRAWS * page + number)
        if draw < failed:
            return FAILED
        return REFUSED if draw < failed + refused else FETCHED


def response_s(tour: Tour, now: float) -> float:
    """Return the response time as measured at the end of the page; NaN for a failed fetch, which has none."""
    return math.nan if tour.result == FAILED else tour.wait_s + (now - tour.first_byte)


def _values(values: Any) -> list[Any]:
    """Return Python numbers: access to an item of an array takes ten times as long."""
    return list(values.tolist())


def _of(values: list[Any], item: int) -> Any:
    """Return the value of an item, from a list with one value for each item or one for all."""
    return values[item if len(values) > 1 else 0]
