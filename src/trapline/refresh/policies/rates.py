"""Change rates from what crawls found, and access rates from accesses. What several policies share; not a policy."""

import math

from trapline.jit import shared
from trapline.refresh.layout import CENSUS, View


@shared
def change_rate(s: View, page: int) -> float:
    """Changes per second of a page that is only seen at crawls: -ln((n - X + .5) / (n + .5)) / mean interval.

    n crawls, X of them with something new; a first guess is worth half a crawl. Source: Cho & Garcia-Molina 2003, the
    bias-reduced estimator for regular intervals, with the mean in place of the interval. A page never crawled: by all crawls.
    """
    p = s.page[page]
    run = s.run[0]
    # All crawls so far as one more crawl of this page, so that nothing is ever divided by zero.
    share = (run.changes + 0.5) / (run.crawls + 1.0)
    mean_s = (len(s.page) + 0.0) / run.slots_per_s
    n = p.crawls + 1.0
    x = p.changes + share
    interval_s = (p.watched_s + mean_s) / n
    return -math.log((n - x + 0.5) / (n + 0.5)) / interval_s


@shared
def access_rate(s: View, page: int, now: float) -> float:
    """Accesses per second, as popularity.py learned to expect them after so many."""
    n = s.page[page].accesses
    if n < CENSUS - 1:
        return s.popular[1, n]
    return n / max(now, 1.0)


@shared
def lost(rate: float, since_s: float) -> float:
    """(1 / D) (1 - exp(-x) (1 + x)), x = D t: what a crawl at the age t gains, in seconds of freshness, for D changes per second.

    >>> round(lost(1.0, 2.0), 4), lost(1e-9, 1.0) < 1e-9
    (0.594, True)
    """
    x = rate * since_s
    if x < 1e-4:
        return 0.5 * x * since_s  # the first term of the series: the difference above would be rounding only
    return (1.0 - math.exp(-x) * (1.0 + x)) / rate
