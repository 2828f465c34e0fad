"""What is true of a page, which no policy sees: the updates that its copy misses, and how fresh it is by two measures.

Binary: F = 1 if no update is missed, else 0. By the repaired Eq. 3 of Xu et al.:

    F = 1 / (1 + sum over the missed updates m = 1..U, oldest first, of m (t - t_m) / T0)

or a variant of it (`Measure`): literal, F = min(1, 1 / sum), which is 1 for a while after an update; or with the number of missed
updates U instead of m as every weight. The sum is W (t - t_1) - M with W the sum of weights and M that of weights times (t_m - t_1),
so that an update costs O(1); over time F integrates to T0/W times the logarithm of the ratio of its denominators. Both measures are
taken where accesses fall, and over time, weighted by how often each page is accessed.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trapline.errors import ConfigError, nearest
from trapline.frontier.layout import Array, record
from trapline.jit import b1, f8, helper, i8, type_of, void

TRUTH = record(
    [
        ("first_s", "f8"),  # of the missed updates
        ("weights", "f8"),  # W
        ("moment_s", "f8"),  # M; of equal weights without the factor U
        ("marked_s", "f8"),  # up to here freshness is integrated
        ("share", "f8"),  # of all accesses
        ("updated_s", "f8"),  # the last update, missed or not
        ("missed", "i4"),  # U
    ]
)
# Of View `totals`: accesses, the sums of both measures over them, and their integrals over time.
ACCESSES, BINARY, EQ3, BINARY_S, EQ3_S = range(5)
FORMS, WEIGHTS = ("repaired", "literal"), ("index", "count")


class Truth(NamedTuple):
    page: Array  # TRUTH[pages]
    totals: Array  # f8[5]
    setting: Array  # f8[5], as below


T0_S, WARM_S, IS_LITERAL, BY_COUNT, DATED = range(5)  # seconds, seconds, and three that are 0 or 1


@dataclass(frozen=True, slots=True)
class Measure:
    """Which Eq. 3, by the names in FORMS and WEIGHTS. `t0_s` 0: a cycle."""

    form: str = "repaired"
    weight: str = "index"
    t0_s: float = 0.0

    def __post_init__(self) -> None:
        for name, known in ((self.form, FORMS), (self.weight, WEIGHTS)):
            if name not in known:
                raise ConfigError(f"no Eq. 3 by {name!r}; {nearest(name, known)}")


def make_truth(shares: Array, cycle_s: float, warm_s: float, measure: Measure, dated: bool = False) -> Truth:
    """`dated`: crawls see when a page last changed."""
    page = np.zeros(len(shares), TRUTH)
    page["share"], page["marked_s"], page["updated_s"] = shares, warm_s, -math.inf
    variant = (measure.form == "literal", measure.weight == "count", dated)
    return Truth(page, np.zeros(5), np.array([measure.t0_s or cycle_s, warm_s, *variant], np.float64))


TruthType = type_of(make_truth(np.zeros(1), 1.0, 0.0, Measure()))


@helper(f8(TruthType, i8, f8))
def age(truth: Truth, page: int, now: float) -> float:
    """The sum in the denominator of F."""
    p = truth.page[page]
    if truth.setting[BY_COUNT]:
        sum_s = p.missed * (p.missed * (now - p.first_s) - p.moment_s)
    else:
        sum_s = p.weights * (now - p.first_s) - p.moment_s
    return max(0.0, sum_s / truth.setting[T0_S])


@helper(f8(TruthType, f8))
def denominator(truth: Truth, age: float) -> float:
    return max(1.0, age) if truth.setting[IS_LITERAL] else 1.0 + age


@helper(void(TruthType, i8, f8))
def integrate(truth: Truth, page: int, now: float) -> None:
    """Freshness over time, up to now."""
    p = truth.page[page]
    since_s = now - p.marked_s
    if since_s <= 0.0:  # still warming up
        return
    if p.missed == 0:
        truth.totals[BINARY_S] += p.share * since_s
        truth.totals[EQ3_S] += p.share * since_s
    else:
        truth.totals[EQ3_S] += p.share * eq3_s(truth, page, now)
    p.marked_s = now


@helper(f8(TruthType, i8, f8))
def eq3_s(truth: Truth, page: int, now: float) -> float:
    """The integral of F of a page that misses updates. What is clamped is a time at F = 1 first."""
    p = truth.page[page]
    begin, end = age(truth, page, p.marked_s), age(truth, page, now)
    weights = p.missed * p.missed if truth.setting[BY_COUNT] else p.weights
    fresh = max(0.0, min(end, 1.0) - begin) if truth.setting[IS_LITERAL] else 0.0
    ratio = denominator(truth, end) / denominator(truth, begin)
    return truth.setting[T0_S] / weights * (fresh + math.log(ratio))


@helper(void(TruthType, i8, f8))
def update(truth: Truth, page: int, now: float) -> None:
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
    """Whether there was anything new."""
    integrate(truth, page, now)
    p = truth.page[page]
    changed = p.missed > 0
    p.missed = 0
    p.weights = 0.0
    p.moment_s = 0.0
    return changed


@helper(f8(TruthType, i8, f8))
def shown_age_s(truth: Truth, page: int, now: float) -> float:
    """What a server says of a page at a crawl: how long ago it last changed; infinity: it does not say, or it never did."""
    return now - truth.page[page].updated_s if truth.setting[DATED] else math.inf
