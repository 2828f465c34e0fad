"""The conditions of simulated crawls, as options: how many robots, from where, by which rules, in which world.

Everything that two strategies must have in common to be compared, and nothing of the strategies. What can be wrong
without a look at the graph is found here, before anything long begins.
"""

import math
import textwrap
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli import rules, world
from trapline.cli.numbers import count
from trapline.cli.sections import Decorator, Section, bundled
from trapline.cli.world import World

if TYPE_CHECKING:
    from trapline.frontier import Rules

_WIDTH = 79
_IN_SUMMARY = {
    "--connections", "--delay", "--per-connection", "--bandwidth", "--bandwidth-per", "--protocol", "--servers",
    "--page-seconds",
}  # fmt: skip
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_PATH = click.Path(path_type=Path, exists=True)

QUALITY = Section(
    "Quality and history",
    (
        (
            "--quality",
            "quality",
            (str, "NAME"),
            "pagerank",
            "zipf, opic, FILE or MODULE:FUNCTION. [pagerank]",
        ),
        (
            "--history",
            "history",
            (_PATH, "PATH"),
            None,
            "Old crawl, for historical-*: graph or values.",
        ),
    ),
)
CRAWL = Section(
    "Crawl",
    (
        ("--connections", "connections", count(1), 1, "r: robots at work at once."),
        ("--max-pages", "max_pages", count(1), None, "Stop after so many pages."),
        ("--seeds", "seeds", (_FILE, "FILE"), None, "A URL or page number a row. [all home pages]"),
        ("--seed", "seed", count(0), 0, "For dice, servers and failures."),
        ("--speed-up", "speed_up", None, False, "How much faster than one robot, B unlimited."),
    ),
)


@dataclass(frozen=True, slots=True)
class Conditions:
    rules: "Rules"
    world: World = field(default_factory=World)
    connections: int = 1
    max_pages: int | None = None
    seeds: Path | None = None
    seed: int = 0
    speed_up: bool = False
    quality: str = "pagerank"
    history: Path | None = None

    def parameters(self, rules: "Rules | None" = None) -> dict[str, Any]:
        """All of it by name, for machines; `rules` are those of one strategy, if it changed some. Infinity, which JSON
        does not have, means no limit and becomes None."""
        own = {"connections", "max_pages", "seeds", "seed", "speed_up", "quality", "history"}
        every = {name: value for name, value in asdict(self).items() if name in own}
        every |= asdict(rules or self.rules) | asdict(self.world) | {"servers": self.world.model}
        every["page_seconds"] = self.world.constant_s
        return {name: _plain(value) for name, value in every.items()}

    def options(self) -> dict[str, str]:
        """All of it as a user could type it again, flag by flag; not what was left at nothing.

        >>> from trapline.frontier import Rules
        >>> Conditions(Rules(), connections=64).options()["--delay"]
        '15s'
        """
        values = self.parameters()
        return {flag: value for section in SECTIONS for flag, value in section.typed(values)}

    def summary(self) -> str:
        """The first things to know of a crawl, in one line.

        >>> from trapline.frontier import Rules
        >>> Conditions(Rules(), connections=64).summary()
        'r = 64 robots, w = 15 s, k = 1; B unlimited, measured servers, keep-alive'
        """
        return f"{self.robots()}; {self.world.summary()}"

    def heading(self) -> str:
        """The summary, and below it what else is not as it would be if nothing were said: two crawls under different
        conditions have different headings."""
        lines = textwrap.wrap(self.others(), _WIDTH, break_long_words=False, break_on_hyphens=False)
        return "\n".join((self.summary(), *lines))

    def others(self) -> str:
        """Options that the summary is silent about and that are not at their defaults, as a user would type them.

        >>> from trapline.frontier import Rules
        >>> Conditions(Rules(batch=50), World(pause=2.0), max_pages=9).others()
        '--max-pages 9 --batch 50 --pause 2s'
        """
        unsaid = rules.rules_of(rules.defaults(), self.world.protocol, self.world.constant_s)
        default = Conditions(unsaid).options()
        changed = {flag: value for flag, value in self.options().items() if default.get(flag) != value}
        return " ".join(f"{flag} {value}".strip() for flag, value in changed.items() if flag not in _IN_SUMMARY)

    def robots(self) -> str:
        plural = "" if self.connections == 1 else "s"
        k = f"= {self.rules.per_connection}" if self.rules.per_connection else "as servers allow"
        return f"r = {self.connections:,} robot{plural}, w = {self.rules.delay_s:g} s, k {k}"


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and math.isinf(value) else value


def _conditions(**given: Any) -> Conditions:
    """Options, all checked, as one value; those that a command does not take stay as if unsaid."""
    from trapline.strategies.inputs import check_quality

    surroundings = World(**_taken(given, world.SECTIONS))
    obeyed = rules.defaults() | _taken(given, rules.SECTIONS)
    conditions = Conditions(
        rules.rules_of(obeyed, surroundings.protocol, surroundings.constant_s), surroundings, **given
    )
    check_quality(conditions.quality)
    surroundings.network(conditions.rules.delay_s)  # whoever refuses it later would do so after the long part
    return conditions


def _taken(given: dict[str, Any], sections: tuple[Section, ...]) -> dict[str, Any]:
    return {field: given.pop(field) for section in sections for field in section.fields if field in given}


SECTIONS = (CRAWL, QUALITY, *rules.SECTIONS, *world.SECTIONS)


def condition_options(*sections: Section) -> Decorator:
    """Gives a command these sections, all or some of SECTIONS, as its argument `conditions`."""
    return bundled("conditions", _conditions, *sections)
