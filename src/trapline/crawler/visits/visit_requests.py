"""What a visit requests, in order: its pages, and extra requests before them (extra_requests.py).

The visit (visit.py) takes one after the other. This module decides how many extra requests a visit may send. It sends nothing.
"""

from trapline.crawler.discovery.sites import Site
from trapline.crawler.engine.crawler import Crawler
from trapline.crawler.visits.extra_queue import ExtraSource
from trapline.frontier import Visit


class VisitRequests:
    __slots__ = (
        "_conditions",
        "_crawler",
        "_extras_left",
        "_last",
        "_most",
        "_pages",
        "_site",
        "_urls",
        "_visit",
        "at",
    )

    def __init__(self, crawler: Crawler, visit: Visit, site: Site, urls: list[str], conditions: list[bytes]) -> None:
        """`urls`, `conditions`: of the pages of the visit. A list without conditions is empty."""
        self._crawler, self._visit, self._site = crawler, visit, site
        self._pages, self._urls, self._conditions = list(visit.pages), urls, conditions  # extra requests are added
        self._extras_left = -1  # number of extra requests that may still be sent; -1: not known yet
        self._most = 0  # largest number of requests, if there are extra ones
        self.at = 0  # index of the next request
        self._last = len(urls)  # index of the first page not to request

    def has_more(self) -> bool:
        """Return whether there is a page or something else to request."""
        return self.at < self._last or self._is_extra_next()

    def take(self) -> tuple[ExtraSource | None, int, str, bytes]:
        """Return what to request now: its source if it is an extra request, its page, its URL and its condition."""
        source = self._put_extra_first() if self._is_extra_next() else None
        at = self.at
        self.at = at + 1
        return source, self._pages[at], self._urls[at], self._conditions[at] if self._conditions else b""

    def end(self) -> None:
        """Request nothing more."""
        self._last, self._extras_left = self.at, 0

    @property
    def next_page(self) -> tuple[int, str] | None:
        """The next page and its URL, also if it will not be requested. None: an out-of-band visit may have no page."""
        return (self._pages[self.at], self._urls[self.at]) if self.at < len(self._pages) else None

    def _is_extra_next(self) -> bool:
        """Return whether an extra request is to be sent before that for the next page."""
        if self._extras_left == 0 or not self._crawler.extra.has(self._site.id) or self._is_first_page_next():
            return False
        if self._extras_left < 0:
            self._most = self._crawler.frontier.connection_limit(self._site.id)
            self._extras_left = self._most_extras()
        return self._extras_left > 0 and self.at < self._most

    def _is_first_page_next(self) -> bool:
        """Return whether the next request is for the first page of the site. That page comes before the sitemap: if the server closes
        each connection after one answer, the user would wait one more delay for a page."""
        is_first = self.at == 0 and len(self._visit.pages) > 0
        return is_first and self._crawler.frontier.pages_taken(self._site.id) <= len(self._visit.pages)

    def _most_extras(self) -> int:
        """Return how many extra requests this visit may send.

        They count towards the requests of a visit (k), and take at most half of them, so that the pages of a site do not wait
        for all of its sitemaps and requisites. If k is 1, every second visit sends one.
        """
        if not self._visit.pages:
            return self._most
        if self._most > 1:
            return self._most // 2
        if self.at > 0:
            return 0  # the request of this visit was for the first page
        is_turn, self._site.is_extra_next = self._site.is_extra_next, not self._site.is_extra_next
        return int(is_turn)

    def _put_extra_first(self) -> ExtraSource:
        """Put the next extra request to the site before the next page. Return its source."""
        self._extras_left -= 1
        source, page, url = self._crawler.extra.take(self._site.id)
        self._pages.insert(self.at, page)
        self._urls.insert(self.at, url)
        if self._conditions:
            self._conditions.insert(self.at, b"")
        self._last = min(self._last + 1, self._most)
        return source
