"""How a crawl stands, for whoever shows it: the progress, rates of the last seconds, the busiest sites, the errors."""

import math
from collections import Counter, deque
from typing import NamedTuple

from trapline.crawl.records import Progress
from trapline.crawl.tally import Tally

_SECONDS = 5.0  # what "now" means in a rate
_ROWS = 6


class Standing(NamedTuple):
    progress: Progress
    pages_per_s: float
    bytes_per_s: float
    busiest: list[tuple[str, int]]  # origin, pages in the last seconds
    errors: list[tuple[str, int]]  # kind, number
    heading: str
    hint: str
    goal: float  # pages; infinity: none
    robots: int
    quality: str


class Recent:
    """Rates over the last seconds. Who fills it: the loop, twice a second."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int, int]] = deque()
        self._sites: deque[Counter[int]] = deque()

    def note(self, progress: Progress, by_site: Counter[int]) -> tuple[float, float]:
        """Pages and bytes a second."""
        self._marks.append((progress.at, progress.pages, progress.bytes))
        self._sites.append(by_site)
        while len(self._marks) > 2 and self._marks[1][0] < progress.at - _SECONDS:
            self._marks.popleft()
            self._sites.popleft()
        since, pages, received = self._marks[0]
        passed = progress.at - since
        if passed <= 0.0:
            return 0.0, 0.0
        return (progress.pages - pages) / passed, (progress.bytes - received) / passed

    def busiest(self) -> list[tuple[int, int]]:
        return sum(self._sites, Counter[int]()).most_common(_ROWS)


def errors_shown(tally: Tally) -> list[tuple[str, int]]:
    return tally.errors.most_common(_ROWS)


def quality_shown(tally: Tally) -> str:
    return "" if math.isnan(tally.quality) else f"{tally.quality:,.4g}"
