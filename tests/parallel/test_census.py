"""The census never says that a crawl is over while a partition works or a parcel is under way, and says it at last."""

from hypothesis import given
from hypothesis import strategies as st

from trapline.parallel.live.partition_report import PartitionCount, Termination

# A world of partitions: each has work, and parcels that travel. An event is a partition that works (and may send), a parcel that
# arrives, or the next answer to the census.
EVENTS = st.lists(
    st.tuples(st.sampled_from(["work", "arrive", "answer"]), st.integers(0, 2), st.integers(0, 2)), max_size=120
)


class World:
    def __init__(self, work: list[int]) -> None:
        self.work = work
        self.made, self.arrived = [0] * len(work), [0] * len(work)
        self.travelling: list[int] = []  # receivers

    @property
    def is_over(self) -> bool:
        return not any(self.work) and not self.travelling

    def do(self, kind: str, who: int, to: int) -> None:
        if kind == "work" and self.work[who]:
            self.work[who] -= 1
            if to != who:
                self.made[who] += 1
                self.travelling.append(to)
        elif kind == "arrive" and self.travelling:
            receiver = self.travelling.pop(who % len(self.travelling))
            self.arrived[receiver] += 1
            self.work[receiver] += to == 0  # now and then there is something new in it

    def count(self, who: int) -> PartitionCount:
        return PartitionCount(self.work[who] == 0, self.made[who], self.arrived[who])


@given(st.lists(st.integers(0, 3), min_size=3, max_size=3), EVENTS)
def test_it_is_over_only_when_it_is(work: list[int], events: list[tuple[str, int, int]]) -> None:
    world, census, members = World(work), Termination(), frozenset(range(3))
    unasked = list(members)
    census.begin(members)
    for kind, who, to in events:
        if kind != "answer":
            world.do(kind, who, to)
            continue
        if not unasked:
            if census.is_over:
                assert world.is_over
            unasked = list(members)
            census.begin(members)
        member = unasked.pop(who % len(unasked))
        census.note(member, census.round, world.count(member))
    if census.is_over:
        assert world.is_over


def test_what_happens_behind_the_back_of_one_count_does_not_end_it() -> None:
    """0 is counted, woken by 1, and answers it; then 1 is counted. All idle, as many parcels arrived as were made, and 0 works."""
    census, world, members = Termination(), World([0, 1, 0]), frozenset({0, 1, 2})
    census.begin(members)
    census.note(0, census.round, world.count(0))
    world.do("work", 1, 0)
    world.do("arrive", 0, 0)
    world.work[0] += 1
    world.do("work", 0, 1)
    world.do("arrive", 0, 1)
    for member in (1, 2):
        census.note(member, census.round, world.count(member))
    assert census.is_whole
    assert not world.is_over
    assert not census.is_over


def test_two_rounds_of_a_still_world_end_it() -> None:
    census, still = Termination(), PartitionCount(True, 3, 3)
    for expected in (False, True):
        for member in range(2):
            assert not census.is_over
            census.note(member, census.begin(frozenset({0, 1})) if member == 0 else census.round, still)
        assert census.is_over is expected


def test_a_new_member_or_an_old_answer_starts_over() -> None:
    census, still = Termination(), PartitionCount(True, 0, 0)
    first = census.begin(frozenset({0}))
    census.note(0, first, still)
    second = census.begin(frozenset({0, 1}))
    census.note(0, second, still)
    census.note(1, first, still)
    assert not census.is_whole
    census.note(1, second, still)
    assert census.is_whole
    assert not census.is_over
