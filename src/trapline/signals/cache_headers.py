"""What HTTP's caching headers tell of a page's changes: until when it may be kept (RFC 9111), and how long ago it was changed (RFC 9110).

Headers in (names in small letters, as fetch gives them), numbers out, nan where nothing is said; nothing here raises, whatever the bytes.
Neither is a promise: how often a page does change when its time is over is learned elsewhere. The heuristic of RFC 9111, 4.2.2, a tenth
of the age, is a cache's guess and no fact, and is not made here.
"""

import re
from collections.abc import Mapping
from math import nan

from trapline.signals.dates import FURTHEST_S, mail_s

LEAST_S = 1.0  # a page made for this request has no age
_OLDEST_S = 50 * 365.25 * 86_400.0
_LIFETIME = re.compile(rb"(?:^|[\s,;])(s-maxage|max-age)\s*=\s*\"?([0-9]{1,10})(?![0-9])", re.IGNORECASE)
_NO_LIFETIME = re.compile(rb"(?:^|[\s,;])(?:no-store|no-cache)\s*(?:[,;]|$)", re.IGNORECASE)
_SECONDS = re.compile(rb"\s*([0-9]{1,10})\s*(?:,.*)?", re.DOTALL)


def expiry(headers: Mapping[bytes, bytes], date_s: float) -> float:
    """The moment until which an answer that arrived at `date_s`, by our clock, may be kept; nan if it is none, over already, or more than
    30 days away: who sets it that far means "for ever".

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
    said: dict[bytes, float] = {}
    for name, seconds in _LIFETIME.findall(control):
        said.setdefault(name.lower(), float(seconds))
    if said:
        return said.get(b"s-maxage", said.get(b"max-age", nan))
    return _moment_s(headers, b"expires") - _sent_s(headers, date_s)


def last_modified_age(headers: Mapping[bytes, bytes], date_s: float) -> float:
    """Seconds since the page was changed, when its answer arrived; nan if it does not say, or says what cannot be: less than a second (it
    was made for this request), or the future. By the server's own clock if it tells the time, so that a wrong one does no harm.

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
