"""The stream of pages from a crawl to a Python program. The crawl runs in a thread of its own; the program takes the pages.

A page is handed over when it is on disk, or at once if the crawl has no folder. The crawl starts no new request while the
program is behind (`holds_up`), so a slow program slows the crawl down and does not fill the memory.

The program says which pages are handled (`handled`), and the folder keeps how far it got. A resumed crawl first hands over
what is on disk and was not handled.

The crawl's thread calls `connect`, `restore`, `came`, `committed` and `end`; the program calls `take`, `handled`, `stop`,
`close` and, once before them, `on_news`. The lock protects what both use: the pages and failures that are ready, and the end.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from trapline.crawler.engine.records import OUT_OF_BAND, RETURNED, Fetched
from trapline.crawler.engine.referrers import NO_PAGE, Referrers
from trapline.crawler.engine.tally import is_handed_over
from trapline.crawler.files.handled import HandledCounts, HandledMark
from trapline.fetch.html.page import NO_LINKS, Links
from trapline.frontier import FETCHED
from trapline.frontier.layout import Array

MOST_READY = 256  # pages that wait for the program, about
MOST_BYTES = 32 << 20  # of their bodies


class PageDetails(NamedTuple):
    """What the crawl knows of a page besides the record of its fetch."""

    hrefs: Links = NO_LINKS  # as written on the page
    base: str = ""  # the URL that they are relative to; "": the page's own URL
    quality: float = 0.0  # when it was fetched


class StreamedFetch(NamedTuple):
    """A fetched page, or a failed fetch."""

    record: Fetched
    details: PageDetails
    depth: int
    referrer: str  # URL of the page whose link was found first; "": none, it is a seed
    requested_url: str  # the URL that redirects led from; the page's own URL if there were none
    number: int  # of the fetch, as in crawl.db

    @property
    def is_page(self) -> bool:
        return self.record.result == FETCHED


@dataclass(slots=True)
class _CrawlCalls:
    """What the stream needs of the crawl. The functions are called in the thread of the crawl."""

    call: Callable[[Callable[[], None]], object]  # calls a function in the thread of the crawl; may be called anywhere
    go_on: Callable[[], None]
    stop: Callable[[], None]
    depths: Callable[[], Array]
    urls: Callable[[list[int]], list[str]]


class Unhandled(Protocol):
    """Results of earlier runs that were not handled (crawler/handler/unhandled.py)."""

    def take(self) -> Sequence[StreamedFetch]:
        """Return the next few results; none if all were returned."""

    def close(self) -> None: ...


class PageOrigins(NamedTuple):
    """Where pages came from, by number: of the page whose link was found first, and of the page that redirects led from."""

    referrers: Array
    requested: Array


class PageStream:
    def __init__(self, most_ready: int = MOST_READY, most_bytes: int = MOST_BYTES) -> None:
        self._most_ready, self._most_bytes = most_ready, most_bytes
        self._lock = threading.RLock()  # garbage collection may call `stop` while this thread holds it
        self._crawl: _CrawlCalls | None = None
        self._uncommitted: deque[tuple[int, StreamedFetch]] = deque()  # with the number of the batch
        self._ready: list[StreamedFetch] = []
        self._ready_bytes = 0
        self._held_up = False  # whether the crawl waits for the program
        self._stopped = False
        self._on_news: Callable[[], None] = lambda: None
        self._referrers = Referrers()
        self._redirected_from: dict[int, int] = {}  # first page of the redirects, by the page that they lead to
        self._mark: HandledMark | None = None  # None: the crawl has no folder
        self._unhandled: Unhandled | None = None
        self.has_ended = False
        self.summary: dict[str, Any] | None = None
        self.error: BaseException | None = None

    # ---- for the crawl

    def connect(
        self,
        call: Callable[[Callable[[], None]], object],
        go_on: Callable[[], None],
        stop: Callable[[], None],
        depths: Callable[[], Array],
        urls: Callable[[list[int]], list[str]],
    ) -> None:
        with self._lock:
            self._crawl = _CrawlCalls(call, go_on, stop, depths, urls)
            is_stopped = self._stopped
        if is_stopped:  # before the crawl began
            call(stop)

    def keep_mark(self, folder: Path, last_fetch: int) -> int:
        """Keep in the folder of the crawl how far the pages are handled. Return the last fetch that is. `last_fetch`: the number
        of the last fetch in the database."""
        self._mark = HandledMark(folder, last_fetch)
        return self._mark.counts.fetch

    def restore(self, fetched: Iterable[tuple[int, int, int, bytes]], numbers: Array, pages: Array) -> PageOrigins:
        """Note where the links of pages lead to that were fetched in earlier runs: number of the fetch, page, status and links
        of each, in order. Return where the pages came from that were not handled. `numbers`, `pages`: of these, in order."""
        requested, at = pages.copy(), 0
        for number, page, status, links in fetched:
            targets = np.frombuffer(links, "<i4").tolist()
            self._referrers.note_links(page, targets)
            first_page = self._note_fetched(page, status, targets)
            while at < len(numbers) and numbers[at] < number:  # without links: a fetch that failed
                at += 1
            if at < len(numbers) and numbers[at] == number:
                requested[at] = first_page
        return PageOrigins(self._referrers.of_pages(pages), requested)

    def hand_over_first(self, unhandled: Unhandled) -> None:
        """Hand over these results before all others."""
        self._unhandled = unhandled

    def holds_up(self) -> bool:
        """Return whether the crawl must start no new request, because the program is behind. If so, `take` lets it go on."""
        with self._lock:
            is_behind = len(self._ready) >= self._most_ready or self._ready_bytes >= self._most_bytes
            self._held_up = is_behind and not self._stopped
            return self._held_up

    def came(self, batch: int, number: int, record: Fetched, details: PageDetails, links: Array) -> None:
        """Note the result of a fetch. `batch`: the number of the batch that it will be in. `number`: that of the fetch in
        crawl.db. `links`: the pages that it links to, by number."""
        if record.result in (RETURNED, OUT_OF_BAND):
            return
        assert self._crawl is not None
        referrer, first_url = self._follow(record, links)
        if not is_handed_over(record):
            return
        depth = int(self._crawl.depths()[record.page])
        referrer = referrer if depth else ""  # a seed, or a page of a sitemap
        self._uncommitted.append((batch, StreamedFetch(record, details, depth, referrer, first_url, number)))

    def preview(self, record: Fetched, details: PageDetails) -> StreamedFetch:
        """Return a fetched page as it will be handed over, before its links are known and it has a quality and a number."""
        assert self._crawl is not None
        page, urls = record.page, self._crawl.urls
        depth = int(self._crawl.depths()[page])
        referrer = self._referrers.of(page) if depth else NO_PAGE
        first_page = self._redirected_from.get(page, page)
        return StreamedFetch(
            record,
            details,
            depth,
            urls([referrer])[0] if referrer != NO_PAGE else "",
            record.url if first_page == page else urls([first_page])[0],
            0,
        )

    def _follow(self, record: Fetched, links: Array) -> tuple[str, str]:
        """Note where the links lead to. Return the URLs of the page's referrer, and of the first page of its redirects."""
        crawl, page = self._crawl, record.page
        assert crawl is not None
        targets: list[int] = links.tolist()
        self._referrers.note_links(page, targets)
        first_page = self._note_fetched(page, record.status, targets) if record.result == FETCHED else page
        first_url = record.url if first_page == page else crawl.urls([first_page])[0]
        referrer = self._referrers.of(page)
        return crawl.urls([referrer])[0] if referrer != NO_PAGE else "", first_url

    def _note_fetched(self, page: int, status: int, links: Sequence[int]) -> int:
        """Note where a redirect leads to. Return the first page of the redirects that led to this page; without any, itself."""
        first_page = self._redirected_from.pop(page, page)
        if 300 <= status < 400 and len(links) == 1 and links[0] >= 0:
            self._redirected_from.setdefault(links[0], first_page)
        return first_page

    def committed(self, batch: int) -> None:
        """Hand over the results of all batches up to this one."""
        found = []
        while self._uncommitted and self._uncommitted[0][0] <= batch:
            found.append(self._uncommitted.popleft()[1])
        if found:
            with self._lock:
                self._ready += found
                self._ready_bytes += sum(len(one.record.body) for one in found)
            self._on_news()

    def end(self, summary: dict[str, Any] | None, error: BaseException | None) -> None:
        with self._lock:
            self.summary, self.error, self.has_ended = summary, error, True
            self._crawl = None
        self._on_news()

    # ---- for the program

    def on_news(self, callback: Callable[[], None]) -> None:
        """Call `callback`, in the thread of the crawl, whenever there are new results, and at the end."""
        self._on_news = callback

    def take(self) -> Sequence[StreamedFetch]:
        """Return results that are ready, in the order of the crawl."""
        if self._unhandled is not None:
            # After a stop, the results of earlier runs and all later ones wait for the next resume.
            found = () if self._stopped else self._unhandled.take()
            if found or self._stopped:
                return found
            self._unhandled.close()
            self._unhandled = None
        with self._lock:
            found, self._ready, self._ready_bytes = self._ready, [], 0
            crawl = self._crawl if self._held_up else None
            self._held_up = False
        if crawl is not None:
            self._call(crawl, crawl.go_on)
        return found

    def handled(self, fetch: StreamedFetch, errors: int = 0) -> None:
        """Note that this result, and all before it, are handled. `errors`: 1 if its handler failed."""
        if self._mark is not None:
            self._mark.advance(fetch.number, fetch.is_page, errors)

    @property
    def handled_counts(self) -> HandledCounts:
        return self._mark.counts if self._mark is not None else HandledCounts()

    @property
    def is_held_up(self) -> bool:
        """Whether the crawl waits for the program."""
        return self._held_up

    def close(self) -> None:
        """Close the files that the program's side has open. Nothing more is taken."""
        if self._unhandled is not None:
            self._unhandled.close()
        if self._mark is not None:
            self._mark.close()

    def stop(self) -> None:
        """Stop the crawl. The pages that are under way still arrive."""
        with self._lock:
            self._stopped = True
            crawl = self._crawl
        if crawl is not None:
            self._call(crawl, crawl.stop)

    def _call(self, crawl: "_CrawlCalls", function: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the crawl has just ended, and its event loop is closed
            crawl.call(function)
