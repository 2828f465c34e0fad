"""Noisy signals under Poisson changes: the page whose copy is worth most to renew, given how many signals came since the last crawl.

    V = mu (w - psi exp(-s)),  s = alpha t - n ln(1 - pi)

t = time since the last crawl, n = signals since then, pi = their precision, alpha = rate of changes without signal; w and psi are sums of
incomplete gamma functions (noisy.py). All rates are learned (trust.py), of pages without signals from crawls (estimators.py), where V is
the index of `cgm`. Cost: O(1) an event; exact, O(terms^2) a value.
Source: Busa-Fekete, Zimmert, Gyorgy et al. WWW 2025.

form = cheap     for n >= 1 (mu / D) [1 - exp(-s) (1 + alpha t + n pi)], D = changes per second; for none the first term of each sum:
                 as fresh as by the sums, in half the time (docs/refresh.md)
       exact     the sums
"""

from trapline.refresh.layout import NORMAL, View
from trapline.refresh.policies.estimators import ESTIMATORS, learn, learned_rate
from trapline.refresh.policies.noisy import cheap_s, exact_s
from trapline.refresh.policies.rates import access_rate, lost
from trapline.refresh.policies.trust import missed_odds, precision, signal_rate
from trapline.refresh.policy import Policy, Way, rule

FORM = 1  # the option behind the estimator
CHEAP, EXACT = range(2)


@rule
def index(s: View, page: int, now: float) -> float:
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
