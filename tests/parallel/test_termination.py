"""Termination is never declared while a partition has work or a message batch is in flight, and it is declared in the end."""

from hypothesis import given
from hypothesis import strategies as st

from trapline.parallel.live.termination import PartitionCount, Termination

# A world of partitions. Each partition has work, and message batches are in flight. In an event a partition works
# (and may send), a batch arrives, or a partition answers the next count.
EVENTS = st.lists(
    st.tuples(st.sampled_from(["work", "arrive", "answer"]), st.integers(0, 2), st.integers(0, 2)), max_size=120
)


class World:
    def __init__(self, work: list[int]) -> None:
        self.work = work
        self.made, self.arrived = [0] * len(work), [0] * len(work)
        self.in_flight: list[int] = []  # receivers

    @property
    def is_over(self) -> bool:
        return not any(self.work) and not self.in_flight

    def do(self, kind: str, partition: int, to: int) -> None:
        if kind == "work" and self.work[partition]:
            self.work[partition] -= 1
            if to != partition:
                self.made[partition] += 1
                self.in_flight.append(to)
        elif kind == "arrive" and self.in_flight:
            receiver = self.in_flight.pop(partition % len(self.in_flight))
            self.arrived[receiver] += 1
            self.work[receiver] += to == 0  # sometimes a batch contains something new

    def count(self, partition: int) -> PartitionCount:
        return PartitionCount(self.work[partition] == 0, self.made[partition], self.arrived[partition])


@given(st.lists(st.integers(0, 3), min_size=3, max_size=3), EVENTS)
def test_termination_is_declared_only_when_all_work_is_done(
    work: list[int], events: list[tuple[str, int, int]]
) -> None:
    world, termination, members = World(work), Termination(), frozenset(range(3))
    uncounted = list(members)
    termination.begin(members)
    for kind, partition, to in events:
        if kind != "answer":
            world.do(kind, partition, to)
            continue
        if not uncounted:
            if termination.is_over:
                assert world.is_over
            uncounted = list(members)
            termination.begin(members)
        member = uncounted.pop(partition % len(uncounted))
        termination.note(member, termination.round, world.count(member))
    if termination.is_over:
        assert world.is_over


def test_a_batch_that_arrives_between_two_counts_prevents_termination() -> None:
    """0 is counted; 1 sends to 0, and 0 answers; then 1 is counted. All counts say idle, all batches have arrived, and 0 has work."""
    termination, world, members = Termination(), World([0, 1, 0]), frozenset({0, 1, 2})
    termination.begin(members)
    termination.note(0, termination.round, world.count(0))
    world.do("work", 1, 0)
    world.do("arrive", 0, 0)
    world.work[0] += 1
    world.do("work", 0, 1)
    world.do("arrive", 0, 1)
    for member in (1, 2):
        termination.note(member, termination.round, world.count(member))
    assert termination.is_whole
    assert not world.is_over
    assert not termination.is_over


def test_two_equal_rounds_without_work_declare_termination() -> None:
    termination, still = Termination(), PartitionCount(True, 3, 3)
    for expected in (False, True):
        for member in range(2):
            assert not termination.is_over
            termination.note(member, termination.begin(frozenset({0, 1})) if member == 0 else termination.round, still)
        assert termination.is_over is expected


def test_a_new_member_or_an_outdated_answer_starts_the_count_again() -> None:
    termination, still = Termination(), PartitionCount(True, 0, 0)
    first = termination.begin(frozenset({0}))
    termination.note(0, first, still)
    second = termination.begin(frozenset({0, 1}))
    termination.note(0, second, still)
    termination.note(1, first, still)
    assert not termination.is_whole
    termination.note(1, second, still)
    assert termination.is_whole
    assert not termination.is_over
