"""Crawl where the copy is stale and a new one will stay fresh longest, per access. Ours; none of the papers has it.

    V = mu R stale (now - t_1)^kappa

mu     accesses per second (popularity.py)
R      seconds: the price at which a crawl now breaks even with every plan to wait. Of a page with signals G(a), a = time
since the last update known
       (gaps.py): in a burst R is small, the next update is near. With published points the least over them of the fresh
       time until just after the point, divided by the probability that it ends by then; a point that is certain, at t_n: R = t_n - now.
stale  1 - exp(-s) (1 + alpha t + n pi): how much of R a crawl gains if staleness is uncertain. s = alpha t - n ln(1 - pi)
+ atoms; t = time since the
       last crawl, n = signals since then, pi = their precision, alpha = the rate of updates that nobody signals
       (trust.py); atoms: what published points that passed without a signal add. Signals that were always right: 1.
kappa  0: for binary freshness. More: pages stale for long, since t_1, come earlier, which a measure that falls with age may reward.

Without signals V is the index of `cgm`, its rate from crawls of which the k-th last counts age^k: pages are busy for a while, and then not.
Cost: O(1) an event; O(pages) a revision, after half as many slots and signals as there are pages, and then whenever there were a
quarter more.
Source: spec of this project; G from Gittins 1979, `stale` from Busa-Fekete et al. 2025 (ncis.py).
"""

import math

from trapline.jit import shared
from trapline.refresh.evidence import SAME_S
from trapline.refresh.layout import NORMAL, SUPER, View
from trapline.refresh.policies.gaps import break_even_s, class_of, learn, note_gap
from trapline.refresh.policies.rates import access_rate, lost, rate_of
from trapline.refresh.policies.trust import kept_share, missed_odds, precision, signal_rate, unannounced_share
from trapline.refresh.policy import Policy, rule

OPTIONS = {"kappa": 0.0, "age": 0.95}
KAPPA, AGE = range(2)
# Columns: as above; the class of its gaps; and of its crawls, aged: how many, with something new, the time between them.
ATOMS, CLASS, CRAWLS, CHANGES, WATCHED_S = range(5)
AHEAD = 6  # published points looked at
_CERTAIN = 0.9999


@shared
def lasting_s(s: View, page: int, now: float) -> float:
    """R of a page with signals."""
    p = s.page[page]
    own_s = break_even_s(s, int(s.columns[page, CLASS]), now - p.last_signal_s)
    if p.level != SUPER:
        return own_s
    hazard, keeps = unannounced_share(s, page) / own_s, kept_share(s, page)
    least_s, survival, integral_s, since = 1.0 / hazard, 1.0, 0.0, now
    for i in range(p.point, min(p.point_end, p.point + AHEAD)):
        at_s = max(s.point[i].at_s, now)
        left = survival * math.exp(-hazard * (at_s - since))
        integral_s += (survival - left) / hazard
        survival, since = left * (1.0 - min(_CERTAIN, keeps * s.point[i].p)), at_s
        least_s = min(least_s, integral_s / max(1.0 - survival, 1e-12))
    return least_s


@rule
def value(s: View, page: int, now: float) -> float:
    p = s.page[page]
    mu, t = access_rate(s, page, now), now - p.crawled_s
    if p.level == NORMAL:
        own = s.columns[page]
        return mu * lost(rate_of(s, own[CRAWLS], own[CHANGES], own[WATCHED_S]), t) * (0.5 * t) ** s.option[KAPPA]
    pi = precision(s, page)
    alpha = missed_odds(s, page) * pi * signal_rate(s, page, now)
    evidence = alpha * t - p.signals * math.log(1.0 - pi) + s.columns[page, ATOMS]
    stale = max(0.0, 1.0 - math.exp(-evidence) * (1.0 + alpha * t + p.signals * pi))
    since_s = now - p.first_signal_s if p.signals > 0 else 0.5 * t
    return mu * lasting_s(s, page, now) * stale * since_s ** s.option[KAPPA]


@rule
def on_signal(s: View, page: int, now: float) -> float:
    p = s.page[page]
    if p.all_signals > 0:
        note_gap(s, int(s.columns[page, CLASS]), now - p.last_signal_s)
    s.columns[page, CLASS] = class_of(s, page)
    return 0.0


@rule
def on_point(s: View, page: int, now: float) -> float:
    """No signal came with it: it did not happen, or the signals missed it."""
    p = s.page[page]
    if now - p.last_signal_s > SAME_S:
        unsignalled = missed_odds(s, page) / (1.0 + missed_odds(s, page))
        likely = min(_CERTAIN, kept_share(s, page) * s.point[p.point].p)
        likely *= unsignalled / (1.0 - likely * (1.0 - unsignalled))
        s.columns[page, ATOMS] -= math.log(1.0 - likely)
    return 0.0


@rule
def on_crawl(s: View, page: int, now: float) -> float:
    own, age = s.columns[page], s.option[AGE]
    own[ATOMS] = 0.0
    own[CRAWLS] = age * own[CRAWLS] + 1.0
    own[CHANGES] = age * own[CHANGES] + s.run[0].changed
    own[WATCHED_S] = age * own[WATCHED_S] + now - s.page[page].crawled_s
    return 0.0


@rule
def on_revision(s: View, page: int, now: float) -> float:
    for i in range(len(s.page)):
        s.columns[i, CLASS] = class_of(s, i)
    learn(s, now)
    return 0.0


POLICY = Policy(
    "residual-life",
    value,
    on_signal=on_signal,
    on_point=on_point,
    on_crawl=on_crawl,
    on_revision=on_revision,
    revision=0.5,
    growth=0.25,
    columns=("atoms", "class", "aged crawls", "aged changes", "aged seconds"),
    options=OPTIONS,
)
