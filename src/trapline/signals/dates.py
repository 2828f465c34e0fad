"""Moments as providers write them: W3C datetimes, the dates of mail and HTTP. Text in, seconds since 1970 out, nan if it cannot be read.

Shared by the readers of what providers publish. It has no clock: whoever asks says what time it is.
"""

import re
from calendar import timegm
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_tz
from math import nan

FURTHEST_S = 30 * 86_400.0  # how far ahead of now a date is believed

_MOST_DATE = 64  # characters that are looked at
# All forms of w3.org/TR/NOTE-datetime, and what is often written instead: one digit, a space for T, an offset without its colon.
_W3C = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:(?:T|\s)\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d*)?)?"
    r"\s*(?:(Z|UTC|GMT)|([+-])(\d{2}):?(\d{2}))?)?)?)?",
    re.ASCII,
)


def w3c_s(text: str) -> float:
    """A date without a time is its first moment, and one without an offset is in UTC.

    >>> w3c_s("1970"), w3c_s("1970-01-02"), w3c_s("1970-01-01T01:00+01:00"), w3c_s("1970-01-01T00:00:01.5Z"), w3c_s("soon")
    (0.0, 86400.0, 0.0, 1.5, nan)
    """
    text = text[:_MOST_DATE].strip().upper()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return _unusual_s(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _unusual_s(text: str) -> float:
    """What `fromisoformat` does not take: a year or a month alone, and carelessness."""
    found = _W3C.fullmatch(text)
    if not found:
        return nan
    year, month, day, hour, minute, second, _, sign, off_hours, off_minutes = found.groups()
    try:
        offset = timedelta(hours=int(off_hours or 0), minutes=int(off_minutes or 0)) * (-1 if sign == "-" else 1)
        numbers = (int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0))
        return datetime(*numbers, tzinfo=timezone(offset)).timestamp()
    except (ValueError, OverflowError):
        return nan


def mail_s(text: str) -> float:
    """As in mail (RFC 822 and its followers) and HTTP, all three forms; in GMT unless it says otherwise.

    >>> mail_s("Thu, 01 Jan 1970 01:00:00 +0100"), mail_s("Thursday, 01-Jan-70 00:00:09 GMT"), mail_s("Thu Jan  1 00:00:09 1970")
    (0.0, 9.0, 9.0)
    """
    try:
        parsed = parsedate_tz(text[:_MOST_DATE])
        return float(timegm(parsed[:6]) - (parsed[9] or 0)) if parsed else nan
    except (ValueError, OverflowError, IndexError, TypeError):
        return nan


def moment_s(text: str, now: float) -> float:
    """A date in either style: nan if it is further ahead than anybody knows, none before 1970.

    Not moved to the limit if it is beyond: a page that says it changed in 2099 would have a new date at every reading.
    """
    found = w3c_s(text)
    if found != found:
        found = mail_s(text)
    return max(found, 0.0) if found <= now + FURTHEST_S else nan
