"""Options that say what the simulated web is like: its servers, and the network between them and the robots.

It turns them into `Servers` and `Network` and knows no strategy. What the values mean: docs/simulator.md.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.numbers import count, rate, seconds, share
from trapline.cli.sections import Section
from trapline.errors import ConfigError
from trapline.units import byte_rate

if TYPE_CHECKING:
    from trapline.graph import Graph
    from trapline.simulate.servers import Network, Servers

PROTOCOLS = ("keep-alive", "http/1.0", "pipelining")
"""Those of simulate.servers, repeated because importing it would load numpy for --help; a test compares the two."""
MODELS = ("measured", "thesis", "constant")
"""Those of simulate.modelled; the test compares them too."""
UNLIMITED = float("inf")
W, MODEL = "w", "model"

_SHARE = (share(words={MODEL: MODEL}), "SHARE|model")

NETWORK = Section(
    "Network",
    (
        ("--bandwidth", "bandwidth", rate(), None, "B: 20kB, 2MB, 1Mbit (per second). [unlimited]"),
        (
            "--bandwidth-per",
            "bandwidth_per",
            (click.Choice(("link", "robot")), "link|robot"),
            "link",
            "Who has that bandwidth.",
        ),
        (
            "--protocol",
            "protocol",
            (click.Choice(PROTOCOLS), "NAME"),
            PROTOCOLS[0],
            "keep-alive, http/1.0 or pipelining. [keep-alive]",
        ),
        ("--pause", "pause", (seconds(words={W: W}), "TIME|w"), 0.0, "Between two pages of a visit; w: --delay."),
        ("--failed", "failed", _SHARE, 0.0, "Share of fetches; may be tried again."),
        ("--refused", "refused", _SHARE, 0.0, "Share of fetches; never tried again."),
        ("--timeout", "timeout_s", seconds(), 30.0, "Time that a failed fetch takes."),
    ),
)
SERVERS = Section(
    "Servers",
    (
        (
            "--servers",
            "servers",
            (click.Choice(MODELS), "NAME"),
            None,
            "measured, thesis or constant times. [measured]",
        ),
        ("--page-seconds", "page_seconds", seconds(1e-6), None, "Time of a page of constant servers. [1 s]"),
        ("--requests", "requests", count(0), None, "Per connection, of all servers; 0: no limit."),
        ("--keep-alive", "keep_alive_s", seconds(), None, "Idle time after which all servers close."),
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
    failed: float | str = 0.0
    refused: float | str = 0.0
    timeout_s: float = 30.0
    servers: str | None = None
    page_seconds: float | None = None
    requests: int | None = None
    keep_alive_s: float | None = None

    def __post_init__(self) -> None:
        if self.page_seconds is not None and self.model != "constant":
            raise ConfigError(f"--page-seconds is for constant servers, not for --servers {self.servers}")

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
        ('B = 20 kB/s, measured servers, keep-alive', 'B unlimited, 2 s a page, keep-alive')
        """
        per = " a robot" if self.bandwidth_per == "robot" else ""
        limit = "unlimited" if self.bandwidth in (None, UNLIMITED) else f"= {byte_rate(self.bandwidth or 0)}{per}"
        times = f"{self.model} servers" if self.constant_s is None else f"{self.constant_s:g} s a page"
        return f"B {limit}, {times}, {self.protocol}"

    def network(self, delay_s: float) -> "Network":
        from trapline.simulate.servers import Network

        return Network(
            bandwidth=UNLIMITED if self.bandwidth is None else self.bandwidth,
            per_robot=self.bandwidth_per == "robot",
            protocol=self.protocol,
            pause_s=delay_s if self.pause == W else float(self.pause),
            failed=self._share("failed"),
            refused=self._share("refused"),
            timeout_s=self.timeout_s,
        )

    def servers_of(self, graph: "Graph", seed: int) -> "Servers":
        import numpy as np

        from trapline.simulate.modelled import model_named, modelled_servers
        from trapline.simulate.servers import constant_servers

        drawn = modelled_servers(graph, model_named(self.model), seed)
        if self.constant_s is not None:  # the sizes are drawn all the same: a log has bytes, and a link fills up
            drawn = replace(constant_servers(self.constant_s), size=drawn.size)
        said: dict[str, Any] = {}
        if self.requests is not None:
            said["requests"] = np.full(1, self.requests, np.int32)
        if self.keep_alive_s is not None:
            said["keep_alive_s"] = np.full(1, self.keep_alive_s)
        return replace(drawn, **said)

    def _share(self, name: str) -> float:
        from trapline.simulate.modelled import model_named

        value = getattr(self, name)
        return getattr(model_named(self.model), name) if value == MODEL else value
