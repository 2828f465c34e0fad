"""Published lists: sitemaps, feeds and schedules, which tell of other pages; and where they are.

Lists are pages like others: the frontier's rules apply to their first fetch, the refresher's to further ones. When a list
arrives, it is read here. Each date of a change is a signal, each future date is a published point, and each URL that was
never seen is a new page. What lists say of pages, and which lists are not read to their end yet, is in memory while the
crawl runs and also in the database (`restore`). Dates are by the wall clock until they are passed on (signal_recorder.py).
Long lists are read by a thread of `Offload`, so that the loop goes on.
"""

import asyncio
import math
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol, TypeVar

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.engine.judge import FetchVerdict
from trapline.crawler.files.reading import Reading
from trapline.crawler.recrawl.signal_recorder import NOTED, SignalRecorder
from trapline.crawler.robots.site_robots import PATH
from trapline.crawler.store.outbox import Outbox
from trapline.fetch.http.content import decoded
from trapline.fetch.http.response import Response
from trapline.refresh.live.refresher import Refresher
from trapline.signals.inbox import CHANGED, CHANNELS, Inbox
from trapline.signals.published.feed import Feed, read_feed
from trapline.signals.published.files import GZIP
from trapline.signals.published.list_discovery import Relations, kind_of, of_response, of_robots
from trapline.signals.published.schedule import Schedule, read_schedule
from trapline.signals.published.sitemap import Sitemap, read_sitemap

T = TypeVar("T")
SITEMAP, FEED, SCHEDULE = (CHANNELS.index(name) for name in ("sitemap", "feed", "schedule"))
_MOST_CITED = 100_000
_MOST_WHOLE = 10_000  # the set is written as a whole, with each batch in which it changed
_LONG_BYTES = 65_536  # a longer body is read in a thread (`Offload`): reading this much takes 10 ms
_LISTED_AT_ONCE = 1_000  # entries of a list that are taken in at a time
_HEAD_BYTES = 16_384  # the beginning of a page, which contains its <link>s
_MOST_AHEAD, _MOST_AHEAD_OF_ONE = 100_000, 100  # remembered pages that are not fetched yet, and points of each
_RHYTHM_P = 0.5  # the initial probability that a feed changes when it says so; later the refresher learns it
_DAY_S = 86_400.0
_AHEAD_S = 30 * _DAY_S  # how far ahead the rhythm of a feed is used


class Offloading(Protocol):
    """Does long work without blocking the crawl loop (`Offload`)."""

    def read(self, read: Callable[[], T], take: Callable[[T], None], size: int) -> bool:
        """Call `read`, which holds `size` bytes, outside the loop, then `take` with its result in the loop. Return False if too
        much work waits already."""

    def soon(self, callback: Callable[[], None]) -> None: ...


class PublishedLists:
    def __init__(
        self,
        signal_recorder: SignalRecorder,
        refresher: Refresher,
        link_resolver: LinkResolver,
        inbox: Inbox,
        outbox: Outbox,
        clock: Callable[[], float],
        offload: Offloading,
        expanded_bytes: int,
    ) -> None:
        """`expanded_bytes`: largest size of a list after its content coding is removed."""
        self._signal_recorder, self._refresher, self._link_resolver = signal_recorder, refresher, link_resolver
        self._inbox, self._outbox, self._clock, self._offload = inbox, outbox, clock, offload
        self._expanded_bytes = expanded_bytes
        self._own = 0  # the number of the last signal that was read here; these numbers count down from 0
        self._cited: set[str] = set()  # sitemaps that a robots.txt names: they may list any page of their site
        self._ahead: dict[str, Sequence[tuple[float, float]]] = {}  # by URL: published points of pages not fetched yet
        # Pages to request without a condition. Schedules: what they say of pages that are not fetched yet is lost when the crawl stops.
        # Lists that are not read to their end: the crawl may be killed before it has read them.
        self.whole: set[int] = set()
        self.topics: set[str] = set()  # WebSub topics that were written to this inbox in this run

    def restore(self, reading: Reading, own: int) -> None:
        self._own = own
        self.whole.update(reading.whole())
        for robots in reading.robots():
            if robots.status == 200:
                self._cite(of_robots(robots.body, self._link_resolver.sites[robots.site].origin + PATH))

    def listen(self, page: int, url: str, verdict: FetchVerdict, response: Response, now: float) -> None:
        kind = kind_of(verdict.mime, verdict.body, url)
        if kind in ("sitemap", "feed", "schedule"):
            self._read(
                kind,
                page,
                url,
                _Body(verdict.body, response, self._expanded_bytes),
                now - self._signal_recorder.ahead_s(now),
            )
        else:
            self._discover(of_response(response.headers, url, verdict.body[:_HEAD_BYTES]), now)

    # ---- where lists are

    def robots(self, url: str, body: bytes, now: float) -> None:
        found = of_robots(body, url)
        self._cite(found)
        self._discover(found, now)

    def _cite(self, found: Relations) -> None:
        if len(self._cited) < _MOST_CITED:
            self._cited.update(found.sitemaps)

    def _discover(self, found: Relations, now: float) -> None:
        urls = (*found.sitemaps, *found.schedules, *found.feeds)
        if urls:
            self._signal_recorder.discover_listed(urls, now)

    # ---- what lists say

    def _read(self, kind: str, page: int, url: str, body: "_Body", date: float) -> None:
        """Read a list, a long one in the thread. `date`: the current time by the wall clock."""
        cited = url in self._cited
        if kind == "sitemap":
            self._read_with(
                lambda file: read_sitemap(file, url, cited, date), body, page, lambda found: self._sitemap(page, found)
            )
        elif kind == "feed":
            self._read_with(
                lambda file: read_feed(file, url, date), body, page, lambda found: self._feed(page, url, found)
            )
        else:
            self._read_with(
                lambda file: read_schedule(file, url, date), body, page, lambda found: self._schedule(page, found)
            )

    def _read_with(self, read: Callable[[bytes], T], body: "_Body", page: int, take: Callable[[T], None]) -> None:
        if not body.is_long:
            take(read(body.decoded()))
            return
        # If too much work waits, the list is not read now; it stays in `whole`, and is read after its next fetch.
        self.have_whole(page, True)
        self._offload.read(lambda: read(body.decoded()), take, body.size)

    def have_whole(self, page: int, yes: bool) -> None:
        """Set whether the page's next request has no condition."""
        if yes != (page in self.whole) and (not yes or len(self.whole) < _MOST_WHOLE):
            (self.whole.add if yes else self.whole.discard)(page)
            self._outbox.whole = self.whole

    def _sitemap(self, page: int, found: Sitemap) -> None:
        dates = math.nan if found.uniform_dates else 1.0
        entries = [*found.sitemaps, *found.entries]
        self._list(page, SITEMAP, [(entry.url, entry.lastmod * dates) for entry in entries])

    def _feed(self, page: int, url: str, found: Feed) -> None:
        self._list(page, FEED, [(entry.url, entry.updated) for entry in found.entries])
        for hub in found.hubs[:1]:
            self._topic(found.self_url or url, hub)
        date = self._clock() - self._signal_recorder.ahead_s(self._clock())
        ahead = [(at, _RHYTHM_P) for at in found.points(date, _AHEAD_S)]
        if ahead:
            self._publish(page, FEED, ahead)

    def _topic(self, url: str, hub: str) -> None:
        if url not in self.topics and len(self.topics) < _MOST_CITED:
            with suppress(sqlite3.Error):  # the next fetch of the feed tries again
                self._inbox.topic(url, hub)
                self.topics.add(url)

    def _schedule(self, page: int, found: Schedule) -> None:
        self.have_whole(page, True)
        pages = self._link_resolver.find(list(found.points))
        for scheduled, (url, ahead) in zip(pages, found.points.items(), strict=True):
            if scheduled in self._refresher:
                self._publish(scheduled, SCHEDULE, ahead)
            elif len(self._ahead) < _MOST_AHEAD:
                self._ahead[url] = ahead[:_MOST_AHEAD_OF_ONE]

    def publish_pending_points(self, page: int, url: str) -> None:
        """Publish what a schedule said of the page before its first fetch."""
        if self._ahead and (ahead := self._ahead.pop(url, ())):
            self._publish(page, SCHEDULE, ahead)

    def _publish(self, page: int, channel: int, dates: Sequence[tuple[float, float]]) -> None:
        if page in self._refresher:
            now = self._clock()
            ahead_s = self._signal_recorder.ahead_s(now)
            self._refresher.publish(page, channel, [(date + ahead_s, p) for date, p in dates], now)

    def _list(self, list_page: int, channel: int, entries: Sequence[tuple[str, float]]) -> None:
        """Take in entries of a list: URLs with the dates of their last change, or NaN. A long list is taken in parts."""
        rest, now = entries[_LISTED_AT_ONCE:], self._clock()
        entries = entries[:_LISTED_AT_ONCE]
        self.have_whole(list_page, bool(rest))
        if rest:
            self._offload.soon(lambda: self._list(list_page, channel, rest))
        pages = self._link_resolver.find([url for url, _ in entries])
        if self._signal_recorder.discover_listed(
            [url for (url, _), page in zip(entries, pages, strict=True) if page < 0], now
        ):
            pages = self._link_resolver.find([url for url, _ in entries])
        ahead_s = self._signal_recorder.ahead_s(now)
        for (_, date), page in zip(entries, pages, strict=True):
            if page >= 0 and page != list_page:
                self._listed(list_page, channel, page, date, now, ahead_s)

    def _listed(self, list_page: int, channel: int, page: int, date: float, now: float, ahead_s: float) -> None:
        before = self._signal_recorder.listed.dated(page)
        self._signal_recorder.listed.note(page, list_page, date)
        # A date in the future that was there before is no news: the list's clock is wrong.
        is_old_error = date > now - ahead_s and date == before
        if date == date and not is_old_error and page in self._refresher:
            self._dated_page(page, channel, date, now, ahead_s, date > before)

    def _dated_page(self, page: int, channel: int, date: float, now: float, ahead_s: float, is_later: bool) -> None:
        """Record that, according to a list, the page changed at `date`. A date without a time may mean any moment of the day.
        A new date of this kind therefore counts even if we fetched the page later on that day."""
        is_new_day = date % _DAY_S == 0.0 and is_later
        seen = self._refresher.seen_at(page) - ahead_s
        if date < seen and not is_later:  # the date is known, and our copy is newer
            return
        if is_new_day and date <= seen < date + _DAY_S:
            date = seen
        if self._signal_recorder.signalled(page, channel, date + ahead_s, 1.0, now) == NOTED:
            self._own -= 1
            self._signal_recorder.note(self._own, page, CHANNELS[channel], CHANGED, NOTED, now)


class _Body:
    """The body of a list, kept as received while it waits to be read: with its content coding it may have a thousandth of the size."""

    def __init__(self, body: bytes, response: Response, expanded_bytes: int) -> None:
        self._codings, self._length, self._expanded_bytes = response.codings, len(body), expanded_bytes
        self._body = response.body if self._codings else body
        # The size of a gzip file is known only after it is read.
        self.is_long = self._length > _LONG_BYTES or body.startswith(GZIP)

    @property
    def size(self) -> int:
        return len(self._body)

    def decoded(self) -> bytes:
        """Decode the body again, with the same result as the first time. The limit is the same, because the number of bytes
        that a decoder reads depends on it."""
        body = decoded(self._body, self._codings, self._expanded_bytes, cut=True)
        return b"" if isinstance(body, str) else body[: self._length]


# ---- Long work that would block the crawl loop: it is done in a thread, or later. The loop takes the results.
#
# `Offload` knows neither the work nor the use of its results. There is one thread: long lists wait for each other, and
# the crawl does not wait for them. The amount of waiting work is bounded in bytes.

MOST_WAITING_BYTES = 64 << 20  # a single list may be larger


class Offload:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = ThreadPoolExecutor(1, "offload")
        self._is_over = False
        self._waiting_bytes = 0

    def read(self, read: Callable[[], T], take: Callable[[T], None], size: int) -> bool:
        """Call `read`, which holds `size` bytes, in the thread, then `take` with its result in the loop. Return False, and call
        neither, if too many bytes wait already."""
        if self._waiting_bytes and self._waiting_bytes + size > MOST_WAITING_BYTES:
            return False
        self._waiting_bytes += size

        def done(future: asyncio.Future[T]) -> None:
            self._waiting_bytes -= size
            if not self._is_over and not future.cancelled():
                take(future.result())

        self._loop.run_in_executor(self._thread, read).add_done_callback(done)
        return True

    def soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(lambda: None if self._is_over else callback())

    def close(self) -> None:
        """Discard all further results: the crawl has written everything."""
        self._is_over = True
        self._thread.shutdown(wait=False, cancel_futures=True)
