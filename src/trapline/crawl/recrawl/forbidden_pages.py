"""Fetched pages that robots.txt forbids now: they are fetched again as soon as the site's robots.txt allows them.

This module does not fetch robots.txt: it checks the one in force whenever a visit to the site has ended. Each page is also
tried again after a long pause (`Refresher.gone`), so that a site with nothing but forbidden pages is visited at some time.

conditional_refetch.py adds pages, and a resume adds those of crawl.db. `look` removes them. Invariant: a page is here at
most once, under its site.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from trapline.crawl.discovery.sites import Site
from trapline.refresh.live.refresher import Refresher

if TYPE_CHECKING:
    from trapline.fetch.robots.parser import Robots

_MOST_PAGES = 10_000  # per site; further pages are tried again only after their pause


class ForbiddenPages:
    def __init__(
        self,
        refresher: Refresher,
        urls: Callable[[list[int]], list[str]],
        pages: Iterable[tuple[int, int]] = (),
    ) -> None:
        """`pages`: the pages forbidden so far, each with its site."""
        self._refresher, self._urls = refresher, urls
        self._pages: dict[int, set[int]] = {}  # by site
        self._checked: dict[int, Robots] = {}  # by site: the robots.txt that the pages were last checked against
        for page, site in pages:
            self.add(page, site)

    def add(self, page: int, site: int) -> None:
        pages = self._pages.setdefault(site, set())
        if len(pages) < _MOST_PAGES:
            pages.add(page)

    def look(self, site: Site, now: float) -> None:
        """Recall the pages that the site's robots.txt allows now."""
        robots = site.robots
        if site.id not in self._pages or robots is None or robots is self._checked.get(site.id):
            return
        self._checked[site.id] = robots
        pages = sorted(self._pages.pop(site.id))
        for page, url in zip(pages, self._urls(pages), strict=True):
            if not robots.allows(url[len(site.origin) :]):
                self.add(page, site.id)
            elif page in self._refresher:
                self._refresher.recalled(page, now)
