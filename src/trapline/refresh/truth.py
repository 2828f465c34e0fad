"""What is true of a page, which no policy sees: the updates that its copy misses, and how fresh it is by two measures.

Binary: F = 1 if no update is missed, else 0. By the repaired Eq. 3 of Xu et al.:

    F = 1 / (1 + sum over the missed updates m = 1..U, oldest first, of m (t - t_m) / T0)

The sum is W (t - t_1) - M with W = sum of m and M = sum of m (t_m - t_1), so that an update costs O(1); over time F integrates to
T0/W times the logarithm of the ratio of its denominators. Both are measured where accesses fall, and over time, weighted by how often
each page is accessed.
"""

import math
from typing import NamedTuple

import numpy as np

from trapline.frontier.layout import Array, record
from trapline.jit import b1, f8, helper, i8, type_of, void

TRUTH = record(
    [
        ("first_s", "f8"),  # of the missed updates
        ("weights", "f8"),  # W
        ("moment_s", "f8"),  # M
        ("marked_s", "f8"),  # up to here freshness is integrated
        ("share", "f8"),  # of all accesses
        ("missed", "i4"),  # U
    ]
)
# Of View `totals`: accesses, the sums of both measures over them, and their integrals over time.
ACCESSES, BINARY, EQ3, BINARY_S, EQ3_S = range(5)


class Truth(NamedTuple):
    page: Array  # TRUTH[pages]
    totals: Array  # f8[5]
    setting: Array  # f8[2]: T0 (s); the end of the warm-up (s)


def make_truth(shares: Array, t0_s: float, warm_s: float) -> Truth:
    page = np.zeros(len(shares), TRUTH)
    page["share"], page["marked_s"] = shares, warm_s
    return Truth(page, np.zeros(5), np.array([t0_s, warm_s]))


TruthType = type_of(make_truth(np.zeros(1), 1.0, 0.0))


@helper(f8(TruthType, i8, f8))
def age(truth: Truth, page: int, now: float) -> float:
    """The sum in the denominator of F."""
    p = truth.page[page]
    return max(0.0, (p.weights * (now - p.first_s) - p.moment_s) / truth.setting[0])


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
        ratio = (1.0 + age(truth, page, now)) / (1.0 + age(truth, page, p.marked_s))
        truth.totals[EQ3_S] += p.share * truth.setting[0] / p.weights * math.log(ratio)
    p.marked_s = now


@helper(void(TruthType, i8, f8))
def update(truth: Truth, page: int, now: float) -> None:
    integrate(truth, page, now)
    p = truth.page[page]
    p.missed += 1
    if p.missed == 1:
        p.first_s = now
    p.weights += p.missed
    p.moment_s += p.missed * (now - p.first_s)


@helper(void(TruthType, i8, f8))
def access(truth: Truth, page: int, now: float) -> None:
    if now < truth.setting[1]:
        return
    truth.totals[ACCESSES] += 1.0
    if truth.page[page].missed == 0:
        truth.totals[BINARY] += 1.0
        truth.totals[EQ3] += 1.0
    else:
        truth.totals[EQ3] += 1.0 / (1.0 + age(truth, page, now))


@helper(b1(TruthType, i8, f8))
def crawl(truth: Truth, page: int, now: float) -> bool:
    """Whether there was anything new."""
    integrate(truth, page, now)
    p = truth.page[page]
    changed = p.missed > 0
    p.missed = 0
    p.weights = 0.0
    p.moment_s = 0.0
    return changed
