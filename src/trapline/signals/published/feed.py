"""Parser of feeds: RSS 0.9x, 1.0 and 2.0, Atom 0.3 and 1.0, JSON Feed.

Bytes in, facts out: the pages of the feed's own host that it names, when each was updated, and when the feed itself will change. The
module fetches nothing, and does not judge how reliable the facts are. It accepts any bytes without an error, in bounded time, and
counts what it could not use. feed_formats.py extracts the fields; this module interprets them.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import floor, inf, isfinite, nan
from typing import NamedTuple

from trapline.fetch.urls import canonical
from trapline.signals.dates import moment_s, w3c_s
from trapline.signals.published.feed_formats import FeedFields, Item, read_json, read_xml
from trapline.signals.published.files import FileUrls, host_of, unpacked

# ---- When a feed says that it will change: `ttl`, `skipHours` and `skipDays` of RSS, and `sy:update*` of the syndication module.
#
# These moments apply to the feed itself, not to the pages that it names. They carry no probability, and content management systems
# write them by default; the crawl learns elsewhere how often they are right.
#
# Source: RSS 2.0 (rssboard.org/rss-specification); purl.org/rss/1.0/modules/syndication/: t_k = base + k * period / frequency.

MOST_POINTS = 1000  # enough for an hourly feed over the horizon of 30 days
LEAST_STEP_S = 60.0

_YEAR_S = 365.2425 * 86_400.0
PERIODS_S = {
    "hourly": 3_600.0,
    "daily": 86_400.0,
    "weekly": 604_800.0,
    "monthly": _YEAR_S / 12,  # the average month: calendar months are not distinguished
    "yearly": _YEAR_S,
}
_NUMBER = re.compile(r"[0-9]{1,9}")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Rhythm(NamedTuple):
    """The update times that a feed announces for itself."""

    period_s: float = nan  # sy:updatePeriod
    frequency: int = 1  # sy:updateFrequency: updates per period
    base_s: float = nan  # sy:updateBase; without it, periods are counted from 1970-01-01, 00:00 GMT
    ttl_s: float = nan
    skip_hours: frozenset[int] = frozenset()  # GMT
    skip_days: frozenset[int] = frozenset()  # 0: Monday

    @classmethod
    def of(cls, said: Mapping[str, Sequence[str]]) -> "Rhythm":
        """Build a rhythm from the texts of elements, by element name in lower case. Ignores texts that cannot be parsed.

        >>> Rhythm.of({"ttl": ["90"], "hour": ["3", "noon"], "day": ["Sunday"]})[3:]
        (5400.0, frozenset({3}), frozenset({6}))
        """
        period_s = PERIODS_S.get(_first(said, "updateperiod").lower(), nan)
        if period_s != period_s and (said.get("updatefrequency") or said.get("updatebase")):
            period_s = PERIODS_S["daily"]  # the module's default
        # 24 was midnight in RSS 0.91
        hours = {int(text) % 24 for text in said.get("hour", ()) if _NUMBER.fullmatch(text)}
        days = {DAYS.index(text.lower()) for text in said.get("day", ()) if text.lower() in DAYS}
        ttl = _number(_first(said, "ttl"))
        frequency = max(_number(_first(said, "updatefrequency")), 1)
        return cls(
            period_s, frequency, w3c_s(_first(said, "updatebase")), ttl * 60.0 or nan, frozenset(hours), frozenset(days)
        )

    def points(self, now: float, horizon_s: float) -> list[float]:
        """Return the announced moments after `now` and within the horizon. A ttl counts from `now`, when the feed was read.

        >>> Rhythm(period_s=86_400.0, frequency=2, base_s=3_600.0).points(50_000.0, 86_400.0)
        [90000.0, 133200.0]
        """
        step_s = max(self._step_s(), LEAST_STEP_S)
        if not isfinite(step_s + horizon_s):
            return []
        first = self._base_s(now)
        first += step_s * (floor((now - first) / step_s) + 1)
        count = min(max(floor((now + horizon_s - first) / step_s) + 1, 0), MOST_POINTS)
        return [at for at in (first + k * step_s for k in range(count)) if not self._skipped(at)]

    def _step_s(self) -> float:
        if self.period_s == self.period_s:
            return self.period_s / self.frequency
        return self.ttl_s if self.ttl_s == self.ttl_s else inf

    def _base_s(self, now: float) -> float:
        if self.period_s != self.period_s:
            return now
        return self.base_s if self.base_s == self.base_s else 0.0

    def _skipped(self, at: float) -> bool:
        if not self.skip_hours and not self.skip_days:
            return False
        moment = datetime.fromtimestamp(at, UTC)
        return moment.hour in self.skip_hours or moment.weekday() in self.skip_days


def _first(said: Mapping[str, Sequence[str]], name: str) -> str:
    return next(iter(said.get(name, ())), "").strip()


def _number(text: str) -> int:
    return int(text) if _NUMBER.fullmatch(text) else 0


# ---- Entries of a feed

MOST_BYTES = 4 * 1024 * 1024  # the rest is not read: feeds list the newest entries first
MOST_ENTRIES = 5_000
_MOST_HUBS = 8
_MOST_LINKS = 8  # per entry; also the limit for its dates

# Reasons why something was not used.
NO_URL, OTHER_HOST, NO_DATE, CUT, UNREADABLE = "no URL", "of another host", "no date", "cut", "unreadable"


class FeedEntry(NamedTuple):
    url: str  # canonical
    updated: float  # seconds since 1970, the latest of its dates; nan: no date


class Feed(NamedTuple):
    kind: str  # "rss", "atom", "json"; "": not a feed
    entries: list[FeedEntry]  # pages of the feed's own host, in order, each once
    rejected_links: list[str]  # pages of other hosts, for which a feed does not speak
    hubs: list[str]  # WebSub hubs
    self_url: str  # the URL to subscribe to; "": not given
    rhythm: Rhythm
    problems: Mapping[str, int]

    def points(self, now: float, horizon_s: float) -> list[float]:
        """Return the moments after `now` at which the feed announces that it will change itself."""
        return self.rhythm.points(now, horizon_s)


def read_feed(body: bytes, url: str, now: float) -> Feed:
    """Parse the feed at `url`.

    >>> rss = b"<rss><channel><ttl>60</ttl><item><link>/1</link><pubDate>Fri, 02 Jan 1970 00:00:00 GMT</pubDate></item>"
    >>> feed = read_feed(rss, "http://a.org/feed", 1e9)
    >>> feed.entries, feed.points(0.0, 9_000.0)
    ([FeedEntry(url='http://a.org/1', updated=86400.0)], [3600.0, 7200.0])
    """
    file = unpacked(body[: MOST_BYTES + 1], MOST_BYTES + 1)
    found = FeedFields() if file is None else _found(file)
    reading = _FeedReading(FileUrls(url), now)
    for item in found.items:
        reading.take(item)
    if found.cut:
        reading.problems[CUT] += 1
    if not found.kind:
        reading.problems[UNREADABLE] += 1
    return reading.feed(found)


def _found(file: bytes) -> FeedFields:
    if file[:1000].lstrip()[:1] == b"{":
        return read_json(file, MOST_ENTRIES) if len(file) <= MOST_BYTES else FeedFields()
    found = read_xml(file[:MOST_BYTES], MOST_ENTRIES)
    found.cut |= len(file) > MOST_BYTES
    return found


class _FeedReading:
    """Interprets the fields of one feed."""

    def __init__(self, resolve: FileUrls, now: float) -> None:
        self.problems: Counter[str] = Counter()
        self._resolve, self._now = resolve, now
        self._host = host_of(resolve.base)
        self._updated: dict[str, float] = {}
        self._rejected: list[str] = []

    def take(self, item: Item) -> None:
        """Add one entry, by its first link on the feed's own host: the link in the feed may lead over a click counter elsewhere."""
        urls = [url for text in item.links[:_MOST_LINKS] if (url := self._absolute(text, item.base))]
        own = next((url for url in urls if host_of(url) == self._host), None)
        if own is not None:
            self._updated[own] = _latest([self._updated.get(own, nan), *self._moments(item)])
        elif urls:
            self._rejected.append(urls[0])
            self.problems[OTHER_HOST] += 1
        else:
            self.problems[NO_URL] += 1

    def _absolute(self, text: str, base: str) -> str | None:
        return canonical(text, canonical(base, self._resolve.base)) if base else self._resolve(text)

    def _moments(self, item: Item) -> list[float]:
        moments = [moment_s(text, self._now) for text in item.dates[:_MOST_LINKS]]
        self.problems[NO_DATE] += sum(moment != moment for moment in moments)
        return moments

    def feed(self, found: FeedFields) -> Feed:
        entries = [FeedEntry(url, updated) for url, updated in self._updated.items()]
        hubs = [hub for text in found.hubs[:_MOST_HUBS] if (hub := self._resolve(text))]
        itself = self._resolve(found.self_url) if found.self_url else None
        return Feed(found.kind, entries, self._rejected, hubs, itself or "", Rhythm.of(found.said), +self.problems)


def _latest(moments: list[float]) -> float:
    return max((moment for moment in moments if moment == moment), default=nan)
