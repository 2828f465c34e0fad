"""Accesses of pages that are not fetched yet: they count when the page is had.

It refuses to know signals and where counts come from. Who fills it: hearing.py, with what is heard, and after a stop
hearsay.py, with what was noted as heard too early and is still in the inbox. Who empties it: `take`.
"""

MOST_PAGES = 1_000_000  # accesses of more than these are not remembered


class Early:
    def __init__(self) -> None:
        self._counts: dict[int, float] = {}  # by page

    def add(self, page: int, count: float) -> None:
        if page in self._counts or len(self._counts) < MOST_PAGES:
            self._counts[page] = self._counts.get(page, 0.0) + count

    def take(self, page: int) -> float:
        """How many there were; from now on there are none."""
        return self._counts.pop(page, 0.0)
