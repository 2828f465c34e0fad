"""Termination of a parallel crawl: it is complete if every partition is idle and every message batch that was made has arrived, in two
successive counts that agree. No clock is involved.

One count is not enough, because it does not count all partitions at one moment: a partition that was counted as idle can be
woken by another one, and make a message batch that the count misses. In that case some number differs between the two
counts. (Four counters: Mattern 1987.)
"""

from typing import NamedTuple


class PartitionCount(NamedTuple):
    """The counters of a partition. They count what is on its disk, and never decrease."""

    idle: bool  # nothing to fetch, nothing in flight, nothing that is not on disk
    made: int  # message batches, to all partitions
    arrived: int  # message batches, from all partitions


class Termination:
    """Counts of all partitions, round by round. The coordinator requests the counts."""

    def __init__(self) -> None:
        self.round = 0
        self._members: frozenset[int] = frozenset()
        self._counts: dict[int, PartitionCount] = {}
        self._before: dict[int, PartitionCount] = {}

    def begin(self, members: frozenset[int]) -> int:
        """Begin a new round. Return its number, which answers must carry."""
        whole = self._members == members and self._counts.keys() == members
        self._before = self._counts if whole else {}
        self.round, self._members, self._counts = self.round + 1, members, {}
        return self.round

    def note(self, member: int, round_: int, count: PartitionCount) -> None:
        """Note an answer. Answers to earlier rounds are ignored."""
        if round_ == self.round and member in self._members:
            self._counts[member] = count

    @property
    def missing(self) -> frozenset[int]:
        """Partitions that have not answered the round."""
        return self._members - self._counts.keys()

    @property
    def is_whole(self) -> bool:
        return not self.missing

    @property
    def is_over(self) -> bool:
        """Whether the crawl is complete, according to this round and the one before."""
        return self.is_still and all(count.idle for count in self._counts.values())

    @property
    def is_still(self) -> bool:
        """Whether every message batch has arrived and nothing has changed, according to this round and the one before."""
        is_same = self.is_whole and bool(self._members) and self._counts == self._before
        made, arrived = (sum(count[at] for count in self._counts.values()) for at in (1, 2))
        return is_same and made == arrived
