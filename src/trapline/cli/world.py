"""Options that say what the simulated web is like: its servers, and the network between them and the robots.

It turns them into `Servers` and `Network` and knows no strategy. What the values mean: docs/simulator.md.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.numbers import bytes_shown, count, rate, seconds, share
from trapline.cli.sections import Section
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.graph import Graph
    from trapline.simulate.servers import Network, Servers

PROTOCOLS = ("keep-alive", "http/1.0", "pipelining")
"""Those of simulate.servers, repeated because importing it would load numpy for --help; a test compares the two."""
MODELS = ("measured", "constant")
"""Those of simulate.modelled, and `constant`; a test compares them too."""
UNLIMITED = float("inf")
W = "w"

NETWORK = Section(
    "Network",
    (
        ("--bandwidth", "bandwidth", (rate(), "BYTES/S"), None, "B, such as 20kB, 2MB or 1Mbit. [default: unlimited]"),
        ("--bandwidth-per", "bandwidth_per", click.Choice(("link", "robot")), "link", "Whose bandwidth that is."),
        ("--protocol", "protocol", click.Choice(PROTOCOLS), "keep-alive", "How the pages of a visit are asked for."),
        ("--pause", "pause", (seconds(words={W: W}), "SECONDS|w"), 0.0, "Between two pages of a visit; w: as --delay."),
        ("--failed", "failed", share(), 0.0, "Share of fetches that fail and may be tried again."),
        ("--refused", "refused", share(), 0.0, "Share of fetches that the server refuses for good."),
        ("--timeout", "timeout_s", seconds(), 30.0, "Time that a failed fetch takes."),
    ),
)
SERVERS = Section(
    "Servers",
    (
        (
            "--servers",
            "servers",
            click.Choice(MODELS),
            None,
            "Times and sizes. [default: measured; constant if --page-seconds is given]",
        ),
        ("--page-seconds", "page_seconds", seconds(1e-6), None, "Time of every page of constant servers. [default: 1]"),
        ("--requests", "requests", count(0), None, "Requests per connection of every server; 0: no limit."),
        ("--keep-alive", "keep_alive_s", seconds(), None, "Idle time after which every server closes."),
    ),
)
SECTIONS = (NETWORK, SERVERS)


@dataclass(frozen=True, slots=True)
class World:
    """What the options say; `None`: not said."""

    bandwidth: float | None = None
    bandwidth_per: str = "link"
    protocol: str = "keep-alive"
    pause: float | str = 0.0
    failed: float = 0.0
    refused: float = 0.0
    timeout_s: float = 30.0
    servers: str | None = None
    page_seconds: float | None = None
    requests: int | None = None
    keep_alive_s: float | None = None

    def __post_init__(self) -> None:
        if self.page_seconds is not None and self.model != "constant":
            raise ConfigError(f"--page-seconds is for constant servers, not for --servers {self.servers}")
        if self.model == "constant" and self.bandwidth not in (None, UNLIMITED):
            raise ConfigError("constant servers send no bytes, so --bandwidth would change nothing; see --servers")

    @property
    def model(self) -> str:
        """Measured servers unless order-only mode is asked for: orders differ in time as much as in order, and a web in
        which all servers are equally fast has no time to tell them apart by."""
        return self.servers or ("measured" if self.page_seconds is None else "constant")

    @property
    def constant_s(self) -> float | None:
        """The seconds of a page in order-only mode."""
        return None if self.model != "constant" else self.page_seconds or 1.0

    def summary(self) -> str:
        """What is most worth knowing of it, in a few words.

        >>> World(bandwidth=20e3).summary(), World(page_seconds=2.0).summary()
        ('B = 20 kB/s, measured servers, keep-alive', '2 s a page')
        """
        if self.constant_s is not None:
            return f"{self.constant_s:g} s a page"
        per = " a robot" if self.bandwidth_per == "robot" else ""
        limit = "unlimited" if self.bandwidth in (None, UNLIMITED) else f"= {bytes_shown(self.bandwidth or 0)}/s{per}"
        return f"B {limit}, {self.model} servers, {self.protocol}"

    def network(self, delay_s: float) -> "Network":
        from trapline.simulate.servers import Network

        return Network(
            bandwidth=UNLIMITED if self.bandwidth is None else self.bandwidth,
            per_robot=self.bandwidth_per == "robot",
            protocol=self.protocol,
            pause_s=delay_s if self.pause == W else float(self.pause),
            failed=self.failed,
            refused=self.refused,
            timeout_s=self.timeout_s,
        )

    def servers_of(self, graph: "Graph", seed: int) -> "Servers":
        import numpy as np

        drawn = self._drawn(graph, seed)
        said: dict[str, Any] = {}
        if self.requests is not None:
            said["requests"] = np.full(1, self.requests, np.int32)
        if self.keep_alive_s is not None:
            said["keep_alive_s"] = np.full(1, self.keep_alive_s)
        return replace(drawn, **said)

    def _drawn(self, graph: "Graph", seed: int) -> "Servers":
        from trapline.simulate.modelled import modelled_servers
        from trapline.simulate.servers import constant_servers

        if self.constant_s is not None:
            return constant_servers(self.constant_s)
        return modelled_servers(graph, self.model, seed)
