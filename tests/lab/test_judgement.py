"""Verdicts on orderings, from made-up numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.lab.judgement import all_hold, larger, not_below
from trapline.lab.paper import FAILS, HOLDS, UNDECIDED

VALUES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8)


def values(mean: float, spread: float = 0.0, seeds: int = 10) -> list[float]:
    return list(mean + spread * np.linspace(-1.0, 1.0, seeds))


def test_seeds_are_compared_one_by_one() -> None:
    """Both spread far wider than they differ, but in every seed one is above the other."""
    high, low = values(0.62, spread=0.3), values(0.6, spread=0.31)
    assert larger(high, low).verdict == HOLDS
    assert larger(high, low[::-1]).verdict == UNDECIDED


@pytest.mark.parametrize(
    ("high", "low", "verdict"),
    [
        (values(0.7, 0.01), values(0.6), HOLDS),
        (values(0.6), values(0.7, 0.01), FAILS),
        (values(0.601, 0.1), values(0.6), UNDECIDED),
        (values(0.6), values(0.6), FAILS),  # the same in every seed
        ([0.9], [0.1], UNDECIDED),  # one seed says nothing about chance
    ],
)
def test_larger(high: list[float], low: list[float], verdict: str) -> None:
    assert larger(high, low).verdict == verdict


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (values(0.6), HOLDS),
        (values(0.7, 0.01), HOLDS),
        (values(0.597), HOLDS),
        (values(0.58, 0.001), FAILS),
        (values(0.599, 0.05), UNDECIDED),
    ],
)
def test_not_below(one: list[float], verdict: str) -> None:
    assert not_below(one, values(0.6), 0.005).verdict == verdict


def test_the_difference_is_shown_with_its_interval() -> None:
    assert larger([0.55, 0.55], [0.5, 0.5]).why == "+0.050 ± 0.000"


def test_all_hold_gives_the_worst_verdict() -> None:
    good, open_, bad = larger(values(0.7), values(0.6)), larger([0.7], [0.6]), larger(values(0.5), values(0.6))
    assert all_hold([("1", good), ("2", open_)]).verdict == UNDECIDED
    assert all_hold([("1", good), ("2", open_), ("3", bad)]).verdict == FAILS


@given(VALUES)
def test_never_both_above_and_below(pairs: list[tuple[float, float]]) -> None:
    one, other = map(list, zip(*pairs, strict=True))
    verdicts = {larger(one, other).verdict, larger(other, one).verdict}
    assert verdicts != {HOLDS}
    assert HOLDS not in verdicts or FAILS in verdicts
