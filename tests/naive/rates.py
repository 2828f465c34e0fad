"""The slow twins of the rate estimators and of the index for noisy signals: the equations as written, and simulated chance."""

import math

import numpy as np


def likeliest_rate(changed: list[float], unchanged: list[float]) -> float:
    """The root of the sum of t / (exp(D t) - 1) over changed intervals = the sum of t over unchanged intervals."""
    low, high = 1e-12, 1e3
    for _ in range(200):
        middle = math.sqrt(low * high)
        expected = sum(t * math.exp(-middle * t) / -math.expm1(-middle * t) for t in changed)
        low, high = (middle, high) if expected > sum(unchanged) else (low, middle)
    return low


def cycle(
    rng: np.random.Generator, end: float, beta: float, alpha: float, true: float, nu: float
) -> tuple[float, float]:
    """One cycle of a page that is crawled when t + beta x signals reaches `end`: its length, and how long the copy was fresh."""
    now, signals, stale_at = 0.0, 0, rng.exponential(1.0 / alpha)
    while True:
        gap = rng.exponential(1.0 / (true + nu))
        if now + gap + signals * beta >= end:  # before the next signal comes
            length = max(now, end - signals * beta)
            return length, min(length, stale_at)
        now += gap
        signals += 1
        if rng.random() < true / (true + nu):
            stale_at = min(stale_at, now)
        if now + signals * beta >= end:
            return now, min(now, stale_at)


def noisy_gain(n: int, t: float, alpha: float, true: float, nu: float, cycles: int, seed: int) -> float:
    """w - psi exp(-s), both as means over cycles."""
    log_odds = math.log((true + nu) / nu)
    beta = log_odds / alpha
    rng = np.random.default_rng(seed)
    found = np.array([cycle(rng, t + n * beta, beta, alpha, true, nu) for _ in range(cycles)])
    length, fresh = found.mean(axis=0)
    return float(fresh - length * math.exp(-alpha * t - n * log_odds))
