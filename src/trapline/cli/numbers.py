"""Numbers as people write them on a command line: `20kB`, `250ms`, `5%`. It knows units and bounds, not which option they
belong to; how numbers are shown is `trapline.units`.

click's own ranges let NaN pass, and fill the help with our bounds.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

import click

_MOST = 2**31 - 1  # what the core's records hold
_MOST_SECONDS = 1e9  # 31 years; a clock that has run much longer rounds off the seconds added to it
_MOST_BANDWIDTH = 1e15  # bytes per second; far beyond any link, and far from what a float cannot add

_DURATIONS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
_BITS_AND_BYTES = {
    "B": 1.0,
    "kB": 1e3,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "kbit": 1e3 / 8,
    "Mbit": 1e6 / 8,
    "Gbit": 1e9 / 8,
}  # without Kb and mb, which some read as bits and others as bytes
_BYTES = {unit: size for unit, size in _BITS_AND_BYTES.items() if unit.endswith("B")}
_RATES = {f"{unit}{per}": bytes_ for unit, bytes_ in _BITS_AND_BYTES.items() for per in ("", "/s")}


class Number(click.ParamType[Any]):
    """A number between bounds, perhaps with a unit, or one of a few words that stand for a value."""

    def __init__(
        self,
        kind: type[int] | type[float],
        least: float,
        most: float,
        name: str,
        *,
        what: str,
        units: Mapping[str, float] | None = None,
        words: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self._kind, self._least, self._most = kind, least, most
        self._what, self._units, self._words = what, units or {}, words or {}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self._words:
            return self._words[value]
        try:
            number = self._parsed(value)
        except ValueError:
            self.fail(f"{value!r} is not {self._what}.", param, ctx)
        if not self._least <= number <= self._most:
            self.fail(f"{value} is not in {self._least:g}..{self._most:.10g}.", param, ctx)
        return number

    def shown(self, value: float) -> str:
        """The value with its unit, as the help shows it."""
        return f"{value:g}{' s' if self._units is _DURATIONS else ''}"

    def typed(self, value: Any) -> str:
        """The shortest way to type exactly this value, with a unit if it has any.

        >>> seconds().typed(15.0), seconds().typed(5400.0), rate().typed(200e3), share().typed(0.05), count(0).typed(12)
        ('15s', '1.5h', '200kB', '5%', '12')
        """
        words = [word for word, meaning in self._words.items() if meaning == value]
        if words or not self._units:
            return words[0] if words else f"{value}"
        ways = [f"{value / size:.15g}{unit}" for unit, size in self._units.items()]
        exact = (way for way in ways if self._parsed(way) == value)
        return min(exact, key=len, default=f"{value!r}")

    def _parsed(self, value: Any) -> float:
        unit = re.fullmatch(r"(.*[\d.])\s*([^\d.\s]+)", value) if isinstance(value, str) and self._units else None
        if unit is None or unit[2] not in self._units:
            return self._kind(value)
        return self._kind(unit[1]) * self._units[unit[2]]


def count(least: int, most: int = _MOST) -> Number:
    return Number(int, least, most, "n", what="a whole number")


def real(most: float = 1e9) -> Number:
    """A number without a unit, from 0 on; whoever takes it may know narrower bounds."""
    return Number(float, 0.0, most, "number", what="a number")


def seconds(least: float = 0.0, words: Mapping[str, Any] | None = None) -> Number:
    """
    >>> seconds().convert("250ms", None, None), seconds().convert("15", None, None)
    (0.25, 15.0)
    """
    what = _what("a number of seconds", words, "15, 250ms, 2min, 1h or 1d")
    return Number(float, least, _MOST_SECONDS, "time", what=what, units=_DURATIONS, words=words)


def share(words: Mapping[str, Any] | None = None) -> Number:
    """
    >>> share().convert("5%", None, None)
    0.05
    """
    return Number(float, 0.0, 1.0, "share", what=_what("a share", words, "0.05 or 5%"), units={"%": 0.01}, words=words)


def rate() -> Number:
    """Bytes per second; infinity: no limit.

    >>> rate().convert("20kB", None, None), rate().convert("1Mbit/s", None, None), rate().convert("unlimited", None, None)
    (20000.0, 125000.0, inf)
    """
    words = {"unlimited": math.inf}
    what = _what("a number of bytes per second", words, "2000, 20kB, 2MB or 1Mbit")
    return Number(float, 1.0, _MOST_BANDWIDTH, "rate", what=what, units=_RATES, words=words)


def amount() -> Number:
    """Bytes.

    >>> amount().convert("20MB", None, None)
    20000000.0
    """
    return Number(float, 1.0, 1e18, "bytes", what="a number of bytes (2000, 20kB, 1GB)", units=_BYTES)


def _what(kind: str, words: Mapping[str, Any] | None, examples: str) -> str:
    return f"{kind} ({''.join(f'{word}, ' for word in words or ())}{examples})"
