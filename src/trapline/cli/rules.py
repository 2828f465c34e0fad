"""Options that are rules of the frontier. It knows their flags and defaults; what they mean is said in docs/frontier.md.

The papers' symbols are the same options everywhere: r --connections, w --delay, k --per-connection, B --bandwidth,
K --batch. Defaults are repeated here, because importing `Rules` would load numba for --help; a test compares the two.
"""

import math
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.numbers import count, seconds, share
from trapline.cli.sections import Section
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.frontier import Rules

ESTIMATORS = ("average", "median")

POLITENESS = Section(
    "Politeness",
    (
        ("--delay", "delay_s", seconds(), 15.0, "w: rest of a site after a visit."),
        ("--ip-delay", "ip_delay_s", seconds(), None, "Rest of an address after a visit. [as --delay]"),
        ("--small-site-pages", "small_site_pages", count(0), 0, "Sites with fewer rest --small-site-delay. [0]"),
        ("--small-site-delay", "small_site_delay_s", seconds(), 15.0, "Rest of a small site after a visit."),
        ("--per-connection", "per_connection", count(0), 1, "k: most pages of a visit; 0: as allowed."),
        ("--retries", "retries", count(0, 10), 2, "Times that a failed page is tried again."),
        ("--backoff", "backoff_s", seconds(), 60.0, "First rest after a failure; then doubled."),
        ("--backoff-most", "backoff_most_s", seconds(), 3600.0, "Longest rest after a failure."),
    ),
)
LIMITS = Section(
    "Limits",
    (
        ("--pages-per-site", "pages_per_site", count(0), 0, "Most pages of a site. [0: no limit]"),
        ("--depth-static", "depth_static", count(0), 0, "Most links from a seed to a page. [0: no limit]"),
        ("--depth-dynamic", "depth_dynamic", count(0), 0, "The same for URLs with a query. [0: no limit]"),
    ),
)
BATCHES = Section(
    "Batches and PageRank runs",
    (
        ("--batch", "batch", count(0), 0, "K: choose so many pages at once. [0: no batches]"),
        ("--batch-ahead", "batch_ahead", None, False, "Choose a batch before the last one ends."),
        ("--batch-least-active", "batch_least_active", count(0), 0, "Choose one when fewer robots are active."),
        ("--rescore", "rescore", count(0), 0, "Pages between PageRank runs. [0: pages/35]"),
    ),
)
ESTIMATES = Section(
    "Estimates of a site's times (for performance, crawl-ability)",
    (
        (
            "--estimator",
            "estimator",
            (click.Choice(ESTIMATORS), "NAME"),
            "average",
            "average or median of the measured.",
        ),
        ("--alpha", "alpha", share(), 0.8, "Weight of the old estimate."),
        (
            "--first-connection",
            "first_connection_s",
            seconds(),
            None,
            "To connect, before any measurement. [0.1 s]",
        ),
        (
            "--first-response",
            "first_response_s",
            seconds(),
            None,
            "Per page. [0.1 s, or --page-seconds]",
        ),
        ("--first-requests", "first_requests", count(1), 50, "Pages per connection of an unknown site."),
    ),
)
SECTIONS = (POLITENESS, LIMITS, BATCHES, ESTIMATES)


def defaults() -> dict[str, Any]:
    """What is chosen by saying nothing."""
    return {field: default for section in SECTIONS for _, field, _, default, _ in section.rows}


def rules_of(choices: dict[str, Any], protocol: str, page_seconds: float | None) -> "Rules":
    """The rules that a user chose, for crawls in simulated time; `page_seconds`: what every page takes, if it is so."""
    from trapline.frontier import Rules

    if not choices["batch"] and (choices["batch_ahead"] or choices["batch_least_active"]):
        raise ConfigError("--batch-ahead and --batch-least-active need --batch")
    # The first guess of a site's times is then what every page will take, and nothing is lost on connecting: else a
    # site would look better or worse than others for having been visited.
    first = {} if page_seconds is None else {"first_connection_s": 0.0, "first_response_s": page_seconds}
    said = {field: value for field, value in choices.items() if value is not None}
    # No simulated robot is lost, so no lease may expire: it would only be a slow page taken for a lost one.
    return Rules(**{**first, **said}, pipelining=protocol == "pipelining", lease_s=math.inf)
