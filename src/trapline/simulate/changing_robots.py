"""What a fetch takes in a simulated crawl whose loop is Python: the model of robots.py, which is compiled (docs/simulator.md, "A visit").

It knows servers and network, and computes moments; who is visited and what comes of it is the driver's. A link that robots share is
not modelled here.
"""

import math
from typing import Any

from trapline.errors import ConfigError
from trapline.frontier import FAILED, FETCHED, REFUSED, Visit
from trapline.jit import f8, i8, kernel
from trapline.rng import uniform
from trapline.simulate.robots import FATE
from trapline.simulate.servers import NO_LIMIT, Network, Servers

_DRAWS = 16  # of a page in one stream of chance, as in robots.py


@kernel(f8(i8, i8))
def drawn(seed: int, number: int) -> float:
    return uniform(seed, number)


class Tour:
    """A robot's way through one visit."""

    __slots__ = ("at", "first_byte", "number", "result", "start", "visit", "wait_s")

    def __init__(self, visit: Visit, number: int, now: float) -> None:
        self.visit, self.number = visit, number
        self.at = 0  # which page of the visit
        self.start = self.first_byte = now  # of that page, as logged
        self.wait_s = 0.0
        self.result = FETCHED

    @property
    def page(self) -> int:
        return self.visit.pages[self.at]


class Timing:
    """When pages come in, and when servers close."""

    def __init__(self, servers: Servers, network: Network, seed: int) -> None:
        if network.bandwidth < NO_LIMIT and not network.per_robot:
            raise ConfigError("a web that changes has no shared link yet: give each robot its own, or none a limit")
        self._network, self._seed = network, seed
        self._connection_s, self._latency_s = _values(servers.connection_s), _values(servers.latency_s)
        self._speed, self._size = _values(servers.speed), _values(servers.size)
        self._requests, self._keep_alive_s = _values(servers.requests), _values(servers.keep_alive_s)
        self._cap = network.bandwidth if network.per_robot else NO_LIMIT
        self.pause_s = 0.0 if network.protocol == "pipelining" else network.pause_s

    def connection_s(self, site: int) -> float:
        return float(_of(self._connection_s, site))

    def begin_page(self, tour: Tour, tries: int) -> float:
        """The robot asks for its page at `tour.start`; when that is in."""
        network, site, page = self._network, tour.visit.site, tour.page
        opens = tour.at == 0 or network.protocol == "http/1.0"
        sent_at = tour.start + self.connection_s(site) if opens else tour.start
        tour.result, tour.wait_s = self._fate(page, tries), self._wait_s(tour)
        if tour.result == FAILED:
            tour.first_byte = sent_at + network.timeout_s
            return tour.first_byte
        tour.first_byte = sent_at + tour.wait_s
        if tour.result == REFUSED:
            return tour.first_byte
        return float(tour.first_byte + _of(self._size, page) / min(_of(self._speed, site), self._cap))

    def has_closed(self, site: int, asked_for: int, over: bool) -> bool:
        """Whether the server closes after so many pages of a visit: its number of requests, or the pause, if one follows."""
        protocol = self._network.protocol
        if protocol == "http/1.0":
            return False
        idle = protocol == "keep-alive" and self.pause_s > _of(self._keep_alive_s, site)
        return bool(asked_for == _of(self._requests, site) or (idle and not over))

    def _wait_s(self, tour: Tour) -> float:
        latency_s = float(_of(self._latency_s, tour.page))
        if self._network.protocol == "pipelining" and tour.at > 0:
            return max(0.0, latency_s - self.connection_s(tour.visit.site))
        return latency_s

    def _fate(self, page: int, tries: int) -> int:
        """`tries`: how often the page was asked for before, whatever came of it."""
        failed, refused = self._network.failed, self._network.refused
        if failed + refused == 0.0:
            return FETCHED
        stream, number = divmod(tries, _DRAWS)
        draw = drawn(self._seed + FATE + stream, _DRAWS * page + number)
        if draw < failed:
            return FAILED
        return REFUSED if draw < failed + refused else FETCHED


def response_s(tour: Tour, now: float) -> float:
    """Measured when the page is in; a failed one is not."""
    return math.nan if tour.result == FAILED else tour.wait_s + (now - tour.first_byte)


def _values(values: Any) -> list[Any]:
    """Python's own numbers: a look at an array's item costs ten times as much."""
    return list(values.tolist())


def _of(values: list[Any], item: int) -> Any:
    """One value for each, or one for all."""
    return values[item if len(values) > 1 else 0]
