"""Dates as providers write them: every form of the standards, and any text without an exception."""

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.signals.dates import FURTHEST_S, mail_s, moment_s, w3c_s

zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=zones)

MAY_3 = datetime(2024, 5, 3, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024", datetime(2024, 1, 1, tzinfo=UTC).timestamp()),
        ("2024-05", datetime(2024, 5, 1, tzinfo=UTC).timestamp()),
        ("2024-05-03", MAY_3),
        ("2024-05-03T01:30Z", MAY_3 + 5_400),
        ("2024-05-03T01:30+01:30", MAY_3),
        ("2024-05-03T01:30:15-02:00", MAY_3 + 12_615),
        ("2024-05-03T00:00:00.25Z", MAY_3 + 0.25),
        ("2024-05-03t00:00:07.123456789z", MAY_3 + 7.123456),
        (" 2024-05-03 00:00:09 +0000 ", MAY_3 + 9),
        ("2024-5-3", MAY_3),
        ("2024-05-03T01:00:00", MAY_3 + 3_600),
    ],
)
def test_w3c_datetimes_in_every_form(text: str, seconds: float) -> None:
    assert w3c_s(text) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    "text", ["", "soon", "2024-13-01", "2024-02-30", "24-05-03", "2024-05-03T25:00", "2024-05-03T1", "-", "0000"]
)
def test_an_invalid_date_gives_nothing(text: str) -> None:
    assert isnan(w3c_s(text))


@given(moments)
def test_a_moment_is_the_same_in_any_time_zone(moment: datetime) -> None:
    assert w3c_s(moment.isoformat()) == moment.timestamp()
    assert mail_s(format_datetime(moment)) == int(moment.timestamp() // 1)


@given(st.one_of(st.text(max_size=80), st.text("0123456789-+:TZ ./,JanMonGMT", max_size=40)), st.floats(0, 4e9))
def test_any_text_gives_a_moment_within_bounds_or_nothing(text: str, now: float) -> None:
    found = moment_s(text, now)
    assert isnan(found) or 0 <= found <= now + FURTHEST_S


def test_a_date_too_far_ahead_gives_nothing_whatever_the_clock() -> None:
    now = MAY_3
    assert moment_s("2024-05-20", now) == MAY_3 + 17 * 86_400
    assert isnan(moment_s("2099-01-01", now))
    assert moment_s("1949-01-01", now) == 0.0
