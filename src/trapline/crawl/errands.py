"""Errands: pages that the frontier will not give out any more, asked for once more. Steps 4 and 5 of the way of a URL.

The robots.txt of a site may have moved to a URL of another site that the crawl has fetched as a page, or given up, long ago: what was
there is not in memory. An errand is a visit to that site like any other, after its rest and by its rules; but nobody counts what it
brings as a page, and for the frontier the page is as it was: it is told of the visit alone (docs/frontier.md, A1).

Who fills it: live.py, for whoever waits for a robots.txt. Who empties it: `next`, and `over`. It is in memory only: whoever still waits
asks again.
"""

import math

from trapline.errors import InvariantError
from trapline.frontier import Drained, Frontier, Rescore, Visit, WaitUntil
from trapline.frontier.layout import FETCHED, GONE, WAITING

_HAD = frozenset({FETCHED, GONE})


class Errands:
    """As a collection: the visits under way that are errands."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._wanted: dict[int, dict[int, None]] = {}  # by site: pages, in order
        self._under_way: dict[int, list[int]] = {}  # by visit: pages of which nothing has come yet

    def __contains__(self, visit: Visit) -> bool:
        return visit.id in self._under_way

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def opens_at(self) -> float:
        """When the next one can begin; infinity: none is wanted, or nobody knows when."""
        return min(map(self._frontier.open_at, self._wanted), default=math.inf)

    def add(self, page: int) -> None:
        """If it does not come by itself: it was had or given up, or waits for ever at a site that has given all it may. Nor is it asked
        for twice at a time."""
        site = int(self._frontier.state.page["site"][page])
        state = self._frontier.page_state(page)
        never_comes = state in _HAD or (state == WAITING and self._frontier.budget_left(site) <= 0)
        if never_comes and not any(page in pages for pages in self._under_way.values()):
            self._wanted.setdefault(site, {})[page] = None

    def next(self, now: float) -> Visit | None:
        """One whose site may be visited now; None: there is none. Nobody is sent to a site that the crawl has given up."""
        for site in list(self._wanted):
            if self._frontier.state.site["budget"][site] == 0:
                del self._wanted[site]
            elif self._frontier.open_at(site) <= now:
                return self._begin(site, now)
        return None

    def _begin(self, site: int, now: float) -> Visit:
        visit = self._frontier.revisit(site, (), now)
        if not isinstance(visit, Visit):
            raise InvariantError(f"site {site} is open, and cannot be visited before {visit.time}")
        wanted = self._wanted.pop(site)
        pages = list(wanted)[: self._frontier.connection_limit(site)]
        if len(pages) < len(wanted):
            self._wanted[site] = dict.fromkeys(list(wanted)[len(pages) :])
        self._under_way[visit.id] = list(pages)
        return Visit(visit.id, site, pages, visit.expires_at)

    def came(self, visit: Visit, page: int) -> None:
        """It was answered, or was not: whoever asks for it now asks anew."""
        self._under_way[visit.id].remove(page)

    def over(self, visit: Visit) -> None:
        self._under_way.pop(visit.id, None)

    def awaited(self, answer: WaitUntil | Rescore | Drained) -> WaitUntil | Rescore | Drained:
        """The answer of who has no visit now: a site that errands wait for may be open before it has one."""
        moment = self.opens_at
        if moment == math.inf or isinstance(answer, Rescore):
            return answer
        return WaitUntil(min(moment, answer.time) if isinstance(answer, WaitUntil) else moment)
