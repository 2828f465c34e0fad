"""Handles of tuples of arrays: kernels read the arrays by name, and see the arrays of a new pin."""

from typing import NamedTuple

import numpy as np
import pytest

from trapline.compiled.array_handles import Pin, Pinned, handle_table, narrower, recaller
from trapline.compiled.jit import DISABLED, f8, i8, kernel, ready, type_of


class Pair(NamedTuple):
    one: np.ndarray
    two: np.ndarray


class Swapped(NamedTuple):
    two: np.ndarray
    one: np.ndarray


class First(NamedTuple):
    one: np.ndarray


def pair(one: float, two: float, length: int = 1) -> Pair:
    return Pair(np.full(length, one), np.full(length, two))


Handles = type_of(np.zeros(1, np.int64))
PairType, FirstType = Pinned(pair(0.0, 0.0)), Pinned(First(np.zeros(1)))
recall_pair, first_of = recaller(PairType), narrower(PairType, FirstType)


@kernel(f8(i8))
def read_second(handle: int) -> float:
    return recall_pair(handle).two[0]


@kernel(f8(i8))
def read_narrow(handle: int) -> float:
    return first_of(recall_pair(handle)).one[0]


@kernel(i8(i8))
def count_first(handle: int) -> int:
    return len(recall_pair(handle).one)


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    ready()


def test_kernels_read_arrays_by_name_through_each_pin() -> None:
    values, others = pair(1.0, 2.0), pair(3.0, 4.0)
    before, after = Pin(values), Pin(others)
    assert [read_second(pin.handle) for pin in (before, after)] == [2.0, 4.0]
    assert [read_narrow(pin.handle) for pin in (before, after)] == [1.0, 3.0]
    values.two[0] = 5.0
    assert read_second(before.handle) == 5.0


@pytest.mark.skipif(DISABLED, reason="uncompiled, a handle is the tuple itself")
def test_kernels_see_the_set_length_of_an_array() -> None:
    values = pair(1.0, 2.0, length=8)
    pin = Pin(values)
    assert count_first(pin.handle) == 8
    pin.set_length(0, 3)
    assert count_first(pin.handle) == 3


def test_tuples_with_other_field_names_are_other_types() -> None:
    assert Pinned(pair(0.0, 0.0)) == PairType
    assert Pinned(Swapped(np.zeros(1), np.zeros(1))) != PairType
    with pytest.raises(TypeError, match="does not begin as"):
        narrower(Pinned(Swapped(np.zeros(1), np.zeros(1))), FirstType)


class Nested(NamedTuple):
    pair: Pair
    three: np.ndarray


NestedType = Pinned(Nested(pair(0.0, 0.0), np.zeros((1, 1))))
recall_nested = recaller(NestedType)


@kernel(f8(Handles, i8))
def sum_of_nested(handles: np.ndarray, number: int) -> float:
    nested: Nested = recall_nested(handles[number])
    return nested.pair.one[0] + 10 * nested.pair.two[1] + 100 * nested.three[0, 1]


def test_tuples_in_tuples_are_read_through_a_table_of_handles() -> None:
    ready()
    values = [Nested(pair(number, 2.0, 2), np.array([[0.0, 3.0]])) for number in (1.0, 4.0)]
    pins = [Pin(value) for value in values]
    table = handle_table([pin.handle for pin in pins])
    assert [sum_of_nested(table, number) for number in (0, 1)] == [321.0, 324.0]
