"""Crawl where the copy is stale and a new one will stay fresh longest, per access. Ours; none of the papers has it.

    V = mu stale (now - t_1)^kappa / (1 / R + k / W)

mu     accesses per second (popularity.py)
R      seconds: the price at which a crawl now breaks even with every plan to wait, by gaps between signals and by published points
       (ahead.py): in a burst it is small, the next update is near; before a certain update at t_n it is t_n - now.
W      seconds: half of the time that all pages in turn would take. A page that is not crawled now will be crawled later, and a crawl now
       gains what lies before: where crawls abound, pages with many accesses come first, and not those that last longest.
k      the probability that one of n signals since the last crawl was true, 1 - (1 - pi)^n: only a page known to be stale has its turn.
stale  how much of that a crawl gains, staleness being uncertain. With n signals since the last crawl 1 - exp(-s) (1 + o pi n + n pi),
       s = o pi n - n ln(1 - pi): pi = share of signals that are true, o = updates untold for each told (belief.py). Without any,
       y = o pi T, T = the chance that a signal would have come: the index for signals without false ones (ncis.py, n = 0), by the clock
       T instead of time, is that of `cgm`: stale = pi (1 + o) (1 - exp(-y) (1 + y)) / (o pi). A published point that passed
       without a signal adds its probability of an update, as one uncertain signal. Signals that were always right: 1 or nearly 0.
kappa  0: for binary freshness. More: pages stale for long, since t_1, come earlier, which a measure that falls with age may reward.

Without signals V is the index of `cgm`, its rate from crawls of which the k-th last counts age^k: pages are busy for a while, and then not.
Cost: O(1) an event; O(pages) a revision, after half as many slots and signals as there are pages, and then whenever there were a
quarter more. Source: docs/decisions/027-residual-life.md; R from Gittins 1979, `stale` from Busa-Fekete et al. 2025.
"""

import math

from trapline.jit import shared
from trapline.refresh.evidence import SAME_S
from trapline.refresh.layout import CERTAIN, NORMAL, View
from trapline.refresh.policies.ahead import by_gaps_s, by_points_s, has_points
from trapline.refresh.policies.belief import (
    CHANGES,
    COLUMNS,
    CRAWLS,
    SILENT,
    WATCHED_S,
    begin_anew,
    is_begun,
    learn_from_crawl,
    silent,
    told,
    true_share,
    untold_odds,
)
from trapline.refresh.policies.gaps import learn_gaps, note_gap
from trapline.refresh.policies.rates import access_rate, lost, rate_of
from trapline.refresh.policies.trust import kept_share, signal_rate
from trapline.refresh.policy import Policy, rule

OPTIONS = {"kappa": 0.0, "age": 0.95}
KAPPA, AGE = range(2)


@shared
def stale_share(s: View, page: int, now: float, rate: float, pi: float, o: float, all_false: float) -> float:
    n, hidden = s.page[page].signals, silent(s, page)
    if n == 0:
        known = pi * (1.0 + o) * lost(o * pi, told(s, page, now, rate))
        return 1.0 - (1.0 - known) * (1.0 - hidden * hidden)
    fresh = math.exp(-o * pi * n) * all_false * (1.0 - hidden)
    return max(0.0, 1.0 - fresh * (1.0 + (o + 1.0) * pi * n + hidden))


@shared
def own_rate(s: View, page: int) -> float:
    """Changes per second of a page without signals."""
    if not is_begun(s, page):
        return rate_of(s, 0.0, 0.0, 0.0)
    own = s.columns[page]
    return rate_of(s, own[CRAWLS], own[CHANGES], own[WATCHED_S])


@shared
def gained_s(s: View, lasting: float, known: float) -> float:
    """Until the copy is stale again or would have been crawled anyway, whichever comes first, both taken for Poisson."""
    return 1.0 / (1.0 / lasting + 2.0 * known * s.run[0].slots_per_s / len(s.page))


@rule
def value(s: View, page: int, now: float) -> float:
    p = s.page[page]
    mu, t = access_rate(s, page, now), now - p.crawled_s
    if p.level == NORMAL:
        worth = mu * lost(own_rate(s, page), t)
    else:
        pi, o, rate = true_share(s, page), untold_odds(s, page), signal_rate(s, page, now)
        lasting = by_gaps_s(s, page, now, rate, pi * (1.0 + o))
        if has_points(s, page):
            lasting = by_points_s(s, page, now, rate, pi * (1.0 + o), lasting)
        all_false = (1.0 - pi) ** p.signals
        worth = mu * gained_s(s, lasting, 1.0 - all_false) * stale_share(s, page, now, rate, pi, o, all_false)
    if s.option[KAPPA] == 0.0:
        return worth
    return worth * (now - p.first_signal_s if p.signals > 0 else 0.5 * t) ** s.option[KAPPA]


@rule
def on_signal(s: View, page: int, now: float) -> float:
    if s.page[page].all_signals > 0:
        note_gap(s, page, now)
    return 0.0


@rule
def on_point(s: View, page: int, now: float) -> float:
    """No signal came with it: it did not happen, or the signals missed it."""
    p = s.page[page]
    if now - p.last_signal_s > SAME_S and is_begun(s, page):
        o = untold_odds(s, page)
        point = s.point[p.point]
        likely = min(CERTAIN, kept_share(s, point.row) * point.p)
        likely *= o / (1.0 + o - likely)
        s.columns[page, SILENT] += likely * (1.0 - s.columns[page, SILENT])
    return 0.0


@rule
def on_crawl(s: View, page: int, now: float) -> float:
    if not is_begun(s, page):
        begin_anew(s, page)
    own, age = s.columns[page], s.option[AGE]
    if s.page[page].level == NORMAL:
        own[CRAWLS] = age * own[CRAWLS] + 1.0
        own[CHANGES] = age * own[CHANGES] + s.run[0].changed
        own[WATCHED_S] = age * own[WATCHED_S] + now - s.page[page].crawled_s
    else:
        learn_from_crawl(s, page, now, age)
    return 0.0


@rule
def on_revision(s: View, page: int, now: float) -> float:
    learn_gaps(s, now)
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
    columns=COLUMNS,
    options=OPTIONS,
)
