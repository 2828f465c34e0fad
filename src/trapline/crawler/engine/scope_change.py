"""A resumed crawl with another scope or depth: waiting pages leave it, and pages that were rejected before enter it.

Which pages are known is in the database. Links that were rejected are not; they are read from the archived pages again. Entries of
sitemaps and feeds that were rejected are lost, because a list is read once. All changes are calls to the frontier, in its log. If the
crawl is stopped or killed meanwhile, the next run begins again: each step leaves out what an earlier run has done.
"""

from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.other_partitions import OtherPartitions
from trapline.crawler.files.archived_responses import FIRST_OF_DIGEST, ArchivedResponses
from trapline.crawler.files.layout import connect
from trapline.crawler.files.reading import HAS_LINKS, Reading
from trapline.crawler.store.archive import RecordPlace
from trapline.crawler.visits.judge import FetchVerdict, judge
from trapline.fetch.urls import is_dynamic
from trapline.frontier import FAILED, FETCHED, REFUSED, Frontier
from trapline.frontier.core.arrivals import Arrivals
from trapline.frontier.layout import GONE, UNKNOWN, WAITING, Array
from trapline.units import counted

KEY = "scope_changed"  # in the table `meta`, until all changes are committed
_URLS_AT_ONCE = 16_384  # URLs that are compared with the scope before the loop has its turn
_PAGES_AT_ONCE = 256  # the same for pages whose links are processed, some of which are read from archives
_BODIES = f"""select seq, fetch.page, url, started, digest, file, offset, length from fetch join page on page.id = fetch.page
where seq > ? and seq <= ? and {HAS_LINKS} and file is not null order by seq limit 256"""
_ATTEMPTED = f"select distinct page from fetch where result in ({FETCHED}, {FAILED}, {REFUSED})"


def differs(before: CrawlOptions, after: CrawlOptions) -> bool:
    """Return whether the two options admit different pages."""
    return _limits(before) != _limits(after)


def _limits(options: CrawlOptions) -> tuple[object, ...]:
    rules, tables = options.rules, options.sites.items()
    of_sites = {host: (own.include, own.exclude) for host, own in tables if own.include or own.exclude}
    return options.scope, options.include, options.exclude, of_sites, rules.depth_static, rules.depth_dynamic


class ScopeCounts(NamedTuple):
    left: int  # waiting pages that are out of scope now
    entered: int  # pages that wait now, and did not before

    @property
    def note(self) -> str:
        return (
            f"the scope has changed: {counted(self.left, 'waiting page')} left it,"
            f" and {counted(self.entered, 'rejected page')} entered it"
        )


class ScopeChange:
    def __init__(
        self,
        frontier: Frontier,
        link_resolver: LinkResolver,
        options: CrawlOptions,
        folder: Path,
        others: OtherPartitions | None,
        goes_on: Callable[[str], Awaitable[bool]],
    ) -> None:
        """`goes_on`: sends what has changed so far to the store, shows the user this text, and returns whether the crawl goes on."""
        self._frontier, self._resolver, self._options = frontier, link_resolver, options
        self._folder, self._others, self._goes_on = folder, others, goes_on

    async def apply(self, now: float) -> ScopeCounts | None:
        """Apply the change. None: the crawl was stopped meanwhile, and the next run has to apply it."""
        with closing(Reading(self._folder)) as reading:
            sorted_out = await self._sorted_out(reading)
            if sorted_out is None:
                return None
            left, unreached, returning = sorted_out
            self._frontier.withdraw([*left, *unreached], now)
            before = self._frontier.discoveries
            self._frontier.readmit(returning, now)
            listed = np.array([one.page for one in reading.listed_pages()], np.int32)
            self._frontier.discover(self._unknown(listed), now)
            stored = ((page, np.frombuffer(links, "<i4")) for page, links in reading.links())
            pages = await self._follow(stored, now, "looking for links into the new scope: {:,} pages")
        if pages is None:
            return None
        with self._resolver.uncounted(), closing(self._links_read_again(now)) as links:
            doing = f"reading archived pages again for the new scope: {{:,}} of {pages:,}"
            if await self._follow(links, now, doing) is None:
                return None
        return ScopeCounts(len(left), self._frontier.discoveries - before)

    async def _sorted_out(self, reading: Reading) -> tuple[list[int], list[int], list[int]] | None:
        """Return the waiting pages that are out of scope; the known pages out of scope that were too deep so far, to which links may
        lead later; and the pages in scope that an earlier change took out of their queues."""
        states = self._frontier.page_states.copy()
        attempted = np.zeros(len(states), np.bool_)
        for (page,) in reading.connection.execute(_ATTEMPTED):
            attempted[page] = True
        left, unreached, returning = [], [], []
        extras = set(self._resolver.extra_pages.among(range(len(states))))
        for page, _, url in reading.pages():
            if page % _URLS_AT_ONCE == 0 and not await self._goes_on(f"comparing pages with the new scope: {page:,}"):
                return None
            if states[page] == WAITING and not self._admits(page, url):
                left.append(page)
            elif states[page] == UNKNOWN and page not in extras and self._is_outside(url):
                unreached.append(page)
            elif (
                states[page] == GONE
                and not attempted[page]
                and not self._resolver.extra_pages.is_fetched(page)
                and self._admits(page, url)
                and self._resolver.is_ours(url)
            ):
                returning.append(page)
        return left, unreached, returning

    def _admits(self, page: int, url: str) -> bool:
        rules = self._frontier.rules
        limit = rules.depth_dynamic if is_dynamic(url) else rules.depth_static
        is_near = not limit or int(self._frontier.page_depths[page]) <= limit
        return self._resolver.is_seed(url) or (is_near and not self._resolver.why_rejected(url))

    def _is_outside(self, url: str) -> bool:
        return bool(self._resolver.why_rejected(url)) and not self._resolver.is_seed(url)

    async def _follow(self, linked: Iterable[tuple[int, Array]], now: float, doing: str) -> int | None:
        """Discover the pages that fetched pages link to, and that were never in a queue. Return the number of fetched pages. None:
        the crawl was stopped. `doing`: text for the user, with a place for that number."""
        number = 0
        for number, (source, links) in enumerate(linked, 1):
            new = self._unknown(links)
            if len(new):
                depths = np.full(len(new), self._frontier.page_depths[source])
                shares = np.full(len(new), self._share(source, len(links)))
                self._frontier.receive(Arrivals(new, np.ones(len(new), np.int64), shares, depths), now)
            if number % _PAGES_AT_ONCE == 0 and not await self._goes_on(doing.format(number)):
                return None
        return number

    def _unknown(self, pages: Array) -> Array:
        own = pages[pages >= 0]
        return self._resolver.extra_pages.link_all(np.unique(own[self._frontier.page_states[own] == UNKNOWN]))

    def _share(self, source: int, links: int) -> float:
        """Return what a page hands on to each page that it links to."""
        column = self._frontier.strategy.page.handed_on
        return self._frontier.page_value(source, column) / links if column >= 0 else 0.0

    def _links_read_again(self, now: float) -> Generator[tuple[int, Array]]:
        for page, url, verdict in read_again(self._folder, self._options):
            if verdict.links:
                found = self._resolver.pages_of(url, verdict.base, verdict.links, now, wants_urls=True)
                if found.foreign and self._others is not None:
                    self._others.send_refetched_links(page, found.foreign)
                yield page, found.pages


# ---- The fetched pages of a crawl, read from its archives again and judged as when they came.


class ReadAgain(NamedTuple):
    """A page that was read from its archive once more."""

    page: int
    url: str
    verdict: FetchVerdict


def read_again(folder: Path, options: CrawlOptions) -> Iterator[ReadAgain]:
    """Yield all pages of a crawl that have been fetched until now, in the order of their fetches. Those whose records cannot be
    read are left out."""
    with closing(connect(folder)) as database:
        (last,) = database.execute("select coalesce(max(seq), -1) from fetch").fetchone()
        for statement in FIRST_OF_DIGEST.format(last=last).split(";"):
            database.execute(statement)
        with closing(ArchivedResponses(database, folder, options.limits, lambda: None)) as responses:
            after = -1
            while rows := database.execute(_BODIES, (after, last)).fetchall():
                after = rows[-1][0]
                for _, page, url, started, digest, *place in rows:
                    response = responses.response(RecordPlace(*place), digest)
                    if not isinstance(response, str):
                        limit = options.limits.expanded_bytes
                        yield ReadAgain(page, url, judge(response, options.robots_token, limit, started))
