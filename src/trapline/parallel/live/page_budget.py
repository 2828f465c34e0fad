"""The page budget of a crawl: a number of pages that several partitions share. Pure arithmetic; the coordinator sends
the resulting orders.

Laws, whatever fails, moves, dies or is requested twice:
- free + the quotas of all partitions = goal, and a partition never uses more than its quota. So the crawl stops exactly
  at the goal, as one process does.
- While the goal is not reached, a partition that could fetch a page now gets one within a few rounds. Free pages go
  first to partitions that can use them now, and pages that cannot be used now are taken back for partitions that can
  use them.
Whether a partition has pages to fetch must not depend on its quota. Otherwise a partition without a quota would not
know whether it has pages, and would take back, round after round, the page that another one needs.

About half of the free pages are given out at a time, so that a fast partition can get more while some are left.
"""

from collections.abc import Mapping, Set
from typing import NamedTuple


class Holding(NamedTuple):
    """The quota of a partition and its use, as the partition reports them."""

    used: int  # pages fetched, requested, or about to be requested
    quota: int
    has_pages: bool  # the partition knows pages that it could fetch or refetch, now or later
    is_ready: bool  # it could request a new page now, if its quota allowed that

    @property
    def unused(self) -> int:
        return self.quota - self.used

    @property
    def is_starving(self) -> bool:
        return self.has_pages and self.unused <= 0


class PageBudget:
    """The page goal of all partitions, and the quota that each of them was ordered to have."""

    def __init__(self, goal: int) -> None:
        self._goal = goal
        self._ordered: dict[int, int] = {}

    def orders(self, held: Mapping[int, Holding], silent: Set[int]) -> dict[int, int]:
        """Return the quotas that change: partition -> quota. `held`: the latest report of each partition. `silent`:
        partitions that have not answered since the last orders; how much of their quota they have used is not known."""
        known = {number: self._at_most(number, one) if number in silent else one for number, one in held.items()}
        changed = shared_out(self._goal, known)
        self._ordered |= changed
        return changed

    def _at_most(self, number: int, answered: Holding) -> Holding:
        most = max(answered.quota, self._ordered.get(number, 0))
        return Holding(most, most, has_pages=False, is_ready=False)


def shared_out(goal: int, held: Mapping[int, Holding]) -> dict[int, int]:
    """Return the quotas that change: partition -> quota. All partitions must have answered, and no earlier change may
    be under way.

    >>> new = Holding(0, 0, has_pages=True, is_ready=True)
    >>> shared_out(100, {0: new, 1: new})
    {0: 25, 1: 25}
    >>> shared_out(100, {0: Holding(50, 50, True, True), 1: Holding(10, 50, False, False)})
    {1: 10}
    """
    free = goal - sum(one.quota for one in held.values())
    return _given(free, held) if free > 0 else _taken_back(held)


def _given(free: int, held: Mapping[int, Holding]) -> dict[int, int]:
    hungry = {number: one for number, one in held.items() if one.has_pages}
    share = max(free // (2 * len(hungry)), 1) if hungry else 0
    orders = {}
    for number, one in sorted(hungry.items(), key=lambda item: not item[1].is_ready):
        if one.unused < share and free >= share:
            orders[number] = one.quota + share
            free -= share
    return orders


def _taken_back(held: Mapping[int, Holding]) -> dict[int, int]:
    """Take unused pages back for partitions that starve: all from partitions that have no pages, half from the others.
    A partition loses its last unused page only if a starving partition could request a page now; otherwise that page
    would go back and forth. A partition that has requested more pages meanwhile keeps those, and reports them."""
    starving = [one for one in held.values() if one.is_starving]
    least = 0 if any(one.is_ready for one in starving) else 1
    left = {
        number: one.used + (max(one.unused // 2, least) if one.has_pages else 0)
        for number, one in held.items()
        if one.unused > 0 and starving
    }
    return {number: quota for number, quota in left.items() if quota < held[number].quota}
