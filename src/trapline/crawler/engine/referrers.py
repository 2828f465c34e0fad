"""The referrer of each page: the page whose link to it was found first. Four bytes per known page.

The stream of pages to a program (page_stream.py) has one, and so has a crawl whose log names the referrer of each fetch.
"""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from trapline.frontier.layout import Array

NO_PAGE = -1


class Referrers:
    def __init__(self) -> None:
        self._pages = array("i")  # by page: the number of its referrer, or NO_PAGE

    def of(self, page: int) -> int:
        """Return the number of the page's referrer. NO_PAGE: it has none, or only itself."""
        referrer = self._pages[page] if page < len(self._pages) else NO_PAGE
        return NO_PAGE if referrer == page else referrer

    def of_pages(self, pages: Array) -> Array:
        referrers = np.full(len(pages), NO_PAGE, np.int32)
        is_known = pages < len(self._pages)
        referrers[is_known] = np.frombuffer(self._pages, np.int32)[pages[is_known]]
        return referrers

    def note_links(self, page: int, links: Sequence[int]) -> None:
        """Note the referrer of pages that had none. A link below 0 leads to a page of another partition.

        A usual page has few links, for which a loop is quicker than numpy.
        """
        referrers, most = self._pages, max(page, max(links, default=0))
        if most >= len(referrers):
            referrers.extend(array("i", (NO_PAGE,)) * max(most + 1 - len(referrers), len(referrers)))
        for link in links:
            if link >= 0 and referrers[link] == NO_PAGE:
                referrers[link] = page

    def restore(self, fetched: Iterable[tuple[int, int, int, bytes]]) -> None:
        """Note the links of earlier runs: number of the fetch, page, status and links of each, in order."""
        for _, page, _, links in fetched:
            self.note_links(page, np.frombuffer(links, "<i4").tolist())
