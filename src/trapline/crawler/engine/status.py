"""The status of a crawl, for display: its progress, rates of the last seconds, busiest sites, errors, and rejected links.

status_reporter.py makes it in the loop, crawler/inspect/folder_status.py from a folder. This module counts nothing (tally.py) and shows
nothing.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.engine.tally import SignalCounts
from trapline.crawler.files.handled import HandledCounts
from trapline.crawler.inspect.why_not_faster import SpeedAnswer
from trapline.crawler.speed.connection_states import CrawlSpeed
from trapline.crawler.speed.pace import Pace
from trapline.crawler.speed.what_if import WhatIf
from trapline.units import counted, duration

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
