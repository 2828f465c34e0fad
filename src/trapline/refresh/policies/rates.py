"""Change rates from what crawls found, and access rates from accesses. What several policies share; not a policy."""

import math

from trapline.jit import shared
from trapline.refresh.layout import View
from trapline.refresh.popularity import access_rate

__all__ = ["access_rate", "change_rate", "lost", "rate_of"]


@shared
def rate_of(s: View, crawls: float, changes: float, watched_s: float) -> float:
    """Changes per second of a page that is only seen at crawls: -ln((n - X + .5) / (n + .5)) / mean interval.

    n crawls, X of them with something new. Source: Cho & Garcia-Molina 2003, the bias-reduced estimator for regular intervals, with the
    mean in place of the interval. Differs from it: one crawl is added that found what crawls of all pages find on average, after
    the interval of all pages in turn, so that a page never crawled has a rate too.
    """
    run = s.run[0]
    n = crawls + 1.0
    x = changes + (run.changes + 0.5) / (run.crawls + 1.0)
    interval_s = (watched_s + len(s.page) / run.slots_per_s) / n
    return -math.log((n - x + 0.5) / (n + 0.5)) / interval_s


@shared
def change_rate(s: View, page: int) -> float:
    """By the closed form, from all crawls of the page. The other ways: estimators.py."""
    p = s.page[page]
    return rate_of(s, p.crawls, p.changes, p.crawled_s - p.joined)


@shared
def lost(rate: float, since_s: float) -> float:
    """(1 / D) (1 - exp(-x) (1 + x)), x = D t: what a crawl at the age t gains, in seconds of freshness, for D changes per second.

    >>> round(lost(1.0, 2.0), 4), lost(1e-9, 1.0) < 1e-9
    (0.594, True)
    """
    x = rate * since_s
    if x < 1e-4:
        return 0.5 * x * since_s  # the first term of the series: the difference below would be rounding only
    return (1.0 - math.exp(-x) * (1.0 + x)) / rate
