"""Message batches are sent as they are on disk, unless the receiver has more than was ever sent, or lacks what was deleted here."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ConfigError
from trapline.parallel.transport.delivery import ConsistentBatches


def first_answer(made_before: int, made: int, deleted: int, has: int) -> tuple[list[int], list[Any]]:
    """Return the numbers of the batches for a receiver that has received `has` of them, and the reported errors."""
    disk = [(number, b"") for number in range(deleted + 1, made + 1)]
    complaints: list[Any] = []

    async def ask() -> list[int]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["exception"]))
        read = lambda receiver, after, most: [one for one in disk if one[0] > after][:most]  # noqa: E731
        message_batches = ConsistentBatches(Path("c/partition-0"), read, {1: made_before})
        return [number for number, _ in message_batches.after(1, has, 99)]

    return asyncio.run(ask()), complaints


@st.composite
def sound(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Batches are deleted once they are acknowledged. The receiver has at least those, and no more than were made before this run."""
    before = draw(st.integers(0, 9))
    has = draw(st.integers(0, before))
    return before, before + draw(st.integers(0, 4)), draw(st.integers(0, has)), has


@given(sound())
def test_a_consistent_receiver_gets_the_batches_that_it_lacks(case: tuple[int, int, int, int]) -> None:
    before, made, deleted, has = case
    assert first_answer(before, made, deleted, has) == (list(range(has + 1, made + 1)), [])


@pytest.mark.parametrize("made", [5, 6, 9, 12])  # batches may have been made since the run began
def test_a_receiver_that_has_more_than_was_made_is_inconsistent(made: int) -> None:
    found, complaints = first_answer(5, made, 0, 8)
    assert found == [] and isinstance(complaints[0], ConfigError)
    assert str(complaints[0]).startswith(
        "c/partition-0: it and partition-1 are not from the same time (8 message batches arrived"
    )


@pytest.mark.parametrize("made", [5, 9])
def test_a_receiver_that_lacks_a_deleted_batch_is_inconsistent(made: int) -> None:
    found, complaints = first_answer(5, made, 5, 3)
    assert found == [] and isinstance(complaints[0], ConfigError)
