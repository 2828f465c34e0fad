"""Models of servers: the parameters of the distributions from which the servers of a web are sampled.

A model is one value that is read from a small file and printed again. This module holds parameters only: `sampled.py`
samples servers from them. docs/server-models.md says where each default comes from, how well it fits and what the model
leaves out; bench/fit_servers.py recomputes the defaults.

A *spread* is the standard deviation of the natural logarithm.
"""

import math
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from trapline.errors import ConfigError, nearest

NO_LIMIT = math.inf


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
    initial_window: float = 0.0
    """bytes that a server sends on a new connection before it waits for the first acknowledgement: TCP's slow start. Each
    acknowledged byte allows one more. 0: no slow start"""
    closing_round_trips: float = 0.0
    """round trips from the last byte of an answer after which the server closes the connection, to the closing"""
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
    # The same with the costs of TCP that cao 3.1 names: slow start with the window of RFC 3390 (2002) for segments of 1,460
    # bytes, and a closing that takes as long as the opening (cao 4.2: twice the connection time).
    "measured-tcp": ServerModel(initial_window=4_380.0, closing_round_trips=1.0),
    # Published is only that 90 % of the pages took less than 1.5 s and 95 % less than 3 s (Castillo, thesis, fig. 4.2).
    # This is the lognormal distribution through both points, with its spread divided between sites and pages as in the
    # measured model.
    "thesis": replace(_PLAIN, think_median_s=0.13, think_spread=1.86, page_spread=0.416),
    "constant": _PLAIN,
}


def model_named(name: str) -> ServerModel:
    """Return the model of this name, or the model in the file of this name."""
    if name in MODELS:
        return MODELS[name]
    if not Path(name).is_file():
        raise ConfigError(f"no server model {name!r}, and no such file; {nearest(name, MODELS)}")
    try:
        return read_model(Path(name).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"server model {name}: cannot be read: {error}; give a TOML file") from None
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None


def sped_up(model: ServerModel, times: float) -> ServerModel:
    """Return the same servers in a world that runs this many times as fast: seconds are divided, speeds multiplied.

    >>> sped_up(MODELS["measured"], 10.0).keep_alive_s
    1.5
    """
    if not 0 < times < math.inf:
        raise ConfigError(f"server model: times is {times}; it must be above 0 and finite")
    changed = {name: getattr(model, name) / times for name in ServerModel.__slots__ if name.endswith("_s")}
    changed |= {name: getattr(model, name) * times for name in ("speed_median", "speed_least", "speed_most")}
    return replace(model, **changed)


# ---- Files: TOML with one line for each parameter.

_BASE = "based_on"


def read_model(text: str) -> ServerModel:
    """Return the model that a file describes. `based_on` names the model that has the parameters which the file omits.

    >>> read_model('based_on = "thesis"\\nkeep_alive_s = 5').think_median_s
    0.13
    """
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"server model: this is not TOML: {error}; write lines like: keep_alive_s = 5.0") from None
    base = given.pop(_BASE, "measured")
    if base not in MODELS:
        raise ConfigError(f"server model: {_BASE} is {base!r}; {nearest(str(base), MODELS)}")
    for name, value in given.items():
        if name not in ServerModel.__slots__:
            raise ConfigError(f"server model: no parameter {name!r}; {nearest(name, ServerModel.__slots__)}")
        given[name] = _pairs(value) if name == "requests" else _real(name, value)
    return replace(MODELS[base], **given)


def _real(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"server model: {name} is {value!r}; it must be a number")
    return value


def _pairs(value: Any) -> tuple[tuple[int, float], ...]:
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise ConfigError(f"server model: requests is {value!r}; it must be like [[1, 0.24], [100, 0.76]]")
    return tuple((count, _real("requests", share)) for count, share in value)


def model_text(model: ServerModel) -> str:
    """Return the file of a model, with all parameters.

    >>> model_text(MODELS["constant"]).splitlines()[-6:-4]
    ['requests = [[0, 1.0]]', 'keep_alive_s = inf']
    """
    return "".join(f"{name} = {_shown(getattr(model, name))}\n" for name in ServerModel.__slots__)


def _shown(value: Any) -> str:
    return repr([list(pair) for pair in value]) if isinstance(value, tuple) else repr(value)
