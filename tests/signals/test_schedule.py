"""Schedule feeds: every limit of the format, points in the future and in order, and a feed that is valid for its own site only."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.signals.published import schedule as schedule_feed
from trapline.signals.published.recurrence import moments
from trapline.signals.published.schedule import (
    EXPIRED,
    HORIZON_S,
    LEAST_WINDOW_S,
    MOST_BYTES,
    MOST_POINTS,
    NO_POINT,
    NO_RULE,
    OTHER_HOST,
    PAST,
    TOO_FAR,
    TOO_MANY,
    UNREADABLE,
    Schedule,
    read_schedule,
)

NOW = 1_714_730_400.0  # 2024-05-03T10:00:00Z
URL = "https://example.org/schedule.json"
A = "https://example.org/a"


def feed(*entries: Any, **more: Any) -> bytes:
    whole = {"version": 1, "host": "example.org", "generated": NOW - 60, "expires": NOW + 1e9, "entries": list(entries)}
    return json.dumps({**whole, **more}).encode()


def read(*entries: Any, **more: Any) -> Schedule:
    return read_schedule(feed(*entries, **more), URL, NOW)


def updates(*ats: Any, **more: Any) -> dict[str, Any]:
    return {"url": "/a", "updates": [{"at": at} for at in ats], **more}


def test_the_example_of_the_format() -> None:
    entry = {
        "url": A,
        "updates": [{"at": "2024-05-03T12:00:00Z", "window_s": 300, "p": 0.9}],
        "rrule": "FREQ=DAILY;BYHOUR=6",
        "tzid": "UTC",
        "p": 0.95,
    }
    found = read(entry, expires=NOW + 2 * 86_400)
    assert found.points == {A: [(NOW + 7_200, 0.9), (NOW + 20 * 3_600, 0.95), (NOW + 44 * 3_600, 0.95)]}
    assert not found.problems


def test_points_in_one_window_are_merged() -> None:
    found = read(
        {"url": "/a", "p": 0.5, "updates": [{"at": NOW + at, "window_s": 300} for at in (1000, 1200, 1299, 1300, 1330)]}
    )
    assert found.points == {A: [(NOW + 1299, 0.875), (NOW + 1330, 0.75)]}


@given(st.lists(st.tuples(st.integers(1, 10_000), st.floats(0.01, 1), st.integers(-10, 900))))
def test_merging_keeps_the_probability_that_nothing_changes(some: list[tuple[int, float, int]]) -> None:
    """No more than one point is left in the minute that begins with the first point."""
    found = read({"url": "/a", "updates": [{"at": NOW + at, "p": p, "window_s": window} for at, p, window in some]})
    points = found.points.get(A, [])
    unchanged, expected = 1.0, 1.0
    for point in points:
        unchanged *= 1 - point.p
    for _, p, _ in some:
        expected *= 1 - p
    assert unchanged == pytest.approx(expected)
    assert [point.at for point in points] == sorted({point.at for point in points})
    assert len(points) <= 10_000 / LEAST_WINDOW_S + 1


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (updates(NOW + 10), ""),
        (updates(NOW), PAST),
        (updates(NOW - 10), PAST),
        (updates(NOW + HORIZON_S), ""),
        (updates(NOW + HORIZON_S + 1), TOO_FAR),
        (updates("soon"), NO_POINT),
        (updates(None), NO_POINT),
        (updates(10**400), NO_POINT),
        (updates(NOW + 10, p=0), NO_POINT),
        (updates(NOW + 10, p=1.01), NO_POINT),
        (updates(NOW + 10, p="0.5"), NO_POINT),
        (updates(NOW + 10, p=True), NO_POINT),
        (updates(NOW + 10, url="http://example.org/a"), OTHER_HOST),
        (updates(NOW + 10, url="https://evil.net/a"), OTHER_HOST),
        (updates(NOW + 10, url=7), OTHER_HOST),
        ("no entry", OTHER_HOST),
        ({"url": "/a", "rrule": "FREQ=SECONDLY"}, NO_RULE),
        ({"url": "/a", "rrule": "FREQ=DAILY", "tzid": "../../etc/passwd"}, NO_RULE),
        ({"url": "/a", "rrule": "FREQ=DAILY", "tzid": "America"}, NO_RULE),
        ({"url": "/a", "rrule": "FREQ=DAILY", "tzid": "\ud800\0"}, NO_RULE),
        ({"url": "/a", "rrule": "FREQ=DAILY", "tzid": "x" * 5_000}, NO_RULE),
        ({"url": "/a", "rrule": "FREQ=DAILY", "tzid": "Europ" + "../etc" * 300}, NO_RULE),
        ({"url": "/a", "rrule": "FREQ=DAILY", "tzid": "America/Argentina/Buenos_Aires"}, ""),
        ({"url": "/a", "rrule": ["FREQ=DAILY"], "tzid": {}}, NO_RULE),
        ({"url": "/a", "rrule": "FREQ=DAILY", "tzid": "Pacific/Kiritimati"}, ""),
    ],
)
def test_which_entries_count_and_why_others_do_not(entry: Any, reason: str) -> None:
    found = read(entry)
    assert bool(found.points) == (not reason)
    assert dict(found.problems) == ({reason: 1} if reason else {})


@pytest.mark.parametrize(
    ("more", "url", "reason"),
    [
        ({}, URL, ""),
        ({"host": "EXAMPLE.org"}, URL, ""),
        ({"host": "example.org"}, "https://example.org:8443/s", ""),
        ({"host": "example.org:8443"}, "https://example.org:8443/s", ""),
        ({"host": "www.example.org"}, URL, OTHER_HOST),
        ({"host": None}, URL, OTHER_HOST),
        ({}, "https://evil.net/schedule.json", OTHER_HOST),
        ({}, "no url", OTHER_HOST),
        ({"expires": NOW}, URL, EXPIRED),
        ({"expires": None}, URL, EXPIRED),
        ({"expires": "2024-05-03T10:00:01Z"}, URL, TOO_FAR),
        ({"version": 2}, URL, UNREADABLE),
        ({"version": "1"}, URL, UNREADABLE),
        ({"entries": None}, URL, None),
        ({"generated": -1e300}, URL, ""),
        ({"generated": NOW + 1e9}, URL, ""),
    ],
)
def test_a_feed_without_authority_gives_nothing(more: dict[str, Any], url: str, reason: str | None) -> None:
    found = read_schedule(
        feed({"url": "", "updates": [{"at": NOW + 10}], "rrule": "FREQ=MONTHLY;BYMONTH=1"}, **more), url, NOW
    )
    assert bool(found.points) == (reason == "")
    assert dict(found.problems) == ({reason: 1} if reason else {})


def test_limits_of_the_format() -> None:
    minutely = read({"url": "/a", "rrule": "FREQ=MINUTELY"}, {"url": "/b", "updates": [{"at": NOW + 10}]})
    assert len(minutely.points[A]) == MOST_POINTS and list(minutely.points) == [A]
    assert dict(minutely.problems) == {TOO_MANY: 1}
    assert read_schedule(feed() + b" " * MOST_BYTES, URL, NOW).problems == {UNREADABLE: 1}


def test_the_number_of_rules_is_limited_and_rules_may_be_shared() -> None:
    shared = [{"url": f"/{at}", "rrule": "FREQ=DAILY"} for at in range(300)]
    assert len(read(*shared).points) == 300
    different = [
        {"url": f"/{at}", "rrule": f"FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=4;BYHOUR={at // 60};BYMINUTE={at % 60}"}
        for at in range(300)
    ]
    found = read(*different)
    assert len(found.points) == schedule_feed.MOST_RULES
    assert dict(found.problems) == {NO_RULE: 300 - schedule_feed.MOST_RULES}


def test_all_rules_of_a_feed_together_give_a_limited_number_of_moments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given_out = 0

    def counted(*arguments: Any) -> Iterator[float]:
        nonlocal given_out
        for moment in moments(*arguments):
            given_out += 1
            yield moment

    monkeypatch.setattr(schedule_feed, "moments", counted)
    zones = ("UTC", "Europe/Berlin", "Asia/Tokyo")
    every_minute = [
        {"url": f"/{at}", "rrule": f"FREQ=MINUTELY;BYSECOND={at % 60}", "tzid": zones[at // 60]} for at in range(180)
    ]
    found = read(*every_minute)
    assert sum(map(len, found.points.values())) == MOST_POINTS
    assert dict(found.problems) == {TOO_MANY: 179}
    assert given_out == MOST_POINTS


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.sampled_from(["", "/a", "FREQ=DAILY", "UTC", "2024-05-04T00:00Z"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["url", "updates", "rrule", "tzid", "p", "at", "window_s"]), inner, max_size=5
        )
    ),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=5), json_values)
def test_any_json_gives_points_within_bounds(entries: list[Any], generated: Any) -> None:
    for points in read(*entries, generated=generated).points.values():
        assert all(NOW < point.at <= NOW + HORIZON_S and 0 < point.p <= 1 for point in points)


@given(st.binary())
def test_any_bytes_are_read_as_a_schedule(body: bytes) -> None:
    assert read_schedule(body, URL, NOW).points == {}
