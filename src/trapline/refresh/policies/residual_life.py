"""Crawl where a fresh copy will stay fresh longest, per access: evidence with learned trust, and the residual life of gaps.

    V = mu G(a) stale(s) (now - t_1)^kappa

mu = accesses per second (popularity.py); a = time since the last update known; G = the break-even price of waiting (gaps.py).
"""

import math

from trapline.refresh.layout import NORMAL, View
from trapline.refresh.policies.gaps import break_even_s, class_of, learn, note_gap
from trapline.refresh.policies.rates import access_rate, change_rate
from trapline.refresh.policy import Policy, rule

OPTIONS = {"kappa": 0.0}
KAPPA = 0


@rule
def value(s: View, page: int, now: float) -> float:
    p = s.page[page]
    mu = access_rate(s, page, now)
    if p.level == NORMAL:
        rate = change_rate(s, page)
        x = rate * (now - p.crawled_s)
        return mu / rate * (1.0 - math.exp(-x) * (1.0 + x)) * (0.5 * (now - p.crawled_s)) ** s.option[KAPPA]
    if p.signals == 0:
        return 0.0
    g = break_even_s(s, class_of(s, page, now), now - p.last_signal_s)
    return mu * g * (now - p.first_signal_s) ** s.option[KAPPA]


@rule
def on_signal(s: View, page: int, now: float) -> float:
    p = s.page[page]
    if p.all_signals > 0:
        note_gap(s, class_of(s, page, now), now - p.last_signal_s)
    return 0.0


@rule
def on_revision(s: View, page: int, now: float) -> float:
    learn(s, now)
    return 0.0


POLICY = Policy("residual-life", value, on_signal=on_signal, on_revision=on_revision, revision=0.25, options=OPTIONS)
