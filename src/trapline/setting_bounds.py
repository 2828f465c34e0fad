"""The bounds of the settings that are numbers, of live and simulated crawls. They are those of the options of `trapline crawl` and
`simulate`; tests compare them."""

import math
from typing import Any, NamedTuple

from trapline.errors import ConfigError

_MOST = 2**31 - 1  # the largest number that fits into the core's records
_MOST_SECONDS = 1e9
_MOST_RATE = 1e15


class NumberBounds(NamedTuple):
    what: str  # for people, such as "a number of seconds"
    least: float
    most: float
    is_whole: bool = False
    may_be_infinite: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise `ConfigError` if the value is not a number of this kind."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or (self.is_whole and not float(value).is_integer()):
            raise ConfigError(f"{name}: {value!r} is not {self.what}")
        if not self.least <= value <= self.most and not (self.may_be_infinite and value == math.inf):
            raise ConfigError(f"{name}: {value} is not between {self.least:g} and {self.most:.10g}")


def _count(least: int, most: int = _MOST) -> NumberBounds:
    return NumberBounds("a whole number", least, most, is_whole=True)


def _seconds(least: float = 0.0) -> NumberBounds:
    return NumberBounds("a number of seconds", least, _MOST_SECONDS)


_BYTES = NumberBounds("a number of bytes", 1.0, 1e18)
_RATE = NumberBounds("a number of bytes per second", 1.0, _MOST_RATE, may_be_infinite=True)
_SHARE = NumberBounds("a share between 0 and 1", 0.0, 1.0)

BOUNDS = {
    "connections": _count(1, 100_000),
    "quality_processes": _count(1, 1_000),
    "max_pages": _count(1),
    "max_time": _seconds(),
    "max_bytes": _BYTES,
    "seed": _count(0),
    "refresh_share": _SHARE,
    "refresh_price": NumberBounds("a number", 0.0, 1e9),
    "refresh_rate": NumberBounds("a number", 0.0, 1e6),
    "delay": _seconds(),
    "ip_delay": _seconds(),
    "small_site_pages": _count(0),
    "small_site_delay": _seconds(),
    "per_connection": _count(0),
    "retries": _count(0, 10),
    "backoff": _seconds(),
    "max_backoff": _seconds(),
    "max_pages_per_site": _count(0),
    "max_depth": _count(0),
    "max_depth_dynamic": _count(0),
    "pause": _seconds(),
    "bandwidth": _RATE,
    "site_bandwidth": _RATE,
    "timeout": _seconds(0.1),
    "max_body": _BYTES,
    "max_failed_visits": _count(1),
    "batch": _count(0),
    "batch_min_active": _count(0),
    "rescore": _count(0),
    "alpha": _SHARE,
    "first_connection": _seconds(),
    "first_response": _seconds(),
    "first_requests": _count(1),
    "warc_size": _BYTES,
    "log_size": _BYTES,
}

OF_SIMULATIONS = {
    **BOUNDS,
    "connections": _count(1),
    "max_time": _seconds(1e-3),
    "timeout": _seconds(),
    "page_seconds": _seconds(1e-6),
    "requests": _count(0),
    "keep_alive": _seconds(),
}
# A number, or a word.
del OF_SIMULATIONS["pause"]
