"""The requisite queue: files that pages need and that are requested besides pages, by site, and what became of each.

page_requisites.py adds requisites and reads the answers. The store gets a row when a requisite is added and when it is done (table
`requisite`), in the batch of the page or file that leads to it. So `restore` puts back exactly those that were not done when the
crawl ended; their requests count anew.

A URL is fetched once, as a page or as a requisite. A page that the frontier knows is left to it (PAGE). A link to a file that was
fetched as a requisite is not followed (crawler/discovery/extra_pages.py). If the limit on pages ends the crawl,
`take_over_pages` takes the requisites that the frontier still has, and `restore` withdraws from the frontier those that were
fetched. What was requested as a requisite becomes a page, and is requested again, only if a link leads to it and the answer was
HTML, a redirect or an error, or had not come when the link was found.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from trapline.crawler.discovery.extra_pages import FETCHED_REQUISITE, REQUISITE
from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.engine.records import PageRequisite
from trapline.crawler.store.outbox import Outbox
from trapline.crawler.visits.extra_queue import FAILED, FORBIDDEN, WAITING, ExtraQueue
from trapline.frontier import Frontier
from trapline.frontier.layout import LEASED, UNKNOWN
from trapline.frontier.layout import WAITING as WAITING_PAGE

# States of a requisite. WITH_LINKS: it was fetched, and is HTML or a redirect. PAGE: it is fetched as a page. MISSING: the server refuses
# it. MOVED: another partition owns it since partitions were added.
FETCHED, WITH_LINKS, PAGE, MISSING, MOVED = "fetched", "with links", "page", "missing", "moved"
_CODES = {
    state: 1 + at for at, state in enumerate((WAITING, FETCHED, WITH_LINKS, PAGE, MISSING, FAILED, FORBIDDEN, MOVED))
}
_STATES = {number: state for state, number in _CODES.items()}
_KINDS = {PAGE: 0, FETCHED: REQUISITE | FETCHED_REQUISITE}  # others: REQUISITE


class RequisiteQueue(ExtraQueue[PageRequisite]):
    def __init__(self, frontier: Frontier, link_resolver: LinkResolver, outbox: Outbox) -> None:
        super().__init__(frontier, link_resolver)
        self._outbox = outbox
        self._codes = np.zeros(1024, np.uint8)  # by page: the state; 0: no requisite
        self._without_pages: set[int] = set()  # sites that had no page when they were last looked at
        self._by_state: Counter[str] = Counter()
        self._as_pages: dict[int, PageRequisite] = {}  # by page: those that wait as pages, and were never requested
        self._has_taken_over = False
        link_resolver.extra_pages.on_page.append(self.is_page)

    def __len__(self) -> int:
        """Return how many requisites wait or are being requested."""
        return len(self._records)

    def __contains__(self, page: int) -> bool:
        return page < len(self._codes) and self._codes[page] > 0

    @property
    def sites_without_pages(self) -> int:
        """Number of sites that have requisites, and no page of the crawl."""
        self._without_pages = {site for site in self._without_pages if not self._frontier.known_pages(site)}
        return len(self._without_pages)

    @property
    def fetched(self) -> int:
        return self._by_state[FETCHED] + self._by_state[WITH_LINKS]

    @property
    def failed(self) -> int:
        return self._by_state[MISSING] + self._by_state[FAILED]

    def is_full(self, site: int) -> bool:
        """Return whether no more requisites of the site are added. The limit is that for its known pages."""
        return 0 < self._link_resolver.most_of_site <= self._of_site[site]

    # ---- in

    def restore(self, records: Iterable[PageRequisite]) -> None:
        super().restore(records)
        fetched = np.flatnonzero(self._codes == _CODES[FETCHED])
        taken_over = fetched[self._frontier.page_states[fetched] == WAITING_PAGE]
        if len(taken_over):  # the frontier need not fetch them as pages, if the limit on pages is higher now
            self._frontier.withdraw(taken_over, self._frontier.now)

    def add(self, page: int, role: str, level: int, needed_by: int) -> None:
        """Add the requisite with this page number, unless it is known or its site has too many."""
        if page in self or self.is_full(int(self._frontier.page_sites[page])):
            return
        is_page = self._frontier.page_state(page) != UNKNOWN
        self._note(PageRequisite(page, role, level, needed_by, 0, PAGE if is_page else WAITING))
        if not is_page:
            self._wait(page)

    def is_page(self, page: int) -> None:
        """Note that the frontier has taken a requisite as a page: a link leads to it."""
        if page not in self or _STATES[int(self._codes[page])] in (PAGE, FETCHED):
            return
        one = self._records.get(page)
        self._note((one or PageRequisite(page, "", 0, -1, 1, PAGE))._replace(state=PAGE))
        if one is not None:
            self._records[page] = one  # it is being requested, or is removed from its queue when its turn comes

    def take_over_pages(self) -> None:
        """Let requisites that wait as pages be requested as requisites: the crawl fetches no more pages."""
        self._has_taken_over = True
        for page, one in list(self._as_pages.items()):
            state = self._frontier.page_state(page)
            if state != LEASED:
                del self._as_pages[page]
            if state == WAITING_PAGE and page not in self._records:
                self._note(one._replace(state=WAITING))
                self._wait(page)

    def fetched_as_page(self, page: int) -> PageRequisite | None:
        """Note that a page was fetched. Return the requisite if it waited as a page."""
        return self._as_pages.pop(page, None)

    def _note(self, one: PageRequisite, is_news: bool = True) -> None:
        if one.page >= len(self._codes):
            self._codes = np.concatenate((self._codes, np.zeros(one.page + 1, np.uint8)))
        before = int(self._codes[one.page])
        if before:
            self._by_state[_STATES[before]] -= 1
        else:
            site = int(self._frontier.page_sites[one.page])
            self._of_site[site] += 1
            if self._of_site[site] == 1:
                self._without_pages.add(site)
        self._codes[one.page] = _CODES[one.state]
        self._by_state[one.state] += 1
        self._link_resolver.extra_pages.note(one.page, _KINDS.get(one.state, REQUISITE), REQUISITE | FETCHED_REQUISITE)
        if one.state == WAITING:
            self._records[one.page] = one
        else:
            self._records.pop(one.page, None)
            if one.state == PAGE and not one.requests and self._frontier.page_state(one.page) in (WAITING_PAGE, LEASED):
                self._as_pages[one.page] = one
        if is_news:
            self._outbox.requisites.append(one)

    # ---- out

    def _state_now(self, page: int) -> str:
        """Return PAGE if a requisite has become a page meanwhile, and is left to the frontier."""
        state = self._frontier.page_state(page)
        return WAITING if state == UNKNOWN or (state == WAITING_PAGE and self._has_taken_over) else PAGE

    def finished(self, page: int, state: str) -> None:
        """Note what became of a requisite. One that has become a page of the frontier stays a page, unless it was taken over from
        the frontier and fetched."""
        known = self._frontier.page_state(page)
        is_taken_over = self._has_taken_over and state == FETCHED and known == WAITING_PAGE
        is_page = known != UNKNOWN and state != MOVED and not is_taken_over
        super().finished(page, PAGE if is_page else state)

    def taken(self, page: int) -> PageRequisite:
        """Return a requisite that was taken and is not done."""
        return self._records[page]

    def moved(self, site: int) -> list[tuple[str, str, int]]:
        """Leave the requisites that wait at a site to another partition. Return URL, role and level of each."""
        requisites = [self._records[page] for page in self.waiting.pop(site, ())]
        for one in requisites:
            self.finished(one.page, MOVED)
        urls = self._link_resolver.urls([one.page for one in requisites])
        return [(url, one.role, one.level) for url, one in zip(urls, requisites, strict=True)]
