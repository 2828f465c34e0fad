"""The numbers of a crawl, and the definitions of a page, an error and a byte (docs/crawl-summary.md).

The loop counts each record that it sends to the store (`CrawlTally.note`). A reader that has only the database counts
the rows of these records by the same rules in SQL (`tally_of`). This module neither shows nor stores what it counts.
"""

import asyncio
import math
import signal
import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trapline.crawler.engine.records import OUT_OF_BAND, RETURNED, ROBOTS_FILE, CrawlProgress, Fetched
from trapline.crawler.engine.row_kinds import IS_ERROR, IS_PAGE, KIND, PAGES, REDIRECTS
from trapline.crawler.engine.row_kinds import NOT_MODIFIED as _NOT_MODIFIED
from trapline.crawler.files.handled import HandledCounts
from trapline.crawler.inspect.why_not_faster import SpeedAnswer
from trapline.crawler.speed.connection_states import CrawlSpeed
from trapline.crawler.speed.pace import Pace
from trapline.crawler.speed.what_if import WhatIf
from trapline.fetch import failure
from trapline.frontier import FETCHED, REFUSED, Rules
from trapline.units import counted, duration

# ---- Reasons for the end of a crawl, as its folder and `summary.json` name them. The crawler and its goals decide which one applies.

DRAINED = "drained"  # no page is left to fetch
MAX_PAGES, MAX_TIME, MAX_BYTES = "max-pages", "max-time", "max-bytes"
INTERRUPTED, TERMINATED = "interrupted", "terminated"  # by Ctrl-C, by SIGTERM
BY_HAND = (INTERRUPTED, TERMINATED)
PROXY_LOST = "proxy-lost"  # the proxy is not available
UNREACHABLE = "unreachable"  # nothing was fetched, and every seed refuses connections or has no address
STOPPED = "stopped"  # by the program that takes the pages
ENDS = {
    MAX_PAGES: "--max-pages",
    MAX_TIME: "--max-time",
    MAX_BYTES: "--max-bytes",
    PROXY_LOST: "the proxy was not available",
    UNREACHABLE: "no seed could be reached",
    DRAINED: "nothing was left to fetch",
    INTERRUPTED: "Ctrl-C",
    TERMINATED: "SIGTERM",
    STOPPED: "the program that received the pages",
}
"""Texts for what ended a crawl: `stopped_by` in docs/crawl-summary.md."""


# ---- Ctrl-C and SIGTERM while a crawl runs. What they do is decided in run.py.

_SAME_SIGNAL_S = 0.5  # signals within this time count as one: `timeout` sends its own to the process and to the group
_WHY = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


@contextmanager
def signals_held() -> Iterator[None]:
    """Keep signals until `interrupts` takes them: a crawl whose folder is being made ends in order, and not in the middle."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WHY)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def interrupts(loop: asyncio.AbstractEventLoop, interrupted: Callable[[str], None]) -> Iterator[None]:
    """Call `interrupted` for each signal, with INTERRUPTED or TERMINATED; also for one that `signals_held` has kept."""
    last = -math.inf

    def handle(why: str) -> None:
        nonlocal last
        if loop.time() - last >= _SAME_SIGNAL_S:
            last = loop.time()
            interrupted(why)

    for number, why in _WHY.items():
        loop.add_signal_handler(number, handle, why)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WHY)
    try:
        yield
    finally:
        for number in _WHY:
            loop.remove_signal_handler(number)


# ---- tally


class SignalCounts(NamedTuple):
    """What was received about pages since the crawl began. Access counts are no signals: they do not say that a page changed."""

    signals: int
    access_counts: int  # one for each page and hour, whatever its number of accesses


@dataclass(slots=True)
class CrawlTally:
    fetched: int = 0  # pages, each once
    refetched: int = 0  # fetches of pages that were fetched before
    changed: int = 0  # refetches that found a change
    redirects: int = 0  # URLs whose first answer was a redirect
    in_flight: int = 0  # pages requested and not answered
    body_bytes: int = 0  # of pages, as received
    errors: Counter[str] = field(default_factory=Counter)  # by kind
    abandoned_sites: Counter[str] = field(default_factory=Counter)  # number of sites, by kind
    rejected_links: Counter[str] = field(default_factory=Counter)  # number of links, by reason
    quality: float = 0.0  # sum over the fetched pages, each with its quality at the time of its fetch
    recent: Counter[int] = field(default_factory=Counter)  # pages by site, since the last status
    seconds_before: float = 0.0  # of crawling, in earlier runs

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    def note(self, record: Fetched, is_refetch: bool = False, quality: float = 0.0) -> None:
        """Count a record. `is_refetch`: the page was fetched before. `quality`: of a new page."""
        self.body_bytes += len(record.wire)
        if is_page(record):
            self.fetched += not is_refetch
            self.refetched += is_refetch
            self.changed += record.changed == 1
            self.recent[record.site] += 1
            self.quality += quality
        elif is_redirect(record.result, record.status):
            self.redirects += not is_refetch
        if record.error and record.result not in (RETURNED, OUT_OF_BAND) and not _is_unwanted(record):
            self.errors[record.error] += 1


def is_redirect(result: int, status: int) -> bool:
    """Return whether a fetch brought a redirect, which is no page. 304 is none: it confirms our copy of a page."""
    return result == FETCHED and 300 <= status < 400 and status != _NOT_MODIFIED


def is_page(record: Fetched) -> bool:
    """Return whether the record brought a page: neither a redirect nor the robots.txt of another site."""
    if record.result != FETCHED or record.marks & ROBOTS_FILE:
        return False
    return not is_redirect(FETCHED, record.status)


def is_handed_over(record: Fetched) -> bool:
    """Return whether handlers and programs receive the record: it brought a page with contents, or it is a failure."""
    if record.result == FETCHED:
        return is_page(record) and record.status != _NOT_MODIFIED
    return record.result not in (RETURNED, OUT_OF_BAND)


def _is_unwanted(record: Fetched) -> bool:
    """Return whether nothing failed: robots.txt forbids the page, or its media type is not wanted."""
    return record.error == failure.MIME or (record.error == failure.ROBOTS and record.result == REFUSED)


def tally_of(database: sqlite3.Connection) -> CrawlTally:
    """Count pages, bytes and errors from the rows of `fetch`. The most frequent kinds of errors come first."""
    pages, fetches, changed, redirects, received = database.execute(
        f"select {PAGES}, total({IS_PAGE}), total(changed and {IS_PAGE}), {REDIRECTS}, total(bytes) from fetch"
    ).fetchone()
    kinds = database.execute(
        f"select {KIND} as kind, count(*) from fetch where {IS_ERROR} group by kind order by 2 desc, 1"
    )
    found = CrawlTally(pages, int(fetches) - pages, int(changed), redirects)
    found.body_bytes, found.errors = int(received), Counter(dict(kinds))
    return found


def signal_counts_of(database: sqlite3.Connection) -> SignalCounts:
    sql = "select total(signals * (kind != 'access')), total(signals * (kind = 'access')) from signal_total"
    return SignalCounts(*map(int, database.execute(sql).fetchone()))


# ---- Seeds whose sites do not answer: the user learns this at once, and not only when the crawl ends.

WORDS = {
    failure.ROBOTS: "its robots.txt cannot be read (an error of the server)",
    failure.TIMEOUT: "no answer in time",
    failure.CLOSED: "the server closed the connection",
    failure.ADDRESS: "the crawl may not connect to its address",
    failure.PROTOCOL: "the answer is not HTTP",
}
_MOST_UNANSWERED = 5
_MOST_DOUBLINGS = 64  # of a back-off, which has its longest time long before


class UnansweredSeeds:
    """Notes for the user, one for each of the first seeds that did not answer. The crawler adds them; the view shows each once."""

    def __init__(self, abandon: int, rules: Rules) -> None:
        """`abandon`: number of failed visits after which a site is abandoned. `rules`: they have the back-off."""
        self._abandon, self._rules = abandon, rules
        self._new = ""  # a note without the time of the next visit, which is known when the visit has ended
        self._seen: set[str] = set()
        self.refused: set[int] = set()  # sites that refused the last connection, and are not abandoned
        self.notes: list[str] = []

    def note(self, url: str, why: str) -> None:
        if url not in self._seen and len(self._seen) <= _MOST_UNANSWERED:
            self._seen.add(url)
            self._new = f"{url}: {why}" if len(self._seen) <= _MOST_UNANSWERED else "more seeds do not answer"

    def visit_ended(self, seconds: float, failures: int, is_end: bool) -> None:
        """Complete the last note, whose visit has ended. `seconds`: until the next visit may begin. `failures`: failed visits in
        a row. `is_end`: no seed can be reached, and the crawl ends."""
        if self._new:
            self.notes.append(f"{self._new}; {self._what_follows(seconds, failures, is_end)}")
            self._new = ""

    def _what_follows(self, seconds: float, failures: int, is_end: bool) -> str:
        if is_end:
            return "no seed can be reached, so the crawl ends; check the address"
        if self._abandon == 1:
            return "the crawl does not try again (--max-failed-visits 1)"
        return (
            f"next attempt in {duration(seconds)}; the crawl gives up after {self._abandon} attempts, in"
            f" {duration(seconds + self._later_s(failures))}; check the address; Ctrl-C ends now;"
            " --max-failed-visits 1 gives up at the first failure"
        )

    def _later_s(self, failures: int) -> float:
        """Return the back-off after the next attempt, until the last one."""
        first_s, most_s, waits = self._rules.backoff_s, self._rules.backoff_most_s, self._abandon - 1
        doubling = sum(min(first_s * 2.0**n, most_s) for n in range(failures, min(waits, _MOST_DOUBLINGS)))
        return doubling + max(waits - _MOST_DOUBLINGS, 0) * most_s


# ---- The status of a crawl, for display: its progress, rates of the last seconds, busiest sites, errors, and rejected links.

RECENT_S = 5.0  # the period of current rates
MOST_ROWS = 6


# What a run of a crawl is about to do. Names are part of live/status.
PREPARING, CRAWLING, PAUSED, STOPPING, CLOSING = "preparing", "crawling", "paused", "stopping", "closing"


class RefetchCounts(NamedTuple):
    """The results of fetching pages again."""

    fetched: int
    changed: int
    signals: SignalCounts
    by_quality: bool  # whether the pages' quality replaces their popularity, because no access counts were received


class CrawlStatus(NamedTuple):
    progress: CrawlProgress
    pages_per_s: float
    bytes_per_s: float
    busiest: Callable[[], list[tuple[str, int]]]  # origin, pages in the last seconds; computed on demand
    errors: list[tuple[str, int]]  # kind, number
    strategy: str
    folder: str
    doing: str  # what the crawl is doing; "": crawling
    goal: float  # pages; infinity: none
    connections: int
    abandoned_sites: Sequence[tuple[str, int]] = ()  # kind, sites
    rejected_links: Sequence[tuple[str, int]] = ()  # reason, links
    refetches: RefetchCounts | None = None  # None: every page is fetched once
    partitions: int = 1
    handled: HandledCounts | None = None  # None: the crawl has no handler
    notes: Sequence[str] = ()  # notes of the partitions for the user, each to be shown once
    pace: Pace | None = None  # None: no page waits, or the pace is not known
    speed: CrawlSpeed | None = None  # None: not known yet
    what_ifs: Sequence[WhatIf] = ()  # options that would change the speed
    phase: str = CRAWLING
    stopped_by: str = ""  # why the crawl is stopping or has stopped
    paused: bool = False  # by the user
    answer: SpeedAnswer | None = None  # why the crawl is not faster
    parts: Sequence[Mapping[str, Any]] = ()  # the partitions, as `trapline parallel status --json` has them


def stopping(why: str, visits: int) -> str:
    """Return the status text of a crawl that is stopping."""
    return f"stopping ({why})" + (
        f"; waiting for {counted(visits, 'visit')}; Ctrl-C ends them at once" if visits else ""
    )


def next_visit(seconds: float) -> str:
    """Return the status text of a crawl that waits without an open connection. "": the time is unknown."""
    return f"next visit in {duration(seconds)}" if seconds < math.inf else ""


class Recent:
    """Rates over the last seconds. The loop adds a mark twice a second."""

    def __init__(self) -> None:
        self._marks: deque[tuple[CrawlProgress, Counter[int]]] = deque()
        self._by_site: Counter[int] = Counter()  # pages since the first mark: the sum of all marks but the first

    def note(self, progress: CrawlProgress, by_site: Counter[int]) -> tuple[float, float]:
        """Add a mark. Return pages and bytes per second. `by_site`: pages since the last mark."""
        if self._marks:
            self._by_site.update(by_site)
        self._marks.append((progress, by_site))
        while len(self._marks) > 2 and self._marks[1][0].at <= progress.at - RECENT_S:
            self._marks.popleft()
            self._forget(self._marks[0][1])
        since = self._marks[0][0]
        passed = progress.at - since.at
        if passed <= 0.0:
            return 0.0, 0.0
        return (progress.pages - since.pages) / passed, (progress.bytes - since.bytes) / passed

    def _forget(self, by_site: Counter[int]) -> None:
        self._by_site.subtract(by_site)
        for site in by_site:
            if not self._by_site[site]:
                del self._by_site[site]

    def busiest(self) -> list[tuple[int, int]]:
        return self._by_site.most_common(MOST_ROWS)
