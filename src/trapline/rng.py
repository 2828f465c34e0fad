"""Counter-based random numbers: a hash instead of a generator, so that there is no state to keep and no order of draws."""

from trapline.compiled.jit import shared


@shared
def mixed(value: int) -> int:
    """Map a 32-bit integer to another one: a bijection without visible pattern.

    Source: Wellons, "Prospecting for Hash Functions" (2018), a pair of multipliers below 2^31: no product exceeds 64
    bits, so that plain Python and compiled code agree.
    """
    value ^= value >> 15
    value = (value * 0x2C1B3C6D) & 0xFFFFFFFF
    value ^= value >> 12
    value = (value * 0x297A2D39) & 0xFFFFFFFF
    return value ^ (value >> 15)


@shared
def uniform(seed: int, number: int) -> float:
    """Return draw number `number` of the stream `seed`, in [0, 1) in steps of 2^-32.

    Formula: mixed(mixed(number) XOR mixed(seed + 1)) / 2^32.

    >>> uniform(7, 1) == uniform(7, 1) != uniform(8, 1)
    True
    """
    return mixed(mixed(int(number) & 0xFFFFFFFF) ^ mixed((int(seed) + 1) & 0xFFFFFFFF)) / 4294967296.0
