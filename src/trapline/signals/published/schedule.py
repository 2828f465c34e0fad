"""Parser of schedule feeds, in which a site publishes when its pages will change, and with which probability.

The format is JSON, and our own (docs/signals-published.md). Bytes in, facts out: the module fetches nothing, and does not decide how
far the site is believed. It accepts any bytes without an error, in bounded time, and counts what it could not use. A schedule feed
speaks only for its own site (scheme, host and port), and only until it expires. recurrence.py expands its recurrence rules.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, tzinfo
from itertools import islice
from math import inf, isfinite, nan
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from trapline.fetch.urls import host_port, origin
from trapline.signals.dates import w3c_s
from trapline.signals.published.files import FileUrls, host_of
from trapline.signals.published.recurrence import moments, rule_of

MOST_BYTES = 1024 * 1024
MOST_POINTS = 10_000  # points and entries that are read
MOST_RULES = 200  # different rules
HORIZON_S = 30 * 86_400.0
LEAST_WINDOW_S = 60.0  # a page has at most one point within a window
VERSION = 1
_MOST_KEY = 1_000  # characters of a rule, or of a time zone's name

# Reasons why something was not used.
UNREADABLE, EXPIRED, OTHER_HOST, NO_RULE = "unreadable", "expired", "of another host", "no rule that is understood"
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,40}(?:/[A-Za-z0-9_+-]{1,40}){0,2}")
NO_POINT, PAST, TOO_FAR, TOO_MANY = "no moment or probability", "past", "too far ahead", "too many"


class Point(NamedTuple):
    at: float  # seconds since 1970
    p: float  # probability that the page changes then, above 0 and up to 1


class Schedule(NamedTuple):
    points: dict[str, list[Point]]  # by canonical URL, in order of time, all in the future
    generated: float
    expires: float
    problems: Mapping[str, int]


class _Update(NamedTuple):
    at: float
    window_s: float
    p: float


def read_schedule(body: bytes, url: str, now: float) -> Schedule:
    """Parse the schedule feed at `url`, and return its points after `now`.

    >>> entries = b'[{"url": "/x", "updates": [{"at": 600, "p": 0.5}, {"at": "1970-01-01T00:10:30Z"}]}]'
    >>> feed = b'{"version": 1, "host": "a.org", "expires": 9e3, "entries": %s}' % entries
    >>> read_schedule(feed, "https://a.org/schedule.json", 0.0).points
    {'https://a.org/x': [Point(at=630.0, p=1.0)]}
    """
    problems: Counter[str] = Counter()
    feed = _object(body)
    if feed is None or not _is_from_host(feed.get("host"), FileUrls(url).base):
        problems[UNREADABLE if feed is None else OTHER_HOST] += 1
        return Schedule({}, nan, nan, problems)
    generated, expires = _moment_s(feed.get("generated")), _moment_s(feed.get("expires"))
    if not expires > now:
        problems[EXPIRED] += 1
        return Schedule({}, generated, expires, problems)
    reading = _ScheduleReading(
        url, generated if generated <= now else now, now, min(expires, now + HORIZON_S), problems
    )
    entries = feed.get("entries")
    for entry in islice(entries if isinstance(entries, list) else (), MOST_POINTS):
        reading.take(entry if isinstance(entry, dict) else {})
    return Schedule(reading.points(), generated, expires, problems)


def _object(body: bytes) -> dict[str, Any] | None:
    """Return the feed's JSON object; None if it is too long, not JSON, or of another version."""
    try:
        feed = json.loads(body) if len(body) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        return None
    return feed if isinstance(feed, dict) and feed.get("version") == VERSION else None


def _is_from_host(host: object, feed_url: str) -> bool:
    """Return whether the host that a feed names, with or without a port, is the one that it was fetched from."""
    if not feed_url or not isinstance(host, str):
        return False
    return host.lower() in (host_of(feed_url), host_port(origin(feed_url))[1])


class _ScheduleReading:
    """State of one feed while its entries are read."""

    def __init__(self, url: str, generated: float, now: float, until: float, problems: Counter[str]) -> None:
        self._resolve = FileUrls(url)
        self._site = origin(self._resolve.base)
        self._generated, self._now, self._until = generated, now, until
        self._problems = problems
        self._left = MOST_POINTS  # points that may still be read
        self._rules: dict[tuple[str, str], list[float] | None] = {}
        self._updates: dict[str, list[_Update]] = {}

    def take(self, entry: dict[str, Any]) -> None:
        if self._left == 0:
            self._problems[TOO_MANY] += 1
            return
        text = entry.get("url")
        url = self._resolve(text) if isinstance(text, str) else None
        if url is None or origin(url) != self._site:
            self._problems[OTHER_HOST] += 1
            return
        found = self._updates.setdefault(url, [])
        for update in self._updates_of(entry):
            if self._left == 0:
                self._problems[TOO_MANY] += 1
                return
            self._left -= 1
            if self._is_ahead(update):
                found.append(update)

    def _updates_of(self, entry: dict[str, Any]) -> Iterator[_Update]:
        window_s, p = _number(entry.get("window_s")), _number(entry.get("p", 1.0))
        updates = entry.get("updates")
        for update in updates if isinstance(updates, list) else ():
            if isinstance(update, dict):
                at = _moment_s(update.get("at"))
                yield _Update(at, _number(update.get("window_s")), _number(update["p"]) if "p" in update else p)
        if "rrule" in entry:
            for at in self._expanded(entry["rrule"], entry.get("tzid", "UTC")):
                yield _Update(at, window_s, p)

    def _expanded(self, text: object, tzid: object) -> list[float]:
        """Return the moments of a rule. Many pages have the same rule, which is expanded only once."""
        key = str(text)[:_MOST_KEY], str(tzid)[:_MOST_KEY]
        if key not in self._rules and len(self._rules) < MOST_RULES:
            self._rules[key] = self._moments(*key)
        found = self._rules.get(key)
        if found is None:
            self._problems[NO_RULE] += 1
        return found or []

    def _moments(self, text: str, tzid: str) -> list[float] | None:
        zone = _zone(tzid)
        rule = rule_of(text, zone, _day_of(self._generated, zone)) if zone else None
        # Only as many as may still be read: expanding 200 rules with a moment each minute would take seconds.
        return None if rule is None else list(islice(moments(rule, self._now, self._until), self._left))

    def _is_ahead(self, update: _Update) -> bool:
        if update.at != update.at or not 0.0 < update.p <= 1.0:
            self._problems[NO_POINT] += 1
        elif update.at <= self._now:
            self._problems[PAST] += 1
        elif update.at > self._until:
            self._problems[TOO_FAR] += 1
        else:
            return True
        return False

    def points(self) -> dict[str, list[Point]]:
        return {url: merged(sorted(updates)) for url, updates in self._updates.items() if updates}


def merged(updates: list[_Update]) -> list[Point]:
    """Merge updates within one window into one point, at the last of them, so that one crawl sees them all.

    A window begins at its first update and is at least a minute long. p = 1 - Π (1 - p).

    >>> merged([_Update(0.0, 600.0, 0.5), _Update(300.0, nan, 0.5), _Update(601.0, nan, 0.5)])
    [Point(at=300.0, p=0.75), Point(at=601.0, p=0.5)]
    """
    points: list[Point] = []
    end = -inf
    for update in updates:
        if update.at < end:
            points[-1] = Point(update.at, 1.0 - (1.0 - points[-1].p) * (1.0 - update.p))
        else:
            points.append(Point(update.at, update.p))
            end = update.at + (update.window_s if update.window_s >= LEAST_WINDOW_S else LEAST_WINDOW_S)
    return points


def _moment_s(value: object) -> float:
    """Return a moment in seconds since 1970, from a number of seconds or from a date as in w3.org/TR/NOTE-datetime."""
    return w3c_s(value) if isinstance(value, str) else _number(value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return nan
    try:
        return float(value) if isfinite(value) else nan
    except OverflowError:
        return nan


def _zone(name: str) -> tzinfo | None:
    if not _ZONE.fullmatch(name):  # with a dot in the name, ZoneInfo would try to import a package
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # not found, or the name of a folder
        return None


def _day_of(moment: float, zone: tzinfo) -> date:
    try:
        return datetime.fromtimestamp(moment, zone).date()
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0.0, UTC).date()
