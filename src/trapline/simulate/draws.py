"""Random numbers of given distributions, the same bits on every machine.

It knows nothing of servers. `numpy.log` and `numpy.exp` differ in the last bit between processors; here both are made
of sums, products, quotients and roots, which do not (graph/exact.py says more). Every number is a hash of (seed,
purpose, index), so that a model with one parameter changed keeps its other draws.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from trapline.graph.exact import key_of
from trapline.graph.generate_kernels import uniforms
from trapline.jit import ready

Floats = NDArray[np.float64]

_BLOCK = 1 << 15  # numbers at a time: what a step leaves is still in the processor's cache for the next
_LN2 = 0.6931471805599453
_ROOT_HALF = 0.7071067811865476
_LOG_SERIES = (1 / 13, 1 / 11, 1 / 9, 1 / 7, 1 / 5, 1 / 3, 1.0)
_EXP_SERIES = tuple(1 / math.factorial(n) for n in range(11, -1, -1))


def uniform(seed: int, purpose: str, count: int) -> Floats:
    """Evenly over (0, 1), both ends excluded."""
    ready()
    out = np.empty(count)
    uniforms(key_of(seed, purpose), out)
    out += 2.0**-33  # half a step: `uniforms` gives multiples of 2^-32, and 0 has no logarithm
    return out


def normal(seed: int, purpose: str, count: int) -> Floats:
    return normal_quantile(uniform(seed, purpose, count))


def exp(values: Floats) -> Floats:
    return _by_block(_exp, values)


def log(values: Floats) -> Floats:
    return _by_block(_log, values)


def normal_quantile(shares: Floats) -> Floats:
    """The value that a standard normal variable is under with this probability.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.2.23. Error at most 4.5e-4.
    """
    return _by_block(_normal_quantile, shares)


def _by_block(function: Callable[[Floats], Floats], values: Floats) -> Floats:
    out = np.empty_like(values)
    for first in range(0, len(values), _BLOCK):
        out[first : first + _BLOCK] = function(values[first : first + _BLOCK])
    return out


def _normal_quantile(shares: Floats) -> Floats:
    t = np.sqrt(-2.0 * _log(np.minimum(shares, 1.0 - shares)))
    above = _series((0.010328, 0.802853, 2.515517), t)
    below = _series((0.001308, 0.189269, 1.432788, 1.0), t)
    return np.where(shares < 0.5, -1.0, 1.0) * (t - above / below)


def _log(values: Floats) -> Floats:
    mantissa, exponent = np.frexp(values)
    s = (mantissa - _ROOT_HALF) / (mantissa + _ROOT_HALF)  # ln m = ln root + 2 artanh s
    return (exponent - 0.5) * _LN2 + 2.0 * s * _series(_LOG_SERIES, s * s)


def _exp(values: Floats) -> Floats:
    doublings = np.rint(values / _LN2)
    return np.ldexp(_series(_EXP_SERIES, values - doublings * _LN2), doublings.astype(np.int32))


def _series(coefficients: tuple[float, ...], x: Floats) -> Floats:
    """A polynomial, highest power first."""
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= x
        total += coefficient
    return total
