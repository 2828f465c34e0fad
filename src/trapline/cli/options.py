"""What several commands have in common: numbers that are numbers, the rules of a crawl, a strategy chosen and compiled.

The papers' symbols are the same options everywhere: r --connections, w --delay, k --per-connection, K --batch.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.progress import Progress
from trapline.errors import ConfigError, InvariantError

if TYPE_CHECKING:
    from trapline.frontier import Rules
    from trapline.strategies import Strategy

Command = Callable[..., None]

_MOST = 2**31 - 1  # what the core's records hold
_MOST_SECONDS = 1e9  # 31 years; a clock that has run much longer rounds off the seconds added to it
_MANY_PAGES = 500_000


class Number(click.ParamType[Any]):
    """A number between bounds. click's own ranges let NaN pass, and fill the help with our bounds."""

    def __init__(self, kind: type[int] | type[float], least: float, most: float, name: str) -> None:
        self.name = name
        self._kind, self._least, self._most = kind, least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = self._kind(value)
        except ValueError:
            self.fail(f"{value!r} is not a {self._what}.", param, ctx)
        if not self._least <= number <= self._most:
            self.fail(f"{value} is not in {self._least:g}..{self._most:.10g}.", param, ctx)
        return number

    @property
    def _what(self) -> str:
        return "whole number" if self._kind is int else "number"


def count(least: int) -> Number:
    return Number(int, least, _MOST, "number")


def seconds(least: float = 0.0) -> Number:
    return Number(float, least, _MOST_SECONDS, "seconds")


_RULES: tuple[tuple[str, str, click.ParamType[Any] | None, Any, str], ...] = (
    ("--delay", "delay_s", seconds(), 15.0, "w: rest of a site after a visit."),
    ("--ip-delay", "ip_delay_s", seconds(), None, "Rest of an address after a visit; default: as --delay."),
    ("--per-connection", "per_connection", count(0), 1, "k: most pages of a visit; 0: as the server allows."),
    ("--batch", "batch", count(0), 0, "K: choose pages in batches of this size; 0: no batches."),
    ("--batch-ahead", "batch_ahead", None, False, "Choose the next batch before the last one ends."),
    ("--batch-least-active", "batch_least_active", count(0), 0, "Choose the next batch when fewer robots are active."),
    ("--pages-per-site", "pages_per_site", count(0), 0, "Most pages of a site; 0: no limit."),
    ("--depth-static", "depth_static", count(0), 0, "Most links from a seed to a page; 0: no limit."),
    ("--depth-dynamic", "depth_dynamic", count(0), 0, "The same for pages with a query string."),
    ("--small-site-pages", "small_site_pages", count(0), 0, "Sites with fewer pages rest --small-site-delay."),
    ("--small-site-delay", "small_site_delay_s", seconds(), 15.0, "Rest of a small site after a visit."),
)
"""Options whose values are fields of `Rules`: flag, field, type (None: a switch), default, help."""


def rule_options(command: Command) -> Command:
    for flag, field, kind, default, text in reversed(_RULES):
        switch = kind is None
        shown = not switch and default is not None
        option = click.option(flag, field, type=kind, default=default, is_flag=switch, show_default=shown, help=text)
        command = option(command)
    return command


def constant_time_rules(page_seconds: float, **rules: Any) -> "Rules":
    """The rules of a crawl in which every page takes the same time and only the order matters."""
    from trapline.frontier import Rules

    if not rules.get("batch") and (rules.get("batch_ahead") or rules.get("batch_least_active")):
        raise ConfigError("--batch-ahead and --batch-least-active need --batch")
    # The first guess of a site's times is what every page will take, and nothing is lost on connecting: else a site
    # would look better or worse than others for having been visited. Nothing is late, so no lease may expire.
    return Rules(**rules, first_connection_s=0.0, first_response_s=page_seconds, lease_s=math.inf)


# ---- the strategy


def strategy_options(command: Command) -> Command:
    for option in (
        click.option("--site-rank", help="Rank sites by this instead of the strategy's site rank."),
        click.option("--page-rank", help="Rank pages by this instead of the strategy's page rank."),
        click.option("--strategy", help="The name of a strategy, or a Python file (.py) that declares one."),
    ):
        command = option(command)
    return command


def chosen_strategy(strategy: str | None, page_rank: str | None, site_rank: str | None) -> "Strategy":
    """The strategy, with those of its halves replaced that are named; two named halves need no strategy."""
    from trapline.strategies import Strategy, load_strategy, pair, strategies

    if strategy is None:
        if not (page_rank and site_rank):
            raise ConfigError(f"give --strategy ({', '.join(strategies())}), or --page-rank and --site-rank")
        return pair(page_rank, site_rank)
    whole = load_strategy(strategy)
    if page_rank is None and site_rank is None:
        return whole
    named = pair(page_rank or "fifo", site_rank or "fifo")
    page, site = named.page if page_rank else whole.page, named.site if site_rank else whole.site
    return Strategy(f"{page.name} x {site.name}", page, site)


@contextmanager
def blaming(strategy: str | None) -> Iterator[None]:
    """What fails in here for a strategy from a user's file is the user's to mend: one line that names the file."""
    own_file = Path(strategy) if strategy and strategy.endswith(".py") else None
    try:
        yield
    except InvariantError:
        raise
    except Exception as error:
        if own_file is None:
            raise
        reason = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
        raise ConfigError(f"{own_file}{_row(error.__cause__ or error, own_file)}: {reason}") from error


def check_inputs(strategy: "Strategy", given: Collection[str]) -> None:
    """Whether the page rank's inputs are among those that can be given."""
    for name in strategy.page.inputs:
        if name not in given:
            raise ConfigError(
                f"page rank {strategy.page.name!r} needs the input {name!r}; it can have: {', '.join(given)}"
            )


def compile_ranks(strategy: "Strategy") -> None:
    """Compile both ranks before what takes long, and apart from the crawl, where a failure would have other causes."""
    for rank in (strategy.page, strategy.site):
        _ = rank.function.address


def compile_kernels() -> None:
    """Have the core compiled, with a line of progress if it was not."""
    import trapline.simulate  # noqa: F401  the kernels of a crawl, all imported before they are counted
    from trapline.jit import ready

    with Progress("compiling kernels", plain_every_s=2.0) as progress:
        ready(progress.update)


@contextmanager
def step(what: str, pages: int) -> Iterator[None]:
    """A line of progress for one call that cannot say how far it is. A log hears of it if so many pages take
    seconds."""
    with Progress(what, plain_every_s=0.0 if pages > _MANY_PAGES else math.inf) as progress:
        progress.update(0, pages, "pages")
        yield


def _row(error: BaseException, file: Path) -> str:
    """numba ends with the place in the user's file, after those in its own."""
    rows = re.findall(rf'{re.escape(file.name)}(?:", line | \()(\d+)', str(error))
    return f", row {rows[-1]}" if rows else ""
