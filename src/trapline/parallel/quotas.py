"""A goal of pages that several partitions share: how many of them each may have. Pure arithmetic; the coordinator sends what comes of it.

A partition never has more pages than its quota, those asked for included, and the quotas together are never more than the goal: so the
crawl stops at the page, as one process does. What is free goes out by halves, so that a fast partition comes back for more while
there is some; when all is out and somebody has nothing left, those that have much give half of it back.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Holding(NamedTuple):
    """What a partition says that it has."""

    used: int  # pages had, asked for, or about to be
    quota: int
    idle: bool  # it has nothing to fetch

    @property
    def rest(self) -> int:
        return self.quota - self.used

    @property
    def is_starving(self) -> bool:
        return not self.idle and self.rest <= 0


def shared_out(goal: int, held: Mapping[int, Holding]) -> dict[int, int]:
    """The quotas that change, by partition. All have answered, and no earlier change is under way.

    >>> shared_out(100, {0: Holding(0, 0, False), 1: Holding(0, 0, False)})
    {0: 25, 1: 25}
    >>> shared_out(100, {0: Holding(50, 50, False), 1: Holding(10, 50, True)})
    {1: 10}
    """
    free = goal - sum(one.quota for one in held.values())
    return _given(free, held) if free > 0 else _taken_back(held)


def _given(free: int, held: Mapping[int, Holding]) -> dict[int, int]:
    hungry = {number: one for number, one in held.items() if not one.idle}
    share = max(free // (2 * len(hungry)), 1) if hungry else 0
    orders = {}
    for number, one in hungry.items():
        if one.rest < share and free >= share:
            orders[number] = one.quota + share
            free -= share
    return orders


def _taken_back(held: Mapping[int, Holding]) -> dict[int, int]:
    """It may have asked for more pages meanwhile: then it keeps those, and says so."""
    if not any(one.is_starving for one in held.values()):
        return {}
    left = {number: one.used + (0 if one.idle else one.rest // 2) for number, one in held.items() if one.rest > 0}
    return {number: quota for number, quota in left.items() if quota < held[number].quota}
