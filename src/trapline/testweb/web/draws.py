"""Random draws by number: the behaviour of sites and pages is a hash of (seed, purpose, number), so a test can compute it.

This module does not use `trapline.rng`, which would load the compiler: the server process must start quickly.
"""

from collections.abc import Iterable

from xxhash import xxh3_64_intdigest

Shares = tuple[tuple[str, float], ...]
"""Names, each with its share. The shares may add up to less than 1; the remainder has no name."""


def draw(seed: int, purpose: str, number: int) -> float:
    """Return a number in [0, 1), in steps of 2^-53.

    >>> draw(1, "fault", 7) == draw(1, "fault", 7) != draw(2, "fault", 7)
    True
    """
    return (xxh3_64_intdigest(f"{seed} {purpose} {number}".encode()) >> 11) * 2.0**-53


def pick(shares: Iterable[tuple[str, float]], drawn: float) -> str:
    """Return the name whose share the draw falls into; "" if it falls into none.

    >>> [pick((("a", 0.25), ("b", 0.5)), drawn) for drawn in (0.2, 0.25, 0.75)]
    ['a', 'b', '']
    """
    for name, share in shares:
        if drawn < share:
            return name
        drawn -= share
    return ""
