"""The list queue: sitemaps and feeds that are requested besides the pages of a crawl, by site, and what became of each.

A list is no page of the frontier: it counts towards no limit on pages, and its entries are not links. But its URL has a page
number, and it is requested inside a visit (crawler/visits/extra_requests.py). A list that is a page as well (a seed, or the
target of a link) is not requested twice.

published_lists.py adds lists and reads them. Every change goes to the store (table `published_list`): the requests of a list count
over all runs, so that none is requested for ever.
"""

from collections import Counter
from collections.abc import Mapping

from trapline.crawler.discovery.extra_pages import LIST
from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.engine.records import PublishedList
from trapline.crawler.store.outbox import Outbox
from trapline.crawler.visits.extra_queue import WAITING, ExtraQueue
from trapline.fetch.urls import origin
from trapline.frontier import Frontier
from trapline.frontier.layout import UNKNOWN
from trapline.signals.published.sitemap import ANY_HOST

# What names a list.
ROBOTS, GUESS, LINK, INDEX, REDIRECT, SEED = "robots.txt", "guess", "link", "index", "redirect", "seed"
# States of a list. PAGE: it is fetched as a page, and read then. MISSING: the server refuses it. NO_LIST: the answer is neither a
# sitemap nor a feed. FULL: its site has as many known pages as it may have.
READ, PAGE, MISSING, NO_LIST, FULL = "read", "page", "missing", "no list", "site full"
_MOST_SPEAKS_FOR = 2_000  # characters
# Indexes and redirects from the first list to the last. sitemaps.org: an index lists no index; some do.
MOST_LEVELS = 5
MOST_OF_A_SITE = 1_000  # lists of one site; the known pages of a site are limited as well (discovery/link_resolver.py)
TOO_MANY_LISTS = "too many lists"
MOST_LINKED = 8  # of these, lists that pages of the site link to: a blog may have a feed of comments for each page


class ListQueue(ExtraQueue[PublishedList]):
    def __init__(self, frontier: Frontier, link_resolver: LinkResolver, outbox: Outbox) -> None:
        super().__init__(frontier, link_resolver)
        self._outbox = outbox
        self._linked_of_site: Counter[int] = Counter()
        link_resolver.extra_pages.on_page.append(self.is_page)

    def __contains__(self, page: int) -> bool:
        return page in self._records

    def speaks_for(self, page: int) -> str:
        return self._records[page].speaks_for if page in self._records else ""

    def level(self, page: int) -> int:
        return self._records[page].level if page in self._records else 0

    # ---- in

    def add(
        self, url: str, named_by: str, speaks_for: str, level: int, now: float, *, as_page: bool = False
    ) -> tuple[int, str]:
        """Add the list at a canonical URL, unless it is known. Return its page, below 0 if it is rejected or not ours; and why it
        is rejected, or "". `as_page`: the crawl fetches it as a page."""
        if level > MOST_LEVELS or not self._has_room(url, named_by):
            (known,) = self._link_resolver.find([url])
            return (known, "") if known in self._records else (-1, TOO_MANY_LISTS)
        page, reason = self._link_resolver.list_page(url, now)
        if page < 0:
            return page, reason
        if page in self._records:
            self._vouch(page, speaks_for)
            return page, ""
        is_page = as_page or self._frontier.page_state(page) != UNKNOWN
        state = PAGE if is_page else WAITING
        self._note(PublishedList(page, named_by, speaks_for, level, state=state, is_page=is_page))
        if not is_page:
            self._wait(page)
        return page, ""

    def _has_room(self, url: str, named_by: str) -> bool:
        """Return whether the site of this URL may have one more list. This comes before the URL gets a page number."""
        site = self._link_resolver.sites.named(origin(url))
        if site is None:
            return True
        most_linked = MOST_LINKED if named_by == LINK else MOST_OF_A_SITE
        return self._of_site[site.id] < MOST_OF_A_SITE and self._linked_of_site[site.id] < most_linked

    def _vouch(self, page: int, speaks_for: str) -> None:
        """Let a known list speak for one more site, whose robots.txt names it."""
        before = self._records[page].speaks_for
        if speaks_for and before != ANY_HOST and speaks_for not in before.split() and len(before) < _MOST_SPEAKS_FOR:
            self._note(self._records[page]._replace(speaks_for=f"{before} {speaks_for}".strip()))

    def reading(self, page: int, named_by: str, speaks_for: str, state: str) -> None:
        """Note that a list is being read. It may have been fetched as a page. If its state is WAITING and the crawl is killed before
        it has read the list, the list is requested again."""
        before = self._records.get(page)
        if before is None:
            self._note(PublishedList(page, named_by, speaks_for, 0, state=state, is_page=True))
        elif before.state not in (WAITING, state):
            self._note(before._replace(state=state))

    def is_page(self, page: int) -> None:
        """Note that a list is a page as well."""
        if page in self._records and not self._records[page].is_page:
            self._note(self._records[page]._replace(is_page=True))

    def _note(self, one: PublishedList, is_news: bool = True) -> None:
        if one.page not in self._records:
            site = int(self._frontier.page_sites[one.page])
            self._of_site[site] += 1
            self._linked_of_site[site] += one.named_by == LINK
        self._link_resolver.extra_pages.note(one.page, 0 if one.is_page else LIST, LIST)
        self._records[one.page] = one
        if is_news:
            self._outbox.published_lists.append(one)

    # ---- out

    def _state_now(self, page: int) -> str:
        return FULL if self._link_resolver.is_full(int(self._frontier.page_sites[page])) else WAITING

    def take(self, site: int) -> tuple[int, str]:
        page, url = super().take(site)
        self._note(self._records[page])
        return page, url

    def finished(self, page: int, state: str, entries: int = 0, rejected: Mapping[str, int] | None = None) -> None:
        """Note what became of a list."""
        self._note(self._records[page]._replace(state=state, entries=entries, rejected=dict(rejected or {})))
