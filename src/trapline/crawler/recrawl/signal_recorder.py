"""The signal recorder: passes signals about pages to the refresher, and their outcomes to the store.

The recorder does not know where a signal comes from. Signals of the inbox (signal_intake.py) and dates of published lists
(published_lists.py) are treated alike. `Listed` remembers which sitemap or feed lists a page, and the latest date that one
of them gave; `PendingAccesses` counts the accesses of a page until it is fetched.

Providers give times by the wall clock. The crawl's own time never runs backwards: if the clock was ahead in one run, the
next run continues from there (crawler/engine/live.py). Every signal would then seem older than our copies. Times of signals
are therefore moved by the difference between the two clocks.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.engine.records import ListedPage, SignalNoted
from trapline.crawler.engine.tally import SignalCounts, signal_counts_of
from trapline.crawler.files.reading import Reading
from trapline.crawler.store.outbox import Outbox
from trapline.frontier import Frontier
from trapline.frontier.layout import Array
from trapline.refresh.core.evidence import SAME_S
from trapline.refresh.live.refresher import Refresher
from trapline.signals.inbox import ACCESS, UNVERIFIED_P

# ---- What sitemaps and feeds say of pages: which of them lists a page, and the latest date of a change that one of them gave.
#
# `Listed` only remembers; published_lists.py decides whether a date is news. Lists may disagree, and each is read many times. The latest
# of all dates is therefore kept, not the last one read. There are two arrays by page, in memory while the crawl runs; each change also
# goes to the store (table `listed_page`), so that the next run begins with it.

NOBODY = -1


class Listed:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._by, self._dated = np.full(1024, NOBODY, np.int32), np.full(1024, math.inf)

    def restore(self, listed_pages: Iterable[ListedPage]) -> None:
        """Restore what earlier runs stored."""
        for page, by, dated in listed_pages:
            self._make_room(page)
            self._by[page], self._dated[page] = by, dated

    @property
    def published_lists(self) -> set[int]:
        """All pages that list others."""
        return set(self._by[self._by != NOBODY].tolist())

    def by(self, page: int) -> int:
        """Return the list that names the page, or NOBODY."""
        return int(self._by[page]) if page < len(self._by) else NOBODY

    def dated(self, page: int) -> float:
        """Return the latest date that was read for the page. Infinity: none was read."""
        return float(self._dated[page]) if page < len(self._dated) else math.inf

    def note(self, page: int, by: int, dated: float) -> None:
        """Note that the list `by` names the page. `dated`: the date of its last change, or NaN."""
        self._make_room(page)
        old = ListedPage(page, int(self._by[page]), float(self._dated[page]))
        is_latest = dated > old.dated or (old.dated == math.inf and not math.isnan(dated))
        new = ListedPage(page, by, dated if is_latest else old.dated)
        if new != old:
            self._by[page], self._dated[page] = new.by, new.dated
            self._outbox.listed_pages.append(new)

    def _make_room(self, page: int) -> None:
        size = len(self._by)
        if page >= size:
            self._by, self._dated = _grown(self._by, 2 * page, NOBODY), _grown(self._dated, 2 * page, math.inf)


def _grown(array: Array, size: int, empty: float) -> Array:
    grown = np.full(size, empty, array.dtype)
    grown[: len(array)] = array
    return grown


# ---- Accesses of pages that are not fetched yet: they count once the page is fetched.
#
# `SignalRecorder.accessed` adds new counts. After a resume, signal_intake.py adds the counts that were recorded as too early and are
# still in the inbox. `take` removes them.

MOST_PAGES = 1_000_000  # accesses of further pages are not remembered


class PendingAccesses:
    def __init__(self) -> None:
        self._counts: dict[int, float] = {}  # by page

    def add(self, page: int, count: float) -> None:
        if page in self._counts or len(self._counts) < MOST_PAGES:
            self._counts[page] = self._counts.get(page, 0.0) + count

    def take(self, page: int) -> float:
        """Return the number of accesses of the page, and forget it."""
        return self._counts.pop(page, 0.0)


# ---- the recorder

# Outcomes of a signal.
NOTED, OLD, NEW, WAITS, NO_PAGE = "noted", "old", "new page", "not fetched yet", "no page of the crawl"


class SignalRecorder:
    def __init__(
        self,
        refresher: Refresher,
        frontier: Frontier,
        link_resolver: LinkResolver,
        outbox: Outbox,
        wall_clock: Callable[[], float] = time.time,
        send_listed: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        """`send_listed`: sends URLs to the partitions that own them."""
        self._refresher, self._frontier, self._link_resolver, self._outbox = refresher, frontier, link_resolver, outbox
        self._wall_clock, self._send_listed = wall_clock, send_listed
        self._kinds: Counter[bool] = Counter()  # numbers since the crawl began: False: signals, True: access counts
        self.pending_accesses, self.listed = PendingAccesses(), Listed(outbox)

    def restore(self, reading: Reading) -> None:
        signals, accesses = signal_counts_of(reading.connection)
        self._kinds.update({False: signals, True: accesses})
        self.listed.restore(reading.listed_pages())

    @property
    def signal_counts(self) -> SignalCounts:
        return SignalCounts(self._kinds[False], self._kinds[True])

    def ahead_s(self, now: float) -> float:
        """Return how far the crawl's own time is ahead of the wall clock. A difference of at most SAME_S, within which signals
        count as one, counts as 0."""
        ahead_s = now - self._wall_clock()
        return ahead_s if ahead_s > SAME_S else 0.0

    def signalled(self, page: int, channel: int, moment: float, p: float, now: float) -> str:
        """Record that the page changed at that moment of the crawl's own time. Return the outcome."""
        before = self._refresher.signals(page)
        self._refresher.signalled(page, channel, now, moment, p)
        if self._refresher.signals(page) == before:
            return OLD
        if p > UNVERIFIED_P:
            self._refresher.recalled(page, now)  # the page may have been gone
        return NOTED

    def accessed(self, page: int, now: float, count: float) -> str:
        """Count accesses of a page. Return the outcome. The accesses also count for the list that names the page: fetching
        the list again is as valuable as the news that it brings about its pages."""
        if page not in self._refresher:
            self.pending_accesses.add(page, count)
            return WAITS
        self._refresher.accessed(page, now, count)
        list_page = self.listed.by(page)
        if list_page != NOBODY and list_page != page and list_page in self._refresher:
            self._refresher.accessed(list_page, now, count)
        return NOTED

    def count_pending_accesses(self, page: int, now: float) -> None:
        """Count the accesses of a page that were received before it was fetched."""
        if page in self._refresher and (accesses := self.pending_accesses.take(page)):
            self.accessed(page, now, accesses)

    def discover_signalled(self, urls: Iterable[str], now: float) -> bool:
        """Discover the pages at these URLs whose sites the crawl knows. Return whether there are any. URLs of other partitions
        are sent to their owners."""
        listed = list(urls)
        if self._send_listed is not None:
            self._send_listed([url for url in listed if not self._link_resolver.is_ours(url)])
        pages = self._link_resolver.listed_pages(listed, now)
        if pages:
            self._frontier.discover(pages, now)
        return bool(pages)

    def note(self, number: int, page: int, channel: str, kind: str, outcome: str, now: float) -> None:
        self._kinds[kind == ACCESS] += 1
        self._outbox.signals.append(SignalNoted(number, page, now, channel, kind, outcome))
