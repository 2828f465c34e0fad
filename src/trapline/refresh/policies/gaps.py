"""How long after an update the next one comes, learned from signals: the hazard by age, and what it says about waiting. Not a policy.

Ages fall into bins of a constant ratio, pages into classes by how often they change. Each gap that a signal ends adds an
event to its bin and time to the bins before it; gaps still open add their time at each revision. The hazard of a bin is
events / time, with the pool of all classes as `PRIOR` events' worth of a first guess. From the hazard follows, by age a,

    G(a) = inf over b > a of  (integral of S from a to b) / (S(a) - S(b)),   S = survival of the gap

the price at which a crawl now breaks even with every plan to wait. Constant hazard h: 1 / h. Falling hazard: 1 / h(a), let the burst end.
Source: the index of Gittins 1979 in its form for a job with unknown duration; hazards by bin as in life tables. Cost: O(1) a signal,
O(pages + CLASSES BINS^2) a revision.
"""

import math

from trapline.jit import shared
from trapline.refresh.layout import BINS, CLASSES, View

RATIO = 1.5  # 1 s x 1.5^47 = 6 years
_LOG_RATIO = math.log(RATIO)
# Rows of View.gaps: gaps ended in a bin, and their time in that bin; the same of gaps still open; hazards; ln G at the bin's beginning.
ENDED, ENDED_S, OPEN, OPEN_S, HAZARD, INDEX = range(6)
POOL = CLASSES  # the class of all
PRIOR, WEAK_PRIOR = 8.0, 0.5  # events that a first guess is worth
FIRST_HAZARD = 1e-3  # per second: until gaps are known
_CLASS_STEP = math.log(4.0)  # a class is four times as busy as the one before


@shared
def bin_of(age_s: float) -> int:
    return min(BINS - 1, int(math.log(max(age_s, 1.0)) / _LOG_RATIO))


@shared
def begin_of(b: int) -> float:
    return RATIO**b if b > 0 else 0.0


@shared
def class_of(s: View, page: int) -> int:
    """By how often it signals, against the mean of all that do."""
    mean = (s.run[0].signals + 1.0) / len(s.page)
    relative = (s.page[page].all_signals + 0.5) / (mean + 0.5)
    return min(CLASSES - 1, max(0, math.floor(math.log(relative) / _CLASS_STEP + 0.5) + CLASSES // 2))


@shared
def note_gap(s: View, c: int, gap_s: float) -> None:
    """A gap ended. Its time in earlier bins follows from the number of those that ended later (`_exposure_s`)."""
    b = bin_of(gap_s)
    for x in (c, POOL):
        s.gaps[ENDED, x, b] += 1.0
        s.gaps[ENDED_S, x, b] += gap_s - begin_of(b)


@shared
def learn(s: View, now: float) -> None:
    """Hazards and indices from all gaps, ended and open."""
    s.gaps[OPEN] = 0.0
    s.gaps[OPEN_S] = 0.0
    for page in range(len(s.page)):
        p = s.page[page]
        if p.all_signals > 0:
            b = bin_of(now - p.last_signal_s)
            for x in (class_of(s, page), POOL):
                s.gaps[OPEN, x, b] += 1.0
                s.gaps[OPEN_S, x, b] += now - p.last_signal_s - begin_of(b)
    _learn_hazards(s, POOL)
    for c in range(CLASSES + 1):
        _learn_hazards(s, c)
        for b in range(BINS):
            s.gaps[INDEX, c, b] = math.log(_break_even_s(s, c, b))


@shared
def _learn_hazards(s: View, c: int) -> None:
    """Events / time, bin by bin. A first guess of the pool is the hazard of the bin before, of a class that of the pool."""
    longer = s.gaps[ENDED, c].sum() + s.gaps[OPEN, c].sum()
    guess, worth = FIRST_HAZARD, WEAK_PRIOR if c == POOL else PRIOR
    for b in range(BINS):
        longer -= s.gaps[ENDED, c, b] + s.gaps[OPEN, c, b]
        exposure_s = longer * (begin_of(b + 1) - begin_of(b)) + s.gaps[ENDED_S, c, b] + s.gaps[OPEN_S, c, b]
        if c != POOL:
            guess = s.gaps[HAZARD, POOL, b]
        s.gaps[HAZARD, c, b] = (s.gaps[ENDED, c, b] + worth) / (exposure_s + worth / guess)
        guess = s.gaps[HAZARD, c, b]


@shared
def _break_even_s(s: View, c: int, b: int) -> float:
    survival, integral_s, least_s = 1.0, 0.0, math.inf
    for later in range(b, BINS):
        hazard = s.gaps[HAZARD, c, later]
        left = survival * math.exp(-hazard * (begin_of(later + 1) - begin_of(later))) if later < BINS - 1 else 0.0
        integral_s += (survival - left) / hazard
        survival = left
        least_s = min(least_s, integral_s / max(1.0 - survival, 1e-12))
    return least_s


@shared
def break_even_s(s: View, c: int, age_s: float) -> float:
    """G(a), between the bins' beginnings by logarithms."""
    place = math.log(max(age_s, 1.0)) / _LOG_RATIO
    b = min(BINS - 2, int(place))
    part = min(1.0, place - b)
    return math.exp((1.0 - part) * s.gaps[INDEX, c, b] + part * s.gaps[INDEX, c, b + 1])
