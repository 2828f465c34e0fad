"""Recurrence rules of schedule feeds: a subset of the RRULE of RFC 5545, expanded over a few days by testing each day.

The module knows dates, and nothing of URLs or probabilities. It understands a rule completely or rejects it. Supported: FREQ from
MINUTELY to YEARLY, INTERVAL, UNTIL, WKST, BYMONTH, BYMONTHDAY, BYDAY, BYHOUR, BYMINUTE, and one BYSECOND. Not supported: SECONDLY,
COUNT, BYSETPOS, BYWEEKNO, BYYEARDAY.

It does not use dateutil, which searches for the next match however far away it is, up to the year 9999
(`FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30`), and does not terminate for `INTERVAL=0` (github.com/dateutil/dateutil/issues/1441). Here a rule
costs one test per hour of the window, and one per moment that it yields. The tests use dateutil as their oracle.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from math import inf
from typing import NamedTuple

_FREQUENCIES = ("MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_PARTS = frozenset(
    ("FREQ", "INTERVAL", "UNTIL", "WKST", "BYMONTH", "BYMONTHDAY", "BYDAY", "BYHOUR", "BYMINUTE", "BYSECOND")
)
_MOST_RULE = 500  # characters
_MOST_INTERVAL = 100_000
_BYDAY = re.compile(r"([+-]?[1-9][0-9]?)?(MO|TU|WE|TH|FR|SA|SU)")
_NUMBER = re.compile(r"[+-]?[0-9]{1,6}")
_UNTIL = re.compile(r"([0-9]{8})(?:T([0-9]{6})(Z?))?")


Minutes = dict[int, list[int]]  # minutes of an hour, by the first minute that the interval allows in it


class Rule(NamedTuple):
    freq: str
    interval: int
    week_start: int
    until_s: float
    months: frozenset[int]  # an empty set means all
    month_days: frozenset[int]
    week_days: frozenset[tuple[int, int]]  # (ordinal within the month or year, 0: every one; day of the week)
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    second: int
    zone: tzinfo
    anchor: date  # the rule begins on this day at midnight, and takes missing parts from it


def rule_of(text: str, zone: tzinfo, anchor: date) -> Rule | None:
    """Parse a rule; return None if it is invalid or not supported.

    >>> rule = rule_of("FREQ=DAILY;BYHOUR=6", UTC, date(1970, 1, 1))
    >>> list(moments(rule, 86_400.0, 3 * 86_400.0))
    [108000.0, 194400.0]
    """
    if len(text) > _MOST_RULE:
        return None
    named = dict(part.partition("=")[::2] for part in text.strip().upper().removeprefix("RRULE:").split(";") if part)
    if not _PARTS.issuperset(named) or named.get("FREQ") not in _FREQUENCIES:
        return None
    try:
        return _rule(named, zone, anchor)
    except (ValueError, OverflowError):
        return None


def _rule(named: Mapping[str, str], zone: tzinfo, anchor: date) -> Rule:
    freq = named["FREQ"]
    is_within_day = freq in ("HOURLY", "MINUTELY")
    if freq == "WEEKLY" and "BYMONTHDAY" in named:  # forbidden by RFC 5545
        raise ValueError(named["BYMONTHDAY"])
    (interval,) = _numbers(named.get("INTERVAL", "1"), 1, _MOST_INTERVAL)
    (second,) = _numbers(named.get("BYSECOND", "0"), 0, 59)
    rule = Rule(
        freq,
        interval,
        _DAYS.index(named.get("WKST", "MO")),
        _until_s(named["UNTIL"], zone) if "UNTIL" in named else inf,
        frozenset(_numbers(named["BYMONTH"], 1, 12)) if "BYMONTH" in named else frozenset(),
        frozenset(_numbers(named["BYMONTHDAY"], -31, 31)) if "BYMONTHDAY" in named else frozenset(),
        _week_days(named["BYDAY"], freq) if "BYDAY" in named else frozenset(),
        _times(named.get("BYHOUR"), 24, all_of=is_within_day),
        _times(named.get("BYMINUTE"), 60, all_of=freq == "MINUTELY"),
        second,
        zone,
        anchor,
    )
    return _with_defaults(rule)


def _with_defaults(rule: Rule) -> Rule:
    """Fill the missing parts of a rule from its first day, the anchor."""
    anchor = rule.anchor
    if rule.freq == "WEEKLY" and not rule.week_days:
        return rule._replace(week_days=frozenset({(0, anchor.weekday())}))
    if rule.week_days or rule.month_days or rule.freq not in ("MONTHLY", "YEARLY"):
        return rule
    months = rule.months or frozenset({anchor.month} if rule.freq == "YEARLY" else ())
    return rule._replace(months=months, month_days=frozenset({anchor.day}))


def _numbers(text: str, least: int, most: int) -> list[int]:
    numbers = [int(part) if _NUMBER.fullmatch(part) else most + 1 for part in text.split(",")]
    if not all(least <= number <= most for number in numbers):
        raise ValueError(text)
    return numbers


def _times(text: str | None, base: int, all_of: bool) -> tuple[int, ...]:
    if text is None:
        return tuple(range(base)) if all_of else (0,)
    return tuple(sorted(set(_numbers(text, 0, base - 1))))


def _week_days(text: str, freq: str) -> frozenset[tuple[int, int]]:
    found = [_BYDAY.fullmatch(part) for part in text.split(",")]
    days = frozenset((int(match[1] or 0), _DAYS.index(match[2])) for match in found if match)
    if not all(found) or (freq not in ("MONTHLY", "YEARLY") and any(ordinal for ordinal, _ in days)):
        raise ValueError(text)
    return days


def _until_s(text: str, zone: tzinfo) -> float:
    """Return the moment of UNTIL. A date without a time means the end of that day."""
    found = _UNTIL.fullmatch(text)
    if not found:
        raise ValueError(text)
    moment = datetime.strptime(found[1] + (found[2] or "235959"), "%Y%m%d%H%M%S")
    return moment.replace(tzinfo=UTC if found[3] else zone).timestamp()


def moments(rule: Rule, after_s: float, until_s: float) -> Iterator[float]:
    """Yield the moments of a rule after `after_s` and up to `until_s`, in seconds since 1970, in order of the local clock."""
    until_s = min(until_s, rule.until_s)
    if until_s <= after_s:
        return
    day = max(datetime.fromtimestamp(after_s, rule.zone).date() - timedelta(1), rule.anchor)
    last = datetime.fromtimestamp(until_s, rule.zone).date()
    minutes: Minutes = {}
    while day <= last:
        if _matches_day(rule, day):
            for hour, minutes_of_hour in _hours_of_day(rule, day, minutes):
                yield from _moments_of_hour(rule, day, hour, minutes_of_hour, after_s, until_s)
        day += timedelta(1)


def _moments_of_hour(
    rule: Rule, day: date, hour: int, minutes: Sequence[int], after_s: float, until_s: float
) -> Iterator[float]:
    """Yield the moments of one hour.

    `moments` tries whole days, from the day before the window on. An hour outside the window costs one test, not sixty.
    """
    clock = datetime(day.year, day.month, day.day, hour, 59, 59, tzinfo=rule.zone)
    if after_s < clock.timestamp() <= until_s + 2 * 3_600.0:  # one of the two hours is for a clock change
        for minute in minutes:
            moment = clock.replace(minute=minute, second=rule.second).timestamp()
            if after_s < moment <= until_s:
                yield moment


def _matches_day(rule: Rule, day: date) -> bool:
    if _periods_since_anchor(rule, day) % rule.interval:
        return False
    if rule.months and day.month not in rule.months:
        return False
    if rule.month_days and not rule.month_days & {day.day, day.day - _days_in_month(day) - 1}:
        return False
    return not rule.week_days or _is_week_day(rule, day)


def _periods_since_anchor(rule: Rule, day: date) -> int:
    """Return the number of periods from the anchor to this day. 0 for periods shorter than a day: `_hours_of_day` handles those."""
    anchor = rule.anchor
    if rule.freq == "DAILY":
        return (day - anchor).days
    if rule.freq == "WEEKLY":  # ordinal 1 is a Monday
        return (day.toordinal() - 1 - rule.week_start) // 7 - (anchor.toordinal() - 1 - rule.week_start) // 7
    if rule.freq == "MONTHLY":
        return (day.year - anchor.year) * 12 + day.month - anchor.month
    return day.year - anchor.year if rule.freq == "YEARLY" else 0


def _is_week_day(rule: Rule, day: date) -> bool:
    """Return whether the day matches BYDAY. Ordinals count within the month, or within the year if a yearly rule names no months."""
    if (0, day.weekday()) in rule.week_days:
        return True
    if rule.freq == "YEARLY" and not rule.months:
        at, length = day.timetuple().tm_yday, date(day.year, 12, 31).timetuple().tm_yday
    else:
        at, length = day.day, _days_in_month(day)
    from_start, from_end = (at - 1) // 7 + 1, -((length - at) // 7 + 1)
    return not rule.week_days.isdisjoint({(from_start, day.weekday()), (from_end, day.weekday())})


def _days_in_month(day: date) -> int:
    return (day.replace(day=28) + timedelta(4)).replace(day=1).toordinal() - day.replace(day=1).toordinal()


def _hours_of_day(rule: Rule, day: date, minutes: Minutes) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield the matching hours of a day, each with its minutes. `minutes` caches the lists for hours with the same first minute."""
    hours_before = 24 * (day - rule.anchor).days
    for hour in rule.hours:
        if rule.freq == "MINUTELY":
            first = -60 * (hours_before + hour) % rule.interval
            if first not in minutes:
                minutes[first] = [minute for minute in range(first, 60, rule.interval) if minute in rule.minutes]
            if minutes[first]:
                yield hour, minutes[first]
        elif rule.freq != "HOURLY" or (hours_before + hour) % rule.interval == 0:
            yield hour, rule.minutes
