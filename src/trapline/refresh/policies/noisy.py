"""What a crawl of a page gains whose signals are noisy, under Poisson changes: the sums of `ncis`, for one access per second. Not a policy.

    psi = 1/gamma sum of P(k + 1, gamma x_k)        time until the evidence is what it is now, at least: the length of a cycle
    w   = sum of nu^k / (D + nu)^(k + 1) P(k + 1, (D + nu) x_k)                              the part of it in which a copy is fresh
    V   = w - psi exp(-s),  s = alpha t + n ln(gamma / nu),  x_k = t + (n - k) beta,  beta = ln(gamma / nu) / alpha

over k = 0, 1, ... while x_k >= 0; t = time since the last crawl, n = signals since then, D = changes, alpha = those that nobody signals,
nu = false signals, gamma = signals, each per second: D + nu = alpha + gamma. P = the regularised lower gamma function, here the chance of
more than k events where x are expected. Cost: O(terms^2), O(1) where signals are mostly right; with more than MOST_TERMS terms the
cheap form is taken.
Source: Busa-Fekete, Zimmert, Gyorgy et al. WWW 2025.
"""

import math

from trapline.jit import shared

MOST_TERMS = 64
SMALL = 1e-5


@shared
def more_than(k: int, x: float) -> float:
    """P(k + 1, x)

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
    """V"""
    both, told = alpha + gamma, math.log(gamma / nu)
    if n == 0 and both * t < SMALL:
        return 0.5 * alpha * t * t  # the first term of the series: the difference below would be rounding only
    beta = told / alpha
    terms = int(n + t / beta) + 1
    if terms > MOST_TERMS:
        return cheap_s(n, t, alpha, nu, gamma)
    fresh_s, events, weight = 0.0, 0.0, 1.0 / both
    for k in range(terms):
        x = max(0.0, t + (n - k) * beta)
        fresh_s += weight * more_than(k, both * x)
        events += more_than(k, gamma * x)
        weight *= nu / both
    return fresh_s - events / gamma * math.exp(-alpha * t - n * told)


@shared
def cheap_s(n: int, t: float, alpha: float, nu: float, gamma: float) -> float:
    """With signals (1 / D) [1 - exp(-s) (1 + alpha t + n pi)], pi = 1 - nu / gamma; without any the first term of both sums.

    >>> pings_always_right = cheap_s(1, 0.0, 1e-9, 1e-9, 0.5)
    >>> round(pings_always_right, 3)
    2.0
    """
    both = alpha + gamma
    if n == 0:
        if both * t < SMALL:
            return 0.5 * alpha * t * t
        return -math.expm1(-both * t) / both + math.exp(-alpha * t) * math.expm1(-gamma * t) / gamma
    evidence = alpha * t + n * math.log(gamma / nu)
    return (1.0 - math.exp(-evidence) * (1.0 + alpha * t + n * (1.0 - nu / gamma))) / (both - nu)
