"""What sitemaps and feeds say of pages: which of them lists a page, and the latest date of a change that stood there.

It remembers, and judges nothing: whether a date is news, tellers.py decides. Lists may disagree, and each is read again and again: so the
latest date of all is kept, and not the last one read. Two arrays by page, in memory while the crawl runs; each change also goes to the
store (table `told`), so that the next run begins with it.
"""

import math
from collections.abc import Iterable

import numpy as np

from trapline.crawl.outbox import Outbox
from trapline.crawl.records import Told
from trapline.frontier.layout import Array

NOBODY = -1


class Listed:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._by, self._dated = np.full(1024, NOBODY, np.int32), np.full(1024, math.inf)

    def restore(self, told: Iterable[Told]) -> None:
        for page, by, dated in told:
            self._make_room(page)
            self._by[page], self._dated[page] = by, dated

    @property
    def tellers(self) -> set[int]:
        """All pages that list others."""
        return set(self._by[self._by != NOBODY].tolist())

    def by(self, page: int) -> int:
        """The page that lists it, or NOBODY."""
        return int(self._by[page]) if page < len(self._by) else NOBODY

    def dated(self, page: int) -> float:
        """The latest date that was read; infinity: none was."""
        return float(self._dated[page]) if page < len(self._dated) else math.inf

    def note(self, page: int, by: int, dated: float) -> None:
        """A list names the page. `dated` NaN: without a date."""
        self._make_room(page)
        was = Told(page, int(self._by[page]), float(self._dated[page]))
        is_latest = dated > was.dated or (was.dated == math.inf and not math.isnan(dated))
        now = Told(page, by, dated if is_latest else was.dated)
        if now != was:
            self._by[page], self._dated[page] = now.by, now.dated
            self._outbox.told.append(now)

    def _make_room(self, page: int) -> None:
        had = len(self._by)
        if page >= had:
            self._by, self._dated = _grown(self._by, 2 * page, NOBODY), _grown(self._dated, 2 * page, math.inf)


def _grown(array: Array, size: int, empty: float) -> Array:
    grown = np.full(size, empty, array.dtype)
    grown[: len(array)] = array
    return grown
