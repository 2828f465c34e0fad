"""Noisy signals (NCIS) under Poisson changes: crawls the page for which a crawl gains most, given the number of signals since
its last crawl.

    V = mu (w - psi exp(-s)),  s = alpha t - n ln(1 - pi)

t = time since the last crawl, n = signals since then, pi = their precision, alpha = rate of changes without a signal; w and
psi are sums of incomplete gamma functions (below). All rates are learned: by trust.py, and for pages without signals from
crawls (estimators.py). For those pages V is the index of `cgm`. Cost: O(1) per event; with the exact form O(terms^2) per
value.
Source: Busa-Fekete, Zimmert, Gyorgy et al. WWW 2025.

form = cheap     for n >= 1: (mu / D) [1 - exp(-s) (1 + alpha t + n pi)], D = changes per second; for n = 0: the first term of
                 each sum. As fresh as with the sums, in half the time (docs/refresh.md).
       exact     the sums
"""

import math

from trapline.compiled.jit import shared
from trapline.refresh.core.layout import NORMAL, PolicyView
from trapline.refresh.policies.estimators import ESTIMATORS, access_rate, learn, learned_rate, lost
from trapline.refresh.policies.trust import missed_odds, precision, signal_rate
from trapline.refresh.policy import Policy, Way, rule

# ---- The sums: what a crawl of a page with noisy signals gains under Poisson changes, for one access per second.
#
# psi = 1/gamma sum of P(k + 1, gamma x_k)        expected time until the evidence is at least what it is now: the length of a cycle
# w   = sum of nu^k / (D + nu)^(k + 1) P(k + 1, (D + nu) x_k)                              the part of the cycle in which a copy is fresh
# V   = w - psi exp(-s),  s = alpha t + n ln(gamma / nu),  x_k = t + (n - k) beta,  beta = ln(gamma / nu) / alpha
#
# over k = 0, 1, ... while x_k >= 0; t = time since the last crawl, n = signals since then; D = changes, alpha = changes without a signal,
# nu = false signals, gamma = signals, each per second: D + nu = alpha + gamma. P = the regularised lower gamma function, here the
# probability of more than k events where x are expected. Cost: O(terms^2), O(1) where signals are mostly right. With more than MOST_TERMS
# terms the form for weak signals is used (`weak_s`).
# Source: Busa-Fekete, Zimmert, Gyorgy et al. WWW 2025.

MOST_TERMS = 64
SMALL = 1e-5


@shared
def more_than(k: int, x: float) -> float:
    """Return P(k + 1, x).

    >>> round(more_than(0, 1.0), 6), round(more_than(2, 3.0), 6), more_than(3, 1e9)
    (0.632121, 0.57681, 1.0)
    """
    if k == 0:
        return -math.expm1(-x)
    if x > k + 10.0 * math.sqrt(k) + 40.0:  # the rest is below 1e-16
        return 1.0
    term = math.exp(-x)
    total = term
    for j in range(1, k + 1):
        term *= x / j
        total += term
    return max(0.0, 1.0 - total)


@shared
def exact_s(n: int, t: float, alpha: float, nu: float, gamma: float) -> float:
    """Return V for one access per second, by the sums."""
    both, log_ratio = alpha + gamma, math.log(gamma / nu)
    if n == 0 and both * t < SMALL:
        return 0.5 * alpha * t * t  # the first term of the series: the difference below would be rounding error only
    beta = log_ratio / alpha
    terms = int(n + t / beta) + 1
    if terms > MOST_TERMS:
        return weak_s(n, t, alpha, nu, gamma)
    fresh_s, events, weight = 0.0, 0.0, 1.0 / both
    for k in range(terms):
        x = max(0.0, t + (n - k) * beta)
        fresh_s += weight * more_than(k, both * x)
        events += more_than(k, gamma * x)
        weight *= nu / both
    return fresh_s - events / gamma * math.exp(-alpha * t - n * log_ratio)


@shared
def cheap_s(n: int, t: float, alpha: float, nu: float, gamma: float) -> float:
    """Return V for one access per second, by the cheap form: (1 / D) [1 - exp(-s) (1 + alpha t + n pi)], pi = 1 - nu / gamma; without
    signals the first term of both sums.

    >>> pings_always_right = cheap_s(1, 0.0, 1e-9, 1e-9, 0.5)
    >>> round(pings_always_right, 3)
    2.0
    """
    both = alpha + gamma
    if n == 0:
        if both * t < SMALL:
            return 0.5 * alpha * t * t
        return -math.expm1(-both * t) / both + math.exp(-alpha * t) * math.expm1(-gamma * t) / gamma
    return weak_s(n, t, alpha, nu, gamma)


@shared
def weak_s(n: int, t: float, alpha: float, nu: float, gamma: float) -> float:
    """Return (1 / D) [1 - exp(-s) (1 + alpha t + n pi)], pi = 1 - nu / gamma. The less a signal says, the more terms the sums have, and
    the nearer this is: with more than 64 terms the difference is less than 0.5 % of 1 / D."""
    evidence = alpha * t + n * math.log(gamma / nu)
    return (1.0 - math.exp(-evidence) * (1.0 + alpha * t + n * (1.0 - nu / gamma))) / (alpha + gamma - nu)


# ---- ncis

FORM = 1  # index of the option `form`, after `estimator`
CHEAP, EXACT = range(2)


@rule
def index(s: PolicyView, page: int, now: float) -> float:
    """Return V."""
    p = s.page[page]
    mu, t = access_rate(s, page, now), now - p.crawled_s
    if p.level == NORMAL:
        return mu * lost(learned_rate(s, page, now, 0), t)
    pi, gamma = precision(s, page), signal_rate(s, page, now)
    alpha, nu = missed_odds(s, page) * pi * gamma, (1.0 - pi) * gamma
    if s.option[FORM] == EXACT:
        return mu * exact_s(p.signals, t, alpha, nu, gamma)
    return mu * cheap_s(p.signals, t, alpha, nu, gamma)


POLICY = Policy(
    "ncis",
    index,
    on_crawl=learn,
    options={"estimator": 0.0, "form": 0.0},
    ways={"estimator": ESTIMATORS, "form": (Way("cheap"), Way("exact"))},
)
