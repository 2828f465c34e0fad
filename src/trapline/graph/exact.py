"""Arithmetic that gives the same bits on every machine: what generated webs are drawn with.

`pow` and `log` differ in the last bit between processors and libraries; a square root, a product and integer
arithmetic do not. Nothing here overflows 64 bits, so that plain Python and compiled code agree.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from trapline.jit import helper

_FRACTION_BITS = 20
_ROOTS = 26


@helper("int64(int64)")
def mix(value: int) -> int:
    """A bijection of 32-bit integers without visible pattern.

    Source: Wellons, "Prospecting for Hash Functions" (2018), a pair of multipliers below 2^31.
    """
    value ^= value >> 15
    value = (value * 0x2C1B3C6D) & 0xFFFFFFFF
    value ^= value >> 12
    value = (value * 0x297A2D39) & 0xFFFFFFFF
    return value ^ (value >> 15)


@helper("int64(int64, int64)")
def stream(key: int, index: int) -> int:
    """The random stream of one page or site, for `uniform`."""
    return mix(mix(index & 0xFFFFFFFF) ^ key)


@helper("float64(int64, int64)")
def uniform(stream_: int, draw: int) -> float:
    """Number `draw` of a stream, in [0, 1)."""
    # The multiplier (2^32 / golden ratio) spreads successive draws over all bits.
    return mix(stream_ ^ ((draw * 0x9E3779B1) & 0xFFFFFFFF)) / 4294967296.0


@helper("float64(int64)")
def exponential(stream_: int) -> float:
    """An exponentially distributed number of mean 1, by comparisons alone; it takes a whole stream.

    Source: von Neumann, "Various techniques used in connection with random digits" (1951): the first of a falling run
    of uniform numbers, accepted if the run has odd length; each failure adds 1.
    """
    whole, draw = 0.0, 0
    while True:
        first = last = uniform(stream_, draw)
        length = 1
        draw += 1
        while True:
            number = uniform(stream_, draw)
            draw += 1
            if number >= last:
                break
            last = number
            length += 1
        if length & 1:
            return whole + first
        whole += 1.0


def key_of(seed: int, purpose: str) -> int:
    """A key for `stream`, 32 bits; each purpose has its own."""
    digest = hashlib.sha256(f"{seed} {purpose}".encode()).digest()
    return int.from_bytes(digest[:4], "little")


def power(base: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """base ** exponent for base in [0, 1], exponent >= 0 in steps of 2^-20."""
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


def logarithm(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln of positive numbers up to 1e6, to 1e-6: 2^26 (x^(2^-26) - 1)."""
    root = values
    for _ in range(_ROOTS):
        root = np.sqrt(root)
    return (root - 1.0) * 2.0**_ROOTS


def exponential_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """e^x for |x| <= 20, to 1e-5: (1 + x/2^26)^(2^26)."""
    result = 1.0 + values / 2.0**_ROOTS
    for _ in range(_ROOTS):
        result = result * result
    return result
