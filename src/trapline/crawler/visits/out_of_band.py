"""Out-of-band visits: they fetch what the frontier does not hand out. Steps 4 and 5 in docs/architecture.md.

The robots.txt of a site may redirect to a URL of another site that the crawl fetched as a page, or gave up as gone, long
ago. Its content is not in memory. An out-of-band fetch visits that other site like any visit, after the site's delay and
by the site's rules. But the response does not count as a page, and the frontier keeps the page as it was: it learns of
the visit alone (docs/frontier.md, A1).

A site may also have sitemaps, feeds or requisites to request, but no page left to fetch, so that the frontier begins no visit
to it. An out-of-band visit without pages then requests these (extra_requests.py).

crawler/engine/live.py adds pages, on behalf of the sites that wait for a robots.txt; `ExtraRequests` adds sites. `next`, `over` and
`abandoned` remove them. The pages are in memory only: after a restart, a site that still waits requests its robots.txt again.

There may be thousands of sites, so a search for the next visit does not look at each. A wanted site is in a heap, by the time
from which it may be visited, which may have become later since. Or it is set aside, because it has no address yet or its
address is being visited; it goes into the heap when that ends.
"""

import heapq
import math
from collections.abc import Callable

from trapline.crawler.discovery.sites import UNRESOLVED
from trapline.errors import InvariantError
from trapline.frontier import Drained, Frontier, Rescore, Visit, WaitUntil
from trapline.frontier.layout import FETCHED, GONE, WAITING

_NO_LONGER_HANDED_OUT = frozenset({FETCHED, GONE})


class OutOfBandFetches:
    """The pages to fetch out of band. As a collection, it contains the out-of-band visits under way."""

    def __init__(self, frontier: Frontier, needs_visit: Callable[[int], bool] = lambda site: False) -> None:
        """`needs_visit`: returns whether extra requests to a site need an out-of-band visit."""
        self._frontier, self._needs_visit = frontier, needs_visit
        self._wanted: dict[int, dict[int, None]] = {}  # by site: pages, in order
        self._under_way: dict[int, list[int]] = {}  # by visit: pages without a result so far
        self._heap: list[tuple[float, int]] = []  # time, site
        self._set_aside: dict[int, set[int]] = {}  # by address (group), or UNRESOLVED: sites

    def __contains__(self, visit: Visit) -> bool:
        return visit.id in self._under_way

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def opens_at(self) -> float:
        """The time at which the next out-of-band visit can begin, or an earlier one. Infinity: none is wanted, or the time is
        unknown."""
        while self._heap and self._heap[0][1] not in self._wanted:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else math.inf

    @property
    def awaits_extras(self) -> bool:
        """Whether a site is to be visited for extra requests. Its address may still be looked up."""
        return any(not pages for pages in self._wanted.values())

    def visit_for_extras(self, site: int) -> None:
        """Visit the site for extra requests."""
        if self._frontier.site_budgets[site] != 0:
            self._want(site)

    def add(self, page: int) -> None:
        """Add a page if the frontier will not hand it out: it was fetched, or is gone, or waits for ever at a site whose
        budget is used up. A page that is being fetched out of band is not added again."""
        site = int(self._frontier.page_sites[page])
        if self._frontier.site_budgets[site] == 0:
            return
        state = self._frontier.page_state(page)
        never_comes = state in _NO_LONGER_HANDED_OUT or (state == WAITING and self._frontier.budget_left(site) <= 0)
        if never_comes and not any(page in pages for pages in self._under_way.values()):
            self._want(site)[page] = None

    def _want(self, site: int) -> dict[int, None]:
        """Let a site that is not abandoned be visited. Return the pages to fetch from it."""
        if site not in self._wanted:
            self._wanted[site] = {}
            self._place(site)
        return self._wanted[site]

    def _place(self, site: int) -> None:
        """Put a wanted site into the heap, or set it aside. An abandoned site is no longer wanted."""
        time = self._frontier.open_at(site)
        if time < math.inf:
            heapq.heappush(self._heap, (time, site))
        elif self._frontier.site_budgets[site] == 0:
            del self._wanted[site]  # it was abandoned
        else:
            self._set_aside.setdefault(int(self._frontier.site_groups[site]), set()).add(site)

    def _place_all(self, group: int) -> None:
        """Place the sites that were set aside because of this address."""
        for site in self._set_aside.pop(group, ()):
            if site in self._wanted:
                self._place(site)

    def next(self, now: float) -> Visit | None:
        """Begin a visit to a site that may be visited now. Return None if there is none. Pages of abandoned sites are dropped."""
        while self._heap and self._heap[0][0] <= now:
            _, site = heapq.heappop(self._heap)
            if site not in self._wanted:
                continue
            if not self._wanted[site] and not self._needs_visit(site):
                del self._wanted[site]
            elif self._frontier.open_at(site) <= now:
                return self._begin(site, now)
            else:
                self._place(site)
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
            self._want(site).update(dict.fromkeys(list(wanted)[len(pages) :]))
        self._under_way[visit.id] = list(pages)
        return Visit(visit.id, site, pages, visit.expires_at)

    def came(self, visit: Visit, page: int) -> None:
        """Note that the fetch of the page has ended, with an answer or without. The page may be added again from now on."""
        self._under_way[visit.id].remove(page)

    def over(self, visit: Visit) -> None:
        """Note the end of any visit. It may have kept other sites of its address waiting."""
        self._under_way.pop(visit.id, None)
        if self._set_aside:
            self._place_all(int(self._frontier.site_groups[visit.site]))

    def address_found(self, site: int) -> None:
        """Note that a site has an address now, or another one."""
        unresolved = self._set_aside.get(UNRESOLVED)
        if unresolved is not None and site in unresolved:
            unresolved.discard(site)
            if site in self._wanted:
                self._place(site)

    def abandoned(self, site: int) -> None:
        self._wanted.pop(site, None)

    def awaited(self, answer: WaitUntil | Rescore | Drained) -> WaitUntil | Rescore | Drained:
        """Return `answer`, given by a frontier that has no visit now, or an earlier time at which an out-of-band visit can
        begin."""
        moment = self.opens_at
        if (moment == math.inf and not self.awaits_extras) or isinstance(answer, Rescore):
            return answer
        return WaitUntil(min(moment, answer.time) if isinstance(answer, WaitUntil) else moment)
