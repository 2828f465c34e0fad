"""How often a page changes, learned from its crawls: five estimators, of which a policy's option `estimator` chooses one. Not a policy.

    closed         D = -ln((n - X + .5) / (n + .5)) / mean of t                                          rates.py
    mle            D such that the sum of t / (exp(D t) - 1) over changed = the sum of t over unchanged crawls
    complete       D = (X + .5) / (T + .5 days), X = signals in the time T; of a page that has none as `closed`
    last-modified  D = X / sum of min(a, t)
    online         D <- D + (k + 2)^-G (I (D + r) - D), I = 1 if the k-th crawl found something new, else 0

t = time between two crawls, n of them, X with something new; a = time since the last change, as the server says at a crawl; r = crawls per
second of the page. `closed` is meant for regular intervals, `mle` for any, `online` for those of a Poisson process: of others it is biased.

So that every page has a rate: T_0 is the time in which all pages have their turn. `mle` has an interval of T_0 with a change and one
without more than there were. `last-modified` has half a change more, at the rate of all pages, and takes a change without a date, or with
one before the last crawl, for the middle of its interval. `mle` and `online` begin with what `closed` says of a page never crawled.

`mle` keeps intervals with a change in at most GROUPS groups, each as its number of intervals of their mean length; one joins the group that
is nearest, or an empty one: within 6 % of the rate by all of them (a test). Cost: O(1) a crawl; `mle` HALVINGS x GROUPS exponentials.
Columns: `ESTIMATORS`.
Source: `closed` Cho & Garcia-Molina 2003; `mle`, `complete` Kolobov et al. NeurIPS 2019 (whose added intervals are of half a day); `online`
Avrachenkov, Patil, Thoppe 2020, stochastic approximation; `last-modified` maximum likelihood given the last event of each interval.
"""

import math

from trapline.jit import shared
from trapline.refresh.layout import NORMAL, View
from trapline.refresh.policies.rates import change_rate, rate_of
from trapline.refresh.policy import Way, rule

ESTIMATOR = 0  # the first option of every policy that has it
CLOSED, MLE, COMPLETE, LAST_MODIFIED, ONLINE = range(5)
GROUPS = 5
ESTIMATORS = (
    Way("closed"),
    Way("mle", ("rate", "unchanged_s", *("intervals with a change",) * GROUPS)),
    Way("complete", hears=True),
    Way("last-modified", ("unchanged_s",)),
    Way("online", ("rate",)),
)
# Columns from `first` on: what is estimated, of those that keep it; mle: time of intervals without a change, and the groups.
RATE, UNCHANGED_S, GROUP = range(3)
# last-modified: the time without a change, of a page and (among the totals) of all pages.
OWN_S, ALL_S = 0, 15
HALVINGS = 40
LEAST, MOST = math.log(1e-5), math.log(1e4)  # of D T_0
NUMBER = 2.0**40  # a group: number x 2^40 + seconds, a whole number below 2^53
MOST_IN_GROUP = 2.0**12
NEW = 1.3
_FAR = math.log(NEW)
G = 0.75
HALF_A_DAY_S = 43_200.0


@shared
def turn_s(s: View) -> float:
    """T_0"""
    return len(s.page) / s.run[0].slots_per_s


@shared
def learned_rate(s: View, page: int, now: float, first: int) -> float:
    """Changes per second. `first`: the first column of the estimator."""
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
def note_outcome(s: View, page: int, now: float, first: int) -> None:
    """A crawl, before it is noted in the page's record."""
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
def _unchanged_s(s: View, interval_s: float) -> float:
    """min(a, t)"""
    if not s.run[0].changed:
        return interval_s
    return s.run[0].age_s if s.run[0].age_s <= interval_s else 0.5 * interval_s


@shared
def _step(s: View, page: int, now: float, first: int) -> None:
    p = s.page[page]
    rate = learned_rate(s, page, now, first)
    found = (rate + (p.crawls + 1.0) / max(now - p.joined, 1.0)) if s.run[0].changed else 0.0
    s.columns[page, first + RATE] = rate + (p.crawls + 2.0) ** -G * (found - rate)


@shared
def _keep_interval(s: View, page: int, first: int, interval_s: float) -> None:
    if not s.run[0].changed:
        s.columns[page, first + UNCHANGED_S] += interval_s
        return
    whole_s = max(1.0, math.floor(interval_s + 0.5))
    i = first + GROUP + _nearest_group(s, page, first, whole_s)
    number = math.floor(s.columns[page, i] / NUMBER)
    seconds = s.columns[page, i] - number * NUMBER
    if number >= MOST_IN_GROUP:  # older ones count half
        number, seconds = math.floor(0.5 * number), math.floor(0.5 * seconds)
    s.columns[page, i] = (number + 1.0) * NUMBER + seconds + whole_s


@shared
def _nearest_group(s: View, page: int, first: int, interval_s: float) -> int:
    """By the ratio to its mean; an empty one is as near as one whose mean is NEW times as long."""
    nearest, least = 0, math.inf
    for g in range(GROUPS):
        held = s.columns[page, first + GROUP + g]
        far = abs(math.log(interval_s / mean_s(held))) if held > 0.0 else _FAR
        if far < least:
            nearest, least = g, far
    return nearest


@shared
def mean_s(held: float) -> float:
    number = math.floor(held / NUMBER)
    return (held - number * NUMBER) / number


@shared
def likeliest_rate(s: View, page: int, first: int) -> float:
    """The root, by halving the range of its logarithm."""
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
    """t / (exp(D t) - 1)"""
    return interval_s / math.expm1(min(700.0, rate * interval_s))


@rule
def learn(s: View, page: int, now: float) -> float:
    """`on_crawl` of a policy without columns of its own."""
    note_outcome(s, page, now, 0)
    return 0.0
