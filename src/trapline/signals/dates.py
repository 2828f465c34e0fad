"""Dates as providers write them: W3C datetimes, and the dates of mail and HTTP.

Text in, seconds since 1970 out; nan for text that cannot be parsed. The parsers of published files share this module. It
reads no clock: the caller passes the current time.
"""

import re
from calendar import timegm
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_tz
from math import nan

FURTHEST_S = 30 * 86_400.0  # a date further in the future is not believed

_MOST_DATE = 64  # characters that are parsed
# All formats of w3.org/TR/NOTE-datetime, and common deviations: one digit, a space instead of T, an offset without a colon.
_W3C = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:(?:T|\s)\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d*)?)?"
    r"\s*(?:(Z|UTC|GMT)|([+-])(\d{2}):?(\d{2}))?)?)?)?",
    re.ASCII,
)


def w3c_s(text: str) -> float:
    """Parse a W3C datetime. A date without a time means the start of the day; one without an offset is in UTC.

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
    """Parse what `fromisoformat` does not accept: a year or a month alone, and sloppy formats."""
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
    """Parse a date of mail (RFC 822 and its successors) or HTTP, in all three formats; in GMT unless it names a zone.

    >>> mail_s("Thu, 01 Jan 1970 01:00:00 +0100"), mail_s("Thursday, 01-Jan-70 00:00:09 GMT"), mail_s("Thu Jan  1 00:00:09 1970")
    (0.0, 9.0, 9.0)
    """
    try:
        parsed = parsedate_tz(text[:_MOST_DATE])
        return float(timegm(parsed[:6]) - (parsed[9] or 0)) if parsed else nan
    except (ValueError, OverflowError, IndexError, TypeError):
        return nan


def moment_s(text: str, now: float) -> float:
    """Parse a date in either style. Return nan if it is more than `FURTHEST_S` ahead of `now`, and 0 if it is before 1970.

    A date beyond the limit is not clipped to it: a page that claims a change in 2099 would get a new date at each reading.
    """
    found = w3c_s(text)
    if found != found:
        found = mail_s(text)
    return max(found, 0.0) if found <= now + FURTHEST_S else nan


# ---- HTTP caching headers: until when a response is fresh (RFC 9111), and how long ago the page was modified (RFC 9110).
#
# Headers in (names in lower case, as the fetch layer gives them), numbers out; nan where a header is missing. Nothing here raises,
# whatever the bytes. Neither number is a promise: the crawl learns elsewhere how often a page has really changed when its freshness
# ends. The heuristic of RFC 9111, 4.2.2 (a tenth of the age) is a cache's guess and not a fact, so it is not applied here.

LEAST_S = 1.0  # a younger page was generated for this request, and its age says nothing
_OLDEST_S = 50 * 365.25 * 86_400.0
_LIFETIME = re.compile(rb"(?:^|[\s,;])(s-maxage|max-age)\s*=\s*\"?([0-9]{1,10})(?![0-9])", re.IGNORECASE)
_NO_LIFETIME = re.compile(rb"(?:^|[\s,;])(?:no-store|no-cache)\s*(?:[,;]|$)", re.IGNORECASE)
_SECONDS = re.compile(rb"\s*([0-9]{1,10})\s*(?:,.*)?", re.DOTALL)


def expiry(headers: Mapping[bytes, bytes], date_s: float) -> float:
    """Return until when a response that arrived at `date_s`, by our clock, is fresh.

    Return nan if there is no such time, if it is less than `LEAST_S` ahead, or if it is more than 30 days ahead: a server
    that sets it that far means "for ever".

    date_s + (s-maxage | max-age | Expires - Date) - Age

    >>> expiry({b"cache-control": b"max-age=600", b"age": b"60"}, 1_000.0), expiry({b"cache-control": b"no-cache"}, 0.0)
    (1540.0, nan)
    """
    left_s = _lifetime_s(headers, date_s) - _age_s(headers)
    return date_s + left_s if LEAST_S <= left_s <= FURTHEST_S else nan


def _lifetime_s(headers: Mapping[bytes, bytes], date_s: float) -> float:
    control = headers.get(b"cache-control", b"")
    if _NO_LIFETIME.search(control):
        return nan
    directives: dict[bytes, float] = {}
    for name, seconds in _LIFETIME.findall(control):
        directives.setdefault(name.lower(), float(seconds))
    if directives:
        return directives.get(b"s-maxage", directives.get(b"max-age", nan))
    return _moment_s(headers, b"expires") - _sent_s(headers, date_s)


def last_modified_age(headers: Mapping[bytes, bytes], date_s: float) -> float:
    """Return the seconds between the page's last modification and the arrival of its response.

    Return nan if there is no Last-Modified header, or if its date is implausible: in the future, or less than a second ago
    (the page was generated for this request), or more than 50 years ago. The age is measured by the server's own clock if
    the response has a Date header, so that a wrong clock does no harm.

    >>> last_modified_age({b"last-modified": b"Thu, 01 Jan 1970 00:00:10 GMT", b"date": b"Thu, 01 Jan 1970 00:01:00 GMT"}, 9e9)
    50.0
    """
    age_s = _sent_s(headers, date_s) + _age_s(headers) - _moment_s(headers, b"last-modified")
    return age_s if LEAST_S <= age_s <= _OLDEST_S else nan


def _sent_s(headers: Mapping[bytes, bytes], date_s: float) -> float:
    sent_s = _moment_s(headers, b"date")
    return sent_s if sent_s == sent_s else date_s - _age_s(headers)


def _age_s(headers: Mapping[bytes, bytes]) -> float:
    found = _SECONDS.fullmatch(headers.get(b"age", b""))
    return float(found[1]) if found else 0.0


def _moment_s(headers: Mapping[bytes, bytes], name: bytes) -> float:
    value = headers.get(name)
    return mail_s(value.decode("latin-1")) if value else nan
