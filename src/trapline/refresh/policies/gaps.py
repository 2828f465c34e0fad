"""How long after an update the next one comes, learned from signals: the hazard by age, and what it says about waiting. Not a policy.

Ages are in units of the page's own mean gap between signals, and all pages share one law: what is learned from busy pages holds for quiet
ones, however few of their gaps were seen. Each gap that a signal ends adds an event to its bin and time to the bins before it; gaps
still open add their time at each revision. The hazard of a bin is events / time, with that of the bin before as `PRIOR` events' worth
of a first guess. From the hazard follow, by age a,

    G(a) = inf over b > a of  (integral of S from a to b) / (S(a) - S(b)),   S = survival of the gap
    M(a) = (integral of S from a on) / S(a): how much of the gap is left, on average
    H(a) = integral of the hazard from 0 to a: no signal by then had a chance of exp(-H)

G is the price at which a crawl now breaks even with every plan to wait. Constant hazard h: 1 / h. Falling hazard: 1 / h(a), let the
burst end. Source: the index of Gittins 1979 in its form for a job with unknown duration; hazards by bin as in life tables. Cost: O(1)
a signal, O(pages + BINS^2) a revision. Until gaps are known they are taken for Poisson: G = M = 1 and H(a) = a.
"""

import math

import numpy as np

from trapline.jit import shared
from trapline.refresh.layout import BINS, View
from trapline.refresh.policies.trust import signal_rate

# Rows of View.gaps: gaps ended in a bin, and their time in that bin; the same of gaps still open; hazards; G at the
# bin's beginning. When all is learned, open gaps give their places to M, and to H less the bin's beginning. All rows begin as ones, of
# which one gap and its time in each bin and one unit of H are taken off again; the others say that gaps are Poisson.
ENDED, ENDED_TIME, OPEN, OPEN_TIME, HAZARD, INDEX = range(6)
REST, EXCESS = OPEN, OPEN_TIME
_ONE = 1.0
PRIOR = 0.5  # events that a first guess is worth
_FIRST = -16  # two bins an octave: from 2^-16 of a mean gap to 2^8 of them, and all below and above
# The bits of a double but its last 51 count half octaves: so many before bin 0.
_BEFORE = 2 * (1023 + _FIRST)


@shared
def bin_of(age: float) -> int:
    """
    >>> bin_of(0.0), bin_of(1.0), bin_of(1.4), bin_of(1.6), bin_of(2.0), bin_of(1e9) == BINS - 1
    (0, 32, 32, 33, 34, True)
    """
    return min(BINS - 1, max(0, (int(np.float64(age).view(np.int64)) >> 51) - _BEFORE))


@shared
def begin_of(b: int) -> float:
    """
    >>> begin_of(0), begin_of(32), begin_of(33)
    (0.0, 1.0, 1.5)
    """
    return float(np.int64((b + _BEFORE) << 51).view(np.float64)) if b > 0 else 0.0


@shared
def age_of(s: View, page: int, now: float, rate: float) -> float:
    """Mean gaps since its last signal; a page that was never signalled: since its first fetch. `rate`: signals per second."""
    p = s.page[page]
    return (now - max(p.last_signal_s, p.joined)) * rate


@shared
def note_gap(s: View, page: int, now: float) -> None:
    """The page's gap ends now. Its time in earlier bins follows from the number of those that ended later (`learn_gaps`)."""
    gap = age_of(s, page, now, signal_rate(s, page, now))
    b = bin_of(gap)
    s.gaps[ENDED, b] += 1.0
    s.gaps[ENDED_TIME, b] += gap - begin_of(b)


@shared
def learn_gaps(s: View, now: float) -> None:
    """Hazards from all gaps, ended and open, and what follows from them."""
    _note_open_gaps(s, now)
    _learn_hazards(s)
    expected = _ONE
    for b in range(BINS):
        s.gaps[EXCESS, b] = expected - begin_of(b)
        expected += s.gaps[HAZARD, b] * (begin_of(b + 1) - begin_of(b))
        _look_ahead(s, b)


@shared
def _note_open_gaps(s: View, now: float) -> None:
    s.gaps[OPEN] = 0.0
    s.gaps[OPEN_TIME] = 0.0
    for page in range(len(s.page)):
        if s.page[page].all_signals > 0:
            age = age_of(s, page, now, signal_rate(s, page, now))
            b = bin_of(age)
            s.gaps[OPEN, b] += 1.0
            s.gaps[OPEN_TIME, b] += age - begin_of(b)


@shared
def _learn_hazards(s: View) -> None:
    longer = s.gaps[ENDED].sum() - _ONE * BINS + s.gaps[OPEN].sum()
    guess = 1.0
    for b in range(BINS):
        ended = s.gaps[ENDED, b] - _ONE
        longer -= ended + s.gaps[OPEN, b]
        time = longer * (begin_of(b + 1) - begin_of(b)) + s.gaps[ENDED_TIME, b] - _ONE + s.gaps[OPEN_TIME, b]
        guess = (ended + PRIOR) / (time + PRIOR / guess)
        s.gaps[HAZARD, b] = guess


@shared
def _look_ahead(s: View, b: int) -> None:
    """G and M at the beginning of bin b. Nobody lives beyond the last bin's mean."""
    survival, integral, least = 1.0, 0.0, math.inf
    for later in range(b, BINS):
        hazard = s.gaps[HAZARD, later]
        left = survival * math.exp(-hazard * (begin_of(later + 1) - begin_of(later))) if later < BINS - 1 else 0.0
        integral += (survival - left) / hazard
        survival = left
        least = min(least, integral / max(1.0 - survival, 1e-12))
    s.gaps[INDEX, b] = least
    s.gaps[REST, b] = integral


@shared
def _between(s: View, row: int, age: float) -> float:
    """Straight between the bins' beginnings."""
    b = bin_of(age)
    if b == BINS - 1:
        return s.gaps[row, b]
    begin = begin_of(b)
    part = (age - begin) / (begin_of(b + 1) - begin)
    return (1.0 - part) * s.gaps[row, b] + part * s.gaps[row, b + 1]


@shared
def break_even(s: View, age: float) -> float:
    """G(a)"""
    return _between(s, INDEX, age)


@shared
def mean_rest(s: View, age: float) -> float:
    """M(a)"""
    return _between(s, REST, age)


@shared
def hazard_at(s: View, age: float) -> float:
    """Over all the time of a page its mean is 1, by the unit of age."""
    return s.gaps[HAZARD, bin_of(age)]


@shared
def expected_signals(s: View, age: float) -> float:
    """H(a)"""
    b = bin_of(age)
    begin = begin_of(b)
    return s.gaps[EXCESS, b] - _ONE + begin + s.gaps[HAZARD, b] * (age - begin)
