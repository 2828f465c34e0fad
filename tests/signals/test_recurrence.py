"""Recurrence rules give the same moments as dateutil wherever both understand a rule. Rules that never match end at once."""

import datetime as datetime_module
from datetime import UTC, date, datetime, timedelta
from itertools import islice, takewhile
from types import SimpleNamespace
from unittest.mock import patch
from zoneinfo import ZoneInfo

import dateutil.rrule
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trapline.signals.published import recurrence
from trapline.signals.published.recurrence import moments, rule_of

DAY_S = 86_400.0


def numbers(least: int, most: int) -> st.SearchStrategy[str]:
    values = st.integers(least, most).filter(bool) if least else st.integers(0, most)
    return st.lists(values, min_size=1, max_size=4, unique=True).map(lambda some: ",".join(map(str, some)))


week_days = st.lists(
    st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"]), min_size=1, max_size=4, unique=True
).map(",".join)
nth_days = st.lists(
    st.from_regex(r"-?[1-5](MO|TU|WE|TH|FR|SA|SU)", fullmatch=True), min_size=1, max_size=3, unique=True
)
# Not mixed: for `MO,1MO` dateutil takes the days that match both, RFC 5545 those that match either.
week_days_of_months = st.one_of(week_days, nth_days.map(",".join))
long_periods = st.fixed_dictionaries(
    {"FREQ": st.sampled_from(["MONTHLY", "YEARLY"])},
    optional={
        "BYDAY": week_days_of_months,
        "BYMONTH": numbers(1, 12),
        "BYMONTHDAY": numbers(-31, 31),
        "BYHOUR": numbers(0, 23),
        "INTERVAL": st.just("2"),
    },
)
short_periods = st.fixed_dictionaries(
    {
        "FREQ": st.sampled_from(["WEEKLY", "DAILY", "HOURLY", "MINUTELY"]),
        "INTERVAL": st.sampled_from(["1", "2", "3", "7", "15", "45", "90"]),
    },
    optional={
        "BYDAY": week_days,
        "BYMONTH": numbers(1, 12),
        "BYMONTHDAY": numbers(-31, 31),
        "BYHOUR": numbers(0, 23),
        "BYMINUTE": numbers(0, 59),
        "WKST": st.sampled_from(["MO", "SU"]),
    },
)
rules = (
    st.one_of(long_periods, short_periods)
    .filter(lambda parts: parts["FREQ"] != "WEEKLY" or "BYMONTHDAY" not in parts)  # forbidden by RFC 5545
    .map(lambda parts: ";".join(f"{name}={value}" for name, value in parts.items()))
)


def by_dateutil(text: str, anchor: datetime, days: int) -> list[float]:
    """dateutil searches up to the last possible year for the next match."""
    short_lived = SimpleNamespace(**{**vars(datetime_module), "MAXYEAR": anchor.year + 1})
    end = anchor + timedelta(days)
    with patch.object(dateutil.rrule, "datetime", short_lived):
        found = dateutil.rrule.rrulestr(f"RRULE:{text}", dtstart=anchor)
        return [at.timestamp() for at in islice(takewhile(lambda at: at <= end, found), 5000)]


@given(rules, st.dates(date(2020, 1, 1), date(2028, 1, 1)), st.integers(1, 40))
@example("FREQ=MONTHLY;BYDAY=-1SU,2MO", date(2024, 2, 29), 40)
@example("FREQ=YEARLY;BYDAY=20MO", date(2024, 5, 1), 40)
@example("FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=SU,MO", date(2024, 5, 3), 40)
def test_moments_equal_those_of_dateutil(text: str, first: date, days: int) -> None:
    anchor = datetime(first.year, first.month, first.day, tzinfo=UTC)
    rule = rule_of(text, UTC, first)
    assert rule is not None
    try:
        expected = by_dateutil(text, anchor, days)
    except ValueError:  # dateutil takes this for an empty rule
        expected = []
    found = list(islice(moments(rule, anchor.timestamp() - 1, anchor.timestamp() + days * DAY_S), 5000))
    assert found == expected


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=SECONDLY",
        "FREQ=DAILY;COUNT=3",
        "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=-1",
        "FREQ=YEARLY;BYWEEKNO=20",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;INTERVAL=-1",
        "FREQ=DAILY;BYHOUR=24",
        "FREQ=DAILY;BYHOUR=",
        "FREQ=DAILY;BYDAY=1MO",
        "FREQ=WEEKLY;BYMONTHDAY=2",
        "FREQ=DAILY;UNTIL=tomorrow",
        "FREQ=DAILY;BYSECOND=1,2",
        "FREQ=DAILY;WKST=XX",
        "FREQ=",
        "BYHOUR=6",
        "",
        "FREQ=DAILY;BYHOUR=" + "6," * 300 + "6",
        "FREQ=DAILY;INTERVAL=" + "9" * 400,
        "DTSTART:20240101T000000Z\nRRULE:FREQ=DAILY",
    ],
)
def test_a_rule_is_understood_completely_or_not_at_all(text: str) -> None:
    assert rule_of(text, UTC, date(2024, 1, 1)) is None


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=31",
        "FREQ=YEARLY;BYDAY=60MO",
        "FREQ=HOURLY;INTERVAL=2;BYHOUR=1",
        "FREQ=DAILY;UNTIL=19700101",
    ],
)
def test_a_rule_that_never_matches_gives_nothing(text: str) -> None:
    """dateutil searches until the year 9999 for the first two."""
    rule = rule_of(text, UTC, date(2024, 1, 1))
    assert rule is not None and list(moments(rule, 1.7e9, 1.7e9 + 30 * DAY_S)) == []


def test_six_in_the_morning_is_six_in_summer_and_winter() -> None:
    zone = ZoneInfo("Europe/Berlin")
    rule = rule_of("FREQ=DAILY;BYHOUR=6", zone, date(2024, 3, 29))
    assert rule is not None
    night = datetime(2024, 3, 30, tzinfo=zone).timestamp()
    found = list(moments(rule, night, night + 2 * DAY_S))
    assert [datetime.fromtimestamp(at, zone).hour for at in found] == [6, 6]
    assert found[1] - found[0] == 23 * 3_600


def test_until_is_the_last_moment_or_the_last_day() -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC).timestamp()
    for text, count in (("UNTIL=20240103T060000Z", 3), ("UNTIL=20240103T055959Z", 2), ("UNTIL=20240103", 3)):
        rule = rule_of(f"FREQ=DAILY;BYHOUR=6;{text}", UTC, date(2024, 1, 1))
        assert rule is not None and len(list(moments(rule, start, start + 9 * DAY_S))) == count


@given(st.text("FREQ=DAILYMINUT;BHOTKW,-0123456789SUZ", max_size=60))
def test_any_text_gives_a_rule_or_nothing(text: str) -> None:
    rule = rule_of(text, UTC, date(2024, 1, 1))
    assert rule is None or all(1.7e9 < at <= 1.7e9 + DAY_S for at in moments(rule, 1.7e9, 1.7e9 + DAY_S))


def test_minutes_that_an_interval_never_matches_are_compared_once_for_equal_hours() -> None:
    looked_at = 0

    class Counted(tuple[int, ...]):
        def __contains__(self, minute: object) -> bool:
            nonlocal looked_at
            looked_at += 1
            return super().__contains__(minute)

    rule = rule_of("FREQ=MINUTELY;INTERVAL=2;BYMINUTE=1,3,5", UTC, date(2024, 1, 1))
    assert rule is not None
    assert list(moments(rule._replace(minutes=Counted(rule.minutes)), 1.72e9, 1.72e9 + 30 * DAY_S)) == []
    assert looked_at == 30


def test_hours_outside_the_window_are_not_searched_minute_by_minute() -> None:
    rule = rule_of("FREQ=MINUTELY", UTC, date(1970, 1, 1))
    assert rule is not None
    with patch.object(recurrence, "datetime", CountedMoments):
        CountedMoments.calls = 0
        assert list(moments(rule, 3 * DAY_S - 60.0, 3 * DAY_S)) == [3 * DAY_S]
    assert CountedMoments.calls <= 24 * 3 + 4 * 60


class CountedMoments(datetime):
    calls = 0

    def timestamp(self) -> float:
        CountedMoments.calls += 1
        return super().timestamp()
