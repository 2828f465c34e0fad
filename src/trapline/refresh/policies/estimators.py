"""Estimators of a page's change rate, learned from its crawls. A policy's option `estimator` chooses one of five. Not a policy.

    closed         D = -ln((n - X + .5) / (n + .5)) / mean of t
    mle            D such that the sum of t / (exp(D t) - 1) over changed = the sum of t over unchanged crawls
    complete       D = (X + .5) / (T + .5 days), X = signals in the time T; for a page without signals as `closed`
    last-modified  D = X / sum of min(a, t)
    online         D <- D + (k + 2)^-G (I (D + r) - D), I = 1 if the k-th crawl found something new, else 0

t = time between two crawls; there are n such intervals, X of them with something new; a = time since the last change, as the
server states at a crawl; r = crawls per second of the page. `closed` is meant for regular intervals, `mle` for any,
`online` for those of a Poisson process: for other intervals it is biased.

Every page needs a rate from the start. T_0 is the time in which all pages are crawled once. `mle` adds an interval of T_0
with a change and one without. `last-modified` adds half a change, at the rate of all pages; it places a change without a
date, or with a date before the last crawl, in the middle of its interval. `mle` and `online` begin with the rate that
`closed` gives to a page that was never crawled.

`mle` keeps the intervals with a change in at most GROUPS groups. A group stores the number of its intervals and their total
time. An interval joins the nearest group, or an empty one. The resulting rate is within 6 % of the rate from all intervals
(a test). Cost: O(1) per crawl; for `mle` HALVINGS x GROUPS exponentials. Columns: `ESTIMATORS`.
Source: `closed` Cho & Garcia-Molina 2003; `mle`, `complete` Kolobov et al. NeurIPS 2019 (whose added intervals are of half a day); `online`
Avrachenkov, Patil, Thoppe 2020, stochastic approximation; `last-modified` maximum likelihood given the last event of each interval.
"""

import math

from trapline.compiled.jit import shared
from trapline.refresh.core.evidence import access_rate
from trapline.refresh.core.layout import NORMAL, PolicyView
from trapline.refresh.policy import Way, rule

# ---- Change rates from the results of crawls, shared by several policies.

__all__ = ["access_rate", "change_rate", "lost", "rate_of"]


@shared
def rate_of(s: PolicyView, crawls: float, changes: float, watched_s: float) -> float:
    """Return the changes per second of a page that is only observed at crawls: -ln((n - X + .5) / (n + .5)) / mean interval.

    n crawls, X of them with something new. Source: Cho & Garcia-Molina 2003, the bias-reduced estimator for regular
    intervals, with the mean in place of the interval. Differs from it: one crawl is added, after the time in which all pages
    are crawled once, with the average result of the crawls of all pages. So a page that was never crawled has a rate too.
    """
    run = s.run[0]
    n = crawls + 1.0
    x = changes + (run.changes + 0.5) / (run.crawls + 1.0)
    interval_s = (watched_s + len(s.page) / run.slots_per_s) / n
    return -math.log((n - x + 0.5) / (n + 0.5)) / interval_s


@shared
def change_rate(s: PolicyView, page: int) -> float:
    """Return the changes per second by the closed form, from all crawls of the page."""
    p = s.page[page]
    return rate_of(s, p.crawls, p.changes, p.crawled_s - p.joined)


@shared
def lost(rate: float, since_s: float) -> float:
    """Return what a crawl gains at age t, in seconds of freshness, with D changes per second: (1 / D) (1 - exp(-x) (1 + x)), x = D t.

    >>> round(lost(1.0, 2.0), 4), lost(1e-9, 1.0) < 1e-9
    (0.594, True)
    """
    x = rate * since_s
    if x < 1e-4:
        return 0.5 * x * since_s  # the first term of the series: the difference below would be rounding error only
    return (1.0 - math.exp(-x) * (1.0 + x)) / rate


# ---- estimators

ESTIMATOR = 0  # index of the option `estimator`: it is the first option of every policy that has it
CLOSED, MLE, COMPLETE, LAST_MODIFIED, ONLINE = range(5)
GROUPS = 5
ESTIMATORS = (
    Way("closed"),
    Way("mle", ("rate", "unchanged_s", *("intervals with a change",) * GROUPS)),
    Way("complete", uses_signals=True),
    Way("last-modified", ("unchanged_s",)),
    Way("online", ("rate",)),
)
# Columns from `first` on. mle and online: the rate; mle also: the total time of intervals without a change, and the groups.
RATE, UNCHANGED_S, GROUP = range(3)
# last-modified: the time without a change, of a page (a column) and of all pages (a total).
OWN_S, ALL_S = 0, 15
HALVINGS = 40
LEAST, MOST = math.log(1e-5), math.log(1e4)  # bounds of ln(D T_0)
NUMBER = 2.0**40  # a group is stored as number x 2^40 + seconds, an integer below 2^53
MOST_IN_GROUP = 2.0**12
NEW = 1.3
_FAR = math.log(NEW)
G = 0.75
HALF_A_DAY_S = 43_200.0


@shared
def turn_s(s: PolicyView) -> float:
    """Return T_0, the time in which all pages are crawled once."""
    return len(s.page) / s.run[0].slots_per_s


@shared
def learned_rate(s: PolicyView, page: int, now: float, first: int) -> float:
    """Return the page's changes per second by the chosen estimator. `first`: the first column of the estimator."""
    kind = s.option[ESTIMATOR]
    if kind in (MLE, ONLINE):
        rate = s.columns[page, first + RATE]
        return rate if rate > 0.0 else rate_of(s, 0.0, 0.0, 0.0)
    if kind == COMPLETE and s.page[page].level != NORMAL:
        return (s.page[page].all_signals + 0.5) / (now - s.page[page].joined + HALF_A_DAY_S)
    if kind == LAST_MODIFIED:
        of_all = (s.run[0].changes + 0.5) / (s.totals[ALL_S] + 0.5 * turn_s(s))
        return (s.page[page].changes + 0.5) / (s.columns[page, first + OWN_S] + 0.5 / of_all)
    return change_rate(s, page)


@shared
def note_outcome(s: PolicyView, page: int, now: float, first: int) -> None:
    """Learn from a crawl, before it is recorded in the page's record."""
    kind = s.option[ESTIMATOR]
    if kind == MLE:
        _keep_interval(s, page, first, now - s.page[page].crawled_s)
        s.columns[page, first + RATE] = likeliest_rate(s, page, first)
    elif kind == LAST_MODIFIED:
        unchanged_s = _unchanged_s(s, now - s.page[page].crawled_s)
        s.columns[page, first + OWN_S] += unchanged_s
        s.totals[ALL_S] += unchanged_s
    elif kind == ONLINE:
        _step(s, page, now, first)


@shared
def _unchanged_s(s: PolicyView, interval_s: float) -> float:
    """Return min(a, t), the time of the interval before its last change; half the interval for a change without a usable date."""
    if not s.run[0].changed:
        return interval_s
    return s.run[0].age_s if s.run[0].age_s <= interval_s else 0.5 * interval_s


@shared
def _step(s: PolicyView, page: int, now: float, first: int) -> None:
    """Make one step of `online`."""
    p = s.page[page]
    rate = learned_rate(s, page, now, first)
    found = (rate + (p.crawls + 1.0) / max(now - p.joined, 1.0)) if s.run[0].changed else 0.0
    s.columns[page, first + RATE] = rate + (p.crawls + 2.0) ** -G * (found - rate)


@shared
def _keep_interval(s: PolicyView, page: int, first: int, interval_s: float) -> None:
    """Add an interval to the time without a change, or to the nearest group."""
    if not s.run[0].changed:
        s.columns[page, first + UNCHANGED_S] += interval_s
        return
    whole_s = max(1.0, math.floor(interval_s + 0.5))
    i = first + GROUP + _nearest_group(s, page, first, whole_s)
    number = math.floor(s.columns[page, i] / NUMBER)
    seconds = s.columns[page, i] - number * NUMBER
    if number >= MOST_IN_GROUP:  # the group is full: its older intervals count half from now on
        number, seconds = math.floor(0.5 * number), math.floor(0.5 * seconds)
    s.columns[page, i] = (number + 1.0) * NUMBER + seconds + whole_s


@shared
def _nearest_group(s: PolicyView, page: int, first: int, interval_s: float) -> int:
    """Return the group whose mean is nearest by ratio. An empty group counts as a group whose mean differs by the factor NEW."""
    nearest, least = 0, math.inf
    for g in range(GROUPS):
        held = s.columns[page, first + GROUP + g]
        far = abs(math.log(interval_s / mean_s(held))) if held > 0.0 else _FAR
        if far < least:
            nearest, least = g, far
    return nearest


@shared
def mean_s(held: float) -> float:
    """Return the mean interval of a group."""
    number = math.floor(held / NUMBER)
    return (held - number * NUMBER) / number


@shared
def likeliest_rate(s: PolicyView, page: int, first: int) -> float:
    """Return the rate of `mle`: the root of its equation, found by bisection of the logarithm."""
    begin_s = turn_s(s)
    unchanged_s = begin_s + s.columns[page, first + UNCHANGED_S]
    low, high = LEAST, MOST
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        rate = math.exp(middle) / begin_s
        expected_s = _fresh_s(rate, begin_s)
        for g in range(GROUPS):
            held = s.columns[page, first + GROUP + g]
            if held > 0.0:
                expected_s += math.floor(held / NUMBER) * _fresh_s(rate, mean_s(held))
        low, high = (middle, high) if expected_s > unchanged_s else (low, middle)
    return math.exp(0.5 * (low + high)) / begin_s


@shared
def _fresh_s(rate: float, interval_s: float) -> float:
    """Return t / (exp(D t) - 1)."""
    return interval_s / math.expm1(min(700.0, rate * interval_s))


@rule
def learn(s: PolicyView, page: int, now: float) -> float:
    """Learn from a crawl: the `on_crawl` function of a policy without columns of its own."""
    note_outcome(s, page, now, 0)
    return 0.0
