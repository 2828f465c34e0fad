"""Servers sampled from distributions that were fitted to real records.

This module samples the numbers of `Servers`, and knows nothing about time or connections. docs/server-models.md says
where each default comes from, how well it fits and what the model leaves out. bench/fit_servers.py recomputes the
defaults.

    connection_s = Weibull                                                    of a site: one round trip
    latency_s    = connection_s + thinking x lognormal + stall                of a page
    thinking     = lognormal                                                  of a site
    stall        = lognormal for a share of the pages, 0 for the others
    speed        = lognormal, correlated with thinking, within the recorded range  of a site
    size         = from the graph, or else sampled as for a generated web: graph/page_sizes.py

A *spread* is the standard deviation of the natural logarithm.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError, nearest
from trapline.graph import Graph
from trapline.graph.exact import drawn, exp, log, normal
from trapline.graph.page_sizes import page_sizes
from trapline.simulate.servers import NO_LIMIT, Floats, Servers

_HALF_STEP = 2.0**-33  # random numbers are multiples of 2^-32, and 0 has no logarithm


@dataclass(frozen=True, slots=True)
class ServerModel:
    """The parameters of the distributions. The defaults are the fit, rounded to three digits."""

    connection_shape: float = 1.39
    """shape of the Weibull distribution. PlanetLab: 119,805 pairs of hosts, measured twice"""
    connection_scale_s: float = 0.161
    """scale of the same distribution; 0: connections take no time"""
    think_median_s: float = 0.0858
    """time of a site's pages beyond a round trip: the median over 45 hosts. Heritrix logs, HAR files, fetches of 2025"""
    think_spread: float = 2.03
    """spread between the same hosts"""
    page_spread: float = 0.454
    """spread between the pages of a site that did not stall, all hosts with the same weight. The same records"""
    stall_share: float = 0.111
    """share of pages that take more than four times the usual time of their site, for sites where that is under 0.1 s.
    The same records"""
    stall_median_s: float = 0.145
    """time of these pages beyond the usual time, median"""
    stall_spread: float = 1.64
    """spread between these pages"""
    longest_wait_s: float = 30.0
    """a longer `latency_s` is reduced to this: a crawler that waits no longer never sees a longer one. Equals
    `Network.timeout_s`"""
    speed_median: float = 353_000.0
    """bytes per second that a site sends: median over 18 hosts of the Heritrix logs. Infinite: no limit"""
    speed_spread: float = 2.35
    """spread between the same hosts"""
    speed_least: float = 9_270.0
    """bytes per second of the slowest of them; a lower sample becomes this"""
    speed_most: float = 11_100_000.0
    """bytes per second of the fastest of them; a higher sample becomes this"""
    think_speed_correlation: float = -0.592
    """correlation of the logarithms of a site's thinking and speed: over the 16 hosts with both"""
    requests: tuple[tuple[int, float], ...] = ((1, 0.24), (100, 0.66), (50, 0.10))
    """requests that a site serves on a connection (0: no limit), and the share of such sites. Cao et al. 5.1, 500 servers;
    they say nothing about the last tenth: 50 is what their crawler assumes for an unknown server (4.2)"""
    keep_alive_s: float = 15.0
    """idle seconds after which a server closes the connection. Apache's default up to version 2.0; since then 5 s"""
    failed: float = 0.00649
    """share of fetches without an answer, or with 408, 429, 502, 503 or 504: these may be retried. Heritrix logs, 2,004
    fetches"""
    refused: float = 0.0499
    """share of fetches with any other status of 400 or more. The same fetches"""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "requests":
                self._check(field.name, getattr(self, field.name))
        if self.failed + self.refused > 1:
            raise ConfigError(
                f"server model: failed is {self.failed} and refused is {self.refused}; their sum must be at most 1"
            )
        if self.speed_least > self.speed_most:
            raise ConfigError(
                f"server model: speed_least is {self.speed_least}; it must be at most speed_most, {self.speed_most}"
            )
        counts, shares = zip(*self.requests, strict=True) if self.requests else ((), ())
        if not all(isinstance(c, int) and 0 <= c < 2**31 for c in counts) or not all(share >= 0 for share in shares):
            raise ConfigError("server model: requests must be pairs of a whole number and a share")
        if not abs(sum(shares) - 1) < 1e-9:
            raise ConfigError(f"server model: the shares of requests add up to {sum(shares)}; they must add up to 1")

    def _check(self, name: str, value: float) -> None:
        least, most = _RANGES.get(name, (0.0, math.inf))
        infinite = name in ("speed_median", "speed_most", "keep_alive_s")
        if not least <= value <= most or (value == math.inf and not infinite):
            limits = f"at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
            raise ConfigError(
                f"server model: {name} is {value}; it must be {limits}{'' if infinite else ' and finite'}"
            )


_RANGES = {
    "connection_shape": (0.1, math.inf),
    "speed_median": (1e-9, math.inf),
    "speed_least": (1e-9, math.inf),
    "think_speed_correlation": (-1.0, 1.0),
    **{name: (0.0, 10.0) for name in ServerModel.__slots__ if name.endswith("spread")},
    **dict.fromkeys(("stall_share", "failed", "refused"), (0.0, 1.0)),
}

_PLAIN = ServerModel(
    connection_scale_s=0,
    think_median_s=1,
    think_spread=0,
    page_spread=0,
    stall_share=0,
    speed_median=NO_LIMIT,
    speed_spread=0,
    speed_most=NO_LIMIT,
    requests=((0, 1.0),),
    keep_alive_s=NO_LIMIT,
    failed=0,
    refused=0,
)

MODELS = {
    "measured": ServerModel(),
    # Published is only that 90 % of the pages took less than 1.5 s and 95 % less than 3 s (Castillo, thesis, fig. 4.2).
    # This is the lognormal distribution through both points, with its spread divided between sites and pages as in the
    # measured model.
    "thesis": replace(_PLAIN, think_median_s=0.13, think_spread=1.86, page_spread=0.416),
    "constant": _PLAIN,
}


def model_named(name: str) -> ServerModel:
    if name not in MODELS:
        raise ConfigError(f"no server model {name!r}; {nearest(name, MODELS)}")
    return MODELS[name]


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
    )
    servers.check(graph)
    return servers


def _connections(graph: Graph, model: ServerModel, seed: int) -> Floats:
    exponential = -log(drawn(seed, "connection", graph.sites) + _HALF_STEP)
    return model.connection_scale_s * exp(log(exponential) / model.connection_shape)


def _thinking(graph: Graph, model: ServerModel, seed: int, slow: Floats) -> Floats:
    usual = model.think_median_s * exp(model.think_spread * slow)
    seconds = usual[graph.site] * exp(model.page_spread * normal(seed, "page", graph.pages))
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
