"""Arithmetic and random numbers that give the same bits on every machine. Generated webs and servers are drawn with them.

`pow`, `log` and `exp` differ in the last bit between processors and libraries; sums, products, quotients, square roots
and integer arithmetic do not. Nothing here overflows 64 bits, so plain Python and compiled code agree. Every random
number is a hash of (seed, purpose, index), so changing one parameter of a model leaves its other draws as they were.
"""

import hashlib
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.jit import helper, kernel
from trapline.rng import mixed

Floats = NDArray[np.float64]

_FRACTION_BITS = 20
_BLOCK = 1 << 15  # numbers at a time: few enough that the processor's cache still holds them for the next step
_LN2 = 0.6931471805599453
_ROOT_HALF = 0.7071067811865476
_LOG_SERIES = (1 / 13, 1 / 11, 1 / 9, 1 / 7, 1 / 5, 1 / 3, 1.0)
_EXP_SERIES = tuple(1 / math.factorial(n) for n in range(11, -1, -1))


@helper("int64(int64, int64)")
def stream(key: int, index: int) -> int:
    """Return the random stream of one page or site, for `number_in`."""
    return mixed(mixed(index & 0xFFFFFFFF) ^ key)


@helper("float64(int64, int64)")
def number_in(stream_: int, draw: int) -> float:
    """Return number `draw` of a stream, in [0, 1)."""
    # The multiplier (2^32 / golden ratio) spreads successive draws over all bits.
    return mixed(stream_ ^ ((draw * 0x9E3779B1) & 0xFFFFFFFF)) / 4294967296.0


@helper("float64(int64)")
def exponential(stream_: int) -> float:
    """Return an exponentially distributed number of mean 1, by comparisons alone; it uses up a whole stream.

    Source: von Neumann, "Various techniques used in connection with random digits" (1951): take the first of a falling
    run of uniform numbers, accept it if the run has odd length; each failure adds 1.
    """
    whole, draw = 0.0, 0
    while True:
        first = last = number_in(stream_, draw)
        length = 1
        draw += 1
        while True:
            number = number_in(stream_, draw)
            draw += 1
            if number >= last:
                break
            last = number
            length += 1
        if length & 1:
            return whole + first
        whole += 1.0


def key_of(seed: int, purpose: str) -> int:
    """Return a key for `stream`, of 32 bits; each purpose has its own."""
    digest = hashlib.sha256(f"{seed} {purpose}".encode()).digest()
    return int.from_bytes(digest[:4], "little")


@kernel("void(int64, float64[::1])")
def uniforms(key: int, out: Floats) -> None:
    """One number for each index."""
    for index in range(len(out)):
        out[index] = number_in(stream(key, index), 0)


def drawn(seed: int, purpose: str, count: int) -> Floats:
    """Return `count` numbers uniform over [0, 1), in steps of 2^-32."""
    out = np.empty(count)
    uniforms(key_of(seed, purpose), out)
    return out


def normal(seed: int, purpose: str, count: int) -> Floats:
    """Return `count` standard normal numbers."""
    return normal_quantile(drawn(seed, purpose, count) + 2.0**-33)  # half a step: 0 has no quantile


# ---- functions


def power(base: Floats, exponent: float) -> Floats:
    """Return base ** exponent for base in [0, 1] and exponent >= 0, rounded to steps of 2^-20."""
    whole, fraction = divmod(round(exponent * 2**_FRACTION_BITS), 2**_FRACTION_BITS)
    result = np.ones_like(base)
    for _ in range(whole):
        result *= base
    root = base
    for bit in reversed(range(_FRACTION_BITS)):
        root = np.sqrt(root)
        if fraction >> bit & 1:
            result *= root
    return result


def exp(values: Floats) -> Floats:
    return _by_block(_exp, values)


def log(values: Floats) -> Floats:
    return _by_block(_log, values)


def normal_quantile(shares: Floats) -> Floats:
    """Return the quantiles of the standard normal distribution for `shares`, in (0, 1); relative error 1e-9."""
    return _by_block(_normal_quantile, shares)


def _by_block(function: Callable[[Floats], Floats], values: Floats) -> Floats:
    out = np.empty_like(values)
    for first in range(0, len(values), _BLOCK):
        out[first : first + _BLOCK] = function(values[first : first + _BLOCK])
    return out


def _log(values: Floats) -> Floats:
    mantissa, exponent = np.frexp(values)
    s = (mantissa - _ROOT_HALF) / (mantissa + _ROOT_HALF)  # ln m = ln root + 2 artanh s
    return (exponent - 0.5) * _LN2 + 2.0 * s * _series(_LOG_SERIES, s * s)


def _exp(values: Floats) -> Floats:
    doublings = np.rint(values / _LN2)
    return np.ldexp(_series(_EXP_SERIES, values - doublings * _LN2), doublings.astype(np.int32))


def _normal_quantile(shares: Floats) -> Floats:
    tail = np.minimum(shares, 1.0 - shares)
    far = np.sqrt(-2.0 * _log(np.minimum(tail, _FAR_FROM)))
    low = _series(_FAR, far) / _series(_FAR_BELOW, far)
    middle = shares - 0.5
    square = middle * middle
    near = middle * _series(_NEAR, square) / _series(_NEAR_BELOW, square)
    return np.where(tail < _FAR_FROM, np.where(shares < 0.5, low, -low), near)


def _series(coefficients: tuple[float, ...], x: Floats) -> Floats:
    """Evaluate a polynomial; the coefficient of the highest power comes first."""
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= x
        total += coefficient
    return total


# Peter J. Acklam, "An algorithm for computing the inverse normal cumulative distribution function" (2003).
_FAR_FROM = 0.02425
_NEAR = (
    -3.969683028665376e01,
    2.209460984245205e02,
    -2.759285104469687e02,
    1.383577518672690e02,
    -3.066479806614716e01,
    2.506628277459239e00,
)
_NEAR_BELOW = (
    -5.447609879822406e01,
    1.615858368580409e02,
    -1.556989798598866e02,
    6.680131188771972e01,
    -1.328068155288572e01,
    1.0,
)
_FAR = (
    -7.784894002430293e-03,
    -3.223964580411365e-01,
    -2.400758277161838e00,
    -2.549732539343734e00,
    4.374664141464968e00,
    2.938163982698783e00,
)
_FAR_BELOW = (7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00, 1.0)
