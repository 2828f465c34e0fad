"""Options for scheduling: the rules of the frontier, refresh policies, and the names of strategies."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from trapline.cli.options.sections import Section, refuse
from trapline.cli.options.values import NameOrFile, count, seconds, share
from trapline.defaults import DELAY_S, PAGES_PER_SITE, PER_CONNECTION
from trapline.defaults import STRATEGY as STRATEGY_OF_A_CRAWL
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.strategies import Strategy

# ---- Options that set the rules of the frontier: flags and defaults. docs/frontier.md explains what they mean.
#
# The papers' symbols stand for the same options everywhere: r --connections, w --delay, k --per-connection, B --bandwidth,
# K --batch. Defaults are repeated here because importing `Rules` would load numba for --help. A test compares the two.

ESTIMATORS = ("average", "median")

POLITENESS = Section(
    "Politeness",
    (
        ("--delay", "delay_s", seconds(), DELAY_S, "Delay between two visits to a site (w in the papers)."),
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
            PER_CONNECTION,
            "Maximum pages per visit (k in the papers); 0: as many as the server allows.",
        ),
        ("--retries", "retries", count(0, 10), 2, "Number of retries of a failed page."),
        (
            "--backoff",
            "backoff_s",
            seconds(),
            60.0,
            "Delay after a failed visit; doubled by each further failed visit in a row.",
        ),
        ("--max-backoff", "backoff_most_s", seconds(), 3600.0, "Maximum delay after a failed visit."),
    ),
)
LIMITS = Section(
    "Limits",
    (
        (
            "--max-pages-per-site",
            "pages_per_site",
            count(0),
            PAGES_PER_SITE,
            "Maximum number of pages per site; 0: unlimited.",
        ),
        (
            "--max-depth",
            "depth_static",
            count(0),
            0,
            "Maximum depth of URLs without a query string, in links from a seed. [0: unlimited]",
        ),
        (
            "--max-depth-dynamic",
            "depth_dynamic",
            count(0),
            0,
            "Maximum depth of URLs with a query string, in links from a seed. [0: unlimited]",
        ),
    ),
)
BATCHES = Section(
    "Batches and PageRank",
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
            "Choose the next batch early if fewer connections than this are active.",
        ),
        (
            "--rescore",
            "rescore",
            count(0),
            0,
            "Pages between two computations of PageRank (partial-pagerank). [1/35 of all pages]",
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
            "How to estimate a site's times: average (a moving average) or median.",
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
    " crawl-ability-diminishing, depth, historical-opic-by-directory, historical-pagerank-omniscient,"
    " historical-pagerank-parent, historical-pagerank-random, historical-pagerank-zero, larger-sites-first,"
    " mean-parent-quality, omniscient, opic, opic-by-directory, parent-quality, partial-pagerank, performance,"
    " performance-and-delay, quality, quality-by-directory, random, random-sites"
)
PAGE_RANKS = (
    "backlink-count, batch-pagerank, depth, fifo, historical-opic-by-directory, historical-pagerank-omniscient,"
    " historical-pagerank-parent, historical-pagerank-random, historical-pagerank-zero, mean-parent-quality,"
    " omniscient, opic, opic-by-directory, parent-quality, partial-pagerank, quality, quality-by-directory, random"
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
            (NameOrFile(STRATEGIES), "NAME"),
            STRATEGY_OF_A_CRAWL,
            STRATEGY_TEXT,
        ),
        (
            "--page-rank",
            "page_rank",
            (NameOrFile(PAGE_RANKS), "NAME"),
            None,
            f"Page rank to use instead of the strategy's own: {PAGE_RANKS}.",
        ),
        (
            "--site-rank",
            "site_rank",
            (NameOrFile(SITE_RANKS), "NAME"),
            None,
            f"Site rank to use instead of the strategy's own: {SITE_RANKS}.",
        ),
    ),
)


def check_history_used(chosen: Sequence["Strategy"]) -> None:
    """Refuse an old crawl that none of the strategies uses."""
    from trapline.strategies.base.chosen import uses_history

    if not uses_history(chosen):
        names = ", ".join(strategy.name for strategy in chosen)
        refuse(("history",), f"has no effect with {names}; omit it, or choose a historical-* strategy")
