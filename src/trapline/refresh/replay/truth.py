"""The truth about pages, which no policy sees: the updates that a copy misses, and its freshness by two measures.

Binary: F = 1 if no update is missed, else 0. By the repaired Eq. 3 of Xu et al.:

    F = 1 / (1 + sum over the missed updates m = 1..U, oldest first, of m (t - t_m) / T0)

or a variant of it (`Measure`): literal, F = min(1, 1 / sum), which is 1 for a while after an update; or with the number of
missed updates U in place of m as every weight. The sum is W (t - t_1) - M, where W is the sum of the weights and M the sum of
the weights times (t_m - t_1), so that an update costs O(1). The integral of F over time is T0/W times the logarithm of the
ratio of its denominators. Both measures are taken at the accesses, and also over time, with pages weighted by their
accesses.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trapline.compiled.jit import b1, f8, helper, i8, type_of, void
from trapline.errors import ConfigError, nearest
from trapline.frontier.layout import Array, record

TRUTH = record(
    [
        ("first_s", "f8"),  # time of the first missed update
        ("weights", "f8"),  # W
        ("moment_s", "f8"),  # M; for equal weights without the factor U
        ("marked_s", "f8"),  # time up to which freshness is integrated
        ("share", "f8"),  # share of all accesses
        ("updated_s", "f8"),  # time of the last update, missed or not
        ("missed", "i4"),  # U
    ]
)
# Indices of Truth.totals: accesses, the sums of both measures over them, and their integrals over time.
ACCESSES, BINARY, EQ3, BINARY_S, EQ3_S = range(5)
FORMS, WEIGHTS = ("repaired", "literal"), ("index", "count")


class Truth(NamedTuple):
    """The truth about all pages, the totals, and the settings of the measures."""

    page: Array  # TRUTH[pages]
    totals: Array  # f8[5]
    setting: Array  # f8[5], indexed as below


T0_S, WARM_S, IS_LITERAL, BY_COUNT, DATED = range(5)  # two times in seconds, and three flags that are 0 or 1


@dataclass(frozen=True, slots=True)
class Measure:
    """The variant of Eq. 3, by the names in FORMS and WEIGHTS. `t0_s` = 0: T0 is a cycle."""

    form: str = "repaired"
    weight: str = "index"
    t0_s: float = 0.0

    def __post_init__(self) -> None:
        for name, known in ((self.form, FORMS), (self.weight, WEIGHTS)):
            if name not in known:
                raise ConfigError(f"no variant {name!r} of Eq. 3; {nearest(name, known)}")


def make_truth(shares: Array, cycle_s: float, warm_s: float, measure: Measure, dated: bool = False) -> Truth:
    """Return the truth at the beginning of a replay. `dated`: crawls see when a page last changed."""
    page = np.zeros(len(shares), TRUTH)
    page["share"], page["marked_s"], page["updated_s"] = shares, warm_s, -math.inf
    variant = (measure.form == "literal", measure.weight == "count", dated)
    return Truth(page, np.zeros(5), np.array([measure.t0_s or cycle_s, warm_s, *variant], np.float64))


TruthType = type_of(make_truth(np.zeros(1), 1.0, 0.0, Measure()))


@helper(f8(TruthType, i8, f8))
def age(truth: Truth, page: int, now: float) -> float:
    """Return the sum in the denominator of F."""
    p = truth.page[page]
    if truth.setting[BY_COUNT]:
        sum_s = p.missed * (p.missed * (now - p.first_s) - p.moment_s)
    else:
        sum_s = p.weights * (now - p.first_s) - p.moment_s
    return max(0.0, sum_s / truth.setting[T0_S])


@helper(f8(TruthType, f8))
def denominator(truth: Truth, age: float) -> float:
    """Return the denominator of F."""
    return max(1.0, age) if truth.setting[IS_LITERAL] else 1.0 + age


@helper(void(TruthType, i8, f8))
def integrate(truth: Truth, page: int, now: float) -> None:
    """Add the freshness of the page over time, up to `now`, to the totals."""
    p = truth.page[page]
    since_s = now - p.marked_s
    if since_s <= 0.0:  # the warm-up is not over
        return
    if p.missed == 0:
        truth.totals[BINARY_S] += p.share * since_s
        truth.totals[EQ3_S] += p.share * since_s
    else:
        truth.totals[EQ3_S] += p.share * eq3_s(truth, page, now)
    p.marked_s = now


@helper(f8(TruthType, i8, f8))
def eq3_s(truth: Truth, page: int, now: float) -> float:
    """Return the integral of F for a page that misses updates. In the literal form F is 1 at first, as long as the sum is below 1."""
    p = truth.page[page]
    begin, end = age(truth, page, p.marked_s), age(truth, page, now)
    weights = p.missed * p.missed if truth.setting[BY_COUNT] else p.weights
    fresh = max(0.0, min(end, 1.0) - begin) if truth.setting[IS_LITERAL] else 0.0
    ratio = denominator(truth, end) / denominator(truth, begin)
    return truth.setting[T0_S] / weights * (fresh + math.log(ratio))


@helper(void(TruthType, i8, f8))
def update(truth: Truth, page: int, now: float) -> None:
    """Record an update of the page."""
    integrate(truth, page, now)
    p = truth.page[page]
    p.updated_s = now
    p.missed += 1
    if p.missed == 1:
        p.first_s = now
    p.weights += p.missed
    p.moment_s += (now - p.first_s) * (1 if truth.setting[BY_COUNT] else p.missed)


@helper(void(TruthType, i8, f8))
def access(truth: Truth, page: int, now: float) -> None:
    """Add the freshness at an access to the totals."""
    if now < truth.setting[WARM_S]:
        return
    truth.totals[ACCESSES] += 1.0
    if truth.page[page].missed == 0:
        truth.totals[BINARY] += 1.0
        truth.totals[EQ3] += 1.0
    else:
        truth.totals[EQ3] += 1.0 / denominator(truth, age(truth, page, now))


@helper(b1(TruthType, i8, f8))
def copy_page(truth: Truth, page: int, now: float) -> bool:
    """Make the copy of the page fresh, and return whether there was anything new."""
    integrate(truth, page, now)
    p = truth.page[page]
    changed = p.missed > 0
    p.missed = 0
    p.weights = 0.0
    p.moment_s = 0.0
    return changed


@helper(f8(TruthType, i8, f8))
def shown_age_s(truth: Truth, page: int, now: float) -> float:
    """Return how long ago the page last changed, as its server states it; infinity: it does not state it, or there was no change."""
    return now - truth.page[page].updated_s if truth.setting[DATED] else math.inf
