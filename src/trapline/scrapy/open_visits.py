"""The visits under way: which page of which visit is being downloaded or processed, by which request. It opens no file and asks no engine.

A page goes through three moments. It is handed out to the engine; its download ends, and the next page of the visit may follow; its
callback and pipelines end, and it can be reported with the requests that came from it.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from scrapy import Request
from scrapy.utils.url import strip_url

from trapline.durable import NewPage, QueuedPage, UrlVisit


@dataclass(slots=True, eq=False)
class OpenVisit:
    visit: UrlVisit
    left: deque[QueuedPage]  # not handed out yet
    downloading: int = 0
    running: int = 0  # downloading, or processed by the spider
    answers: int = 0
    failures: int = 0  # requests without an answer

    @property
    def has_failed(self) -> bool:
        """Whether the site gave no answer. One page that fails among others that do not is no reason to back off."""
        return self.failures > 0 and self.answers == 0


@dataclass(slots=True, eq=False)
class RunningPage:
    """A page that was handed out and is not reported yet."""

    visit: OpenVisit
    page: QueuedPage
    is_downloading: bool = True
    was_sent: bool = False  # it has reached the downloader
    is_answered: bool = False
    response_s: float = math.nan
    links: list[NewPage] = field(default_factory=list)  # requests that came from it

    @property
    def has_failed(self) -> bool:
        return self.was_sent and not self.is_answered


class OpenVisits:
    def __init__(self, per_site: int) -> None:
        """`per_site`: requests to one site at a time."""
        self._per_site = per_site
        self._open: deque[OpenVisit] = deque()
        self._running: dict[Request, RunningPage] = {}
        self._by_url: dict[str, RunningPage] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, visit: UrlVisit) -> None:
        self._open.append(OpenVisit(visit, deque(visit.pages)))

    def next_page(self) -> tuple[OpenVisit, QueuedPage] | None:
        """Return a page that may be downloaded now, of the visit that has waited longest; None: there is none."""
        for _ in range(len(self._open)):
            visit = self._open[0]
            self._open.rotate(-1)
            if visit.left and visit.downloading < self._per_site:
                return visit, visit.left.popleft()
        return None

    def hand_out(self, visit: OpenVisit, page: QueuedPage, request: Request) -> None:
        visit.downloading += 1
        visit.running += 1
        self._running[request] = self._by_url[strip_url(request.url)] = RunningPage(visit, page)

    def sent(self, request: Request) -> None:
        if running := self._running.get(request):
            running.was_sent = True

    def answered(self, request: Request, response_s: float | None = None) -> None:
        """Note an answer, and after how many seconds it came, if that is known."""
        if running := self._running.get(request):
            running.is_answered = True
            running.response_s = math.nan if response_s is None else max(0.0, response_s)  # a clock may be set back

    def downloaded(self, request: Request) -> None:
        """Note that the download of a request has ended, with or without an answer."""
        running = self._running.get(request)
        if running is not None and running.is_downloading:
            running.is_downloading = False
            running.visit.downloading -= 1

    def by_url(self, url: str) -> RunningPage | None:
        """Return the page that is being processed and that names this URL in the header Referer, if there is one."""
        return self._by_url.get(url)

    def ended(self, in_progress: set[Request]) -> Iterator[RunningPage]:
        """Remove and yield the pages whose requests are no longer in progress."""
        for request in [request for request in self._running if request not in in_progress]:
            self.downloaded(request)
            running = self._running.pop(request)
            if self._by_url.get(url := strip_url(request.url)) is running:
                del self._by_url[url]
            running.visit.running -= 1
            running.visit.answers += running.is_answered
            running.visit.failures += running.has_failed
            yield running

    def over(self) -> Iterator[OpenVisit]:
        """Remove and yield the visits of which nothing is left."""
        for visit in [visit for visit in self._open if not visit.left and not visit.running]:
            self._open.remove(visit)
            yield visit

    def stop(self) -> Iterator[OpenVisit]:
        """Remove and yield all visits, because the crawl ends. Their pages that were not reported wait again."""
        while self._open:
            yield self._open.popleft()
