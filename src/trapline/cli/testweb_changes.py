"""Options of `trapline testweb` by which its pages change and its sites tell of it, and what they make of a graph."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trapline.cli.histories import check_history, trace_of
from trapline.cli.numbers import real, seconds, share
from trapline.cli.sections import Section
from trapline.cli.shares import SHARES
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.graph import Graph
    from trapline.testweb import Changes, Providers, Telling

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
        if self.changes is not None:
            check_history(self.changes)

    def validator_shares(self) -> tuple[tuple[str, float], ...]:
        return self.validators or ((("honest", 1.0),) if self.changes else ())

    def of(self, graph: "Graph", seed: int) -> "tuple[Changes | None, Providers | None]":
        from trapline.testweb import changes_of, providers_of

        if self.changes is None:
            return None, None
        trace = trace_of(self.changes, graph.pages, seed)
        changes = changes_of(graph, trace, speed=self.speed, noise=self.noise, grows=self.grows, seed=seed)
        return changes, providers_of(graph, changes, self.telling(), seed) if self.providers else None

    def telling(self) -> "Telling":
        from trapline.testweb import Telling

        names = ("recall", "precision", "schedule_precision", "ahead_s", "lie_every_s")
        return Telling(levels=self.providers, **{name: getattr(self, name) for name in names})
