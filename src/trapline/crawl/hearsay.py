"""What providers tell of their pages, on its way to the refresher: signals from the inbox, and what the crawl's own pages say.

A sitemap, a feed and a schedule are pages like others: they are fetched by the frontier's rules and fetched again by the
refresher's. When one comes in it is read here; each date on it is a signal, each moment ahead a published point, each URL never met
before a new page. What is told never brings a new site into the crawl, and never a page that the scope leaves out.

Who owns what: the inbox its signals, and the store which of them were heard; here is the number of the last one.
"""

import math
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

import numpy as np

from trapline.crawl.judge import Verdict
from trapline.crawl.known import Known
from trapline.crawl.outbox import Outbox
from trapline.crawl.records import SignalNoted
from trapline.fetch.response import Response
from trapline.frontier import Frontier
from trapline.refresh.refresher import Refresher
from trapline.signals.feed import Feed, read_feed
from trapline.signals.inbox import ACCESS, CHANGED, CHANNELS, POINT, Inbox, Signal
from trapline.signals.relations import Relations, of_response, of_robots
from trapline.signals.schedule_feed import Schedule, read_schedule
from trapline.signals.sitemap import Sitemap, read_sitemap
from trapline.signals.sniff import kind_of

T = TypeVar("T")
MOST_AT_ONCE = 5_000  # signals between two looks at the loop
SITEMAP, FEED, SCHEDULE = (CHANNELS.index(name) for name in ("sitemap", "feed", "schedule"))
_MOST_CITED = 100_000
_MOST_EARLY = 1_000_000
_MOST_ACCESSES = 10_000.0  # that one signal counts
_LONG_BYTES = 65_536  # a longer body is read aside: 10 ms
_LISTED_AT_ONCE = 1_000  # entries of a list
_HEAD_BYTES = 16_384  # of a page, in which its <link>s stand
_RHYTHM_P = 0.5  # that a feed changes when it says it does; then it is learned
_DAY_S = 86_400.0
_AHEAD_S = 30 * _DAY_S  # how far a schedule is believed to look
# What became of a signal.
NOTED, OLD, NEW, WAITS, NO_PAGE = "noted", "old", "new page", "not fetched yet", "no page of the crawl"


class Aside(Protocol):
    """How long work is done without keeping the loop from its pages (aside.py)."""

    def read(self, read: Callable[[], T], take: Callable[[T], None]) -> None:
        """Call `read` somewhere, then `take` here with what it found."""

    def soon(self, callback: Callable[[], None]) -> None: ...


class Hearsay:
    def __init__(
        self,
        refresher: Refresher,
        frontier: Frontier,
        known: Known,
        inbox: Inbox,
        outbox: Outbox,
        clock: Callable[[], float],
        aside: Aside,
        last: int = 0,
        own: int = 0,
    ) -> None:
        """`last`: the number of the last signal that was heard before. `own`: of the last that the crawl read itself; these count
        downwards from 0."""
        self._refresher, self._frontier, self._known = refresher, frontier, known
        self._inbox, self._outbox, self._last = inbox, outbox, last
        self._own, self._clock, self._aside = own, clock, aside
        self._cited: set[str] = set()  # sitemaps that a robots.txt names: they may speak for all of their site
        self.heard = 0  # in this run
        # Pages that are schedules: a moment told of a page that we do not have yet is only heard when it is told again.
        self.schedules: set[int] = set()
        self._topics: set[str] = set()  # written in this run
        self._early: dict[int, float] = {}  # accesses of pages that are still to be fetched; emptied by `listen`
        # By page: the sitemap or feed that lists it, and the date that was last read there.
        self._told_by, self._dated = np.full(1024, -1, np.int32), np.full(1024, math.inf)

    # ---- signals

    def poll(self, now: float) -> bool:
        """Hear what has come in since the last time; whether there was anything."""
        try:
            signals = self._inbox.take(self._last, MOST_AT_ONCE)
        except sqlite3.Error:  # it is busy, or the disk is full: another time
            return False
        if not signals:
            return False
        pages = self._known.find([signal.url for signal in signals])
        points: dict[tuple[int, str], list[tuple[float, float]]] = {}
        for signal, page in zip(signals, pages, strict=True):
            if signal.kind == POINT and page in self._refresher:
                points.setdefault((page, signal.channel), []).append((signal.moment, signal.p))
            self._note(signal.id, page, signal.channel, signal.kind, self._hear(signal, page, now), now)
        for (page, channel), ahead in points.items():
            self._refresher.publish(page, CHANNELS.index(channel), ahead, now)
        self._last = signals[-1].id
        return True

    def _hear(self, signal: Signal, page: int, now: float) -> str:
        if page < 0:
            is_news = signal.kind == CHANGED and signal.verified
            return NEW if is_news and self._discover([signal.url], now) else NO_PAGE
        if page not in self._refresher:
            if signal.kind == ACCESS and len(self._early) < _MOST_EARLY:
                self._early[page] = self._early.get(page, 0.0) + signal.p
            return WAITS
        if signal.kind == ACCESS:
            self._accessed(page, now, signal.p)
        elif signal.kind == CHANGED:
            return self._signalled(page, CHANNELS.index(signal.channel), signal.moment, signal.p, now)
        return NOTED

    def _signalled(self, page: int, channel: int, moment: float, p: float, now: float) -> str:
        if moment < self._refresher.seen_at(page):
            return OLD
        before = self._refresher.signals(page)
        self._refresher.signalled(page, channel, now, moment, p)
        return NOTED if self._refresher.signals(page) > before else OLD

    def _accessed(self, page: int, now: float, count: float) -> None:
        """Whoever lists a page is worth what it tells of it."""
        count = min(max(count, 0.0), _MOST_ACCESSES)
        self._refresher.accessed(page, now, count)
        teller = int(self._told_by[page]) if page < len(self._told_by) else -1
        if teller >= 0 and teller != page and teller in self._refresher:
            self._refresher.accessed(teller, now, count)

    def _note(self, number: int, page: int, channel: str, kind: str, outcome: str, now: float) -> None:
        self.heard += 1
        self._outbox.signals.append(SignalNoted(number, page, now, channel, kind, outcome))

    # ---- what is published

    def listen(self, page: int, url: str, verdict: Verdict, response: Response, now: float) -> None:
        """A page was had: it may be one that tells of others."""
        if page in self._early and page in self._refresher:
            self._accessed(page, now, self._early.pop(page))
        if response.status != 200:
            return
        body, cited = verdict.body, url in self._cited
        kind = kind_of(verdict.mime, body, url)
        read = self._aside.read if len(body) > _LONG_BYTES else _at_once
        if kind == "sitemap":
            read(lambda: read_sitemap(body, url, cited, now), lambda found: self._sitemap(page, found))
        elif kind == "feed":
            read(lambda: read_feed(body, url, now), lambda found: self._feed(page, url, found))
        elif kind == "schedule":
            read(lambda: read_schedule(body, url, now), lambda found: self._schedule(page, found))
        else:
            self._tellers(of_response(response.headers, url, body[:_HEAD_BYTES]), now)

    def robots(self, url: str, body: bytes, now: float) -> None:
        """A robots.txt may say where its site's sitemaps and schedules are."""
        found = of_robots(body, url)
        if len(self._cited) < _MOST_CITED:
            self._cited.update(found.sitemaps)
        self._tellers(found, now)

    def _tellers(self, found: Relations, now: float) -> None:
        urls = (*found.sitemaps, *found.schedules, *found.feeds)
        if urls:
            self._discover(urls, now)

    def _sitemap(self, page: int, found: Sitemap) -> None:
        dates = math.nan if found.uniform_dates else 1.0
        entries = [*found.sitemaps, *found.entries]
        self._listed(page, SITEMAP, [(entry.url, entry.lastmod * dates) for entry in entries])

    def _feed(self, page: int, url: str, found: Feed) -> None:
        self._listed(page, FEED, [(entry.url, entry.updated) for entry in found.entries])
        for hub in found.hubs[:1]:
            self._topic(found.self_url or url, hub)
        now = self._clock()
        ahead = [(at, _RHYTHM_P) for at in found.points(now, _AHEAD_S)]
        if ahead and page in self._refresher:
            self._refresher.publish(page, FEED, ahead, now)

    def _topic(self, url: str, hub: str) -> None:
        if url not in self._topics and len(self._topics) < _MOST_CITED:
            self._topics.add(url)
            with suppress(sqlite3.Error):  # it is told again
                self._inbox.topic(url, hub)

    def _schedule(self, page: int, found: Schedule) -> None:
        self.schedules.add(page)
        now = self._clock()
        for told, ahead in zip(self._known.find(list(found.points)), found.points.values(), strict=True):
            if told in self._refresher:
                self._refresher.publish(told, SCHEDULE, ahead, now)

    def _listed(self, teller: int, channel: int, entries: Sequence[tuple[str, float]]) -> None:
        """Pages with the dates of their last change, NaN: not said. Of a long list some at a time."""
        rest, now = entries[_LISTED_AT_ONCE:], self._clock()
        entries = entries[:_LISTED_AT_ONCE]
        if rest:
            self._aside.soon(lambda: self._listed(teller, channel, rest))
        pages = self._known.find([url for url, _ in entries])
        if self._discover([url for (url, _), page in zip(entries, pages, strict=True) if page < 0], now):
            pages = self._known.find([url for url, _ in entries])
        self._make_room(max(pages, default=0))
        for (_, moment), page in zip(entries, pages, strict=True):
            if page >= 0 and page != teller:
                self._told_by[page] = teller
                if moment == moment:
                    self._dated_page(page, channel, moment, now)

    def _dated_page(self, page: int, channel: int, moment: float, now: float) -> None:
        """The page changed then, a list says. A day without a time may be any moment of it: one that was not there the last time counts
        although we may have the page from later on that day."""
        is_new_day = moment % _DAY_S == 0.0 and moment > self._dated[page]
        self._dated[page] = moment
        if page not in self._refresher:
            return
        seen = self._refresher.seen_at(page)
        if is_new_day and moment <= seen < moment + _DAY_S:
            moment = seen
        if self._signalled(page, channel, moment, 1.0, now) == NOTED:
            self._own -= 1
            self._note(self._own, page, CHANNELS[channel], CHANGED, NOTED, now)

    def _make_room(self, page: int) -> None:
        had = len(self._told_by)
        if page >= had:
            told_by, dated = np.full(2 * page, -1, np.int32), np.full(2 * page, math.inf)
            told_by[:had], dated[:had] = self._told_by, self._dated
            self._told_by, self._dated = told_by, dated

    # ---- new pages

    def _discover(self, urls: Iterable[str], now: float) -> bool:
        """Meet pages of sites that the crawl knows; whether there were any."""
        pages = self._known.told_pages(list(urls), now)
        if pages:
            self._frontier.discover(pages, now)
        return bool(pages)


def _at_once(read: Callable[[], T], take: Callable[[T], None]) -> None:
    take(read())
