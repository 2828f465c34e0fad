"""Recurrence rules of schedule feeds: a part of RFC 5545's RRULE, expanded over a few days by trying each of them.

It knows dates, and nothing of URLs or probabilities. A rule is understood whole or not at all: FREQ from MINUTELY to YEARLY, INTERVAL,
UNTIL, WKST, BYMONTH, BYMONTHDAY, BYDAY, BYHOUR, BYMINUTE, and one BYSECOND. Not: SECONDLY, COUNT, BYSETPOS, BYWEEKNO, BYYEARDAY.

Not dateutil's: that looks for the next match however far it is, up to the year 9999 (`FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30`), and does not
end for `INTERVAL=0` (github.com/dateutil/dateutil/issues/1441). Here a rule costs one look at each hour of the window, and one at each
moment that it gives. dateutil is the oracle of the tests.
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


Minutes = dict[int, list[int]]  # of an hour, by the first minute that the interval allows in it


class Rule(NamedTuple):
    freq: str
    interval: int
    week_start: int
    until_s: float
    months: frozenset[int]  # empty sets: all
    month_days: frozenset[int]
    week_days: frozenset[tuple[int, int]]  # which one of its month or year, 0: each; day of the week
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    second: int
    zone: tzinfo
    anchor: date  # where it begins, at midnight: what it does not say is taken from there


def rule_of(text: str, zone: tzinfo, anchor: date) -> Rule | None:
    """The rule, or None: it is not one of those that are understood.

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
    within = freq in ("HOURLY", "MINUTELY")
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
        _times(named.get("BYHOUR"), 24, all_of=within),
        _times(named.get("BYMINUTE"), 60, all_of=freq == "MINUTELY"),
        second,
        zone,
        anchor,
    )
    return _with_defaults(rule)


def _with_defaults(rule: Rule) -> Rule:
    """What a rule leaves open is as on its first day."""
    anchor = rule.anchor
    if rule.freq == "WEEKLY" and not rule.week_days:
        return rule._replace(week_days=frozenset({(0, anchor.weekday())}))
    if rule.week_days or rule.month_days or rule.freq not in ("MONTHLY", "YEARLY"):
        return rule
    months = rule.months or frozenset({anchor.month} if rule.freq == "YEARLY" else ())
    return rule._replace(months=months, month_days=frozenset({anchor.day}))


def _numbers(text: str, least: int, most: int) -> list[int]:
    numbers = [int(one) if _NUMBER.fullmatch(one) else most + 1 for one in text.split(",")]
    if not all(least <= number <= most for number in numbers):
        raise ValueError(text)
    return numbers


def _times(text: str | None, base: int, all_of: bool) -> tuple[int, ...]:
    if text is None:
        return tuple(range(base)) if all_of else (0,)
    return tuple(sorted(set(_numbers(text, 0, base - 1))))


def _week_days(text: str, freq: str) -> frozenset[tuple[int, int]]:
    found = [_BYDAY.fullmatch(one) for one in text.split(",")]
    days = frozenset((int(one[1] or 0), _DAYS.index(one[2])) for one in found if one)
    if not all(found) or (freq not in ("MONTHLY", "YEARLY") and any(which for which, _ in days)):
        raise ValueError(text)
    return days


def _until_s(text: str, zone: tzinfo) -> float:
    """A date alone ends with its day."""
    found = _UNTIL.fullmatch(text)
    if not found:
        raise ValueError(text)
    moment = datetime.strptime(found[1] + (found[2] or "235959"), "%Y%m%d%H%M%S")
    return moment.replace(tzinfo=UTC if found[3] else zone).timestamp()


def moments(rule: Rule, after_s: float, until_s: float) -> Iterator[float]:
    """Seconds since 1970 at which it holds, after one moment and up to another, in order of the local clock."""
    until_s = min(until_s, rule.until_s)
    if until_s <= after_s:
        return
    day = max(datetime.fromtimestamp(after_s, rule.zone).date() - timedelta(1), rule.anchor)
    last = datetime.fromtimestamp(until_s, rule.zone).date()
    minutes: Minutes = {}
    while day <= last:
        if _on(rule, day):
            for hour, of_hour in _at(rule, day, minutes):
                yield from _within(rule, day, hour, of_hour, after_s, until_s)
        day += timedelta(1)


def _within(
    rule: Rule, day: date, hour: int, minutes: Sequence[int], after_s: float, until_s: float
) -> Iterator[float]:
    """The moments of one hour. An hour outside of the window costs one look, not sixty: whole days are tried, from the day before on."""
    clock = datetime(day.year, day.month, day.day, hour, 59, 59, tzinfo=rule.zone)
    if after_s < clock.timestamp() <= until_s + 2 * 3_600.0:  # of two hours one may be the shift of a clock
        for minute in minutes:
            moment = clock.replace(minute=minute, second=rule.second).timestamp()
            if after_s < moment <= until_s:
                yield moment


def _on(rule: Rule, day: date) -> bool:
    if _periods(rule, day) % rule.interval:
        return False
    if rule.months and day.month not in rule.months:
        return False
    if rule.month_days and not rule.month_days & {day.day, day.day - _days_in_month(day) - 1}:
        return False
    return not rule.week_days or _is_week_day(rule, day)


def _periods(rule: Rule, day: date) -> int:
    """From the first day's to this one's. 0 for those shorter than a day: `_at` looks at them."""
    anchor = rule.anchor
    if rule.freq == "DAILY":
        return (day - anchor).days
    if rule.freq == "WEEKLY":  # ordinal 1 is a Monday
        return (day.toordinal() - 1 - rule.week_start) // 7 - (anchor.toordinal() - 1 - rule.week_start) // 7
    if rule.freq == "MONTHLY":
        return (day.year - anchor.year) * 12 + day.month - anchor.month
    return day.year - anchor.year if rule.freq == "YEARLY" else 0


def _is_week_day(rule: Rule, day: date) -> bool:
    """The n-th of its month; of its year, in a yearly rule that names no months."""
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


def _at(rule: Rule, day: date, minutes: Minutes) -> Iterator[tuple[int, Sequence[int]]]:
    """The hours of one of its days, each with its minutes. `minutes`: those of an hour, kept for the next hour that is like it."""
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
