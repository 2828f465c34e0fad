"""The slow twin of the belief about a change rate: sums over a fine grid of rates, from the definitions."""

import math

import numpy as np

# Logarithms of the rate times b. Smaller rates add nothing to the means.
_LOGS = np.linspace(math.log(1e-13), math.log(1e4), 60_001)


def _grid(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Rates, and the probability of each by Gamma(a, b)."""
    log_weight = a * _LOGS - np.exp(_LOGS)  # times the rate, because the grid is even in its logarithm
    weight = np.exp(log_weight - log_weight.max())
    return np.exp(_LOGS) / b, weight / weight.sum()


def mean_and_variance(a: float, b: float, crawls: list[tuple[float, bool]]) -> tuple[float, float]:
    """Of the rate given crawls: seconds since the crawl before, and whether there was anything new."""
    rate, weight = _grid(a, b)
    for seconds, changed in crawls:
        weight = weight * (-np.expm1(-rate * seconds) if changed else np.exp(-rate * seconds))
    weight = weight / weight.sum()
    mean = float((weight * rate).sum())
    return mean, float((weight * (rate - mean) ** 2).sum())


def gain_s(a: float, b: float, t: float) -> float:
    """The mean of (1 / D) (1 - exp(-D t) (1 + D t))."""
    rate, weight = _grid(a, b)
    x = rate * t
    part = np.where(x < 1e-4, 0.5 * x * t, (1.0 - np.exp(-x) * (1.0 + x)) / rate)
    return float((weight * part).sum())
