"""How a user names the history by which a web changes: drawn, by the gap between two updates of a page, or a recorded trace."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.numbers import seconds
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.refresh import Trace

DRAWN = ("poisson", "bursty")
_ROUND = 20  # gaps: a drawn history is so long unless it is said


def trace_of(spec: str, pages: int, seed: int) -> "Trace":
    from trapline.refresh import drawn_trace, load_trace

    if not (times := times_of(spec)):
        return load_trace(Path(spec))
    gap_s, *given = times
    length_s = given[0] if given else _ROUND * gap_s
    updates = max(1, round(pages * length_s / gap_s))
    return drawn_trace(spec.split(":")[0], pages, updates, length_s / 86_400.0, seed)


def check_history(spec: str) -> None:
    """`ConfigError` if there is none of that name, before anything long begins."""
    if not times_of(spec) and not Path(spec).exists():
        raise ConfigError(f"--changes {spec}: no such file, and neither poisson:GAP nor bursty:GAP")


def times_of(spec: str) -> list[float]:
    """The gap and perhaps the length of a drawn history; empty: it is none.

    >>> times_of("bursty:30s:1h"), times_of("data/edits.tsv")
    ([30.0, 3600.0], [])
    """
    kind, *texts = spec.split(":")
    if kind not in DRAWN or Path(spec).exists():
        return []
    if len(texts) not in (1, 2):
        raise ConfigError(f"--changes {spec}: a drawn history is {kind}:GAP[:LENGTH], such as {kind}:30s:1h")
    try:
        return [float(seconds(1e-3).convert(text, None, None)) for text in texts]
    except click.BadParameter as error:
        raise ConfigError(f"--changes {spec}: {error.message}") from None
