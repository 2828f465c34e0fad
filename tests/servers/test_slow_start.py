"""Slow start: the compiled arithmetic agrees with a count of rounds, and with laws that need no model."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.simulator import slow_start_stall_s
from trapline.simulator.changing_web import stalled

SIZES, WINDOWS = st.integers(0, 10_000_000), st.integers(1, 100_000)
RATES = st.floats(1e3, 1e9) | st.just(math.inf)
ROUND_TRIPS = st.floats(0.0, 2.0)


@given(SIZES, RATES, ROUND_TRIPS, WINDOWS, SIZES)
def test_the_stall_is_that_of_a_count_of_rounds(size: int, rate: float, trip_s: float, window: int, sent: int) -> None:
    ours = stalled(size, rate, trip_s, float(window + sent))
    assert ours == pytest.approx(slow_start_stall_s(size, rate, trip_s, window, sent), rel=1e-9, abs=1e-9)


def test_the_rounds_of_a_page_by_hand() -> None:
    """10 kB/s, a round trip of a second, a window of 1 kB: rounds of 1, 2 and 4 kB take 0.1, 0.2 and 0.4 s and wait for the
    rest of the second; 8 kB take 0.8 s and wait too; the window of 16 kB takes longer than a round trip."""
    assert stalled(1_000.0, 1e4, 1.0, 1e3) == 0.0
    assert stalled(1_001.0, 1e4, 1.0, 1e3) == pytest.approx(0.9)
    assert stalled(7_001.0, 1e4, 1.0, 1e3) == pytest.approx(0.9 + 0.8 + 0.6)
    assert stalled(1e9, 1e4, 1.0, 1e3) == pytest.approx(0.9 + 0.8 + 0.6 + 0.2)


@given(SIZES, RATES, ROUND_TRIPS, WINDOWS, SIZES)
def test_a_larger_window_never_takes_longer(size: int, rate: float, trip_s: float, window: int, more: int) -> None:
    assert stalled(size, rate, trip_s, float(window + more)) <= stalled(size, rate, trip_s, float(window)) + 1e-9


@given(SIZES, ROUND_TRIPS, WINDOWS)
def test_without_a_limit_of_speed_each_doubling_costs_a_round_trip(size: int, trip_s: float, window: int) -> None:
    rounds = max(0, math.ceil(math.log2(size / window + 1)) - 1) if size else 0
    assert stalled(size, math.inf, trip_s, float(window)) == pytest.approx(rounds * trip_s, abs=trip_s * 1e-9)
