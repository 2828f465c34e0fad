"""Token buckets and the memory of recent keys: their laws, for any senders, and their bounded size."""

import math

from hypothesis import given
from hypothesis import strategies as st

from trapline.signals.endpoint.rate_limits import Buckets, Once, RequestRate

moments = st.lists(st.floats(0, 100), min_size=1, max_size=40).map(sorted)


@given(moments, st.floats(0.1, 10), st.floats(1, 20), st.floats(0.1, 5))
def test_grants_in_any_period_are_at_most_the_burst_plus_the_rate(
    at: list[float], per_second: float, burst: float, cost: float
) -> None:
    buckets: Buckets[str] = Buckets(RequestRate(per_second, burst))
    granted = [moment for moment in at if buckets.wait_s("a", cost, moment) == 0.0]
    for first in range(len(granted)):
        for last in range(first, len(granted)):
            most = burst + (granted[last] - granted[first]) * per_second
            assert (last - first + 1) * cost <= most * (1 + 1e-9)


@given(moments, st.floats(0.1, 10), st.floats(1, 20))
def test_a_bucket_grants_after_the_wait_that_it_names(at: list[float], per_second: float, burst: float) -> None:
    buckets: Buckets[str] = Buckets(RequestRate(per_second, burst))
    for moment in at:
        wait_s = buckets.wait_s("a", 1.0, moment)
    assert wait_s == 0.0 or buckets.wait_s("a", 1.0, at[-1] + wait_s * (1 + 1e-9) + 1e-9) == 0.0


def test_a_request_larger_than_the_burst_is_never_granted() -> None:
    assert Buckets[str](RequestRate(1.0, 5.0)).wait_s("a", 6.0, 0.0) == math.inf


def test_each_key_has_its_own_tokens() -> None:
    buckets: Buckets[str] = Buckets(RequestRate(1.0, 1.0))
    assert buckets.wait_s("a", 1.0, 0.0) == 0.0 < buckets.wait_s("a", 1.0, 0.0)
    assert buckets.wait_s("b", 1.0, 0.0) == 0.0


def test_the_number_of_remembered_keys_is_limited() -> None:
    buckets: Buckets[int] = Buckets(RequestRate(1.0, 1.0), most=100)
    for key in range(10_000):
        buckets.wait_s(key, 1.0, 0.0)
    assert len(buckets) == 100
    assert buckets.wait_s(9_999, 1.0, 0.0) > 0.0  # it knows the newest keys


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 300)), max_size=60))
def test_a_key_is_new_once_per_period(arrivals: list[tuple[int, float]]) -> None:
    once: Once[int] = Once(60.0)
    last: dict[int, float] = {}
    for key, at in sorted(arrivals, key=lambda one: one[1]):
        expected = key not in last or at - last[key] >= 60.0
        assert once.is_new(key, at) == expected
        if expected:
            last[key] = at


def test_the_newest_of_many_keys_are_remembered() -> None:
    once: Once[int] = Once(60.0, most=100)
    assert all(once.is_new(key, 0.0) for key in range(10_000))
    assert len(once) == 100 and not once.is_new(9_999, 0.0)
