"""The visits under way: which page of which visit is being downloaded or processed. It opens no file and asks no frontier.

For crawlers that take pages one by one. A page goes through three moments. It is handed out; its download ends, and the next page of the
visit may follow; it has been processed, and can be reported.
"""

import math
import time
from collections import deque
from collections.abc import Container, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from trapline.durable.pages import KnownPage, NewPage, QueuedPage, UrlVisit

Key = TypeVar("Key", bound=Hashable)  # by what the crawler knows a page that was handed out, such as its request


@dataclass(slots=True, eq=False)
class OpenVisit:
    visit: UrlVisit
    left: deque[QueuedPage]  # not handed out yet
    downloading: int = 0
    running: int = 0  # downloading, or being processed
    answers: int = 0
    failures: int = 0  # pages without an answer
    is_candidate: bool = True  # is among those that are asked for a page

    @property
    def has_failed(self) -> bool:
        """Whether the site gave no answer. One page that fails among others that do not is no reason to back off."""
        return self.failures > 0 and self.answers == 0


@dataclass(slots=True, eq=False)
class RunningPage(Generic[Key]):
    """A page that was handed out and is not reported yet."""

    key: Key
    visit: OpenVisit
    page: QueuedPage
    is_downloading: bool = True
    was_sent: bool = False  # its request has been sent
    is_answered: bool = False
    response_s: float = math.nan
    links: list[NewPage | KnownPage] = field(default_factory=list)  # found on it
    handed_out_s: float = field(default_factory=time.monotonic)

    @property
    def has_failed(self) -> bool:
        return self.was_sent and not self.is_answered


class OpenVisits(Generic[Key]):
    def __init__(self, per_site: int = 1) -> None:
        """`per_site`: downloads from one site at a time."""
        self._per_site = per_site
        self._open: dict[int, OpenVisit] = {}  # by number, in the order in which they began
        self._candidates: deque[OpenVisit] = deque()  # all that may download a page, and some that may not
        self._over: list[OpenVisit] = []  # all of which nothing is left, and some that go on
        self._pages_left = 0
        self._running: dict[Key, RunningPage[Key]] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def has_pages(self) -> bool:
        """Whether a page may be downloaded now."""
        return any(map(self._may_download, self._candidates))

    @property
    def pages_left(self) -> int:
        """Number of pages that were not handed out."""
        return self._pages_left

    @property
    def pages_running(self) -> int:
        """Number of pages that were handed out and have not ended."""
        return len(self._running)

    @property
    def is_processing(self) -> bool:
        """Whether a page that was downloaded has not ended."""
        return any(not running.is_downloading for running in self._running.values())

    def begin(self, visit: UrlVisit) -> None:
        self._open[visit.id] = OpenVisit(visit, deque(visit.pages))
        self._candidates.append(self._open[visit.id])
        self._pages_left += len(visit.pages)

    def next_page(self) -> tuple[OpenVisit, QueuedPage] | None:
        """Return a page that may be downloaded now, of the visit that has waited longest; None: there is none."""
        while self._candidates:
            visit = self._candidates.popleft()
            if self._may_download(visit):
                self._candidates.append(visit)
                page = visit.left.popleft()
                self._pages_left -= 1
                if not visit.left:
                    self._over.append(visit)
                return visit, page
            visit.is_candidate = False
        return None

    def _may_download(self, visit: OpenVisit) -> bool:
        return bool(visit.left) and visit.downloading < self._per_site

    def hand_out(self, visit: OpenVisit, page: QueuedPage, key: Key) -> RunningPage[Key]:
        visit.downloading += 1
        visit.running += 1
        self._running[key] = RunningPage(key, visit, page)
        return self._running[key]

    def find(self, key: Key) -> RunningPage[Key] | None:
        """Return a page that was handed out and has not ended."""
        return self._running.get(key)

    def downloaded(self, key: Key) -> None:
        """Note that the download of a page has ended, with or without an answer."""
        running = self._running.get(key)
        if running is not None and running.is_downloading:
            running.is_downloading = False
            running.visit.downloading -= 1
            if running.visit.left and not running.visit.is_candidate:
                running.visit.is_candidate = True
                self._candidates.append(running.visit)

    def ended_but(self, in_progress: Container[Key]) -> Iterator[RunningPage[Key]]:
        """Remove and yield all pages but these: they have been processed."""
        for key in [key for key in self._running if key not in in_progress]:
            yield self.end(key)

    def end(self, key: Key) -> RunningPage[Key]:
        """Remove and return a page that has been processed."""
        self.downloaded(key)
        running = self._running.pop(key)
        running.visit.running -= 1
        if not running.visit.left and not running.visit.running:
            self._over.append(running.visit)
        running.visit.answers += running.is_answered
        running.visit.failures += running.has_failed
        return running

    def over(self) -> Iterator[OpenVisit]:
        """Remove and yield the visits of which nothing is left."""
        while self._over:
            visit = self._over.pop()
            if not visit.running and visit.visit.id in self._open:
                del self._open[visit.visit.id]
                yield visit

    def stop(self) -> Iterator[OpenVisit]:
        """Remove and yield all visits, because the crawl ends. Their pages that were not reported wait again."""
        while self._open:
            yield self._open.pop(next(iter(self._open)))
        self._candidates.clear()
        self._pages_left = 0
