"""What providers tell of their pages, on its way to the refresher: signals from the inbox, and what the crawl's own pages say.

A sitemap, a feed and a schedule are pages like others: they are fetched by the frontier's rules and fetched again by the
refresher's. When one comes in it is read here; each date on it is a signal, each moment ahead a published point, each URL never met
before a new page. What is told never brings a new site into the crawl, and never a page that the scope leaves out.

Who owns what: the inbox its signals, and the store which of them were heard; here is the number of the last one. An inbox that was
moved away and made anew counts from 1 again; the numbers that we note go on from those of the one before. What lists say of pages,
and which lists are not read to their end yet, is in the store too, and here while the crawl runs (`restore`).
"""

import math
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from trapline.crawl.early import Early
from trapline.crawl.judge import Verdict
from trapline.crawl.known import Known
from trapline.crawl.listed import NOBODY, Listed
from trapline.crawl.outbox import Outbox
from trapline.crawl.records import SignalNoted
from trapline.crawl.robots_file import PATH
from trapline.crawl.store.reading import Reading
from trapline.fetch.response import Response
from trapline.frontier import Frontier
from trapline.refresh.refresher import Refresher
from trapline.signals.cache_headers import expiry
from trapline.signals.feed import Feed, read_feed
from trapline.signals.inbox import ACCESS, CHANGED, CHANNELS, POINT, UNVERIFIED_P, Inbox, Signal
from trapline.signals.relations import Relations, of_response, of_robots
from trapline.signals.schedule_feed import Schedule, read_schedule
from trapline.signals.sitemap import Sitemap, read_sitemap
from trapline.signals.sniff import kind_of

T = TypeVar("T")
MOST_AT_ONCE = 5_000  # signals between two looks at the loop
SITEMAP, FEED, SCHEDULE, CACHE = (CHANNELS.index(name) for name in ("sitemap", "feed", "schedule", "cache"))
_MOST_CITED = 100_000
_MOST_WHOLE = 10_000  # they are written all together, with each batch in which one came or went
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
    ) -> None:
        self._refresher, self._frontier, self._known = refresher, frontier, known
        self._inbox, self._outbox, self._clock, self._aside = inbox, outbox, clock, aside
        self._last = self._own = 0  # the last signals that were heard; those that the crawl read itself count downwards
        self._before = 0  # the last of the inboxes before this one
        self._cited: set[str] = set()  # sitemaps that a robots.txt names: they may speak for all of their site
        self.heard = 0  # in this run
        self.trouble = ""  # why nothing can be heard, for people
        # Pages to be had whole the next time: schedules, for a moment told of a page that we do not have yet is only heard when it is
        # told again; and lists as long as they are not read to their end, for a crawl may be killed before.
        self.whole: set[int] = set()
        self._topics: set[str] = set()  # written in this run
        self._early = Early()
        self._listed = Listed(outbox)

    def restore(self, reading: Reading) -> None:
        """Go on with what earlier runs were told."""
        last, self._own = reading.heard()
        identity, self._before = reading.inbox()
        if identity != self._inbox.identity:
            self._before = last if identity else 0  # "": the first that is heard
            self._outbox.inbox = self._inbox.identity, self._before
        self._last = last - self._before
        for number, page in reading.noted(ACCESS, WAITS, self._before):
            if page not in self._refresher:
                self._early.add(page, self._inbox.p_of(number - self._before))
        self.whole.update(reading.whole())
        self._listed.restore(reading.told())
        for robots in reading.robots():
            if robots.status == 200:
                self._cite(of_robots(robots.body, self._known.sites[robots.site].origin + PATH))

    # ---- signals

    def poll(self, now: float) -> bool:
        """Hear what has come in since the last time; whether there was anything."""
        try:
            signals = self._inbox.take(self._last, MOST_AT_ONCE)
            self.trouble = ""
        except sqlite3.Error as error:  # if it is busy, another time
            self.trouble = "" if "locked" in str(error) else f"signals.db cannot be read: {error}"
            return False
        if not signals:
            return False
        pages = self._known.find([signal.url for signal in signals])
        points: dict[tuple[int, str], list[tuple[float, float]]] = {}
        for signal, page in zip(signals, pages, strict=True):
            if signal.kind == POINT and page in self._refresher:
                points.setdefault((page, signal.channel), []).append((signal.moment, signal.p))
            self._note(self._before + signal.id, page, signal.channel, signal.kind, self._hear(signal, page, now), now)
        for (page, channel), ahead in points.items():
            self._refresher.publish(page, CHANNELS.index(channel), ahead, now)
        self._last = signals[-1].id
        return True

    def _hear(self, signal: Signal, page: int, now: float) -> str:
        if page < 0:
            is_news = signal.kind == CHANGED and signal.verified
            return NEW if is_news and self._discover([signal.url], now) else NO_PAGE
        if page not in self._refresher:
            if signal.kind == ACCESS:
                self._early.add(page, signal.p)
            return WAITS
        if signal.kind == ACCESS:
            self._accessed(page, now, signal.p)
        elif signal.kind == CHANGED:
            return self._signalled(page, CHANNELS.index(signal.channel), signal.moment, signal.p, now)
        return NOTED

    def _signalled(self, page: int, channel: int, moment: float, p: float, now: float) -> str:
        before = self._refresher.signals(page)
        self._refresher.signalled(page, channel, now, moment, p)
        if self._refresher.signals(page) == before:
            return OLD
        if p > UNVERIFIED_P:
            self._refresher.recalled(page, now)  # it may have been gone
        return NOTED

    def _accessed(self, page: int, now: float, count: float) -> None:
        """Whoever lists a page is worth what it tells of it."""
        self._refresher.accessed(page, now, count)
        teller = self._listed.by(page)
        if teller != NOBODY and teller != page and teller in self._refresher:
            self._refresher.accessed(teller, now, count)

    def _note(self, number: int, page: int, channel: str, kind: str, outcome: str, now: float) -> None:
        self.heard += 1
        self._outbox.signals.append(SignalNoted(number, page, now, channel, kind, outcome))

    # ---- what is published

    def listen(self, page: int, url: str, verdict: Verdict, response: Response, now: float) -> None:
        """A page was had: it may be one that tells of others."""
        if page in self._refresher and (accesses := self._early.take(page)):
            self._accessed(page, now, accesses)
        self._expires(page, response, now)
        if response.status != 200:
            return
        kind = kind_of(verdict.mime, verdict.body, url)
        if kind in ("sitemap", "feed", "schedule"):
            self._read(kind, page, url, verdict.body, now)
        else:
            self._tellers(of_response(response.headers, url, verdict.body[:_HEAD_BYTES]), now)

    def _expires(self, page: int, response: Response, now: float) -> None:
        """Until when a cache may keep it: hardly a promise that it changes then."""
        at = expiry(response.headers, now)
        if at == at and page in self._refresher:
            self._refresher.publish(page, CACHE, [(at, UNVERIFIED_P)], now)

    def _read(self, kind: str, page: int, url: str, body: bytes, now: float) -> None:
        """A page that tells of others; a long one aside."""
        read, cited = _at_once, url in self._cited
        if len(body) > _LONG_BYTES:
            read = self._aside.read
            self._have_whole(page, True)
        if kind == "sitemap":
            read(lambda: read_sitemap(body, url, cited, now), lambda found: self._sitemap(page, found))
        elif kind == "feed":
            read(lambda: read_feed(body, url, now), lambda found: self._feed(page, url, found))
        else:
            read(lambda: read_schedule(body, url, now), lambda found: self._schedule(page, found))

    def _have_whole(self, page: int, yes: bool) -> None:
        if yes != (page in self.whole) and (not yes or len(self.whole) < _MOST_WHOLE):
            (self.whole.add if yes else self.whole.discard)(page)
            self._outbox.whole = self.whole

    def robots(self, url: str, body: bytes, now: float) -> None:
        """A robots.txt may say where its site's sitemaps and schedules are."""
        found = of_robots(body, url)
        self._cite(found)
        self._tellers(found, now)

    def _cite(self, found: Relations) -> None:
        if len(self._cited) < _MOST_CITED:
            self._cited.update(found.sitemaps)

    def _tellers(self, found: Relations, now: float) -> None:
        urls = (*found.sitemaps, *found.schedules, *found.feeds)
        if urls:
            self._discover(urls, now)

    def _sitemap(self, page: int, found: Sitemap) -> None:
        dates = math.nan if found.uniform_dates else 1.0
        entries = [*found.sitemaps, *found.entries]
        self._list(page, SITEMAP, [(entry.url, entry.lastmod * dates) for entry in entries])

    def _feed(self, page: int, url: str, found: Feed) -> None:
        self._list(page, FEED, [(entry.url, entry.updated) for entry in found.entries])
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
        self._have_whole(page, True)
        now = self._clock()
        for told, ahead in zip(self._known.find(list(found.points)), found.points.values(), strict=True):
            if told in self._refresher:
                self._refresher.publish(told, SCHEDULE, ahead, now)

    def _list(self, teller: int, channel: int, entries: Sequence[tuple[str, float]]) -> None:
        """Pages with the dates of their last change, NaN: not said. Of a long list some at a time."""
        rest, now = entries[_LISTED_AT_ONCE:], self._clock()
        entries = entries[:_LISTED_AT_ONCE]
        self._have_whole(teller, bool(rest))
        if rest:
            self._aside.soon(lambda: self._list(teller, channel, rest))
        pages = self._known.find([url for url, _ in entries])
        if self._discover([url for (url, _), page in zip(entries, pages, strict=True) if page < 0], now):
            pages = self._known.find([url for url, _ in entries])
        for (_, moment), page in zip(entries, pages, strict=True):
            if page >= 0 and page != teller:
                before = self._listed.dated(page)
                self._listed.note(page, teller, moment)
                if moment == moment and not (
                    moment > now and moment == before
                ):  # a clock that is ahead is no news for ever
                    self._dated_page(page, channel, moment, now, moment > before)

    def _dated_page(self, page: int, channel: int, moment: float, now: float, is_later: bool) -> None:
        """The page changed then, a list says. A day without a time may be any moment of it: one that was not there the last time counts
        although we may have the page from later on that day."""
        is_new_day = moment % _DAY_S == 0.0 and is_later
        if page not in self._refresher:
            return
        seen = self._refresher.seen_at(page)
        if moment < seen and not is_later:  # it stood there before, and our copy is of after it
            return
        if is_new_day and moment <= seen < moment + _DAY_S:
            moment = seen
        if self._signalled(page, channel, moment, 1.0, now) == NOTED:
            self._own -= 1
            self._note(self._own, page, CHANNELS[channel], CHANGED, NOTED, now)

    # ---- new pages

    def _discover(self, urls: Iterable[str], now: float) -> bool:
        """Meet pages of sites that the crawl knows; whether there were any."""
        pages = self._known.told_pages(list(urls), now)
        if pages:
            self._frontier.discover(pages, now)
        return bool(pages)


def _at_once(read: Callable[[], T], take: Callable[[T], None]) -> None:
    take(read())
