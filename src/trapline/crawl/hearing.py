"""What was told of pages, on its way into the refresher; and what became of it, on its way to the store.

It refuses to know who told it: signals of the inbox (hearsay.py) and dates of lists (tellers.py) end here alike.

Others tell moments by the wall clock. A crawl's own time does not run backwards: if the clock was ahead in one run, the next goes on
from there (live.py). Then whatever is told would seem to be older than our copies; so it is moved by as much as our time is ahead.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable

from trapline.crawl.early import Early
from trapline.crawl.known import Known
from trapline.crawl.listed import NOBODY, Listed
from trapline.crawl.outbox import Outbox
from trapline.crawl.partition import Others
from trapline.crawl.records import SignalNoted
from trapline.crawl.store.reading import Reading
from trapline.crawl.tally import Heard, heard_of
from trapline.frontier import Frontier
from trapline.refresh.evidence import SAME_S
from trapline.refresh.refresher import Refresher
from trapline.signals.inbox import ACCESS, UNVERIFIED_P

# What became of a signal.
NOTED, OLD, NEW, WAITS, NO_PAGE = "noted", "old", "new page", "not fetched yet", "no page of the crawl"


class Hearing:
    def __init__(
        self,
        refresher: Refresher,
        frontier: Frontier,
        known: Known,
        outbox: Outbox,
        wall_clock: Callable[[], float] = time.time,
        others: Others | None = None,
    ) -> None:
        self._refresher, self._frontier, self._known, self._outbox = refresher, frontier, known, outbox
        self._wall_clock, self._others = wall_clock, others
        self._kinds: Counter[bool] = Counter()  # since the crawl began; whether they are accesses
        self.early, self.listed = Early(), Listed(outbox)

    def restore(self, reading: Reading) -> None:
        signals, accesses = heard_of(reading.connection)
        self._kinds.update({False: signals, True: accesses})
        self.listed.restore(reading.told())

    @property
    def heard(self) -> Heard:
        return Heard(self._kinds[False], self._kinds[True])

    def ahead_s(self, now: float) -> float:
        """By how much our time is ahead of the wall clock. Clocks that differ by less than what is one signal are taken for one."""
        ahead_s = now - self._wall_clock()
        return ahead_s if ahead_s > SAME_S else 0.0

    def signalled(self, page: int, channel: int, moment: float, p: float, now: float) -> str:
        """It changed at that moment of our time; what became of it."""
        before = self._refresher.signals(page)
        self._refresher.signalled(page, channel, now, moment, p)
        if self._refresher.signals(page) == before:
            return OLD
        if p > UNVERIFIED_P:
            self._refresher.recalled(page, now)  # it may have been gone
        return NOTED

    def accessed(self, page: int, now: float, count: float) -> str:
        """Whoever lists a page is worth what it tells of it."""
        if page not in self._refresher:
            self.early.add(page, count)
            return WAITS
        self._refresher.accessed(page, now, count)
        teller = self.listed.by(page)
        if teller != NOBODY and teller != page and teller in self._refresher:
            self._refresher.accessed(teller, now, count)
        return NOTED

    def had(self, page: int, now: float) -> None:
        """It was fetched: what was heard of it too early counts now."""
        if page in self._refresher and (accesses := self.early.take(page)):
            self.accessed(page, now, accesses)

    def meet(self, urls: Iterable[str], now: float) -> bool:
        """Pages of sites that the crawl knows; whether any of ours was new. Other partitions know theirs."""
        told = list(urls)
        if self._others is not None:
            self._others.tell([url for url in told if not self._known.is_ours(url)])
        pages = self._known.told_pages(told, now)
        if pages:
            self._frontier.discover(pages, now)
        return bool(pages)

    def note(self, number: int, page: int, channel: str, kind: str, outcome: str, now: float) -> None:
        self._kinds[kind == ACCESS] += 1
        self._outbox.signals.append(SignalNoted(number, page, now, channel, kind, outcome))
