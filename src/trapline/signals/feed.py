"""A feed read: RSS 0.9x, 1.0 and 2.0, Atom 0.3 and 1.0, JSON Feed. Which pages of its own host it names, when each was changed, and when
it will itself change.

Bytes in, facts out: nothing is fetched, and what the facts are worth is not known here. Any bytes are read without complaint, in bounded
time; what could not be used is counted. The fields come from feed_xml.py or feed_json.py; when it will change is rhythm.py's.
"""

from collections import Counter
from collections.abc import Mapping
from math import nan
from typing import NamedTuple

from trapline.fetch.urls import canonical
from trapline.signals.dates import moment_s
from trapline.signals.feed_json import read_json
from trapline.signals.feed_xml import Found, Item, read_xml
from trapline.signals.places import Resolver, host_of
from trapline.signals.rhythm import Rhythm
from trapline.signals.unpacked import unpacked

MOST_BYTES = 4 * 1024 * 1024  # what is beyond is not read: newest entries come first
MOST_ENTRIES = 5_000
_MOST_HUBS = 8
_MOST_LINKS = 8  # of an entry

# Why something was not used.
NO_URL, OTHER_HOST, NO_DATE, CUT, UNREADABLE = "no URL", "of another host", "no date", "cut", "unreadable"


class Entry(NamedTuple):
    url: str  # canonical
    updated: float  # seconds since 1970, the latest of its dates; nan: none


class Feed(NamedTuple):
    kind: str  # "rss", "atom", "json"; "": it is none
    entries: list[Entry]  # of the feed's own host, in order, each page once
    left_out: list[str]  # of other hosts: a feed does not speak for them
    hubs: list[str]  # of WebSub
    self_url: str  # what to subscribe to; "": it does not say
    rhythm: Rhythm
    problems: Mapping[str, int]

    def points(self, now: float, horizon_s: float) -> list[float]:
        """Moments ahead at which the feed itself says it will change, if it does."""
        return self.rhythm.points(now, horizon_s)


def read_feed(body: bytes, url: str, now: float) -> Feed:
    """What the feed at `url` says.

    >>> rss = b"<rss><channel><ttl>60</ttl><item><link>/1</link><pubDate>Fri, 02 Jan 1970 00:00:00 GMT</pubDate></item>"
    >>> feed = read_feed(rss, "http://a.org/feed", 1e9)
    >>> feed.entries, feed.points(0.0, 9_000.0)
    ([Entry(url='http://a.org/1', updated=86400.0)], [3600.0, 7200.0])
    """
    file = unpacked(body[: MOST_BYTES + 1], MOST_BYTES + 1)
    found = Found() if file is None else _found(file)
    reading = _Reading(Resolver(url), now)
    for item in found.items:
        reading.take(item)
    if found.cut:
        reading.problems[CUT] += 1
    if not found.kind:
        reading.problems[UNREADABLE] += 1
    return reading.feed(found)


def _found(file: bytes) -> Found:
    if file[:1000].lstrip()[:1] == b"{":
        return read_json(file, MOST_ENTRIES) if len(file) <= MOST_BYTES else Found()
    found = read_xml(file[:MOST_BYTES], MOST_ENTRIES)
    found.cut |= len(file) > MOST_BYTES
    return found


class _Reading:
    """What the fields of one feed mean."""

    def __init__(self, resolve: Resolver, now: float) -> None:
        self.problems: Counter[str] = Counter()
        self._resolve, self._now = resolve, now
        self._host = host_of(resolve.base)
        self._updated: dict[str, float] = {}
        self._left_out: list[str] = []

    def take(self, item: Item) -> None:
        """Of its links the first that is of the feed's own host, for the feed's link may be a counter's on its way to the page."""
        urls = [url for text in item.links[:_MOST_LINKS] if (url := self._place(text, item.base))]
        own = next((url for url in urls if host_of(url) == self._host), None)
        if own is not None:
            self._updated[own] = _latest([self._updated.get(own, nan), *self._moments(item)])
        elif urls:
            self._left_out.append(urls[0])
            self.problems[OTHER_HOST] += 1
        else:
            self.problems[NO_URL] += 1

    def _place(self, text: str, base: str) -> str | None:
        return canonical(text, canonical(base, self._resolve.base)) if base else self._resolve(text)

    def _moments(self, item: Item) -> list[float]:
        moments = [moment_s(text, self._now) for text in item.dates[:_MOST_LINKS]]
        self.problems[NO_DATE] += sum(moment != moment for moment in moments)
        return moments

    def feed(self, found: Found) -> Feed:
        entries = [Entry(url, updated) for url, updated in self._updated.items()]
        hubs = [hub for text in found.hubs[:_MOST_HUBS] if (hub := self._resolve(text))]
        itself = self._resolve(found.self_url) if found.self_url else None
        return Feed(found.kind, entries, self._left_out, hubs, itself or "", Rhythm.of(found.said), +self.problems)


def _latest(moments: list[float]) -> float:
    return max((moment for moment in moments if moment == moment), default=nan)
