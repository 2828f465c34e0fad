"""The conditions of a simulated crawl: connections, seeds, scheduling rules, servers and network.

The conditions are everything that two strategies must share to be comparable, and nothing about the strategies themselves.
`settings.py` makes them from the settings of a user; docs/simulator.md explains the values.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from trapline.defaults import CONNECTIONS, PAUSE_S, QUALITY
from trapline.errors import ConfigError
from trapline.frontier import Rules
from trapline.graph import Graph
from trapline.servers.model import model_named
from trapline.servers.sampled import Servers, constant_servers, modelled_servers
from trapline.simulator.network import Network
from trapline.units import byte_rate

UNLIMITED = float("inf")
W, MODEL = "w", "model"
_FAILED_S = 30.0  # as long as a live crawl waits for the first byte (`Limits.first_byte_s`)


@dataclass(frozen=True, slots=True)
class WebOptions:
    """The simulated web: its servers, and the network between servers and crawler. `None` means that a value was not given."""

    bandwidth: float | None = None
    bandwidth_per: str = "link"
    protocol: str = "keep-alive"
    pause: float | str = PAUSE_S
    failed: float | str = 0.0
    refused: float | str = 0.0
    timeout_s: float = _FAILED_S
    robots: bool = True
    servers: str | None = None
    page_seconds: float | None = None
    requests: int | None = None
    keep_alive_s: float | None = None

    def __post_init__(self) -> None:
        model_named(self.model)
        if self.page_seconds is not None and self.model != "constant":
            raise ConfigError(
                f"--page-seconds has no effect with --servers {self.servers}; omit it, or give --servers constant"
            )
        # Defaults may be given: the settings that a report prints contain them.
        if self.bandwidth in (None, UNLIMITED) and self.bandwidth_per != "link":
            raise ConfigError("--bandwidth-per has no effect without a limit; also give --bandwidth")
        if not (self.failed or self.refused) and self.timeout_s != _FAILED_S:
            raise ConfigError("--timeout has no effect if no fetch fails; also give --failed")

    @property
    def model(self) -> str:
        """Name of the server model: the given one, else constant if --page-seconds was given, else measured.

        Measured servers are the default because strategies differ in time as much as in order, and a web whose servers are all
        equally fast shows no difference in time.
        """
        return self.servers or ("measured" if self.page_seconds is None else "constant")

    @property
    def constant_s(self) -> float | None:
        """Seconds that every page takes with constant servers, where only the order counts; None with other models."""
        return None if self.model != "constant" else self.page_seconds or 1.0

    def summary(self) -> str:
        """Return bandwidth, server times and protocol in a few words.

        >>> WebOptions(bandwidth=20e3).summary(), WebOptions(page_seconds=2.0).summary()
        ('B = 20 kB/s, measured servers, keep-alive', 'B unlimited, 2 s a page, keep-alive')
        """
        per = " a connection" if self.bandwidth_per == "connection" else ""
        limit = "unlimited" if self.bandwidth in (None, UNLIMITED) else f"= {byte_rate(self.bandwidth or 0)}{per}"
        times = f"{Path(self.model).stem} servers" if self.constant_s is None else f"{self.constant_s:g} s a page"
        return f"B {limit}, {times}, {self.protocol}"

    def network(self, delay_s: float) -> Network:
        return Network(
            bandwidth=UNLIMITED if self.bandwidth is None else self.bandwidth,
            per_connection=self.bandwidth_per == "connection",
            protocol=self.protocol,
            pause_s=delay_s if self.pause == W else float(self.pause),
            failed=self._share("failed"),
            refused=self._share("refused"),
            timeout_s=self.timeout_s,
            robots=self.robots,
        )

    def servers_of(self, graph: Graph, seed: int) -> Servers:
        drawn = modelled_servers(graph, model_named(self.model), seed)
        # Constant servers have random sizes too: the log has a size column, and a link can be saturated.
        if self.constant_s is not None:
            drawn = replace(constant_servers(self.constant_s), size=drawn.size)
        overrides: dict[str, Any] = {}
        if self.requests is not None:
            overrides["requests"] = np.full(1, self.requests, np.int32)
        if self.keep_alive_s is not None:
            overrides["keep_alive_s"] = np.full(1, self.keep_alive_s)
        return replace(drawn, **overrides)

    def _share(self, name: str) -> float:
        value = getattr(self, name)
        return getattr(model_named(self.model), name) if value == MODEL else value


@dataclass(frozen=True, slots=True)
class CrawlConditions:
    rules: Rules
    world: WebOptions = field(default_factory=WebOptions)
    connections: int = CONNECTIONS
    max_pages: int | None = None
    max_seconds: float | None = None
    seeds: Path | tuple[int | str, ...] | None = None  # a file, or page numbers and URLs; None: all home pages
    seed: int = 0
    speed_up: bool = False
    quality: str = QUALITY
    harvest_quality: float | None = None
    history: Path | None = None

    def parameters(self, rules: Rules | None = None) -> dict[str, Any]:
        """Return all conditions by name, for JSON. `rules`: the rules of one strategy, if it changed some.

        Infinity, which means no limit and which JSON does not have, becomes None.
        """
        every = {name: value for name, value in asdict(self).items() if name not in ("rules", "world")}
        every |= asdict(rules or self.rules) | asdict(self.world) | {"servers": self.world.model}
        every["page_seconds"] = self.world.constant_s
        return {name: _plain(value) for name, value in every.items()}

    def for_reference(self) -> "CrawlConditions":
        """Return the conditions of the crawl that the speed-up is relative to: one connection with unlimited bandwidth."""
        return replace(self, connections=1, world=replace(self.world, bandwidth=None, bandwidth_per="link"))

    def summary(self) -> str:
        """Return the main conditions of a crawl in one line.

        >>> CrawlConditions(Rules(), connections=64).summary()
        'r = 64 connections, w = 15 s, k = 1; B unlimited, measured servers, keep-alive'
        """
        return f"{self.connections_and_rules()}; {self.world.summary()}"

    def connections_and_rules(self) -> str:
        plural = "" if self.connections == 1 else "s"
        k = f"= {self.rules.per_connection}" if self.rules.per_connection else "as servers allow"
        return f"r = {self.connections:,} connection{plural}, w = {self.rules.delay_s:g} s, k {k}"


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return list(value)
    return None if isinstance(value, float) and math.isinf(value) else value


@dataclass(frozen=True, slots=True)
class Variant:
    """The conditions of one crawl of a sweep, and what they have different from the others."""

    conditions: CrawlConditions
    values: dict[str, str] = field(default_factory=dict)  # by option
    label: str = ""


def common_summary(variants: Sequence[Variant]) -> str:
    """Return the summary of the conditions, with all values of those that differ.

    >>> common_summary([Variant(CrawlConditions(Rules(), connections=n)) for n in (1, 64)])
    'r = 1 connection | 64 connections, w = 15 s, k = 1; B unlimited, measured servers, keep-alive'
    """
    parts = [re.split("([,;] )", variant.conditions.summary()) for variant in variants]
    return "".join(_either(list(dict.fromkeys(texts))) for texts in zip(*parts, strict=True))


def _either(texts: list[str]) -> str:
    """
    >>> _either(["B = 2 kB/s", "B = 20 kB/s"])
    'B = 2 kB/s | 20 kB/s'
    """
    symbol, equals, _ = texts[0].partition(" = ")
    same = equals and all(text.startswith(symbol + equals) for text in texts)
    return " | ".join([texts[0], *(text.removeprefix(symbol + equals) if same else text for text in texts[1:])])
