"""Values of options: numbers with units (`20kB`, `250ms`, `5%`), shares by name, graphs, change histories and seed files.

This module knows units and bounds, not which option a number belongs to. `trapline.units` formats numbers for output. click's own range
types are not used: they accept NaN, and they print the bounds in the help.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from trapline.errors import ConfigError
from trapline.samples import located
from trapline.units import BIT_AND_BYTE_RATES, BITS_AND_BYTES, DURATIONS, shortest

if TYPE_CHECKING:
    from trapline.refresh import Trace

_MOST = 2**31 - 1  # the largest number that fits into the core's records
_MOST_SECONDS = 1e9  # 31 years; a clock with a much larger value would round off the seconds added to it
_MOST_BANDWIDTH = 1e15  # bytes per second; far above any link, and far below values that a float adds inexactly

_BYTES = {unit: size for unit, size in BITS_AND_BYTES.items() if unit.endswith("B")}


class NameOrFile(click.types.StringParamType):
    """A name, or a pair of names, or a file. The names serve the shell's completion; what is given is checked elsewhere."""

    def __init__(self, names: str) -> None:
        """`names`: separated by commas, as in the help."""
        self._names = names.split(", ")

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = [CompletionItem(name) for name in self._names if name.startswith(incomplete)]
        return found or [CompletionItem(incomplete, type="file")]


class Number(click.ParamType[Any]):
    """A number between bounds, with an optional unit, or one of a few words that stand for a value."""

    def __init__(
        self,
        kind: type[int] | type[float],
        least: float,
        most: float,
        name: str,
        *,
        what: str,
        units: Mapping[str, float] | None = None,
        unit: str = "",
        words: Mapping[str, Any] | None = None,
    ) -> None:
        """`unit`: of a number without a unit, as errors show it."""
        self.name = name
        self._kind, self._least, self._most = kind, least, most
        self._what, self._units, self._words = what, units or {}, words or {}
        self._unit = f" {unit}" if unit else ""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self._words:
            return self._words[value]
        try:
            number = self._parsed(value)
        except ValueError:
            self.fail(f"{value!r} is not {self._what}.", param, ctx)
        if not self._least <= number <= self._most:
            self.fail(f"{value} is not between {self._least:g} and {self._most:,.10g}{self._unit}.", param, ctx)
        return number

    def shown(self, value: float) -> str:
        """Return the value with its unit, as the help shows it."""
        return f"{value:g}{' s' if self._units is DURATIONS else ''}"

    def typed(self, value: Any) -> str:
        """Return the shortest text that means exactly this value, with a unit if the kind has units.

        >>> seconds().typed(15.0), seconds().typed(5400.0), rate().typed(200e3), share().typed(0.05), count(0).typed(12)
        ('15s', '1.5h', '200kB', '5%', '12')
        """
        words = [word for word, meaning in self._words.items() if meaning == value]
        if words or not self._units:
            return words[0] if words else f"{value}"
        return shortest(value, self._units)

    def _parsed(self, value: Any) -> float:
        unit = re.fullmatch(r"(.*[\d.])\s*([^\d.\s]+)", value) if isinstance(value, str) and self._units else None
        if unit is None or unit[2] not in self._units:
            return self._kind(value)
        return self._kind(unit[1]) * self._units[unit[2]]


def count(least: int, most: int = _MOST) -> Number:
    return Number(int, least, most, "n", what="a whole number")


def real(most: float = 1e9) -> Number:
    """A number without a unit, 0 or more. The code that uses the value may set narrower bounds."""
    return Number(float, 0.0, most, "number", what="a number")


def seconds(least: float = 0.0, words: Mapping[str, Any] | None = None) -> Number:
    """
    >>> seconds().convert("250ms", None, None), seconds().convert("15", None, None)
    (0.25, 15.0)
    """
    what = _what("a number of seconds", words, "15, 250ms, 2min, 1h or 1d")
    return Number(float, least, _MOST_SECONDS, "time", what=what, units=DURATIONS, unit="seconds", words=words)


def share(words: Mapping[str, Any] | None = None) -> Number:
    """
    >>> share().convert("5%", None, None)
    0.05
    """
    return Number(float, 0.0, 1.0, "share", what=_what("a share", words, "0.05 or 5%"), units={"%": 0.01}, words=words)


def rate() -> Number:
    """A number of bytes per second; infinity means no limit.

    >>> rate().convert("20kB", None, None), rate().convert("1Mbit/s", None, None), rate().convert("unlimited", None, None)
    (20000.0, 125000.0, inf)
    """
    words = {"unlimited": math.inf}
    what = _what("a number of bytes per second", words, "2000, 20kB, 2MB or 1Mbit")
    return Number(
        float, 1.0, _MOST_BANDWIDTH, "rate", what=what, units=BIT_AND_BYTE_RATES, unit="bytes per second", words=words
    )


def amount() -> Number:
    """A number of bytes.

    >>> amount().convert("20MB", None, None)
    20000000.0
    """
    return Number(
        float,
        1.0,
        1e18,
        "bytes",
        what=_what("a number of bytes", None, "2000, 20kB or 1GB"),
        units=_BYTES,
        unit="bytes",
    )


def _what(kind: str, words: Mapping[str, Any] | None, examples: str) -> str:
    return f"{kind}; give one such as {''.join(f'{word}, ' for word in words or ())}{examples}"


class ValueList(click.ParamType[Any]):
    """Values of another type, separated by commas. The result is a tuple, also of a single value."""

    def __init__(self, kind: click.ParamType[Any]) -> None:
        self.kind, self.name = kind, kind.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        if not isinstance(value, str):
            return (value,)
        return tuple(dict.fromkeys(self.kind.convert(item.strip(), param, ctx) for item in value.split(",")))

    def shown(self, value: Any) -> str:
        """Return a value as the help shows a default."""
        return self.kind.shown(value) if isinstance(self.kind, Number) else f"{value}"


# ---- Names with a share each, as an option: `reset=1%,silent=0.5%`. This part does not know which names are valid.


class Shares(click.ParamType[Any]):
    """Names with shares. A name without a share gets 100 %."""

    name = "shares"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        pairs = (part.partition("=") for part in value.split(",") if part)
        return tuple((name, share().convert(text if equals else "100%", param, ctx)) for name, equals, text in pairs)


SHARES = (Shares(), "NAME=SHARE,...")


# ---- A graph on disk.


class GraphPath(click.Path):
    """The path of a graph, or the name of a sample."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(located(value), param, ctx)


GRAPH_PATH = GraphPath(path_type=Path, exists=True)


# ---- The change history of a web, as users name it: a random one, by the mean gap between two updates of a page, or a recorded trace.

DRAWN = ("poisson", "bursty")
_ROUND = 20  # default length of a random history, in gaps


def trace_of(spec: str, pages: int, seed: int) -> "Trace":
    from trapline.refresh import drawn_trace, load_trace

    if not (times := times_of(spec)):
        return load_trace(Path(spec))
    gap_s, *given = times
    length_s = given[0] if given else _ROUND * gap_s
    updates = max(1, round(pages * length_s / gap_s))
    return drawn_trace(spec.split(":")[0], pages, updates, length_s / 86_400.0, seed)


def check_history(spec: str) -> None:
    """Raise `ConfigError` if there is no such history. Called before anything that takes long."""
    if not times_of(spec) and not located(spec).exists():
        raise ConfigError(
            f"--changes {spec}: no such file; give a trace file, or one of: peps, poisson:GAP, bursty:GAP"
        )


def times_of(spec: str) -> list[float]:
    """Return the gap, and the length if given, of a random history, in seconds; an empty list if `spec` does not name one.

    >>> times_of("bursty:30s:1h"), times_of("data/edits.tsv")
    ([30.0, 3600.0], [])
    """
    kind, *texts = spec.split(":")
    if kind not in DRAWN or Path(spec).exists():
        return []
    if len(texts) not in (1, 2):
        raise ConfigError(f"--changes {spec}: not of the form {kind}:GAP[:LENGTH]; give for example {kind}:30s:1h")
    try:
        return [float(seconds(1e-3).convert(text, None, None)) for text in texts]
    except click.BadParameter as error:
        raise ConfigError(f"--changes {spec}: {error.message}") from None


# ---- Seeds from a user's file: one URL per row.


def seed_urls(urls: Sequence[str], file: Path | None) -> tuple[str, ...]:
    """Return the canonical seed URLs of a live crawl, without repetition. A URL without a scheme gets http."""
    from trapline.crawler.engine.settings import seed_of
    from trapline.graph.formats.textfile import named_rows

    given = [(url, "") for url in urls]
    if file is not None:
        given += [(url, f"{file}, row {row}: ") for row, url in named_rows(file)]
    if not given:
        raise ConfigError(
            f"{file}: contains no URL; write one per row" if file else "no seed URL; give a URL, or --seeds FILE"
        )
    return tuple(dict.fromkeys(seed_of(url, where) for url, where in given))


def listen_address(text: str, option: str, example: str) -> tuple[str, int]:
    """Return the host and the port of a text HOST:PORT that the user gave for this option."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit()):
        raise ConfigError(f"{option} {text}: not HOST:PORT; give an address such as {example}")
    if int(port) > 65_535:
        raise ConfigError(f"{option} {text}: the port is not between 0 and 65,535; give an address such as {example}")
    return host.strip("[]"), int(port)
