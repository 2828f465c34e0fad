"""The gaps between updates, learned from signals: the hazard of the next signal by the age of the last one, and what follows
from it for the decision to crawl now or to wait. Not a policy.

Ages are in units of the page's own mean gap between signals, and all pages share one distribution of gaps: what is learned
from busy pages holds for quiet ones, however few of their gaps were observed. Each gap that a signal ends adds an event to
its bin and time to the bins before it. Gaps that are still open add their time at each revision. The hazard of a bin is
events / time; the hazard of the bin before is its prior, which counts for `PRIOR` events. From the hazard follow, by age a,

    G(a) = inf over b > a of  (integral of S from a to b) / (S(a) - S(b)),   S = survival of the gap
    M(a) = (integral of S from a on) / S(a): the mean remaining time of the gap
    H(a) = integral of the hazard from 0 to a: the probability of no signal by age a is exp(-H)

G is the price at which a crawl now breaks even with every plan to wait. With a constant hazard h it is 1 / h; with a falling
hazard it is 1 / h(a), so that it pays to wait for the end of a burst. Source: the index of Gittins 1979 in its form for a job
of unknown duration; hazards by bin as in life tables. Cost: O(1) per signal, O(pages + BINS^2) per revision. Until gaps are
known they are assumed to be Poisson: G = M = 1 and H(a) = a.
"""

import math

import numpy as np

from trapline.compiled.jit import shared
from trapline.refresh.core.layout import BINS, CERTAIN, SUPER, PolicyView
from trapline.refresh.policies.trust import kept_share, signal_rate, unannounced_share

# Rows of PolicyView.gaps: number of gaps that ended in a bin, and their time in that bin; the same for gaps that are still open; hazards;
# G at the beginning of the bin. After learning, the two rows of open gaps hold M, and H minus the beginning of the bin. All rows start as
# ones. One gap and one unit of time in each bin, and one unit of H, are subtracted again when they are read; the ones in the other rows
# mean that gaps are Poisson.
ENDED, ENDED_TIME, OPEN, OPEN_TIME, HAZARD, INDEX = range(6)
RESIDUAL, EXCESS = OPEN, OPEN_TIME
_ONE = 1.0
PRIOR = 0.5  # number of events that the prior of a bin counts for
# Two bins per octave, from 2^-16 to 2^8 mean gaps; the first and the last bin take all shorter and longer gaps.
_FIRST = -16
# The bits of a double without its last 51 count half octaves. This is the count before bin 0.
_BEFORE = 2 * (1023 + _FIRST)


@shared
def bin_of(age: float) -> int:
    """Return the bin of an age.

    >>> bin_of(0.0), bin_of(1.0), bin_of(1.4), bin_of(1.6), bin_of(2.0), bin_of(1e9) == BINS - 1
    (0, 32, 32, 33, 34, True)
    """
    return min(BINS - 1, max(0, (int(np.float64(age).view(np.int64)) >> 51) - _BEFORE))


@shared
def begin_of(b: int) -> float:
    """Return the age at which a bin begins.

    >>> begin_of(0), begin_of(32), begin_of(33)
    (0.0, 1.0, 1.5)
    """
    return float(np.int64((b + _BEFORE) << 51).view(np.float64)) if b > 0 else 0.0


@shared
def age_of(s: PolicyView, page: int, now: float, rate: float) -> float:
    """Return the age in mean gaps, since the last signal or, without one, since the first fetch. `rate`: signals per second."""
    p = s.page[page]
    return (now - max(p.last_signal_s, p.joined)) * rate


@shared
def note_gap(s: PolicyView, page: int, now: float) -> None:
    """Record that the page's gap ends now. Its time in earlier bins follows from the number of gaps that ended later (`learn_gaps`)."""
    gap = age_of(s, page, now, signal_rate(s, page, now))
    b = bin_of(gap)
    s.gaps[ENDED, b] += 1.0
    s.gaps[ENDED_TIME, b] += gap - begin_of(b)


@shared
def learn_gaps(s: PolicyView, now: float) -> None:
    """Learn the hazards from all gaps, ended and open, and compute G, M and H."""
    _note_open_gaps(s, now)
    _learn_hazards(s)
    expected = _ONE
    for b in range(BINS):
        s.gaps[EXCESS, b] = expected - begin_of(b)
        expected += s.gaps[HAZARD, b] * (begin_of(b + 1) - begin_of(b))
        _look_ahead(s, b)


@shared
def _note_open_gaps(s: PolicyView, now: float) -> None:
    """Count the open gaps of all pages, and their time, by bin."""
    s.gaps[OPEN] = 0.0
    s.gaps[OPEN_TIME] = 0.0
    for page in range(len(s.page)):
        if s.page[page].all_signals > 0:
            age = age_of(s, page, now, signal_rate(s, page, now))
            b = bin_of(age)
            s.gaps[OPEN, b] += 1.0
            s.gaps[OPEN_TIME, b] += age - begin_of(b)


@shared
def _learn_hazards(s: PolicyView) -> None:
    """Compute the hazard of each bin."""
    longer = s.gaps[ENDED].sum() - _ONE * BINS + s.gaps[OPEN].sum()
    guess = 1.0
    for b in range(BINS):
        ended = s.gaps[ENDED, b] - _ONE
        longer -= ended + s.gaps[OPEN, b]
        time = longer * (begin_of(b + 1) - begin_of(b)) + s.gaps[ENDED_TIME, b] - _ONE + s.gaps[OPEN_TIME, b]
        guess = (ended + PRIOR) / (time + PRIOR / guess)
        s.gaps[HAZARD, b] = guess


@shared
def _look_ahead(s: PolicyView, b: int) -> None:
    """Compute G and M at the beginning of bin b. The last bin is taken to end every gap that reaches it."""
    survival, integral, least = 1.0, 0.0, math.inf
    for later in range(b, BINS):
        hazard = s.gaps[HAZARD, later]
        left = survival * math.exp(-hazard * (begin_of(later + 1) - begin_of(later))) if later < BINS - 1 else 0.0
        integral += (survival - left) / hazard
        survival = left
        least = min(least, integral / max(1.0 - survival, 1e-12))
    s.gaps[INDEX, b] = least
    s.gaps[RESIDUAL, b] = integral


@shared
def _between(s: PolicyView, row: int, age: float) -> float:
    """Return the value of a row at an age, by linear interpolation between the beginnings of the bins."""
    b = bin_of(age)
    if b == BINS - 1:
        return s.gaps[row, b]
    begin = begin_of(b)
    part = (age - begin) / (begin_of(b + 1) - begin)
    return (1.0 - part) * s.gaps[row, b] + part * s.gaps[row, b + 1]


@shared
def break_even(s: PolicyView, age: float) -> float:
    """Return G(a)."""
    return _between(s, INDEX, age)


@shared
def mean_residual(s: PolicyView, age: float) -> float:
    """Return M(a)."""
    return _between(s, RESIDUAL, age)


@shared
def hazard_at(s: PolicyView, age: float) -> float:
    """Return the hazard at an age. Its mean over the whole time of a page is 1, because ages are in mean gaps."""
    return s.gaps[HAZARD, bin_of(age)]


@shared
def expected_signals(s: PolicyView, age: float) -> float:
    """Return H(a)."""
    b = bin_of(age)
    begin = begin_of(b)
    return s.gaps[EXCESS, b] - _ONE + begin + s.gaps[HAZARD, b] * (age - begin)


# ---- How long a new copy of a page with signals stays fresh, from its gaps and from the published points.
#
# R = inf over b of  (integral of S from now to b) / (1 - S(b)),   S = survival of the copy
#
# R is the price, in seconds, at which a crawl now breaks even with every plan to wait. Without published points R = G / (r pi (1 + o)),
# with G at the age of the last signal in mean gaps, r = signals per second, pi and o as in belief.py. With points, S falls between them
# by the hazard of gaps times the share u of signals that came without a point, and at each point by its probability q. A plan ends just
# after a point, or at the end of the gap (M), as if there were no points after those considered. R is at most what gaps alone give,
# G / (r pi (1 + o) u).
#
# q is the probability of a point by Bayes' rule, where wrong points come at random times. With b = published probability x share of
# promises kept (trust.py), and h = hazard of gaps at that time relative to its mean, q / (1 - q) = h b / (1 - b). So points that are
# trusted in part say when an update may come, and gaps say how likely it is: the more points are wrong, the nearer R is to what gaps alone
# give. b = 1: q = 1, and R = t_n - now. b = 0: the point has no effect.
#
# No plan ends before the next slot, because a crawl cannot wait for less than a slot. Without this rule a wrong point just ahead would
# take all value from a page.

AHEAD = 6  # number of published points considered after the next slot
MOST = 32  # number of published points considered in all


@shared
def chance_of(s: PolicyView, believed: float, age: float) -> float:
    """Return q."""
    # The product may exceed 1: more points may be kept than their published probabilities promise
    believed = min(1.0, believed)
    odds = hazard_at(s, age) * believed
    return min(CERTAIN, odds / max(1e-12, 1.0 - believed + odds))


@shared
def has_points(s: PolicyView, page: int) -> bool:
    """Return whether published points lie ahead. If not, R is `by_gaps_s`.

    The caller chooses between the two functions: in one function the long code for points would slow down the short code
    for gaps, which is enough for most pages.
    """
    p = s.page[page]
    return p.level == SUPER and p.point < p.point_end


@shared
def by_gaps_s(s: PolicyView, page: int, now: float, r: float, load: float) -> float:
    """Return R without published points. `r`: signals per second; `load`: pi (1 + o), updates per signal."""
    return break_even(s, age_of(s, page, now, r)) / (r * load)


@shared
def by_points_s(s: PolicyView, page: int, now: float, r: float, load: float, gaps_s: float) -> float:
    """Return R with published points. `gaps_s`: R without them."""
    p, age, unannounced = s.page[page], age_of(s, page, now, r), unannounced_share(s, page)
    slot_s, share = now + 1.0 / s.run[0].slots_per_s, load * unannounced
    least_s, survival, integral_s, since_s, before = math.inf, 1.0, 0.0, now, expected_signals(s, age)
    looked = 0
    for i in range(p.point, min(p.point_end, p.point + MOST)):
        at_s = max(s.point[i].at_s, now)
        if since_s < slot_s <= at_s:  # the plan that waits for the next slot
            least_s = (integral_s + survival * (slot_s - since_s)) / max(1e-12, 1.0 - survival)
        age += r * (at_s - since_s)
        expected = expected_signals(s, age)
        x = max(1e-12, share * (expected - before))
        integral_s += survival * (at_s - since_s) * (1.0 - math.exp(-x)) / x
        survival *= math.exp(-x) * (1.0 - chance_of(s, kept_share(s, s.point[i].row) * s.point[i].p, age))
        since_s, before = at_s, expected
        if at_s >= slot_s:
            least_s = min(least_s, integral_s / max(1e-12, 1.0 - survival))
            looked += 1
        if looked == AHEAD:
            break
    return min(gaps_s / unannounced, least_s, integral_s + survival * mean_residual(s, age) / (r * load))
