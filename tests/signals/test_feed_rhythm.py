"""The points of a feed's rhythm lie on its grid, in the future, within the horizon, and never in hours and days that it skips."""

from datetime import UTC, datetime
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.signals.published.feed import MOST_POINTS, PERIODS_S, Rhythm

NOW = datetime(2024, 5, 3, 10, 30, tzinfo=UTC).timestamp()  # a Friday
HOUR, DAY = 3_600.0, 86_400.0

rhythms = st.builds(
    Rhythm,
    st.sampled_from([nan, *PERIODS_S.values()]),
    st.integers(1, 10**9),
    st.one_of(st.just(nan), st.floats(0, 4e9)),
    st.one_of(st.just(nan), st.floats(60, 1e12)),
    st.frozensets(st.integers(0, 23)),
    st.frozensets(st.integers(0, 6)),
)


@given(rhythms, st.floats(0, 4e9), st.floats(0, 1e7))
def test_points_are_ahead_in_order_and_bounded(rhythm: Rhythm, now: float, horizon_s: float) -> None:
    points = rhythm.points(now, horizon_s)
    assert points == sorted(set(points)) and len(points) <= MOST_POINTS
    assert all(now < at <= now + horizon_s for at in points)
    for moment in (datetime.fromtimestamp(at, UTC) for at in points):
        assert moment.hour not in rhythm.skip_hours and moment.weekday() not in rhythm.skip_days


def test_points_worked_out_by_hand() -> None:
    noon = NOW + 1.5 * HOUR
    assert Rhythm(ttl_s=2 * HOUR).points(NOW, 5 * HOUR) == [NOW + 2 * HOUR, NOW + 4 * HOUR]
    assert Rhythm(period_s=DAY, frequency=2).points(NOW, DAY) == [noon, noon + DAY / 2]
    assert Rhythm(period_s=DAY, base_s=noon + 9 * DAY, ttl_s=HOUR).points(NOW, 2 * DAY) == [noon, noon + DAY]
    assert Rhythm(period_s=DAY, frequency=2, skip_hours=frozenset({0})).points(NOW, 2 * DAY) == [noon, noon + DAY]
    assert Rhythm(period_s=DAY, base_s=noon, skip_days=frozenset({5, 6})).points(NOW, 4 * DAY) == [noon, noon + 3 * DAY]
    assert Rhythm().points(NOW, DAY) == []


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ({}, Rhythm()),
        ({"updateperiod": ["Hourly"]}, Rhythm(period_s=HOUR)),
        ({"updatefrequency": ["3"]}, Rhythm(period_s=DAY, frequency=3)),
        ({"updateperiod": ["weekly"], "updatefrequency": ["0"]}, Rhythm(period_s=7 * DAY)),
        ({"updateperiod": ["fortnightly"], "ttl": ["-5"], "hour": ["x"], "day": ["Someday"]}, Rhythm()),
        (
            {"ttl": ["15", "20"], "hour": ["23", "24"], "day": ["Monday"]},
            Rhythm(ttl_s=900.0, skip_hours=frozenset({0, 23}), skip_days=frozenset({0})),
        ),
        ({"ttl": ["9" * 5000]}, Rhythm()),
    ],
)
def test_the_rhythm_of_feed_elements(elements: dict[str, list[str]], expected: Rhythm) -> None:
    assert repr(Rhythm.of(elements)) == repr(expected)  # nan is not equal to itself
