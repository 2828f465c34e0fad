"""How long a new copy of a page with signals stays fresh, by its gaps and by what its provider published. Not a policy.

    R = inf over b of  (integral of S from now to b) / (1 - S(b)),   S = survival of the copy

the price at which a crawl now breaks even with every plan to wait, in seconds. Without published points R = G / (r pi (1 + o)): G by the
age of the last signal in mean gaps (gaps.py), r = signals per second, pi and o as in belief.py. With points, S falls between them by
the hazard of gaps times the share u of signals that came without a point, and at each point by its probability q. Plans end just after
a point, or at the end of the gap (M), as if nothing were published behind the points looked at; and one can always go by gaps
alone, R = G / (r pi (1 + o) u).

q is what Bayes says of a point, wrong ones coming at random times: with b = published probability x share of promises kept (trust.py)
and h = hazard of gaps at that moment, relative to its mean, q / (1 - q) = h b / (1 - b). So points believed in part say when, and
gaps say whether: the more points are wrong, the nearer is R to what gaps alone say. b = 1: q = 1, and R = t_n - now. b = 0: no point.

No plan ends before the next slot: nobody can wait for less. Without this a wrong point just ahead would take all value from a page.
"""

import math

from trapline.jit import shared
from trapline.refresh.layout import CERTAIN, SUPER, View
from trapline.refresh.policies.gaps import age_of, break_even, expected_signals, hazard_at, mean_rest
from trapline.refresh.policies.trust import kept_share, unannounced_share

AHEAD = 6  # published points looked at behind the next slot,
MOST = 32  # and in all


@shared
def chance_of(s: View, believed: float, age: float) -> float:
    """q"""
    believed = min(1.0, believed)  # what was published may be less than what is kept
    odds = hazard_at(s, age) * believed
    return min(CERTAIN, odds / max(1e-12, 1.0 - believed + odds))


@shared
def has_points(s: View, page: int) -> bool:
    """Else R is `by_gaps_s`. Asked by whoever wants R: within one function the long way would slow down the short one, which most go."""
    p = s.page[page]
    return p.level == SUPER and p.point < p.point_end


@shared
def by_gaps_s(s: View, page: int, now: float, r: float, load: float) -> float:
    """R without published points. `r`: signals per second, `load`: pi (1 + o), updates for each signal."""
    return break_even(s, age_of(s, page, now, r)) / (r * load)


@shared
def by_points_s(s: View, page: int, now: float, r: float, load: float, gaps_s: float) -> float:
    """R with them; `gaps_s`: without."""
    p, age, unannounced = s.page[page], age_of(s, page, now, r), unannounced_share(s, page)
    slot_s, share = now + 1.0 / s.run[0].slots_per_s, load * unannounced
    least_s, survival, integral_s, since_s, before = math.inf, 1.0, 0.0, now, expected_signals(s, age)
    looked = 0
    for i in range(p.point, min(p.point_end, p.point + MOST)):
        at_s = max(s.point[i].at_s, now)
        if since_s < slot_s <= at_s:  # the plan to wait for the next slot
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
    return min(gaps_s / unannounced, least_s, integral_s + survival * mean_rest(s, age) / (r * load))
