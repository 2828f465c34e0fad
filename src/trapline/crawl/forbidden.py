"""Pages that we have and that robots.txt has come to forbid: they come back as soon as a robots.txt of their site allows them again.

It refuses to know how a robots.txt is had: it looks at the one in force whenever a visit to the site has ended. Each page also comes back
by itself after a long pause (`Refresher.gone`), so that a site of which all is forbidden is looked at some time.

Who fills it: upkeep.py, and crawl.db at a resume. Who empties it: `look`. Invariant: a page stands here once, by its site.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from trapline.crawl.sites import Site
from trapline.refresh.refresher import Refresher

if TYPE_CHECKING:
    from trapline.fetch.robots import Robots

_MOST_PAGES = 10_000  # of a site; more come back after their pause alone


class Forbidden:
    def __init__(
        self,
        refresher: Refresher,
        urls: Callable[[list[int]], list[str]],
        pages: Iterable[tuple[int, int]] = (),
    ) -> None:
        """`pages`: those forbidden so far, each with its site."""
        self._refresher, self._urls = refresher, urls
        self._pages: dict[int, set[int]] = {}  # by site
        self._looked: dict[int, Robots] = {}  # the robots.txt that forbids them all
        for page, site in pages:
            self.add(page, site)

    def add(self, page: int, site: int) -> None:
        pages = self._pages.setdefault(site, set())
        if len(pages) < _MOST_PAGES:
            pages.add(page)

    def look(self, site: Site, now: float) -> None:
        """Those that the site's robots.txt allows come back."""
        robots = site.robots
        if site.id not in self._pages or robots is None or robots is self._looked.get(site.id):
            return
        self._looked[site.id] = robots
        pages = sorted(self._pages.pop(site.id))
        for page, url in zip(pages, self._urls(pages), strict=True):
            if not robots.allows(url[len(site.origin) :]):
                self.add(page, site.id)
            elif page in self._refresher:
                self._refresher.recalled(page, now)
