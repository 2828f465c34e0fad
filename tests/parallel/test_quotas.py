"""A goal of pages shared by partitions: never more than it in all, and all of it if there are pages enough."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from trapline.parallel.quotas import Holding, shared_out


@dataclass
class Partition:
    """Has so many pages that it could fetch, and fetches as its quota allows."""

    there: int
    used: int = 0
    quota: int = 0

    def fetch(self, most: int) -> None:
        self.used += max(min(most, self.there - self.used, self.quota - self.used), 0)

    def told(self) -> Holding:
        return Holding(self.used, self.quota, self.used == self.there)


def obey(partition: Partition, quota: int) -> None:
    partition.quota = max(quota, partition.used)


@given(
    st.integers(1, 300),
    st.lists(st.integers(0, 200), min_size=1, max_size=6),
    st.lists(st.integers(0, 30), min_size=1, max_size=20),
)
def test_the_goal_is_reached_to_the_page(goal: int, there: list[int], speeds: list[int]) -> None:
    partitions = [Partition(pages) for pages in there]
    reached = min(goal, sum(there))
    for step in range(1000):
        orders = shared_out(goal, {at: one.told() for at, one in enumerate(partitions)})
        for at, one in enumerate(partitions):  # each goes on before it hears of its order
            one.fetch(speeds[(step + at) % len(speeds)])
            if at in orders:
                obey(one, orders[at])
        assert sum(one.quota for one in partitions) <= goal
        assert sum(one.used for one in partitions) <= goal
        if sum(one.used for one in partitions) == reached:
            return
        for one in partitions:
            one.fetch(1)
    raise AssertionError("pages are left, and nobody may have them")


def test_who_has_nothing_to_fetch_gets_nothing() -> None:
    assert shared_out(10, {0: Holding(0, 0, True), 1: Holding(0, 0, False)}) == {1: 5}
