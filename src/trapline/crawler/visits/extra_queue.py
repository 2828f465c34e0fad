"""A queue of URLs that are requested besides pages, by site. Step 5 in docs/architecture.md.

There are two: sitemaps and feeds (crawler/recrawl/list_queue.py), and requisites of pages (crawler/requisites/requisite_queue.py).
They add URLs, and note in the store what became of each. `take` removes one for a request (extra_requests.py); `retry` puts
it back, until it was requested MOST_REQUESTS times. `restore` puts back those that waited when the crawl ended. The owner of
a queue is an `ExtraSource`, which reads the answers.
"""

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.engine.records import PageRequisite, PublishedList
from trapline.crawler.visits.judge import FetchVerdict
from trapline.fetch.http.response import Response
from trapline.frontier import Frontier
from trapline.frontier.layout import UNKNOWN

WAITING, FAILED, FORBIDDEN = "waiting", "failed", "forbidden"  # states; each queue has more
MOST_REQUESTS = 3  # of one URL

Record = TypeVar("Record", PublishedList, PageRequisite)


class ExtraQueue(ABC, Generic[Record]):
    def __init__(self, frontier: Frontier, link_resolver: LinkResolver) -> None:
        self._frontier, self._link_resolver = frontier, link_resolver
        self._records: dict[int, Record] = {}  # by page: at least those that wait or are being requested
        self.waiting: dict[int, deque[int]] = {}  # by site: pages, never empty
        self._of_site: Counter[int] = Counter()  # URLs that wait, and those that are done
        self.wanted: Callable[[int], None] = lambda site: None  # called if a URL of the site waits

    def restore(self, records: Iterable[Record]) -> None:
        for one in records:
            self._note(one, is_news=False)
            if self._frontier.page_state(one.page) != UNKNOWN:
                self.is_page(one.page)
            if one.state == WAITING:
                self._wait(one.page)

    @property
    def sites(self) -> list[int]:
        """The sites with URLs that wait."""
        return list(self.waiting)

    def _wait(self, page: int) -> None:
        """Let a URL wait for a request. At a site that the crawl has abandoned it would wait for ever."""
        site = int(self._frontier.page_sites[page])
        if self._frontier.site_budgets[site] == 0:
            self.finished(page, FAILED)
            return
        self.waiting.setdefault(site, deque()).append(page)
        self.wanted(site)

    @abstractmethod
    def _note(self, one: Record, is_news: bool = True) -> None:
        """Keep a new or changed record. `is_news`: the store does not have it yet."""

    @abstractmethod
    def is_page(self, page: int) -> None:
        """Note that a URL is a page of the frontier, if it is in the queue."""

    @abstractmethod
    def _state_now(self, page: int) -> str:
        """Return the state of a URL that waits: WAITING, or another if it need not be requested any more."""

    def has(self, site: int) -> bool:
        """Return whether a URL of the site waits to be requested."""
        waiting = self.waiting.get(site)
        while waiting:
            state = self._state_now(waiting[0])
            if state == WAITING:
                return True
            self.finished(self._first(site), state)
        return False

    def _first(self, site: int) -> int:
        """Remove the first page that waits at a site, and return it."""
        waiting = self.waiting[site]
        page = waiting.popleft()
        if not waiting:
            del self.waiting[site]
        return page

    def take(self, site: int) -> tuple[int, str]:
        """Remove the first URL of a site that has some, for a request. Return its page and the URL."""
        page = self._first(site)
        self._records[page] = self._records[page]._replace(requests=self._records[page].requests + 1)
        return page, self._link_resolver.urls([page])[0]

    def retry(self, page: int, is_failure: bool = True) -> None:
        """Put back a URL that was requested in vain, unless that happened too often. `is_failure`: we did not end the request
        ourselves."""
        if self._records[page].requests < MOST_REQUESTS or not is_failure:
            self._wait(page)
        else:
            self.finished(page, FAILED)

    def finished(self, page: int, state: str) -> None:
        """Note what became of a URL."""
        self._note(self._records[page]._replace(state=state))

    def abandoned(self, site: int) -> None:
        """Give up the URLs of a site: they will never be requested."""
        for page in self.waiting.pop(site, ()):
            self.finished(page, FAILED)


class ExtraSource(Protocol):
    """Something whose URLs are requested besides pages."""

    reads_all: bool  # whether answers of all types are decoded and read, and not only HTML

    @property
    def queue(self) -> ExtraQueue[Any]:
        """The URLs that wait."""

    def came(self, page: int, url: str, verdict: FetchVerdict, response: Response, now: float) -> None:
        """Take in the answer to a request."""
