"""Out-of-band fetches: pages that the frontier no longer hands out are fetched once more. Steps 4 and 5 in docs/architecture.md.

The robots.txt of a site may redirect to a URL of another site that the crawl fetched as a page, or gave up as gone, long
ago. Its content is not in memory. An out-of-band fetch visits that other site like any visit, after the site's delay and
by the site's rules. But the response does not count as a page, and the frontier keeps the page as it was: it learns of
the visit alone (docs/frontier.md, A1).

live.py adds pages, on behalf of the sites that wait for a robots.txt. `next` and `over` remove them. The pages are in
memory only: after a restart, a site that still waits requests its robots.txt again.
"""

import math

from trapline.errors import InvariantError
from trapline.frontier import Drained, Frontier, Rescore, Visit, WaitUntil
from trapline.frontier.layout import FETCHED, GONE, WAITING

_NO_LONGER_HANDED_OUT = frozenset({FETCHED, GONE})


class OutOfBandFetches:
    """The pages to fetch out of band. As a collection, it contains the out-of-band visits under way."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._wanted: dict[int, dict[int, None]] = {}  # by site: pages, in order
        self._under_way: dict[int, list[int]] = {}  # by visit: pages without a result so far

    def __contains__(self, visit: Visit) -> bool:
        return visit.id in self._under_way

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def opens_at(self) -> float:
        """The time at which the next out-of-band visit can begin. Infinity: none is wanted, or the time is unknown."""
        return min(map(self._frontier.open_at, self._wanted), default=math.inf)

    def add(self, page: int) -> None:
        """Add a page if the frontier will not hand it out: it was fetched, or is gone, or waits for ever at a site whose
        budget is used up. A page that is being fetched out of band is not added again."""
        site = int(self._frontier.page_sites[page])
        state = self._frontier.page_state(page)
        never_comes = state in _NO_LONGER_HANDED_OUT or (state == WAITING and self._frontier.budget_left(site) <= 0)
        if never_comes and not any(page in pages for pages in self._under_way.values()):
            self._wanted.setdefault(site, {})[page] = None

    def next(self, now: float) -> Visit | None:
        """Begin a visit to a site that may be visited now. Return None if there is none. Pages of abandoned sites are dropped."""
        for site in list(self._wanted):
            if self._frontier.site_budgets[site] == 0:
                del self._wanted[site]
            elif self._frontier.open_at(site) <= now:
                return self._begin(site, now)
        return None

    def _begin(self, site: int, now: float) -> Visit:
        visit = self._frontier.revisit(site, (), now)
        if not isinstance(visit, Visit):
            raise InvariantError(
                f"site {site} may be visited now, but the frontier refuses a visit before {visit.time}"
            )
        wanted = self._wanted.pop(site)
        pages = list(wanted)[: self._frontier.connection_limit(site)]
        if len(pages) < len(wanted):
            self._wanted[site] = dict.fromkeys(list(wanted)[len(pages) :])
        self._under_way[visit.id] = list(pages)
        return Visit(visit.id, site, pages, visit.expires_at)

    def came(self, visit: Visit, page: int) -> None:
        """Note that the fetch of the page has ended, with an answer or without. The page may be added again from now on."""
        self._under_way[visit.id].remove(page)

    def over(self, visit: Visit) -> None:
        self._under_way.pop(visit.id, None)

    def awaited(self, answer: WaitUntil | Rescore | Drained) -> WaitUntil | Rescore | Drained:
        """Return `answer`, given by a frontier that has no visit now, or an earlier time at which an out-of-band visit can
        begin."""
        moment = self.opens_at
        if moment == math.inf or isinstance(answer, Rescore):
            return answer
        return WaitUntil(min(moment, answer.time) if isinstance(answer, WaitUntil) else moment)
