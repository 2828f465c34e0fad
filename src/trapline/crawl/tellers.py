"""Pages that tell of others: sitemaps, feeds, schedules; and where they are.

They are pages like others: fetched by the frontier's rules and fetched again by the refresher's. When one comes in it is read here; each
date on it is a signal, each moment ahead a published point, each URL never met before a new page. What lists say of pages, and which lists
are not read to their end yet, is in the store too, and here while the crawl runs (`restore`). Dates are by the wall clock until they
are handed on (hearing.py).
"""

import math
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from trapline.crawl.hearing import NOTED, Hearing
from trapline.crawl.judge import Verdict
from trapline.crawl.known import Known
from trapline.crawl.outbox import Outbox
from trapline.crawl.robots_file import PATH
from trapline.crawl.store.reading import Reading
from trapline.fetch.content import decoded
from trapline.fetch.response import Response
from trapline.refresh.refresher import Refresher
from trapline.signals.feed import Feed, read_feed
from trapline.signals.inbox import CHANGED, CHANNELS, Inbox
from trapline.signals.relations import Relations, of_response, of_robots
from trapline.signals.schedule_feed import Schedule, read_schedule
from trapline.signals.sitemap import Sitemap, read_sitemap
from trapline.signals.sniff import kind_of
from trapline.signals.unpacked import GZIP

T = TypeVar("T")
SITEMAP, FEED, SCHEDULE = (CHANNELS.index(name) for name in ("sitemap", "feed", "schedule"))
_MOST_CITED = 100_000
_MOST_WHOLE = 10_000  # they are written all together, with each batch in which one came or went
_LONG_BYTES = 65_536  # a longer body is read aside: 10 ms
_LISTED_AT_ONCE = 1_000  # entries of a list
_HEAD_BYTES = 16_384  # of a page, in which its <link>s stand
_MOST_AHEAD, _MOST_AHEAD_OF_ONE = 100_000, 100  # pages that we do not have yet, and points of each, that are remembered
_RHYTHM_P = 0.5  # that a feed changes when it says it does; then it is learned
_DAY_S = 86_400.0
_AHEAD_S = 30 * _DAY_S  # how far a schedule is believed to look


class Aside(Protocol):
    """How long work is done without keeping the loop from its pages (aside.py)."""

    def read(self, read: Callable[[], T], take: Callable[[T], None], size: int) -> bool:
        """Call `read`, which holds `size` bytes, somewhere, then `take` here with what it found. False: too much waits already."""

    def soon(self, callback: Callable[[], None]) -> None: ...


class Tellers:
    def __init__(
        self,
        hearing: Hearing,
        refresher: Refresher,
        known: Known,
        inbox: Inbox,
        outbox: Outbox,
        clock: Callable[[], float],
        aside: Aside,
        expanded_bytes: int,
    ) -> None:
        """`expanded_bytes`: the most of a list without its content coding."""
        self._hearing, self._refresher, self._known = hearing, refresher, known
        self._inbox, self._outbox, self._clock, self._aside = inbox, outbox, clock, aside
        self._expanded_bytes = expanded_bytes
        self._own = 0  # the last signal that was read here: they count downwards
        self._cited: set[str] = set()  # sitemaps that a robots.txt names: they may speak for all of their site
        self._ahead: dict[str, Sequence[tuple[float, float]]] = {}  # published of pages that we do not have yet, by URL
        # Pages to be had whole the next time: schedules, for what they tell of pages that we do not have yet is not kept when the
        # crawl stops; and lists as long as they are not read to their end, for a crawl may be killed before.
        self.whole: set[int] = set()
        self.topics: set[str] = set()  # written to this inbox in this run

    def restore(self, reading: Reading, own: int) -> None:
        self._own = own
        self.whole.update(reading.whole())
        for robots in reading.robots():
            if robots.status == 200:
                self._cite(of_robots(robots.body, self._known.sites[robots.site].origin + PATH))

    def listen(self, page: int, url: str, verdict: Verdict, response: Response, now: float) -> None:
        kind = kind_of(verdict.mime, verdict.body, url)
        if kind in ("sitemap", "feed", "schedule"):
            self._read(
                kind, page, url, _Body(verdict.body, response, self._expanded_bytes), now - self._hearing.ahead_s(now)
            )
        else:
            self._meet(of_response(response.headers, url, verdict.body[:_HEAD_BYTES]), now)

    # ---- where they are

    def robots(self, url: str, body: bytes, now: float) -> None:
        found = of_robots(body, url)
        self._cite(found)
        self._meet(found, now)

    def _cite(self, found: Relations) -> None:
        if len(self._cited) < _MOST_CITED:
            self._cited.update(found.sitemaps)

    def _meet(self, found: Relations, now: float) -> None:
        urls = (*found.sitemaps, *found.schedules, *found.feeds)
        if urls:
            self._hearing.meet(urls, now)

    # ---- what they say

    def _read(self, kind: str, page: int, url: str, body: "_Body", date: float) -> None:
        """A long one aside. `date`: now, by the wall clock."""
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
        # If too much waits to be read it stays so, and the list is read when it is fetched the next time.
        self.have_whole(page, True)
        self._aside.read(lambda: read(body.decoded()), take, body.size)

    def have_whole(self, page: int, yes: bool) -> None:
        """Whether the page is to be had whole the next time."""
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
        date = self._clock() - self._hearing.ahead_s(self._clock())
        ahead = [(at, _RHYTHM_P) for at in found.points(date, _AHEAD_S)]
        if ahead:
            self._publish(page, FEED, ahead)

    def _topic(self, url: str, hub: str) -> None:
        if url not in self.topics and len(self.topics) < _MOST_CITED:
            with suppress(sqlite3.Error):  # it is told again
                self._inbox.topic(url, hub)
                self.topics.add(url)

    def _schedule(self, page: int, found: Schedule) -> None:
        self.have_whole(page, True)
        pages = self._known.find(list(found.points))
        for told, (url, ahead) in zip(pages, found.points.items(), strict=True):
            if told in self._refresher:
                self._publish(told, SCHEDULE, ahead)
            elif len(self._ahead) < _MOST_AHEAD:
                self._ahead[url] = ahead[:_MOST_AHEAD_OF_ONE]

    def had(self, page: int, url: str) -> None:
        """What a schedule said of it before counts now."""
        if self._ahead and (ahead := self._ahead.pop(url, ())):
            self._publish(page, SCHEDULE, ahead)

    def _publish(self, page: int, channel: int, dates: Sequence[tuple[float, float]]) -> None:
        if page in self._refresher:
            now = self._clock()
            ahead_s = self._hearing.ahead_s(now)
            self._refresher.publish(page, channel, [(date + ahead_s, p) for date, p in dates], now)

    def _list(self, teller: int, channel: int, entries: Sequence[tuple[str, float]]) -> None:
        """Pages with the dates of their last change, NaN: not said. Of a long list some at a time."""
        rest, now = entries[_LISTED_AT_ONCE:], self._clock()
        entries = entries[:_LISTED_AT_ONCE]
        self.have_whole(teller, bool(rest))
        if rest:
            self._aside.soon(lambda: self._list(teller, channel, rest))
        pages = self._known.find([url for url, _ in entries])
        if self._hearing.meet([url for (url, _), page in zip(entries, pages, strict=True) if page < 0], now):
            pages = self._known.find([url for url, _ in entries])
        ahead_s = self._hearing.ahead_s(now)
        for (_, date), page in zip(entries, pages, strict=True):
            if page >= 0 and page != teller:
                self._listed(teller, channel, page, date, now, ahead_s)

    def _listed(self, teller: int, channel: int, page: int, date: float, now: float, ahead_s: float) -> None:
        before = self._hearing.listed.dated(page)
        self._hearing.listed.note(page, teller, date)
        is_old_error = date > now - ahead_s and date == before  # a clock that is ahead is no news for ever
        if date == date and not is_old_error and page in self._refresher:
            self._dated_page(page, channel, date, now, ahead_s, date > before)

    def _dated_page(self, page: int, channel: int, date: float, now: float, ahead_s: float, is_later: bool) -> None:
        """The page changed then, a list says. A day without a time may be any moment of it: one that was not there the last time counts
        although we may have the page from later on that day."""
        is_new_day = date % _DAY_S == 0.0 and is_later
        seen = self._refresher.seen_at(page) - ahead_s
        if date < seen and not is_later:  # it stood there before, and our copy is of after it
            return
        if is_new_day and date <= seen < date + _DAY_S:
            date = seen
        if self._hearing.signalled(page, channel, date + ahead_s, 1.0, now) == NOTED:
            self._own -= 1
            self._hearing.note(self._own, page, CHANNELS[channel], CHANGED, NOTED, now)


class _Body:
    """The body of a list, held as it came while it waits to be read: coded, it may be a thousandth as long."""

    def __init__(self, body: bytes, response: Response, expanded_bytes: int) -> None:
        self._codings, self._length, self._expanded_bytes = response.codings, len(body), expanded_bytes
        self._body = response.body if self._codings else body
        # How long a packed file is only its reader finds out.
        self.is_long = self._length > _LONG_BYTES or body.startswith(GZIP)

    @property
    def size(self) -> int:
        return len(self._body)

    def decoded(self) -> bytes:
        """What came of it the first time: with the same limit, for how much a decoder reads depends on it too."""
        body = decoded(self._body, self._codings, self._expanded_bytes, cut=True)
        return b"" if isinstance(body, str) else body[: self._length]
