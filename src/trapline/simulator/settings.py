"""The settings of a simulated crawl, by the names of the options of `trapline simulate` and `compare`, for Python programs and for
the command line.

Times are in seconds, bandwidths in bytes per second, shares between 0 and 1. All checks that do not need the graph are made here, before
anything that takes long.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from trapline.defaults import CONNECTIONS, QUALITY, pause_s
from trapline.errors import ConfigError, nearest
from trapline.frontier import Rules
from trapline.frontier.rules import RuleSettings
from trapline.setting_bounds import BOUNDS, OF_SIMULATIONS
from trapline.simulator.conditions import MODEL, CrawlConditions, Variant, W, WebOptions
from trapline.strategies.base.inputs import check_quality
from trapline.units import BIT_AND_BYTE_RATES, DURATIONS, shortest

_WORDS = {"pause": (W, BOUNDS["delay"]), "failed": (MODEL, BOUNDS["alpha"]), "refused": (MODEL, BOUNDS["alpha"])}
_BANDWIDTH_PER = ("link", "connection")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings(RuleSettings):
    """See `trapline simulate --help`: every field is the option of the same name."""

    connections: int = CONNECTIONS
    max_pages: int | None = None
    max_time: float | None = None
    seeds: str | Path | Sequence[int | str] | None = None
    """A file with one URL or page number per line, or a sequence of URLs and page numbers. None: all home pages."""
    seed: int = 0
    speed_up: bool = False
    # quality and history
    quality: str = QUALITY
    harvest_quality: float | None = None
    history: str | Path | None = None
    # network
    bandwidth: float | None = None
    bandwidth_per: str = "link"
    protocol: str = "keep-alive"
    pause: float | str | None = None
    failed: float | str = 0.0
    refused: float | str = 0.0
    timeout: float = 30.0
    robots: bool = True
    # servers
    servers: str | Path | None = None
    page_seconds: float | None = None
    requests: int | None = None
    keep_alive: float | None = None

    def conditions(self) -> CrawlConditions:
        """Return the conditions of the crawl. Raise `ConfigError` if a setting is invalid, or has no effect without another one."""
        self._check()
        world = WebOptions(
            bandwidth=self.bandwidth,
            bandwidth_per=self.bandwidth_per,
            protocol=self.protocol,
            pause=pause_s(self.delay) if self.pause is None else self.pause,
            failed=self.failed,
            refused=self.refused,
            timeout_s=self.timeout,
            robots=self.robots,
            servers=None if self.servers is None else str(self.servers),
            page_seconds=self.page_seconds,
            requests=self.requests,
            keep_alive_s=self.keep_alive,
        )
        conditions = CrawlConditions(
            self._rules(world),
            world,
            connections=self.connections,
            max_pages=self.max_pages,
            max_seconds=self.max_time,
            seeds=_seeds(self.seeds),
            seed=self.seed,
            speed_up=self.speed_up,
            quality=self.quality,
            harvest_quality=self.harvest_quality,
            history=None if self.history is None else Path(self.history),
        )
        check_quality(conditions.quality)
        world.network(conditions.rules.delay_s)  # checked now: otherwise an error would only appear after the long part
        return conditions

    def _rules(self, world: WebOptions) -> Rules:
        # With constant servers, the first estimate of a site's times is the true one: connecting takes no time, and every page takes
        # `constant_s`. Otherwise a site would look better or worse than others only because it was visited.
        first: dict[str, float] = {}
        if world.constant_s is not None and self.first_connection is None:
            first["first_connection_s"] = 0.0
        if world.constant_s is not None and self.first_response is None:
            first["first_response_s"] = world.constant_s
        # No simulated visit is lost, so no lease may expire: an expired lease would only be a slow page mistaken for a lost one.
        return self.rules(pipelining=self.protocol == "pipelining", lease_s=math.inf, **first)

    def _check(self) -> None:
        self.check(OF_SIMULATIONS)
        for name, (word, bounds) in _WORDS.items():
            value = getattr(self, name)
            if value is not None and value != word:
                bounds.check(name, value)
        if self.bandwidth_per not in _BANDWIDTH_PER:
            raise ConfigError(f"bandwidth_per is {self.bandwidth_per!r}; {nearest(self.bandwidth_per, _BANDWIDTH_PER)}")


def _seeds(given: str | Path | Sequence[int | str] | None) -> Path | tuple[int | str, ...] | None:
    return Path(given) if isinstance(given, str | Path) else None if given is None else tuple(given)


# ---- Sweeps: crawls under several conditions, from lists of values.

_SYMBOLS = {"connections": "r = ", "bandwidth": "B = ", "delay": "w = ", "per_connection": "k = ", "protocol": ""}
_UNITS = {"bandwidth": BIT_AND_BYTE_RATES, "delay": DURATIONS}
SWEPT = tuple(_SYMBOLS)
"""Settings that can be lists: those that the papers vary."""


def variants(given: Mapping[str, Any], base: SimulationSettings | None = None) -> list[Variant]:
    """Return the conditions for each combination of the settings that are lists; the first list varies most slowly.

    >>> [variant.label for variant in variants({"connections": [1, 64], "delay": 2.0})]
    ['r = 1', 'r = 64']
    """
    base = base or SimulationSettings()
    base.changed(given)  # raises ConfigError for unknown names
    lists = {name: _several(given[name]) for name in SWEPT if name in given}
    swept = [name for name, values in lists.items() if len(values) > 1]
    combined = (dict(zip(lists, values, strict=True)) for values in product(*lists.values()))
    return [_variant(base, {**given, **chosen}, swept) for chosen in combined]


def _variant(base: SimulationSettings, given: Mapping[str, Any], swept: Sequence[str]) -> Variant:
    texts = {name: _text(name, given[name]) for name in swept}
    values = {name.replace("_", "-"): text for name, text in texts.items()}
    label = ", ".join(_SYMBOLS[name] + text for name, text in texts.items())
    return Variant(base.changed(given).conditions(), values, label)


def _several(value: Any) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return (value,)
    return tuple(dict.fromkeys(value)) or (None,)


def _text(name: str, value: Any) -> str:
    if name == "bandwidth" and value in (None, math.inf):
        return "unlimited"
    return shortest(value, _UNITS[name]) if name in _UNITS else str(value)
