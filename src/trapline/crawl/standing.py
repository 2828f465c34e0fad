"""How a crawl stands, for whoever shows it: the progress, rates of the last seconds, the busiest sites, the errors,
where it does not go."""

import math
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from trapline.crawl.ends import SECONDS
from trapline.crawl.records import Progress
from trapline.crawl.tally import Heard
from trapline.units import counted, duration

RECENT_S = 5.0  # what "now" means in a rate
MOST_ROWS = 6
_OPTION = {SECONDS: "max-time"}  # where users know the goal by another name


class FetchedAgain(NamedTuple):
    """What came of fetching pages again."""

    fetched: int
    changed: int
    heard: Heard
    by_quality: bool  # nobody has told how popular pages are: their quality stands in


class Standing(NamedTuple):
    progress: Progress
    pages_per_s: float
    bytes_per_s: float
    busiest: Callable[[], list[tuple[str, int]]]  # origin, pages in the last seconds; counted only for who shows them
    errors: list[tuple[str, int]]  # kind, number
    strategy: str
    folder: str
    doing: str  # what the crawl is at, if that is not crawling
    goal: float  # pages; infinity: none
    robots: int
    given_up: Sequence[tuple[str, int]] = ()  # kind, sites
    left_out: Sequence[tuple[str, int]] = ()  # reason, links
    again: FetchedAgain | None = None  # None: every page is fetched once
    partitions: int = 1
    notes: Sequence[str] = ()  # what the user may want to know of theirs, each to be said once


def stopping(why: str, visits: int) -> str:
    """What a crawl is at that is about to end."""
    return f"stopping ({_OPTION.get(why, why)}): {counted(visits, 'visit')} under way; Ctrl-C cuts them off"


def next_visit(seconds: float) -> str:
    """What a crawl waits for that has no connection open; "": nobody knows."""
    return f"next visit in {duration(seconds)}" if seconds < math.inf else ""


class Recent:
    """Rates over the last seconds. Who fills it: the loop, twice a second."""

    def __init__(self) -> None:
        self._marks: deque[tuple[Progress, Counter[int]]] = deque()
        self._by_site: Counter[int] = Counter()  # the sum of the marks but the first: what came since that

    def note(self, progress: Progress, by_site: Counter[int]) -> tuple[float, float]:
        """Pages and bytes a second. `by_site`: pages since the last note."""
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
