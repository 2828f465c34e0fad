"""Token buckets and the memory of what was just said: laws, whoever comes, and of bounded size."""

import math

from hypothesis import given
from hypothesis import strategies as st

from trapline.signals.endpoint.rate_limits import Buckets, Once, RequestRate

moments = st.lists(st.floats(0, 100), min_size=1, max_size=40).map(sorted)


@given(moments, st.floats(0.1, 10), st.floats(1, 20), st.floats(0.1, 5))
def test_what_is_granted_in_any_time_is_at_most_the_burst_and_the_rate(
    at: list[float], per_second: float, burst: float, cost: float
) -> None:
    buckets: Buckets[str] = Buckets(RequestRate(per_second, burst))
    granted = [moment for moment in at if buckets.wait_s("a", cost, moment) == 0.0]
    for first in range(len(granted)):
        for last in range(first, len(granted)):
            most = burst + (granted[last] - granted[first]) * per_second
            assert (last - first + 1) * cost <= most * (1 + 1e-9)


@given(moments, st.floats(0.1, 10), st.floats(1, 20))
def test_after_the_wait_that_it_names_it_grants(at: list[float], per_second: float, burst: float) -> None:
    buckets: Buckets[str] = Buckets(RequestRate(per_second, burst))
    for moment in at:
        wait_s = buckets.wait_s("a", 1.0, moment)
    assert wait_s == 0.0 or buckets.wait_s("a", 1.0, at[-1] + wait_s * (1 + 1e-9) + 1e-9) == 0.0


def test_what_is_more_than_there_ever_is_never_comes() -> None:
    assert Buckets[str](RequestRate(1.0, 5.0)).wait_s("a", 6.0, 0.0) == math.inf


def test_one_key_does_not_use_up_what_another_has() -> None:
    buckets: Buckets[str] = Buckets(RequestRate(1.0, 1.0))
    assert buckets.wait_s("a", 1.0, 0.0) == 0.0 < buckets.wait_s("a", 1.0, 0.0)
    assert buckets.wait_s("b", 1.0, 0.0) == 0.0


def test_it_remembers_no_more_keys_than_it_has_room_for() -> None:
    buckets: Buckets[int] = Buckets(RequestRate(1.0, 1.0), most=100)
    for key in range(10_000):
        buckets.wait_s(key, 1.0, 0.0)
    assert len(buckets) == 100
    assert buckets.wait_s(9_999, 1.0, 0.0) > 0.0  # the newest are those that it knows


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 300)), max_size=60))
def test_a_key_is_new_once_in_its_time(said: list[tuple[int, float]]) -> None:
    once: Once[int] = Once(60.0)
    last: dict[int, float] = {}
    for key, at in sorted(said, key=lambda one: one[1]):
        expected = key not in last or at - last[key] >= 60.0
        assert once.is_new(key, at) == expected
        if expected:
            last[key] = at


def test_of_many_keys_the_newest_are_remembered() -> None:
    once: Once[int] = Once(60.0, most=100)
    assert all(once.is_new(key, 0.0) for key in range(10_000))
    assert len(once) == 100 and not once.is_new(9_999, 0.0)
