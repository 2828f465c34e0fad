"""Chance by number: which sites and pages behave how is a hash of (seed, purpose, number), so that a test can compute it.

Not `trapline.rng`, which brings the compiler with it: a web's own process must be up in a moment.
"""

from collections.abc import Iterable

from xxhash import xxh3_64_intdigest

Shares = tuple[tuple[str, float], ...]
"""Names and the share of each; what is left over is nobody's."""


def draw(seed: int, purpose: str, number: int) -> float:
    """In [0, 1), in steps of 2^-53.

    >>> draw(1, "fault", 7) == draw(1, "fault", 7) != draw(2, "fault", 7)
    True
    """
    return (xxh3_64_intdigest(f"{seed} {purpose} {number}".encode()) >> 11) * 2.0**-53


def pick(shares: Iterable[tuple[str, float]], drawn: float) -> str:
    """The name in whose share the draw falls; "": in none.

    >>> [pick((("a", 0.25), ("b", 0.5)), drawn) for drawn in (0.2, 0.25, 0.75)]
    ['a', 'b', '']
    """
    for name, share in shares:
        if drawn < share:
            return name
        drawn -= share
    return ""
