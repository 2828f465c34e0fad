"""Crawls the page whose copy is stale and whose new copy will stay fresh the longest, weighted by accesses. This policy is
ours; none of the papers has it.

    V = mu stale (now - t_1)^kappa / (1 / R + k / W)

mu     accesses per second (refresh/core/evidence.py)
R      seconds: the price at which a crawl now breaks even with every plan to wait, from the gaps between signals and from
       published points (gaps.py). In a burst R is small, because the next update is near. Before a certain update at t_n it
       is t_n - now.
W      seconds: half of the time in which all pages are crawled once. A page that is not crawled now will be crawled later,
       and a crawl now gains only the time before that. So where crawls abound, pages with many accesses come first, not
       pages whose copies last longest.
k      the probability that one of the n signals since the last crawl was true, 1 - (1 - pi)^n: only a page that is known to
       be stale will be crawled in its turn.
stale  the share of that which a crawl gains, given the uncertainty whether the copy is stale. With n signals since the last
       crawl it is 1 - exp(-s) (1 + o pi n + n pi), s = o pi n - n ln(1 - pi); pi = share of signals that are true, o =
       unsignalled updates per signalled update (belief.py). Without signals it is pi (1 + o) (1 - exp(-y) (1 + y)) / (o pi),
       y = o pi T, T = the probability that a signal would have come. That is the index for signals of which none is false
       (ncis.py, n = 0); with T as the clock in place of time it is the index of `cgm`. A published point that passed without
       a signal adds its probability of an update, like one uncertain signal. If signals were always right, stale is 1 or
       nearly 0.
kappa  0: for binary freshness. More: pages that have been stale for long (since t_1) come earlier, which helps a measure
       that falls with age.

Without signals V is the index of `cgm`, as the mean over a belief about the change rate (rate_belief.py). Of the crawls that it
is learned from, the k-th last counts age^k, because pages are busy for a while and then quiet.
Cost: O(1) per event, O(pages) per revision. The first revision comes after half as many slots and signals as there are pages,
the others whenever the number of slots and signals has grown by a quarter.
Source: docs/decisions/027-residual-life.md and 066-rate-belief.md; R from Gittins 1979, `stale` from Busa-Fekete et al. 2025.
"""

import math

from trapline.compiled.jit import shared
from trapline.refresh.core.evidence import SAME_S
from trapline.refresh.core.layout import CERTAIN, NORMAL, PolicyView
from trapline.refresh.policies.belief import (
    COLUMNS,
    SILENT,
    begin_anew,
    is_begun,
    learn_from_crawl,
    signal_opportunity,
    silent,
    true_share,
    unsignalled_odds,
)
from trapline.refresh.policies.estimators import access_rate, lost
from trapline.refresh.policies.gaps import by_gaps_s, by_points_s, has_points, learn_gaps, note_gap
from trapline.refresh.policies.rate_belief import (
    changes_of,
    expected_gain_s,
    learn_prior_mean,
    learn_rate,
    seconds_of,
)
from trapline.refresh.policies.trust import kept_share, signal_rate
from trapline.refresh.policy import Policy, rule

OPTIONS = {"kappa": 0.0, "age": 0.95}
KAPPA, AGE = range(2)


@shared
def stale_share(s: PolicyView, page: int, now: float, rate: float, pi: float, o: float, all_false: float) -> float:
    """Return `stale`. `rate`: signals per second; `all_false`: the probability that all signals since the last crawl were false."""
    n, hidden = s.page[page].signals, silent(s, page)
    if n == 0:
        known = pi * (1.0 + o) * lost(o * pi, signal_opportunity(s, page, now, rate))
        return 1.0 - (1.0 - known) * (1.0 - hidden * hidden)
    fresh = math.exp(-o * pi * n) * all_false * (1.0 - hidden)
    return max(0.0, 1.0 - fresh * (1.0 + (o + 1.0) * pi * n + hidden))


@shared
def gained_s(s: PolicyView, lasting: float, known: float) -> float:
    """Return the seconds until the copy is stale again or would have been crawled anyway, whichever comes first; both as Poisson events."""
    return 1.0 / (1.0 / lasting + 2.0 * known * s.run[0].slots_per_s / len(s.page))


@rule
def value(s: PolicyView, page: int, now: float) -> float:
    """Return V."""
    p = s.page[page]
    mu, t = access_rate(s, page, now), now - p.crawled_s
    if p.level == NORMAL:
        gain = mu * expected_gain_s(changes_of(s, page), seconds_of(s, page), t)
    else:
        pi, o, rate = true_share(s, page), unsignalled_odds(s, page), signal_rate(s, page, now)
        lasting = by_gaps_s(s, page, now, rate, pi * (1.0 + o))
        if has_points(s, page):
            lasting = by_points_s(s, page, now, rate, pi * (1.0 + o), lasting)
        all_false = (1.0 - pi) ** float(
            p.signals
        )  # float: an integer power can raise errors, and a wheel then lacks the kernel
        gain = mu * gained_s(s, lasting, 1.0 - all_false) * stale_share(s, page, now, rate, pi, o, all_false)
    if s.option[KAPPA] == 0.0:
        return gain
    return gain * (now - p.first_signal_s if p.signals > 0 else 0.5 * t) ** s.option[KAPPA]


@rule
def on_signal(s: PolicyView, page: int, now: float) -> float:
    if s.page[page].all_signals > 0:
        note_gap(s, page, now)
    return 0.0


@rule
def on_point(s: PolicyView, page: int, now: float) -> float:
    """Update SILENT if no signal came with the point: there was no update, or no signal was sent for it."""
    p = s.page[page]
    if now - p.last_signal_s > SAME_S and is_begun(s, page):
        o = unsignalled_odds(s, page)
        point = s.point[p.point]
        likely = min(CERTAIN, kept_share(s, point.row) * point.p)
        likely *= o / (1.0 + o - likely)
        s.columns[page, SILENT] += likely * (1.0 - s.columns[page, SILENT])
    return 0.0


@rule
def on_crawl(s: PolicyView, page: int, now: float) -> float:
    if not is_begun(s, page):
        begin_anew(s, page)
    if s.page[page].level == NORMAL:
        learn_rate(s, page, now, s.option[AGE])
    else:
        learn_from_crawl(s, page, now, s.option[AGE])
    return 0.0


@rule
def on_revision(s: PolicyView, page: int, now: float) -> float:
    learn_gaps(s, now)
    learn_prior_mean(s)
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
