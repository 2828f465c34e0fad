"""Options of `trapline simulate` by which the web changes and pages are fetched again, and the crawls that they ask for.

Names are those of `trapline crawl` and `trapline testweb`. Shares, prices and policies may be lists: a crawl for each, of the same web.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.arena import Arena
from trapline.cli.conditions import Conditions
from trapline.cli.histories import check_history, trace_of
from trapline.cli.numbers import real, seconds, share
from trapline.cli.progress import Progress
from trapline.cli.refresh_settings import settings_of
from trapline.cli.sections import Many, Section
from trapline.cli.shares import SHARES
from trapline.cli.strategy import Chosen
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.refresh import Conditions as Told
    from trapline.refresh import Policy
    from trapline.simulate.changing import ChangingCrawl, Refresh
    from trapline.simulate.changing_web import ChangingWeb

OFF = "off"
_NO_LEVELS = (("normal", 1.0),)
_DAY_S = 86_400.0

CHANGES = Section(
    "A web that changes (docs/simulator.md)",
    (
        ("--changes", "changes", (str, "HISTORY"), None, "poisson:GAP, bursty:GAP or a trace."),
        ("--changes-speed", "speed", real(), 1.0, "So many seconds of that history are one."),
        ("--time", "until_s", seconds(1e-3), _DAY_S, "How long it is crawled. [1d]"),
        ("--level", "level", SHARES, _NO_LEVELS, "Sites: normal=SHARE, smart, super. [normal]"),
        ("--precision", "precision", share(), 1.0, "Share of signals that are true."),
        ("--recall", "recall", share(), 1.0, "Share of updates that are signalled."),
        ("--schedule-precision", "schedule_precision", share(), 1.0, "Share of published points that are true."),
    ),
)
REFRESH = Section(
    "Refresh, of a web that changes; lists: a crawl for each",
    (
        (
            "--refresh-policy",
            "policies",
            (str, "NAME,..."),
            "residual-life",
            "What to fetch again, or off. [residual-life]",
        ),
        ("--refresh-option", "settings", Many("NAME=X"), (), "An option of the policies."),
        ("--refresh-share", "shares", (str, "SHARE,..."), None, "Of all, while new ones wait. [50%]"),
        ("--refresh-price", "prices", (str, "X,..."), None, "Instead: what a page must be worth."),
        ("--refresh-rate", "rate", real(1e6), None, "Most pages again per second. [unlimited]"),
    ),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What these options say."""

    changes: str | None
    speed: float
    until_s: float
    level: tuple[tuple[str, float], ...]
    precision: float
    recall: float
    schedule_precision: float
    policies: str
    settings: tuple[str, ...]
    shares: str | None
    prices: str | None
    rate: float | None

    def __post_init__(self) -> None:
        if self.shares is not None and self.prices is not None:
            raise ConfigError("--refresh-share and --refresh-price exclude each other; give one of them")
        if self.changes is None and (unused := self._unused()):
            raise ConfigError(f"--{unused} is about a web that changes; give --changes too")
        if self.changes is not None:
            check_history(self.changes)

    def _unused(self) -> str | None:
        rows = (row for section in (CHANGES, REFRESH) for row in section.rows)
        return next((row[0].removeprefix("--") for row in rows if getattr(self, row[1]) != row[3]), None)

    def told(self) -> "Told":
        from trapline.refresh import Conditions

        names = ("precision", "recall", "schedule_precision")
        return Conditions(levels=dict(self.level), **{name: getattr(self, name) for name in names})

    def refreshes(self) -> "dict[str, Refresh | None]":
        """What is compared, by a name for people."""
        from trapline.simulate.changing import Refresh

        rate = math.inf if self.rate is None else self.rate
        every: dict[str, Refresh | None] = {}
        for name in self.policies.split(","):
            if name == OFF:
                every[OFF] = None
                continue
            policy = self._policy(name)
            for text, how in self._turns():
                every[f"{name}, {text}"] = Refresh(policy, rate=rate, **how)
        return every

    def _turns(self) -> Iterator[tuple[str, dict[str, float]]]:
        if self.prices is not None:
            for price in _numbers(self.prices, real(), "--refresh-price"):
                yield f"price {price:g}", {"price": price}
            return
        for part in _numbers(self.shares or "50%", share(), "--refresh-share"):
            yield f"share {part:.4g}", {"share": part}

    def _policy(self, name: str) -> "Policy":
        from trapline.refresh import policy_named

        return policy_named(name).with_options(**settings_of(name, self.settings, of_others=True))


def _numbers(text: str, kind: Any, flag: str) -> list[float]:
    try:
        return [float(kind.convert(part, None, None)) for part in text.split(",")]
    except click.BadParameter as error:
        raise ConfigError(f"{flag} {text}: {error.message}") from None


def web_of(asked: Asked, arena: Arena) -> "ChangingWeb":
    from trapline.simulate.changing_web import changing_web

    seed = arena.conditions.seed
    trace = trace_of(str(asked.changes), arena.web.pages, seed)
    return changing_web(arena.web, trace, asked.until_s, asked.told(), speed=asked.speed, seed=seed)


def crawled(
    arena: Arena, web: "ChangingWeb", chosen: Chosen, every: "dict[str, Refresh | None]"
) -> "Iterator[tuple[str, ChangingCrawl]]":
    for name, refresh in every.items():
        with Progress(name, unit="s") as progress, chosen.blamed():
            yield name, _crawl(arena, web, chosen, refresh, progress)


def _crawl(
    arena: Arena, web: "ChangingWeb", chosen: Chosen, refresh: "Refresh | None", progress: Progress
) -> "ChangingCrawl":
    from trapline.simulate.changing import simulate_changing
    from trapline.strategies.inputs import default_rules, inputs_for

    given, strategy = arena.conditions, chosen.strategy
    return simulate_changing(
        web,
        strategy,
        default_rules(strategy, given.rules, arena.web.pages),
        refresh,
        robots=min(given.connections, arena.web.sites),
        servers=arena.servers,
        network=arena.network,
        seeds=arena.seeds,
        inputs=inputs_for(strategy, arena.web, arena.pagerank, arena.quality, arena.history, given.seed),
        quality=worth_of(arena),
        seed=given.seed,
        progress=progress.update,
    )


def worth_of(arena: Arena) -> Any:
    """What pages are worth: the chosen quality, or PageRank where it is not known beforehand."""
    return arena.pagerank if arena.quality is None else arena.quality


def check_fits(asked: Asked, conditions: Conditions, log_file: Path | None) -> None:
    """Refuses what a crawl of a changing web does not have, before anything long begins."""
    for flag, given in (("--max-pages", conditions.max_pages), ("--speed-up", conditions.speed_up)):
        if given:
            raise ConfigError(f"{flag}: a web that changes is crawled for --time; leave it out")
    if log_file is not None and len(asked.refreshes()) > 1:
        raise ConfigError("--log: the log of which crawl? Give one policy and one share")
    asked.told()
