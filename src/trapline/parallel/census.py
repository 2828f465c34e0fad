"""Is the crawl over? Counted, not timed: every partition is idle and every parcel that was made has arrived, in two counts one after
the other that agree.

One count is not enough: it is not taken everywhere at one moment, so that a parcel can be made behind its back by a partition that
was counted idle and woken by another. Nothing of that kind leaves all numbers of two counts the same. (Four counters: Mattern 1987.)
"""

from collections.abc import Mapping
from typing import NamedTuple


class Count(NamedTuple):
    """What a partition says of itself. Numbers are of what is on its disk, and never fall."""

    idle: bool  # nothing to fetch, nothing under way, nothing that is not on its disk
    made: int  # parcels, to all
    arrived: int  # parcels, from all


class Census:
    """Counts of all partitions, round by round. Who asks the partitions: the coordinator."""

    def __init__(self) -> None:
        self.round = 0
        self._members: frozenset[int] = frozenset()
        self._counts: dict[int, Count] = {}
        self._before: dict[int, Count] = {}

    def begin(self, members: frozenset[int]) -> int:
        """A new round; its number, which answers must carry."""
        whole = self._members == members and self._counts.keys() == members
        self._before = self._counts if whole else {}
        self.round, self._members, self._counts = self.round + 1, members, {}
        return self.round

    def note(self, member: int, round_: int, count: Count) -> None:
        """An answer. One to an earlier round says nothing any more."""
        if round_ == self.round and member in self._members:
            self._counts[member] = count

    @property
    def missing(self) -> frozenset[int]:
        """Who has not answered the round."""
        return self._members - self._counts.keys()

    @property
    def is_whole(self) -> bool:
        return not self.missing

    @property
    def is_over(self) -> bool:
        """Whether the crawl has ended, by this round and the one before."""
        return self.is_whole and bool(self._members) and self._counts == self._before and _is_still(self._counts)


def _is_still(counts: Mapping[int, Count]) -> bool:
    made, arrived = (sum(count[at] for count in counts.values()) for at in (1, 2))
    return made == arrived and all(count.idle for count in counts.values())
