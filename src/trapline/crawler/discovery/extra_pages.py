"""Extra pages: URLs that have a page number but are no pages of the crawl. Step 2 in docs/architecture.md.

Sitemaps and feeds (crawler/recrawl/list_queue.py) and requisites (crawler/requisites/requisite_queue.py) are requested besides pages,
and the scope does not apply to them as it does to pages. A link or an entry of a sitemap may lead to such a URL later. The link
resolver asks here then: one that was fetched as a requisite stays one, and the others become pages if the scope admits them. It
need not ask about every link: the compiled lookup reads the bits itself, as marks (crawler/discovery/seen/kernels.py).

The queues say what their URLs are (`note`). They are told which of them the frontier has taken as pages, before the next batch goes
to the store (`tell_new_pages`): so the tables that the store writes agree with the frontier.
"""

from collections.abc import Callable, Sequence

import numpy as np

from trapline.frontier import Frontier
from trapline.frontier.layout import UNKNOWN, Array

LIST, REQUISITE, FETCHED_REQUISITE = 1, 2, 4  # what a URL is besides pages: bits


class ExtraPages:
    def __init__(self, frontier: Frontier, on_new_array: Callable[[Array], None] = lambda kinds: None) -> None:
        """`on_new_array`: called with the array of bits by page, whenever it is a new one."""
        self._frontier, self._on_new_array = frontier, on_new_array
        self._kinds = bytearray()  # bits by page, up to the highest page noted, and beyond
        self._linked: set[int] = set()
        self.count = 0
        # Called with each extra page that has become a page of the crawl.
        self.on_page: list[Callable[[int], None]] = []

    def note(self, page: int, kind: int, mask: int) -> None:
        """Note what a URL is: `kind` replaces those bits that are in `mask`."""
        if page >= len(self._kinds):
            self._kinds = self._kinds + bytes(page + 1)  # a new object: the array of the old one is in use
            self._on_new_array(np.frombuffer(self._kinds, np.uint8))
        before = self._kinds[page]
        self._kinds[page] = after = (before & ~mask) | kind
        self.count += (after > 0) - (before > 0)

    def among(self, pages: Sequence[int]) -> list[int]:
        """Return the places in `pages`, which may have numbers below 0, that have extra pages."""
        if not self.count:
            return []
        kinds, end = self._kinds, len(self._kinds)
        return [at for at, page in enumerate(pages) if 0 <= page < end and kinds[page]]

    def is_fetched(self, page: int) -> bool:
        """Return whether a URL was fetched as a requisite. No link makes it a page."""
        return 0 <= page < len(self._kinds) and bool(self._kinds[page] & FETCHED_REQUISITE)

    def link(self, page: int) -> None:
        """Note that a link leads to a URL, which the frontier may take as a page now."""
        if 0 <= page < len(self._kinds) and self._kinds[page]:
            self._linked.add(page)

    def link_all(self, pages: Array) -> Array:
        """Note that links lead to these pages, none of which is below 0. Return those that may be pages of the crawl."""
        if not self.count or not len(pages):
            return pages
        bits = np.zeros(len(pages), np.uint8)
        known = pages < len(self._kinds)
        bits[known] = np.frombuffer(self._kinds, np.uint8)[pages[known]]
        self._linked.update(pages[bits > 0].tolist())
        return pages[bits & FETCHED_REQUISITE == 0]

    def tell_new_pages(self) -> None:
        """Tell the queues which URLs that links lead to have become pages."""
        linked, self._linked = self._linked, set()
        for page in linked:
            if self._frontier.page_state(page) != UNKNOWN:
                for is_page in self.on_page:
                    is_page(page)
