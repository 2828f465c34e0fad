"""What providers tell of their pages, on its way to the refresher: signals from the inbox, and what the crawl's own pages say.

Here is the face of it, and the inbox; pages that tell of others are read by tellers.py, and hearing.py has what becomes of it all. What
is told never brings a new site into the crawl, and never a page that the scope leaves out.

Who owns what: the inbox its signals, and the store which of them were heard; here is the number of the last one. Signals are heard in the
order of these numbers, whatever time they say they came. An inbox that was deleted or moved away and made anew, also while the crawl
runs, counts from 1 again; the numbers that we note go on from those of the one before.
"""

import sqlite3
import time
from collections.abc import Callable, Container
from contextlib import suppress

from trapline.crawl.hearing import NEW, NO_PAGE, NOTED, WAITS, Hearing
from trapline.crawl.judge import Verdict
from trapline.crawl.known import Known
from trapline.crawl.outbox import Outbox
from trapline.crawl.partition import Others
from trapline.crawl.store.reading import Reading
from trapline.crawl.tally import Heard
from trapline.crawl.tellers import Aside, Tellers
from trapline.errors import ConfigError
from trapline.fetch.limits import Limits
from trapline.fetch.response import Response
from trapline.fetch.urls import origin
from trapline.frontier import Frontier
from trapline.refresh.refresher import Refresher
from trapline.signals.cache_headers import expiry
from trapline.signals.inbox import ACCESS, CHANGED, CHANNELS, POINT, UNVERIFIED_P, Inbox, Signal

MOST_AT_ONCE = 5_000  # signals between two looks at the loop
CACHE = CHANNELS.index("cache")
_SAID_S = 10.0  # what happened once stands for so long: a log has a line of it
_REPLACED = "signals.db was deleted or replaced; the one that is there now is heard. Start `refresh serve` anew"


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
        wall_clock: Callable[[], float] = time.time,
        others: Others | None = None,
        expanded_bytes: int = Limits.expanded_bytes,
    ) -> None:
        self._refresher, self._known, self._inbox, self._outbox = refresher, known, inbox, outbox
        self.hearing = Hearing(refresher, frontier, known, outbox, wall_clock, others)
        self.tellers = Tellers(self.hearing, refresher, known, inbox, outbox, clock, aside, expanded_bytes)
        self._last = 0  # the last signal that was heard
        self._before = 0  # the last of the inboxes before this one
        self._identity = inbox.identity
        self._began = refresher.now  # what earlier runs crawled, they did before this moment
        self._replaced_until = -1.0  # the crawl's own time: people are told until then
        self.trouble = ""  # why nothing can be heard, for people
        self.is_deaf = False  # for now: other partitions have not said yet what is ours

    @property
    def heard(self) -> Heard:
        """Since the crawl began."""
        return self.hearing.heard

    @property
    def whole(self) -> set[int]:
        return self.tellers.whole

    def restore(self, reading: Reading) -> None:
        """Go on with what earlier runs were told."""
        last, own = reading.heard()
        self._identity, self._before = reading.inbox()
        self._last = last - self._before
        if self._is_another:
            self._begin(last if self._identity else 0, last)  # "": the first that is heard
        for number, page in reading.noted(ACCESS, WAITS, self._before):
            if page not in self._refresher:
                self.hearing.early.add(page, self._inbox.p_of(number - self._before))
        self.hearing.restore(reading)
        self.tellers.restore(reading, own)

    # ---- the inbox

    @property
    def _is_another(self) -> bool:
        """Made anew, or an older copy of it that was put back."""
        return self._inbox.identity != self._identity or self._inbox.last < self._last

    def _begin(self, before: int, last: int) -> None:
        """With another inbox. `before`, `last`: the numbers of the last signal before its first, and of the last that was heard."""
        self._identity, self._before, self._last = self._inbox.identity, before, last - before
        self._outbox.inbox = self._identity, before

    def poll(self, now: float) -> bool:
        """Hear what has come in since the last time; whether there was anything."""
        if self.is_deaf:
            return False
        try:
            if self._inbox.is_gone:
                self._open_anew(now)
            signals = self._inbox.take(self._last, MOST_AT_ONCE)
            self.trouble = _REPLACED if now < self._replaced_until else ""
        except ConfigError as error:
            self.trouble = str(error)
            return False
        except OSError as error:
            self.trouble = f"signals.db cannot be seen: {error.strerror}"
            return False
        except sqlite3.Error as error:  # if it is busy, another time
            self.trouble = "" if "locked" in str(error) else f"signals.db cannot be read: {error}"
            return False
        if signals:
            self._take(signals, now)
        return bool(signals)

    def heard_of(self, sites: Container[str]) -> tuple[str, int]:
        """Which inbox we hear, and the last of its signals before the first that we have not heard and that concerns one of these sites."""
        last = self._last
        with suppress(sqlite3.Error):  # then more is heard twice
            while signals := self._inbox.take(last, MOST_AT_ONCE):
                for signal in signals:
                    if origin(signal.url) in sites:
                        return self._identity, signal.id - 1
                last = signals[-1].id
        return self._identity, last

    def hear_after(self, inbox: str, number: int, is_first: bool) -> None:
        """Of what we have from another, so much was heard; we have heard nothing yet. `is_first`: there was no other before."""
        heard = number if inbox == self._inbox.identity else 0
        self._begin(-heard if is_first else -min(heard, self._last), 0)

    def _open_anew(self, now: float) -> None:
        """Others cannot write into a file that only we have."""
        self._inbox.reopen()
        self._replaced_until = now + _SAID_S
        if self._is_another:
            last = self._before + self._last
            self._begin(last, last)
            self.tellers.topics.clear()

    def _take(self, signals: list[Signal], now: float) -> None:
        self._last = signals[-1].id
        signals = [signal for signal in signals if self._known.is_ours(signal.url)]
        pages, ahead_s = self._known.find([signal.url for signal in signals]), self.hearing.ahead_s(now)
        points: dict[tuple[int, str], list[tuple[float, float]]] = {}
        for signal, page in zip(signals, pages, strict=True):
            moment = self._moment(signal, ahead_s)
            if signal.kind == POINT and page in self._refresher:
                points.setdefault((page, signal.channel), []).append((moment, signal.p))
            outcome = self._hear(signal, page, moment, now)
            self.hearing.note(self._before + signal.id, page, signal.channel, signal.kind, outcome, now)
        for (page, channel), ahead in points.items():
            self._refresher.publish(page, CHANNELS.index(channel), ahead, now)

    def _moment(self, signal: Signal, ahead_s: float) -> float:
        """By our time. If that is ahead: what is heard now came after all that earlier runs crawled, for it was not there then. What is
        to come is as far ahead as was told."""
        if not ahead_s or signal.kind == POINT:
            return signal.moment + ahead_s
        return signal.moment + max(ahead_s, self._began - signal.received)

    def _hear(self, signal: Signal, page: int, moment: float, now: float) -> str:
        if page < 0:
            is_news = signal.kind == CHANGED and signal.verified
            return NEW if is_news and self.hearing.meet([signal.url], now) else NO_PAGE
        if signal.kind == ACCESS:
            return self.hearing.accessed(page, now, signal.p)
        if page not in self._refresher:
            return WAITS
        if signal.kind == CHANGED:
            return self.hearing.signalled(page, CHANNELS.index(signal.channel), moment, signal.p, now)
        return NOTED

    # ---- what is published

    def listen(self, page: int, url: str, verdict: Verdict, response: Response, now: float) -> None:
        """A page was had: it may be one that tells of others."""
        self.hearing.had(page, now)
        self.tellers.had(page, url)
        self._expires(page, response, now)
        if response.status == 200:
            self.tellers.listen(page, url, verdict, response, now)

    def _expires(self, page: int, response: Response, now: float) -> None:
        """Until when a cache may keep it: hardly a promise that it changes then."""
        at = expiry(response.headers, now)
        if at == at and page in self._refresher:
            self._refresher.publish(page, CACHE, [(at, UNVERIFIED_P)], now)

    def robots(self, url: str, body: bytes, now: float) -> None:
        """A robots.txt may say where its site's sitemaps and schedules are."""
        self.tellers.robots(url, body, now)
