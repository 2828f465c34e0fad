"""Options of `trapline testweb` by which its pages change and its sites tell of it, and what they make of a graph."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.numbers import real, seconds, share
from trapline.cli.sections import Section
from trapline.cli.shares import SHARES
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.graph import Graph
    from trapline.refresh import Trace
    from trapline.testweb import Changes, Providers, Telling

_DRAWN = ("poisson", "bursty")
_ROUND = 20  # gaps: a drawn history is so long unless it is said

CHANGES = Section(
    "Pages that change",
    (
        ("--changes", "changes", (str, "HISTORY"), None, "poisson:GAP[:LENGTH], bursty:GAP[:LENGTH] or a trace."),
        ("--changes-speed", "speed", real(), 1.0, "So many seconds of that history are one."),
        ("--grows", "grows", share(), 0.0, "Share of pages that are born later."),
        ("--noise", "noise", None, False, "Bytes that are no content differ with every answer."),
        ("--validators", "validators", SHARES, (), "Sites with ETag, Last-Modified: honest, weak, ... [honest]"),
    ),
)
PROVIDERS = Section(
    "What sites tell of their changes (levels: docs/testweb.md)",
    (
        ("--providers", "providers", SHARES, (), "Sites by level: normal, polled, smart, super, liar. [normal]"),
        ("--ping", "ping", (str, "URL"), None, "The IndexNow endpoint that they ping."),
        ("--ping-recall", "recall", share(), 1.0, "Share of updates that are pinged."),
        ("--ping-precision", "precision", share(), 1.0, "Share of pings behind which there is an update."),
        ("--schedule-precision", "schedule_precision", share(), 1.0, "Share of published moments that are updates."),
        ("--schedule-ahead", "ahead_s", seconds(), 600.0, "So far ahead do schedules look."),
        ("--lie-every", "lie_every_s", seconds(), 1.0, "Between two pings of a liar, on average."),
    ),
)


@dataclass(frozen=True, slots=True)
class Changing:
    """What these options say."""

    changes: str | None
    speed: float
    grows: float
    noise: bool
    validators: tuple[tuple[str, float], ...]
    providers: tuple[tuple[str, float], ...]
    ping: str | None
    recall: float
    precision: float
    schedule_precision: float
    ahead_s: float
    lie_every_s: float

    def __post_init__(self) -> None:
        if self.changes is None and (self.grows or self.noise or self.speed != 1.0):
            raise ConfigError("--changes-speed, --grows and --noise say how pages change; give --changes too")
        if self.providers and self.changes is None:
            raise ConfigError("--providers says what sites tell of their changes; give --changes too")
        if self.ping and not self.providers:
            raise ConfigError("--ping: nobody pings; give --providers too, such as smart=50%")
        if self.changes is not None and not _times(self.changes) and not Path(self.changes).exists():
            raise ConfigError(f"--changes {self.changes}: no such file, and neither poisson:GAP nor bursty:GAP")

    def validator_shares(self) -> tuple[tuple[str, float], ...]:
        return self.validators or ((("honest", 1.0),) if self.changes else ())

    def of(self, graph: "Graph", seed: int) -> "tuple[Changes | None, Providers | None]":
        from trapline.testweb import changes_of, providers_of

        if self.changes is None:
            return None, None
        trace = _trace(self.changes, graph.pages, seed)
        changes = changes_of(graph, trace, speed=self.speed, noise=self.noise, grows=self.grows, seed=seed)
        return changes, providers_of(graph, changes, self.telling(), seed) if self.providers else None

    def telling(self) -> "Telling":
        from trapline.testweb import Telling

        names = ("recall", "precision", "schedule_precision", "ahead_s", "lie_every_s")
        return Telling(levels=self.providers, **{name: getattr(self, name) for name in names})


def _trace(spec: str, pages: int, seed: int) -> "Trace":
    from trapline.refresh import drawn_trace, load_trace

    if not (times := _times(spec)):
        return load_trace(Path(spec))
    gap_s, *given = times
    length_s = given[0] if given else _ROUND * gap_s
    updates = max(1, round(pages * length_s / gap_s))
    return drawn_trace(spec.split(":")[0], pages, updates, length_s / 86_400.0, seed)


def _times(spec: str) -> list[float]:
    """The gap and perhaps the length of a drawn history; empty: it is none.

    >>> _times("bursty:30s:1h"), _times("data/edits.tsv")
    ([30.0, 3600.0], [])
    """
    kind, *texts = spec.split(":")
    if kind not in _DRAWN or Path(spec).exists():
        return []
    if len(texts) not in (1, 2):
        raise ConfigError(f"--changes {spec}: a drawn history is {kind}:GAP[:LENGTH], such as {kind}:30s:1h")
    try:
        return [float(seconds(1e-3).convert(text, None, None)) for text in texts]
    except click.BadParameter as error:
        raise ConfigError(f"--changes {spec}: {error.message}") from None
