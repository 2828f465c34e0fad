"""The mean of repeated measurements, and its confidence interval. It knows nothing of what was measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

_SLICES = 400  # number of slices in Simpson's rule; enough for a smooth integrand


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and the half width of its 95 % confidence interval by Student's t. A single value has no interval."""

    mean: float
    ci: float | None

    @property
    def is_above_zero(self) -> bool:
        """Whether the mean is positive and the interval does not contain 0. A single value shows nothing.

        >>> Estimate(0.3, 0.2).is_above_zero, Estimate(0.1, 0.2).is_above_zero, Estimate(0.3, None).is_above_zero
        (True, False, False)
        """
        return self.ci is not None and self.mean > self.ci

    def __str__(self) -> str:
        return f"{self.mean:.3f}" if self.ci is None else f"{self.mean:.3f} ± {self.ci:.3f}"


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of the values and its confidence interval.

    >>> str(estimate([0.5, 0.6, 0.7]))
    '0.600 ± 0.248'
    """
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return Estimate(mean, None)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return Estimate(mean, student_t(n - 1) * deviation / math.sqrt(n))


@cache
def student_t(freedom: int, confidence: float = 0.95) -> float:
    """Return the t with P(|T| < t) = confidence for Student's distribution, found by bisection.

    P(|T| < t) is the integral of cos^(freedom - 1) from 0 to atan(t / sqrt(freedom)), divided by the integral to pi / 2.

    >>> round(student_t(4), 3), round(student_t(1), 2)
    (2.776, 12.71)
    """
    whole = _cosine_integral(math.pi / 2, freedom - 1)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _cosine_integral(middle, freedom - 1) < confidence * whole else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _cosine_integral(to: float, power: int) -> float:
    step = to / _SLICES
    heights = [max(0.0, math.cos(i * step)) ** power for i in range(_SLICES + 1)]
    return (heights[0] + heights[-1] + 4 * math.fsum(heights[1:-1:2]) + 2 * math.fsum(heights[2:-1:2])) * step / 3
