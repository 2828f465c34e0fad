"""The network between the connections of a simulated crawl and the servers (trapline.servers): numbers only, which
`driver.py` uses. docs/simulator.md explains each."""

import math
from dataclasses import dataclass

from trapline.errors import ConfigError
from trapline.servers.model import NO_LIMIT

PROTOCOLS = ("keep-alive", "http/1.0", "pipelining")


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
    robots: bool = False  # the first visit to a site fetches robots.txt first, as a live crawl does

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
                f"failed is {self.failed} and refused is {self.refused}; give shares of fetches from 0 to 1, with a sum of at most 1"
            )
