"""The signal intake: takes signals of content providers from the inbox, and from the crawl's own pages, to the refresher.

This module is the interface to the crawl, and reads the inbox. published_lists.py reads pages that tell of others,
list_signals.py takes what they say about changes, and signal_recorder.py records the outcome of every signal. Signals
never add a new site to the crawl, nor a page that the scope rejects.

The inbox owns its signals, the store owns which of them were taken, and this module holds the number of the last one.
Signals are taken in the order of their numbers, whatever time they carry. If an inbox was deleted or moved away and
created again, even while the crawl runs, it counts from 1 again; the numbers that the crawl records continue from those
of the previous inbox.
"""

import sqlite3
import time
from collections.abc import Callable, Container
from contextlib import suppress

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.engine.tally import SignalCounts
from trapline.crawler.files.reading import Reading
from trapline.crawler.recrawl.list_signals import ListSignals
from trapline.crawler.recrawl.published_lists import ListOptions, Offloading, PublishedLists, Senders
from trapline.crawler.recrawl.signal_recorder import NEW, NO_PAGE, NOTED, WAITS, SignalRecorder
from trapline.crawler.store.outbox import Outbox
from trapline.crawler.visits.judge import FetchVerdict
from trapline.errors import ConfigError
from trapline.fetch.http.response import Response
from trapline.fetch.urls import origin
from trapline.frontier import Frontier
from trapline.refresh.live.refresher import Refresher
from trapline.signals.dates import expiry
from trapline.signals.inbox import ACCESS, CHANGED, CHANNELS, POINT, UNVERIFIED_P, Inbox, Signal

MOST_AT_ONCE = 5_000  # most signals that are taken before the loop continues
CACHE = CHANNELS.index("cache")
_LIST_OPTIONS = ListOptions()
_SHOWN_S = 10.0  # a single event is shown for this long, so that a log gets a line about it
_REPLACED = "signals.db was deleted or replaced, and the crawl reads the new one; restart `trapline refresh serve`"


class SignalIntake:
    def __init__(
        self,
        refresher: Refresher,
        frontier: Frontier,
        link_resolver: LinkResolver,
        inbox: Inbox,
        outbox: Outbox,
        clock: Callable[[], float],
        offload: Offloading,
        wall_clock: Callable[[], float] = time.time,
        senders: Senders | None = None,
        list_options: ListOptions = _LIST_OPTIONS,
    ) -> None:
        self._refresher, self._link_resolver, self._inbox, self._outbox = refresher, link_resolver, inbox, outbox
        self.signal_recorder = SignalRecorder(
            refresher, frontier, link_resolver, outbox, wall_clock, senders.entries if senders else None
        )
        self.list_signals = ListSignals(self.signal_recorder, refresher, link_resolver, inbox, outbox, clock)
        self.published_lists = PublishedLists(
            frontier,
            link_resolver,
            outbox,
            clock,
            offload,
            list_options,
            listed=self.signal_recorder.listed,
            signals=self.list_signals,
            senders=senders,
        )
        self._last = 0  # the number, in this inbox, of the last signal that was taken
        self._before = 0  # the recorded number of the last signal of earlier inboxes
        self._identity = inbox.identity
        self._began = refresher.now  # all fetches of earlier runs were before this moment
        self._replaced_until = -1.0  # the crawl's own time until which _REPLACED is shown
        self.trouble = ""  # why no signals can be taken, for people
        self.is_paused = False  # True: wait, because other partitions have not said yet which pages are ours

    @property
    def signal_counts(self) -> SignalCounts:
        """Numbers of signals since the crawl began."""
        return self.signal_recorder.signal_counts

    @property
    def whole(self) -> set[int]:
        return self.list_signals.whole

    def restore(self, reading: Reading) -> None:
        """Restore the state of earlier runs."""
        last, own = reading.last_signals()
        self._identity, self._before = reading.inbox()
        self._last = last - self._before
        if self._is_other_inbox:
            self._begin(last if self._identity else 0, last)  # "": this is the first inbox of the crawl
        for number, page in reading.noted(ACCESS, WAITS, self._before):
            if page not in self._refresher:
                self.signal_recorder.pending_accesses.add(page, self._inbox.p_of(number - self._before))
        self.signal_recorder.restore(reading)
        self.list_signals.restore(reading, own)
        self.published_lists.restore(reading)

    # ---- the inbox

    @property
    def _is_other_inbox(self) -> bool:
        """Whether the inbox was created again, or replaced by an older copy of itself."""
        return self._inbox.identity != self._identity or self._inbox.last < self._last

    def _begin(self, before: int, last: int) -> None:
        """Begin to read another inbox. `before`: the recorded number of the last signal before its first one. `last`: the
        recorded number of the last signal that was taken."""
        self._identity, self._before, self._last = self._inbox.identity, before, last - before
        self._outbox.inbox = self._identity, before

    def poll(self, now: float) -> bool:
        """Take the signals that have arrived since the last call. Return whether there were any."""
        if self.is_paused:
            return False
        try:
            if self._inbox.is_gone:
                self._reopen(now)
            signals = self._inbox.take(self._last, MOST_AT_ONCE)
            self.trouble = _REPLACED if now < self._replaced_until else ""
        except ConfigError as error:
            self.trouble = str(error)
            return False
        except OSError as error:
            self.trouble = f"signals.db cannot be accessed: {error.strerror}"
            return False
        except sqlite3.Error as error:  # if it is locked, the next call tries again
            self.trouble = "" if "locked" in str(error) else f"signals.db cannot be read: {error}"
            return False
        if signals:
            self._take(signals, now)
        return bool(signals)

    def inbox_position(self, sites: Container[str]) -> tuple[str, int]:
        """Return the identity of the inbox, and the number of the signal before the first one that we have not taken and that
        concerns one of these sites."""
        last = self._last
        with suppress(sqlite3.Error):  # then the new owner takes some signals twice
            while signals := self._inbox.take(last, MOST_AT_ONCE):
                for signal in signals:
                    if origin(signal.url) in sites:
                        return self._identity, signal.id - 1
                last = signals[-1].id
        return self._identity, last

    def continue_after(self, inbox: str, number: int, is_first: bool) -> None:
        """Begin to read after signal `number` of that inbox: the partition that handed sites over to us has taken the signals
        up to it. If several partitions did, the smallest number counts. `is_first`: this is the first of them."""
        position = number if inbox == self._inbox.identity else 0
        self._begin(-position if is_first else -min(position, self._last), 0)

    def _reopen(self, now: float) -> None:
        """Open the inbox again: its file was deleted or replaced, and nobody else can write to the one that we have open."""
        self._inbox.reopen()
        self._replaced_until = now + _SHOWN_S
        if self._is_other_inbox:
            last = self._before + self._last
            self._begin(last, last)
            self.list_signals.topics.clear()

    def _take(self, signals: list[Signal], now: float) -> None:
        self._last = signals[-1].id
        signals = [signal for signal in signals if self._link_resolver.is_ours(signal.url)]
        pages, ahead_s = self._link_resolver.find([signal.url for signal in signals]), self.signal_recorder.ahead_s(now)
        points: dict[tuple[int, str], list[tuple[float, float]]] = {}
        for signal, page in zip(signals, pages, strict=True):
            moment = self._moment(signal, ahead_s)
            if signal.kind == POINT and page in self._refresher:
                points.setdefault((page, signal.channel), []).append((moment, signal.p))
            outcome = self._process(signal, page, moment, now)
            self.signal_recorder.note(self._before + signal.id, page, signal.channel, signal.kind, outcome, now)
        for (page, channel), ahead in points.items():
            self._refresher.publish(page, CHANNELS.index(channel), ahead, now)

    def _moment(self, signal: Signal, ahead_s: float) -> float:
        """Return the moment of a signal by the crawl's own time.

        If that time is ahead of the wall clock, the signal is moved until its arrival lies after all fetches of earlier runs:
        they ended before it arrived. A published point stays as far ahead as the provider said.
        """
        if not ahead_s or signal.kind == POINT:
            return signal.moment + ahead_s
        return signal.moment + max(ahead_s, self._began - signal.received)

    def _process(self, signal: Signal, page: int, moment: float, now: float) -> str:
        if page < 0:
            is_news = signal.kind == CHANGED and signal.verified
            return NEW if is_news and self.signal_recorder.discover_signalled([signal.url], now) else NO_PAGE
        if signal.kind == ACCESS:
            return self.signal_recorder.accessed(page, now, signal.p)
        if page not in self._refresher:
            return WAITS
        if signal.kind == CHANGED:
            return self.signal_recorder.signalled(page, CHANNELS.index(signal.channel), moment, signal.p, now)
        return NOTED

    # ---- published lists

    def listen(self, page: int, url: str, verdict: FetchVerdict, response: Response, now: float) -> None:
        """Take in a page that was fetched. It may be a published list."""
        self.signal_recorder.count_pending_accesses(page, now)
        self.list_signals.publish_pending_points(page, url)
        self._expires(page, response, now)
        if response.status == 200:
            self.published_lists.listen(page, url, verdict, response, now)

    def _expires(self, page: int, response: Response, now: float) -> None:
        """Publish the moment until which a cache may keep the page. This is hardly a promise that the page changes then."""
        at = expiry(response.headers, now)
        if at == at and page in self._refresher:
            self._refresher.publish(page, CACHE, [(at, UNVERIFIED_P)], now)
