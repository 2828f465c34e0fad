"""Options for scheduling: the rules of the frontier, refresh policies, and strategies as users name them.

A strategy is named `opic`, `mine.py` or `opic+crawl-ability`. A pair of ranks is written with a plus, which shells do not interpret; the
pair's own name, such as 'opic x crawl-ability', is accepted too. This module knows names and files, not how a crawl runs.
"""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options.sections import Section, refuse
from trapline.cli.options.values import count, seconds, share
from trapline.errors import ConfigError, InvariantError

if TYPE_CHECKING:
    from trapline.frontier import Rules
    from trapline.strategies import Strategy

# ---- Options that set the rules of the frontier: flags and defaults. docs/frontier.md explains what they mean.
#
# The papers' symbols stand for the same options everywhere: r --connections, w --delay, k --per-connection, B --bandwidth,
# K --batch. Defaults are repeated here because importing `Rules` would load numba for --help. A test compares the two.

ESTIMATORS = ("average", "median")

POLITENESS = Section(
    "Politeness",
    (
        ("--delay", "delay_s", seconds(), 15.0, "Delay between two visits to a site (w in the papers)."),
        ("--ip-delay", "ip_delay_s", seconds(), None, "Delay between two visits to an IP address. [same as --delay]"),
        (
            "--small-site-pages",
            "small_site_pages",
            count(0),
            0,
            "Use --small-site-delay for sites with fewer known pages than this. [0: no sites]",
        ),
        ("--small-site-delay", "small_site_delay_s", seconds(), 15.0, "Delay between two visits to a small site."),
        (
            "--per-connection",
            "per_connection",
            count(0),
            1,
            "Maximum pages per visit (k in the papers); 0: as many as the server allows.",
        ),
        ("--retries", "retries", count(0, 10), 2, "Number of retries of a failed page."),
        (
            "--backoff",
            "backoff_s",
            seconds(),
            60.0,
            "Delay after a site's first failed visit; doubles with each further one.",
        ),
        ("--max-backoff", "backoff_most_s", seconds(), 3600.0, "Maximum delay after a failed visit."),
    ),
)
LIMITS = Section(
    "Limits",
    (
        ("--max-pages-per-site", "pages_per_site", count(0), 0, "Maximum number of pages per site. [0: unlimited]"),
        (
            "--max-depth",
            "depth_static",
            count(0),
            0,
            "Maximum depth of a page without a query, in links from a seed. [0: unlimited]",
        ),
        (
            "--max-depth-dynamic",
            "depth_dynamic",
            count(0),
            0,
            "Maximum depth of a page with a query, in links from a seed. [0: unlimited]",
        ),
    ),
)
BATCHES = Section(
    "Batches and PageRank runs",
    (
        (
            "--batch",
            "batch",
            count(0),
            0,
            "Pages per batch; batches are fetched one by one (K in the papers). [0: no batches]",
        ),
        ("--batch-ahead", "batch_ahead", None, False, "Choose the next batch before the current one is finished."),
        (
            "--batch-min-active",
            "batch_least_active",
            count(0),
            0,
            "Choose the next batch as soon as fewer connections than this are active.",
        ),
        (
            "--rescore",
            "rescore",
            count(0),
            0,
            "Pages to fetch between two PageRank computations; 0: a 35th of all pages.",
        ),
    ),
)
ESTIMATES = Section(
    "Estimates of a site's times (used by performance* and crawl-ability*)",
    (
        (
            "--estimator",
            "estimator",
            (click.Choice(ESTIMATORS), "NAME"),
            "average",
            "Estimate of a site's times: moving average or median of the measurements.",
        ),
        ("--alpha", "alpha", share(), 0.8, "Weight of the old value in the moving average."),
        (
            "--first-connection",
            "first_connection_s",
            seconds(),
            None,
            "Assumed time to connect to a site not yet measured. [0.1 s]",
        ),
        (
            "--first-response",
            "first_response_s",
            seconds(),
            None,
            "Assumed response time of a site not yet measured. [0.1 s, or --page-seconds]",
        ),
        (
            "--first-requests",
            "first_requests",
            count(1),
            50,
            "Assumed number of pages per connection to a site not yet measured.",
        ),
    ),
)
SECTIONS = (POLITENESS, LIMITS, BATCHES, ESTIMATES)


def defaults() -> dict[str, Any]:
    """Return the default of every scheduling option, by field."""
    return {field: default for section in SECTIONS for _, field, _, default, _ in section.rows}


def check_partners(choices: dict[str, Any]) -> None:
    """Refuse options that have no effect without another option."""
    if not choices["batch"] and (choices["batch_ahead"] or choices["batch_least_active"]):
        raise ConfigError("--batch-ahead and --batch-min-active have no effect without batches; also give --batch")
    # A default may be typed: the settings that a report prints contain it.
    if not choices["small_site_pages"] and choices["small_site_delay_s"] != defaults()["small_site_delay_s"]:
        refuse(("small_site_delay_s",), "has no effect without small sites; also give --small-site-pages")


def rules_of(choices: dict[str, Any], protocol: str, page_seconds: float | None) -> "Rules":
    """Return the chosen rules, for crawls in simulated time. `page_seconds`: time of every page, if all take the same time."""
    from trapline.frontier import Rules

    check_partners(choices)
    # With constant servers, the first estimate of a site's times is the true one: connecting takes no time, and every page takes
    # `page_seconds`. Otherwise a site would look better or worse than others only because it was visited.
    first = {} if page_seconds is None else {"first_connection_s": 0.0, "first_response_s": page_seconds}
    given = {field: value for field, value in choices.items() if value is not None}
    # No simulated visit is lost, so no lease may expire: an expired lease would only be a slow page mistaken for a lost one.
    return Rules(**{**first, **given}, pipelining=protocol == "pipelining", lease_s=math.inf)


# ---- Options of a refresh policy as users type them: NAME=X, or POLICY.NAME=X as in `trapline refresh replay`. The policy itself checks
# whether it has such an option.


def settings_of(policy: str, typed: Sequence[str], of_others: bool = False) -> dict[str, str]:
    """Return the typed options of this policy. `of_others`: other policies are chosen too, so options of others are skipped.

    >>> settings_of("cgm", ["estimator=mle"]) == settings_of("cgm", ["cgm.estimator=mle"])
    True
    """
    settings = {}
    for text in typed:
        name, equals, value = text.partition("=")
        owner, dot, own = name.rpartition(".")
        if not equals:
            raise ConfigError(f"--refresh-option {text}: not NAME=X; give a name and a value, such as kappa=0.5")
        if not dot or owner == policy:
            settings[own] = value
        elif not of_others:
            raise ConfigError(
                f"--refresh-option {text}: the refresh policy is {policy}, so {owner}.{own} has no effect; omit it, or give {own}={value}"
            )
    return settings


# ---- Strategies.

# Names are repeated here because importing strategies and policies would load numba for --help. A test compares them.
STRATEGIES = (
    "backlink-count, batch-pagerank, breadth-first, breadth-first-turn, crawl-ability, crawl-ability-and-delay,"
    " crawl-ability-diminishing, depth, historical-pagerank-omniscient, historical-pagerank-parent, historical-pagerank-random,"
    " historical-pagerank-zero, larger-sites-first, omniscient, opic, partial-pagerank, performance, performance-and-delay,"
    " quality, random, random-sites"
)
PAGE_RANKS = (
    "backlink-count, batch-pagerank, depth, fifo, historical-pagerank-omniscient, historical-pagerank-parent,"
    " historical-pagerank-random, historical-pagerank-zero, omniscient, opic, partial-pagerank, quality, random"
)
SITE_RANKS = (
    "crawl-ability, crawl-ability-and-delay, crawl-ability-diminishing, fifo, fifo-turn, larger-sites-first, performance,"
    " performance-and-delay, random, top-page"
)
POLICIES = "azar, cgm, lambda-crawl, ncis, nutch, proportional, residual-life, uniform, xu"
STRATEGY_TEXT = f"Strategy: {STRATEGIES}; a pair of ranks PAGE+SITE; or a Python file (.py)."

STRATEGY = Section(
    "Strategy",
    (
        (
            "--strategy",
            "strategy",
            (str, "NAME"),
            None,
            f"{STRATEGY_TEXT} [required, unless --page-rank and --site-rank are given]",
        ),
        (
            "--page-rank",
            "page_rank",
            (str, "NAME"),
            None,
            f"Page rank to use instead of the strategy's own: {PAGE_RANKS}.",
        ),
        (
            "--site-rank",
            "site_rank",
            (str, "NAME"),
            None,
            f"Site rank to use instead of the strategy's own: {SITE_RANKS}.",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A strategy and the user's files that define it."""

    strategy: "Strategy"
    files: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return self.strategy.name

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Turn any error inside the block into a ConfigError of one line that names the user's file, if the strategy comes from one."""
        try:
            yield
        except InvariantError:
            raise
        except Exception as error:
            if not self.files:
                raise
            reason = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
            file = self._guilty(error.__cause__ or error)
            if reason.startswith(str(file)):
                raise
            raise ConfigError(f"{file}{_row(error.__cause__ or error, file)}: {reason}") from error

    def _guilty(self, error: BaseException) -> Path:
        return next((file for file in self.files if file.name in str(error)), self.files[0])


def named(text: str) -> Chosen:
    """Return the strategy that a word of the command line names."""
    from trapline.strategies.base.choice import worded

    return Chosen(worded(text), files_of(text))


def files_of(*words: str | None) -> tuple[Path, ...]:
    """Return the user's files among the words that name a strategy and its ranks."""
    from trapline.strategies.base.choice import split

    return _files(*(half for word in words if word for half in split(word) or (word,)))


def chosen_by(strategy: str | None, page_rank: str | None, site_rank: str | None) -> Chosen:
    """Return the strategy with its page rank, site rank or both replaced. Without a strategy, both ranks must be given."""
    from trapline.strategies import strategies
    from trapline.strategies.base.choice import with_halves

    if strategy is None:
        if not (page_rank and site_rank):
            raise ConfigError(
                f"no strategy; give --strategy NAME, or --page-rank and --site-rank; strategies: {', '.join(strategies())}"
            )
        return _paired(page_rank, site_rank)
    whole = named(strategy)
    return Chosen(with_halves(whole.strategy, page_rank, site_rank), (*whole.files, *_files(page_rank, site_rank)))


def ready(chosen: Chosen, quality: str, history: bool) -> Chosen:
    """Return the strategy with this source of quality. Raise `ConfigError` if its page rank needs an input that is not given."""
    from trapline.strategies.base.inputs import check_inputs, with_quality

    with chosen.blamed():
        strategy = with_quality(chosen.strategy, quality)
        check_inputs(strategy, quality != "opic", history)
    return replace(chosen, strategy=strategy)


def check_history_used(chosen: Sequence["Strategy"]) -> None:
    """Refuse an old crawl that none of the strategies uses."""
    if not any(name.startswith("history") for strategy in chosen for name in strategy.page.inputs):
        names = ", ".join(strategy.name for strategy in chosen)
        refuse(("history",), f"has no effect with {names}; omit it, or choose a historical-* strategy")


def named_strategies(quality: str, history: bool) -> list[str]:
    """Return the names of all strategies that work with this source of quality, and with or without an old crawl."""
    from trapline.strategies import strategies

    def is_possible(name: str) -> bool:
        try:
            return bool(ready(named(name), quality, history))
        except ConfigError:
            return False

    return sorted(filter(is_possible, strategies()))


def _paired(page: str, site: str) -> Chosen:
    from trapline.strategies import pair

    return Chosen(pair(page, site), _files(page, site))


def _files(*names: str | None) -> tuple[Path, ...]:
    return tuple(Path(name) for name in names if name and name.endswith(".py"))


def _row(error: BaseException, file: Path) -> str:
    """Return the row of the error in the user's file. numba names it last, after the places in its own files."""
    rows = re.findall(rf'{re.escape(file.name)}(?:", line | \()(\d+)', str(error))
    return f", row {rows[-1]}" if rows else ""
