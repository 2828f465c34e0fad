"""Extra requests: what a crawl requests besides its pages, which are sitemaps, feeds, and requisites of pages. Step 5 in
docs/architecture.md.

What is requested this way is no page of the frontier: it has no rank, counts towards no limit on pages, and brings no links.
But its URL has a page number, so that the tables of the crawl can name it, and it is requested inside a visit, after the same
pauses and delays as a page (visit.py). If its site has no page left to fetch, an out-of-band visit requests it
(out_of_band.py).

A *source* has a queue of URLs that wait (extra_queue.py), and decides what follows from an answer: published lists
(crawler/recrawl/published_lists.py) and requisites (crawler/requisites/page_requisites.py). This module chooses between the
sources, lets sites be visited, and records the answers.
"""

from collections.abc import Callable, Sequence

from trapline.crawler.discovery.sites import Site
from trapline.crawler.engine.records import OUT_OF_BAND, Fetched
from trapline.crawler.visits.extra_queue import FORBIDDEN, ExtraSource
from trapline.crawler.visits.fetch_record import PageRequest, answer, no_answer
from trapline.crawler.visits.judge import FetchVerdict, judge
from trapline.crawler.visits.out_of_band import OutOfBandFetches
from trapline.fetch import failure
from trapline.fetch.http.response import Response
from trapline.frontier import Frontier, Visit

# If a site has no pages to fetch. With more, a dead host of images would delay the end of a crawl by minutes (--backoff).
MOST_FAILED_VISITS = 2


class ExtraRequests:
    def __init__(
        self,
        frontier: Frontier,
        out_of_band: OutOfBandFetches,
        sources: Sequence[ExtraSource],
        agent: str,
        expanded_bytes: int,
        keep: Callable[[Fetched], None],
    ) -> None:
        """`agent`, `expanded_bytes`: as in `CrawlerSettings`. `keep`: passes a record to the store."""
        self._frontier, self._out_of_band, self._sources = frontier, out_of_band, sources
        self._agent, self._expanded_bytes, self._keep = agent, expanded_bytes, keep
        self._pages_come: Callable[[], bool] = lambda: True
        self._soon: Callable[[], None] = lambda: None

    def begin(self, pages_come: Callable[[], bool], soon: Callable[[], None]) -> None:
        """Begin to request. `pages_come`: returns whether the limit on pages allows one more page. `soon`: lets the crawler look
        for visits."""
        self._pages_come, self._soon = pages_come, soon
        for source in self._sources:
            source.queue.wanted = self.visit_for
        self.visit_all()

    def visit_all(self) -> None:
        """Let all sites with waiting URLs be visited, as far as necessary."""
        for source in self._sources:
            for site in source.queue.sites:
                self.visit_for(site)

    def visit_for(self, site: int) -> None:
        """Let an out-of-band visit request what waits at the site, unless a visit to its pages does so or will do so."""
        if self.needs_visit(site) and not self._frontier.is_visited(site):
            self._out_of_band.visit_for_extras(site)
            self._soon()

    def needs_visit(self, site: int) -> bool:
        """Return whether something waits at the site, and no visit to its pages will request it."""
        return self.has(site) and not (self._frontier.has_waiting(site) and self._pages_come())

    # ---- what visits do

    def has(self, site: int) -> bool:
        """Return whether something waits to be requested from the site."""
        for source in self._sources:
            queue = source.queue
            if site in queue.waiting and queue.has(
                site
            ):  # at the usual site nothing waits, which spares a call per request
                return True
        return False

    def take(self, site: int) -> tuple[ExtraSource, int, str]:
        """Return what to request next from a site at which something waits: its source, page and URL."""
        source = next(source for source in self._sources if source.queue.has(site))
        return source, *source.queue.take(site)

    def answered(
        self,
        source: ExtraSource,
        visit: Visit,
        site: Site,
        request: PageRequest,
        response: Response,
        address: str,
        now: float,
    ) -> FetchVerdict:
        """Record the response to a request, and pass it to its source. It does not count as a page."""
        verdict = judge(response, self._agent, self._expanded_bytes, now, lists=source.reads_all)
        source.came(request.page, request.url, verdict, response, now)
        self._keep(answer(visit, site, request, response, address, verdict, (), b"")._replace(result=OUT_OF_BAND))
        return verdict

    def disallowed(self, source: ExtraSource, page: int) -> None:
        """Note a URL that robots.txt forbids. No request was sent."""
        source.queue.finished(page, FORBIDDEN)

    def lost(
        self, source: ExtraSource, visit: Visit, site: Site, request: PageRequest, kind: str, address: str, now: float
    ) -> None:
        """Record a request that was not answered. Its source may let it be sent again."""
        source.queue.retry(request.page, kind != failure.STOPPED)
        self._keep(no_answer(visit, site, request, OUT_OF_BAND, kind, address, now))

    def visit_failed(self, site: int) -> None:
        """Note that a site gave no connection or no robots.txt to a visit without pages. After MOST_FAILED_VISITS in a row, drop what
        waits there."""
        if self._frontier.failed_visits(site) >= MOST_FAILED_VISITS:
            self._drop(site)

    def abandoned(self, site: int) -> None:
        """Drop what waits at a site that the crawl has abandoned."""
        self._out_of_band.abandoned(site)
        self._drop(site)

    def _drop(self, site: int) -> None:
        for source in self._sources:
            source.queue.abandoned(site)
