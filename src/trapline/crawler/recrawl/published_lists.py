"""Published lists: sitemaps and feeds, which name other pages; and where they are.

A list is named by a robots.txt, a page, another list, or a redirect; the sitemap of a site is also guessed (`robots`). In
most crawls the list is then requested once, besides the pages (list_queue.py). In a crawl that fetches pages again it is
discovered as a page, so that the refresher fetches it again too. When a list arrives, it is read here, and each URL that
was never seen is a new page, by the same rules as a link. What a list says about changes goes to list_signals.py.

Lists that are not read to their end yet are known to the database, so that a killed crawl requests them again. Long lists
are read by a thread of `Offload`, so that the loop goes on.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol, TypeVar

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.discovery.sites import Site
from trapline.crawler.files.reading import Reading
from trapline.crawler.recrawl import list_queue
from trapline.crawler.recrawl.list_queue import ListQueue
from trapline.crawler.recrawl.list_signals import FEED, SITEMAP, ListSignals
from trapline.crawler.recrawl.signal_recorder import Listed
from trapline.crawler.store.outbox import Outbox
from trapline.crawler.visits.extra_queue import WAITING
from trapline.crawler.visits.judge import FetchVerdict
from trapline.fetch.http.content import decoded
from trapline.fetch.http.response import Response
from trapline.fetch.limits import Limits
from trapline.fetch.urls import canonical
from trapline.frontier import FAILED, FETCHED, Frontier
from trapline.frontier.layout import UNKNOWN
from trapline.signals.published import feed as feeds
from trapline.signals.published.feed import Feed, read_feed
from trapline.signals.published.files import GZIP
from trapline.signals.published.list_discovery import kind_of, of_response, of_robots
from trapline.signals.published.schedule import Schedule, read_schedule
from trapline.signals.published.sitemap import ANY_HOST, NO_DATE, Sitemap, read_sitemap

T = TypeVar("T")
SendListed = Callable[[Sequence[str]], None]
SendList = Callable[[str, str, int], None]
_LONG_BYTES = 65_536  # a longer body is read in a thread (`Offload`): reading this much takes 10 ms
_LISTED_AT_ONCE = 1_000  # entries of a list that are taken in at a time
_HEAD_BYTES = 16_384  # the beginning of a page, which contains its <link>s
_GUESSED = "/sitemap.xml"


class Offloading(Protocol):
    """Does long work without blocking the crawl loop (`Offload`)."""

    def read(self, read: Callable[[], T], take: Callable[[T], None], size: int) -> bool:
        """Call `read`, which holds `size` bytes, outside the loop, then `take` with its result in the loop. Return False if too
        much work waits already."""

    def soon(self, callback: Callable[[], None]) -> None: ...


class Senders(NamedTuple):
    """How to pass on URLs that other partitions own."""

    entries: SendListed  # pages that a list names
    one_list: SendList  # a list: its URL, the sites that it may speak for, and its level


class ListOptions(NamedTuple):
    expanded_bytes: int = Limits.expanded_bytes
    """largest size of a list after its content coding is removed"""
    guesses: bool = False
    """whether /sitemap.xml is requested from sites whose robots.txt names no sitemap"""
    discovers: bool = True
    """whether lists are looked for; without that, only seeds and the lists that they name are read"""


class PublishedLists:
    reads_all = True  # sitemaps and feeds may have any type

    def __init__(
        self,
        frontier: Frontier,
        link_resolver: LinkResolver,
        outbox: Outbox,
        clock: Callable[[], float],
        offload: Offloading,
        options: ListOptions,
        *,
        listed: Listed | None = None,
        signals: ListSignals | None = None,
        senders: Senders | None = None,
    ) -> None:
        """`signals`: what lists say about changes, if the crawl fetches pages again."""
        self._frontier, self._link_resolver, self._clock, self._offload = frontier, link_resolver, clock, offload
        self._expanded_bytes, self._guesses, self._discovers = options
        self._signals, self._senders = signals, senders
        self._listed = listed or Listed(outbox)
        self.queue = ListQueue(frontier, link_resolver, outbox)
        self._under_way = 0  # lists that are being read
        self.was_read: Callable[[], None] = lambda: None  # called when a list was read to its end; set by the crawler

    def restore(self, reading: Reading) -> None:
        self.queue.restore(reading.published_lists())
        if self._signals is None:
            self._listed.restore(reading.listed_pages())

    def reads(self, url: str) -> bool:
        """Return whether the page at this URL is read if it is a list."""
        return self._discovers or self._link_resolver.is_seed(url)

    @property
    def is_reading(self) -> bool:
        """Whether lists are being read, which may bring new pages."""
        return self._under_way > 0

    # ---- where lists are

    def robots(self, site: Site, url: str, body: bytes, now: float) -> None:
        """Take in the robots.txt of a site, or that at another `url` which counts in its place. It may name sitemaps and
        schedules."""
        if not self._discovers:
            return
        found = of_robots(body, url)
        for sitemap in found.sitemaps:
            self._want(sitemap, list_queue.ROBOTS, site.origin, 0, now)
        if self._signals is not None and found.schedules:
            self._signals.discover(found.schedules, now)
        if self._guesses and not found.sitemaps:
            self._want(site.origin + _GUESSED, list_queue.GUESS, site.origin, 0, now)

    def received(self, url: str, speaks_for: str, level: int, now: float) -> None:
        """Take in a list of ours that another partition found."""
        self._want(url, list_queue.ROBOTS, speaks_for, level, now)

    def listen(self, page: int, url: str, verdict: FetchVerdict, response: Response, now: float) -> None:
        """Take in a page that was fetched: it may be a list, or name lists."""
        if not self.reads(url):
            return
        if kind := self._kind(verdict, url):
            self.queue.is_page(page)
            self._read(kind, page, url, _Body(verdict.body, response, self._expanded_bytes), now)
            return
        if not self._discovers or not (verdict.has_relations or b"link" in response.headers):
            return
        found = of_response(response.headers, url, verdict.body[:_HEAD_BYTES])
        for named in (*found.sitemaps, *found.feeds):
            self._want(named, list_queue.LINK, "", 0, now)
        if self._signals is not None and found.schedules:
            self._signals.discover(found.schedules, now)

    def _want(self, url: str, named_by: str, speaks_for: str, level: int, now: float) -> str:
        """Request a list, or discover it as a page if the crawl fetches pages again. A guess may be wrong, and is no page yet.
        Return why the list is rejected, or ""."""
        if self._senders is not None and not self._link_resolver.is_ours(url):
            self._senders.one_list(url, speaks_for, level)
            return ""
        as_page = self._signals is not None and named_by != list_queue.GUESS
        page, reason = self.queue.add(url, named_by, speaks_for, level, now, as_page=as_page)
        if as_page and page >= 0:
            self._discover_unknown([page], now)
        return reason

    def _discover_unknown(self, pages: Sequence[int], now: float) -> None:
        states = self._frontier.page_states
        new = [page for page in dict.fromkeys(pages) if states[page] == UNKNOWN]
        if new:
            self._frontier.discover(new, now)

    # ---- answers to requests for lists, as `ExtraSource` of crawler/visits/extra_requests.py

    def came(self, page: int, url: str, verdict: FetchVerdict, response: Response, now: float) -> None:
        """Take in the answer to the request for a list."""
        if verdict.result == FAILED:
            self.queue.retry(page)
        elif 300 <= response.status < 400:
            self._redirected(page, url, next(iter(verdict.links), ""), now)
        elif verdict.result != FETCHED:
            self.queue.finished(page, list_queue.MISSING)
        elif kind := self._kind(verdict, url, is_named=True):
            self._read(kind, page, url, _Body(verdict.body, response, self._expanded_bytes), now)
            if self._signals is not None:
                self.queue.is_page(page)  # the guess was right
                self._discover_unknown([page], now)
        else:
            self.queue.finished(page, list_queue.NO_LIST)

    def _redirected(self, page: int, url: str, location: str, now: float) -> None:
        target = canonical(location, url) if location else None
        self.queue.finished(page, list_queue.REDIRECT if target else list_queue.MISSING)
        if target is not None:
            self._want(target, list_queue.REDIRECT, self.queue.speaks_for(page), self.queue.level(page) + 1, now)

    # ---- what lists say

    def _kind(self, verdict: FetchVerdict, url: str, is_named: bool = False) -> str:
        """Return the kind of list that a body is, or "". Schedules name no new pages: only signals come from them."""
        kind = kind_of(verdict.mime, verdict.body, url, is_named)
        return "" if kind == "schedule" and self._signals is None else kind

    def _read(self, kind: str, page: int, url: str, body: "_Body", now: float) -> None:
        """Read a list, a long one in the thread."""
        is_seed = self._link_resolver.is_seed(url)
        state = WAITING if self._signals is None else list_queue.PAGE
        self.queue.reading(page, list_queue.SEED if is_seed else list_queue.LINK, ANY_HOST if is_seed else "", state)
        date, sites = now - (self._signals.ahead_s(now) if self._signals else 0.0), self.queue.speaks_for(page)
        if kind == "sitemap":
            self._read_with(
                lambda file: read_sitemap(file, url, bool(sites), date, sites),
                body,
                page,
                lambda found: self._sitemap(page, found),
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
        self._under_way += 1
        if not body.is_long:
            take(read(body.decoded()))
            return
        if self._signals is not None:
            self._signals.have_whole(page, True)
        if not self._offload.read(lambda: read(body.decoded()), take, body.size):
            # Too much work waits. A list that is a page stays in `whole`, and is read after its next fetch.
            self._under_way -= 1
            if self._signals is None:
                self.queue.retry(page)

    def _sitemap(self, page: int, found: Sitemap) -> None:
        now, dates = self._clock(), math.nan if found.uniform_dates else 1.0
        sites, level = self.queue.speaks_for(page), self.queue.level(page) + 1
        reasons = [self._want(sitemap.url, list_queue.INDEX, sites, level, now) for sitemap in found.sitemaps]
        entries = [*found.sitemaps, *found.entries] if self._signals is not None else found.entries
        dated = [(entry.url, entry.lastmod * dates) for entry in entries]
        self._list(page, SITEMAP, dated, Counter(found.problems) + Counter(filter(None, reasons)))

    def _feed(self, page: int, url: str, found: Feed) -> None:
        entries, problems = [(entry.url, entry.updated) for entry in found.entries], Counter(found.problems)
        if self.queue.speaks_for(page) == ANY_HOST:
            entries += [(link, math.nan) for link in found.rejected_links]
            del problems[feeds.OTHER_HOST]
        if self._signals is not None:
            self._signals.feed(page, url, found)
        self._list(page, FEED, entries, problems)

    def _schedule(self, page: int, found: Schedule) -> None:
        if self._signals is not None:
            self._signals.schedule(page, found)
        self._is_read(page, 0, {})

    def _list(
        self,
        list_page: int,
        channel: int,
        entries: Sequence[tuple[str, float]],
        rejected: Counter[str] | None = None,
        admitted: int = 0,
    ) -> None:
        """Take in entries of a list: URLs with the dates of their last change, or NaN. A long list is taken in parts.
        `rejected`, `admitted`: entries of earlier parts."""
        rest, rejected = entries[_LISTED_AT_ONCE:], Counter() if rejected is None else rejected
        if self._signals is not None:
            self._signals.have_whole(list_page, bool(rest))
        admitted += self._take_entries(list_page, channel, entries[:_LISTED_AT_ONCE], rejected)
        if rest:
            self._offload.soon(lambda: self._list(list_page, channel, rest, rejected, admitted))
        else:
            self._is_read(list_page, admitted, rejected)

    def _take_entries(
        self, list_page: int, channel: int, entries: Sequence[tuple[str, float]], rejected: Counter[str]
    ) -> int:
        """Take in some entries, and return how many are admitted. The others are added to `rejected`."""
        now = self._clock()
        pages = self._discover_entries([url for url, _ in entries], rejected, now)
        for (_, date), page in zip(entries, pages, strict=True):
            if page >= 0 and page != list_page:
                self._note_listed(list_page, channel, page, date, now)
        return sum(page >= 0 for page in pages)

    def _discover_entries(self, urls: Sequence[str], rejected: Counter[str], now: float) -> list[int]:
        """Return the page of each entry; discover those that are new. Entries of other partitions are sent to their owners."""
        if self._senders is not None:
            self._senders.entries([url for url in urls if not self._link_resolver.is_ours(url)])
        pages, reasons = self._link_resolver.entry_pages(urls, now)
        rejected.update(reasons)
        is_list = self.queue.__contains__
        self._discover_unknown([page for page in pages if page >= 0 and not is_list(page)], now)
        return pages

    def _note_listed(self, list_page: int, channel: int, page: int, date: float, now: float) -> None:
        before = self._listed.dated(page)
        self._listed.note(page, list_page, date)
        if self._signals is not None:
            self._signals.listed(channel, page, date, before, now)

    def _is_read(self, page: int, admitted: int, rejected: Mapping[str, int]) -> None:
        self._under_way -= 1
        reasons = {reason: number for reason, number in rejected.items() if reason != NO_DATE and number}
        self.queue.finished(page, list_queue.READ, admitted, reasons)
        self.was_read()


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
