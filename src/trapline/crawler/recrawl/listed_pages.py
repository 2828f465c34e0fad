"""What sitemaps and feeds say of pages: which of them lists a page, and the latest date of a change that one of them gave.

This class only remembers; published_lists.py decides whether a date is news. Lists may disagree, and each is read many times. The
latest of all dates is therefore kept, not the last one read. There are two arrays by page, in memory while the crawl runs; each change
also goes to the store (table `listed_page`), so that the next run begins with it.
"""

import math
from collections.abc import Iterable

import numpy as np

from trapline.crawler.engine.records import ListedPage
from trapline.crawler.store.outbox import Outbox
from trapline.frontier.layout import Array

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
