"""The belief about how often a page changes: a Gamma distribution of its changes per second, learned from what crawls find. Not a
policy.

    D ~ Gamma(a, b),  a = SHAPE + CHANGES,  b = SHAPE / m + WATCHED_S

A page that was never crawled has the prior: shape SHAPE, mean m. The mean is learned from the pages: at each revision it becomes
the mean of the beliefs about all pages that were crawled so far. The shape is not learned. A crawl t seconds after the one before
has this likelihood, given D:

    nothing new     exp(-D t), so b grows by t
    something new   1 - exp(-D t). The result is no Gamma distribution; it becomes the one of the same mean and variance.

With E_k = 1 - (b / (b + t))^(a + k), the mean after something new is (a / b) E_1 / E_0, and the mean square is
(a (a + 1) / b^2) E_2 / E_0. Both parameters only grow: by (1, 0) if t is short, and hardly at all if t is so long that
a change was to be expected anyway. So CHANGES and WATCHED_S are the changes, and the seconds in which they came, that the
crawls are worth. They are multiplied by `age` before each crawl.

What a crawl gains is the mean over the belief, not what it gains at the mean rate:

    E[(1 / D) (1 - exp(-D t) (1 + D t))] = b ((1 + t / b)^(1 - a) - 1) / (1 - a) - t q,  q = (b / (b + t))^a

A page of which little is known may change seldom. Its copy would then last long, so the mean over the belief is larger.
Cost: O(1) per crawl and value, O(pages) per revision.
Source: assumed-density filtering (Maybeck 1982, chapter 12); a prior whose mean is learned is empirical Bayes (Robbins 1956).
docs/decisions/066-rate-belief.md has the measurements.
"""

import math

from trapline.compiled.jit import shared
from trapline.refresh.core.layout import NORMAL, PolicyView
from trapline.refresh.policies.belief import CHANGES, MEAN_RATE, WATCHED_S, is_begun
from trapline.refresh.policies.estimators import rate_of

SHAPE = 0.5  # of the prior. A wide one: rates of pages differ by orders of magnitude, so the first crawls decide
ENOUGH_PAGES = 10  # with fewer crawled pages the mean of the prior is the rate of all crawls together
LEAST_S = 1.0  # shortest time between two crawls
SERIES = 1e-4  # below this value of (a + 1) t / b the first term of the series is exact enough; the difference would be rounding error


@shared
def prior_mean(s: PolicyView) -> float:
    """Return m, in changes per second."""
    return s.totals[MEAN_RATE] if s.totals[MEAN_RATE] > 0.0 else rate_of(s, 0.0, 0.0, 0.0)


@shared
def changes_of(s: PolicyView, page: int) -> float:
    """Return a."""
    return SHAPE + (s.columns[page, CHANGES] if is_begun(s, page) else 0.0)


@shared
def seconds_of(s: PolicyView, page: int) -> float:
    """Return b."""
    return SHAPE / prior_mean(s) + (s.columns[page, WATCHED_S] if is_begun(s, page) else 0.0)


@shared
def change_probability(a: float, b: float, t: float) -> float:
    """Return 1 - (b / (b + t))^a: the probability of a change within t seconds.

    >>> round(change_probability(1.0, 3.0, 1.0), 6)
    0.25
    """
    return -math.expm1(-a * math.log1p(t / b))


@shared
def growth_after_change(a: float, b: float, t: float) -> float:
    """Return the factor by which b grows after a crawl that found something new.

    >>> round(growth_after_change(1.0, 1.0, 1.0), 3), round(growth_after_change(1.0, 1.0, 1e-6), 3)
    (1.2, 1.0)
    """
    none = change_probability(a, b, t)
    mean, square = change_probability(a + 1.0, b, t) / none, change_probability(a + 2.0, b, t) / none
    return max(1.0, mean / ((a + 1.0) * square - a * mean * mean))


@shared
def expected_gain_s(a: float, b: float, t: float) -> float:
    """Return what a crawl t seconds after the one before gains, in seconds of freshness, as the mean over the belief.

    >>> round(expected_gain_s(2.0, 1.0, 1.0), 3), round(expected_gain_s(1.0, 1.0, 1.0), 3)
    (0.25, 0.193)
    """
    if (a + 1.0) * t < SERIES * b:
        return 0.5 * a / b * t * t
    log_ratio, less = math.log1p(t / b), 1.0 - a
    unchanged = math.exp(-a * log_ratio)
    growth = math.expm1(less * log_ratio) / less if less != 0.0 else log_ratio  # ((1 + t / b)^(1 - a) - 1) / (1 - a)
    return b * growth - t * unchanged


@shared
def learn_rate(s: PolicyView, page: int, now: float, age: float) -> None:
    """Learn from a crawl of a page without signals, whose columns are begun."""
    own = s.columns[page]
    own[CHANGES] *= age
    own[WATCHED_S] *= age
    t = max(LEAST_S, now - s.page[page].crawled_s)
    if not s.run[0].changed:
        own[WATCHED_S] += t
        return
    a, b = changes_of(s, page), seconds_of(s, page)
    growth = growth_after_change(a, b, t)
    mean_b = a * change_probability(a + 1.0, b, t) / change_probability(a, b, t)  # the new mean times b
    own[CHANGES] += max(0.0, mean_b * growth - a)
    own[WATCHED_S] += b * (growth - 1.0)


@shared
def learn_prior_mean(s: PolicyView) -> None:
    """Set m to the mean of the beliefs about the pages without signals that were crawled."""
    pages, rates = 0, 0.0
    for page in range(len(s.page)):
        if s.page[page].crawls > 0 and s.page[page].level == NORMAL and is_begun(s, page):
            pages += 1
            rates += changes_of(s, page) / seconds_of(s, page)
    if pages >= ENOUGH_PAGES:
        s.totals[MEAN_RATE] = rates / pages
