"""Many replays of one policy as a mean and an interval. Statistics only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

_SLICES = 400  # of Simpson's rule, of a smooth integrand


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, and by how much it may be off: the half width of the 95 % interval by Student's t. One value alone has none."""

    mean: float
    ci: float | None

    def __str__(self) -> str:
        return f"{self.mean:.3f}" if self.ci is None else f"{self.mean:.3f} ± {self.ci:.3f}"


def estimate(values: Sequence[float]) -> Estimate:
    """
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
    """The t that so large a share of Student's distribution lies within. By bisection; P(|T| < t) is the integral of
    cos^(freedom - 1) from 0 to atan(t / sqrt(freedom)), over that to pi / 2.

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
