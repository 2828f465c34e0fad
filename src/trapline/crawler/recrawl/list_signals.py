"""List signals: what sitemaps, feeds and schedules say about changes of pages, for a crawl that fetches pages again.

Each date of a change is a signal, each future date is a published point. Dates are by the wall clock until they are passed
on (signal_recorder.py). What lists say of pages is in memory while the crawl runs, and also in the database (`restore`).
published_lists.py reads the lists, and finds the pages.
"""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.files.reading import Reading
from trapline.crawler.recrawl.signal_recorder import NOTED, SignalRecorder
from trapline.crawler.store.outbox import Outbox
from trapline.refresh.live.refresher import Refresher
from trapline.signals.inbox import CHANGED, CHANNELS, Inbox
from trapline.signals.published.feed import Feed
from trapline.signals.published.schedule import Schedule

SITEMAP, FEED, SCHEDULE = (CHANNELS.index(name) for name in ("sitemap", "feed", "schedule"))
_MOST_TOPICS = 100_000
_MOST_WHOLE = 10_000  # the set is written as a whole, with each batch in which it changed
_MOST_AHEAD, _MOST_AHEAD_OF_ONE = 100_000, 100  # remembered pages that are not fetched yet, and points of each
_RHYTHM_P = 0.5  # the initial probability that a feed changes when it says so; later the refresher learns it
_DAY_S = 86_400.0
_AHEAD_S = 30 * _DAY_S  # how far ahead the rhythm of a feed is used


class ListSignals:
    def __init__(
        self,
        signal_recorder: SignalRecorder,
        refresher: Refresher,
        link_resolver: LinkResolver,
        inbox: Inbox,
        outbox: Outbox,
        clock: Callable[[], float],
    ) -> None:
        self._signal_recorder, self._refresher, self._link_resolver = signal_recorder, refresher, link_resolver
        self._inbox, self._outbox, self._clock = inbox, outbox, clock
        self._own = 0  # the number of the last signal that was read here; these numbers count down from 0
        self._ahead: dict[str, Sequence[tuple[float, float]]] = {}  # by URL: published points of pages not fetched yet
        # Pages to request without a condition. Schedules: what they say of pages that are not fetched yet is lost when the crawl stops.
        # Lists that are not read to their end: the crawl may be killed before it has read them.
        self.whole: set[int] = set()
        self.topics: set[str] = set()  # WebSub topics that were written to this inbox in this run

    def restore(self, reading: Reading, own: int) -> None:
        self._own = own
        self.whole.update(reading.whole())

    def ahead_s(self, now: float) -> float:
        return self._signal_recorder.ahead_s(now)

    def discover(self, urls: Sequence[str], now: float) -> None:
        """Discover schedules as pages."""
        self._signal_recorder.discover_signalled(urls, now)

    def have_whole(self, page: int, yes: bool) -> None:
        """Set whether the page's next request has no condition."""
        if yes != (page in self.whole) and (not yes or len(self.whole) < _MOST_WHOLE):
            (self.whole.add if yes else self.whole.discard)(page)
            self._outbox.whole = self.whole

    def feed(self, page: int, url: str, found: Feed) -> None:
        """Take in what a feed says of itself: its hub, and when it will change."""
        for hub in found.hubs[:1]:
            self._topic(found.self_url or url, hub)
        date = self._clock() - self._signal_recorder.ahead_s(self._clock())
        ahead = [(at, _RHYTHM_P) for at in found.points(date, _AHEAD_S)]
        if ahead:
            self._publish(page, FEED, ahead)

    def _topic(self, url: str, hub: str) -> None:
        if url not in self.topics and len(self.topics) < _MOST_TOPICS:
            with suppress(sqlite3.Error):  # the next fetch of the feed tries again
                self._inbox.topic(url, hub)
                self.topics.add(url)

    def schedule(self, page: int, found: Schedule) -> None:
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

    def listed(self, channel: int, page: int, date: float, before: float, now: float) -> None:
        """Take in the date of a page's last change, or NaN. `before`: the latest date that a list gave for the page so far."""
        ahead_s = self.ahead_s(now)
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
