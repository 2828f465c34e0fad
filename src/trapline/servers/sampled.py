"""The servers of a web: one value for each site or page, sampled from a model.

    connection_s = Weibull                                                    of a site: one round trip
    latency_s    = connection_s + thinking x lognormal + stall                of a page
    thinking     = lognormal                                                  of a site
    stall        = lognormal for a share of the pages, 0 for the others
    speed        = lognormal, correlated with thinking, within the recorded range  of a site
    closing_s    = closing_round_trips x connection_s                         of a site
    robots_s     = connection_s + thinking                                    of a site
    size         = from the graph, or else sampled as for a generated web: graph/page_sizes.py

This module knows nothing about time, connections or sockets: `simulate` computes with the numbers, and `testweb` serves
them. docs/simulator.md explains each.
"""

import math
import sys
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph import Graph
from trapline.graph.exact import drawn, exp, log, normal
from trapline.graph.page_sizes import page_sizes
from trapline.servers.model import MODELS, NO_LIMIT, ServerModel

Floats = NDArray[np.float64]
_LEAST = {"speed": 1e-9}
_MOST = {"speed": NO_LIMIT, "keep_alive_s": NO_LIMIT, "requests": 2**31 - 1}
_HALF_STEP = 2.0**-33  # random numbers are multiples of 2^-32, and 0 has no logarithm


@dataclass(frozen=True, slots=True)
class Servers:
    """One value for each site or page; an array of length 1 applies to all."""

    connection_s: Floats  # site
    latency_s: Floats  # page
    speed: Floats  # site: bytes per second
    requests: NDArray[np.int32]  # site; 0: no limit
    keep_alive_s: Floats  # site
    size: Floats  # page: bytes
    closing_s: Floats = field(default_factory=lambda: np.zeros(1))  # site
    initial_window: Floats = field(default_factory=lambda: np.zeros(1))  # site: bytes; 0: no slow start
    robots_s: Floats = field(default_factory=lambda: np.zeros(1))  # site: from the request for robots.txt to its answer

    def check(self, graph: Graph) -> None:
        """Raise `ConfigError` for arrays that do not fit the graph, and for numbers out of range or NaN."""
        counts = {"latency_s": graph.pages, "size": graph.pages}
        for name in self.__slots__:
            values, count = np.asarray(getattr(self, name)), counts.get(name, graph.sites)
            if values.shape not in ((1,), (count,)):
                raise ConfigError(f"servers: {values.shape} values of {name}; there must be 1 or {count}")
            least, most = _LEAST.get(name, 0.0), _MOST.get(name, sys.float_info.max)
            wrong = ~((values >= least) & (values <= most))
            if wrong.any():
                raise ConfigError(
                    f"servers: a value of {name} is {values[wrong][0]}; it must be in {least:g}..{most:g}"
                )


def constant_servers(page_seconds: float) -> Servers:
    """Return servers for the order-only mode: every page takes the same time, whatever its size."""
    return Servers(
        connection_s=np.zeros(1),
        latency_s=np.full(1, page_seconds),
        speed=np.full(1, NO_LIMIT),
        requests=np.zeros(1, np.int32),
        keep_alive_s=np.full(1, NO_LIMIT),
        size=np.zeros(1),
    )


def modelled_servers(graph: Graph, model: ServerModel = MODELS["measured"], seed: int = 0) -> Servers:
    """Sample servers for the sites and pages of a graph. The same seed gives the same servers on every machine."""
    connection = _connections(graph, model, seed)
    slow = normal(seed, "thinking", graph.sites)
    servers = Servers(
        connection_s=connection,
        latency_s=np.minimum(connection[graph.site] + _thinking(graph, model, seed, slow), model.longest_wait_s),
        speed=_speeds(model, seed, slow),
        requests=_requests(graph, model, seed),
        keep_alive_s=np.full(1, model.keep_alive_s),
        size=_sizes(graph, seed),
        closing_s=model.closing_round_trips * connection if model.closing_round_trips else np.zeros(1),
        initial_window=np.full(1, model.initial_window),
        robots_s=np.minimum(connection + _usual(model, slow), model.longest_wait_s),
    )
    servers.check(graph)
    return servers


def _connections(graph: Graph, model: ServerModel, seed: int) -> Floats:
    exponential = -log(drawn(seed, "connection", graph.sites) + _HALF_STEP)
    return model.connection_scale_s * exp(log(exponential) / model.connection_shape)


def _usual(model: ServerModel, slow: Floats) -> Floats:
    """Return the usual thinking time of each site."""
    return model.think_median_s * exp(model.think_spread * slow)


def _thinking(graph: Graph, model: ServerModel, seed: int, slow: Floats) -> Floats:
    seconds = _usual(model, slow)[graph.site] * exp(model.page_spread * normal(seed, "page", graph.pages))
    stalled = np.flatnonzero(drawn(seed, "stalled", graph.pages) < model.stall_share)
    stalls = normal(seed, "stall", graph.pages)[stalled]
    seconds[stalled] += model.stall_median_s * exp(model.stall_spread * stalls)
    return seconds


def _speeds(model: ServerModel, seed: int, slow: Floats) -> Floats:
    common = model.think_speed_correlation
    z = common * slow + math.sqrt(1 - common * common) * normal(seed, "speed", len(slow))
    return np.clip(model.speed_median * exp(model.speed_spread * z), model.speed_least, model.speed_most)


def _requests(graph: Graph, model: ServerModel, seed: int) -> NDArray[np.int32]:
    counts, shares = zip(*model.requests, strict=True)
    choice = np.searchsorted(np.cumsum(shares)[:-1], drawn(seed, "requests", graph.sites), side="right")
    return np.array(counts, np.int32)[choice]


def _sizes(graph: Graph, seed: int) -> Floats:
    sizes = page_sizes(seed, graph.site) if graph.sizes is None else graph.sizes
    return sizes.astype(np.float64)


class PageSeconds(NamedTuple):
    """The time of each page by itself: each on a new connection, one after the other, over a link without limit."""

    connection: Floats
    latency: Floats
    transfer: Floats

    @property
    def total(self) -> Floats:
        return self.connection + self.latency + self.transfer

    @property
    def waiting_share(self) -> float:
        """Share of the total time that is connection and latency."""
        return 1.0 - float(self.transfer.sum() / self.total.sum())

    @property
    def mostly_waiting(self) -> float:
        """Share of the pages whose connection and latency take longer than their transfer."""
        return float((self.connection + self.latency > self.transfer).mean())


def page_seconds(servers: Servers, graph: Graph) -> PageSeconds:
    def of_pages(values: Floats) -> Floats:
        return np.broadcast_to(values, graph.sites)[graph.site]

    return PageSeconds(
        of_pages(servers.connection_s),
        np.broadcast_to(servers.latency_s, graph.pages),
        servers.size / of_pages(servers.speed),
    )
