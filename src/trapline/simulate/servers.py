"""The servers of the simulated web: how fast they answer and what they allow, and the network between them and the
connections.

This module holds numbers only: `modelled.py` samples them, `driver.py` uses them. docs/simulator.md explains each.
"""

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph import Graph

Floats = NDArray[np.float64]
PROTOCOLS = ("keep-alive", "http/1.0", "pipelining")
NO_LIMIT = math.inf
_LEAST = {"speed": 1e-9}
_MOST = {"speed": NO_LIMIT, "keep_alive_s": NO_LIMIT, "requests": 2**31 - 1}


@dataclass(frozen=True, slots=True)
class Servers:
    """One value for each site or page; an array of length 1 applies to all."""

    connection_s: Floats  # site
    latency_s: Floats  # page
    speed: Floats  # site: bytes per second
    requests: NDArray[np.int32]  # site; 0: no limit
    keep_alive_s: Floats  # site
    size: Floats  # page: bytes

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


@dataclass(frozen=True, slots=True)
class Network:
    """The link, the protocol, and the failures."""

    bandwidth: float = NO_LIMIT  # B: bytes per second
    per_connection: bool = False  # each connection has bandwidth B; otherwise all connections share it
    protocol: str = "keep-alive"
    pause_s: float = 0.0  # between two pages of a visit
    failed: float = 0.0  # share of fetches that fail and may be tried again
    refused: float = 0.0  # share of fetches that the server refuses for good
    timeout_s: float = 30.0  # duration of a failed fetch

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ConfigError(f"no protocol {self.protocol!r}; there are {', '.join(PROTOCOLS)}")
        if not self.bandwidth > 0:
            raise ConfigError(f"bandwidth is {self.bandwidth} bytes/s; it must be above 0")
        for name in ("pause_s", "timeout_s"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be a finite number of seconds, 0 or more")
        if not (self.failed >= 0 and self.refused >= 0 and self.failed + self.refused <= 1):
            raise ConfigError(
                f"failed is {self.failed} and refused is {self.refused}; they must be shares of fetches that add up to 1 at most"
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
