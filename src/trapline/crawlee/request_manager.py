"""A request manager for Crawlee: requests are kept by a durable frontier, which decides what is fetched next, and when.

Crawlee fetches a request, runs the handler, adds the requests that the handler enqueued, and marks the request as handled. Added requests
are in the frontier at once. When their parent is marked, they are reported as its links too, because strategies such as OPIC need them.
Crawlee does not say which request they came from; the manager finds that out by the task that adds and marks (`_found`).
"""

import asyncio
import shutil
import time
from collections import deque
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from crawlee import Request
from crawlee.request_loaders import RequestManager
from crawlee.storage_clients.models import ProcessedRequest

from trapline.durable import DurableFrontier, NewPage, QueuedPage, UrlVisit
from trapline.frontier import FAILED, FETCHED, Rules, WaitUntil
from trapline.strategies import Strategy

_SOON_S = 0.5  # Crawlee asks about as often; a shorter wait is waited for
_MOST_TRIES = 10  # the most that the frontier allows


@dataclass(slots=True, eq=False)
class _OpenVisit:
    visit: UrlVisit
    left: deque[QueuedPage]  # not handed out yet
    running: str = ""  # the unique key of the request in progress


@dataclass(slots=True, eq=False)
class _Running:
    """A request in progress."""

    visit: _OpenVisit
    page: QueuedPage
    began: float


@dataclass(slots=True, eq=False)
class _Found:
    """The requests that a task has added."""

    task: asyncio.Task[object] | None
    pages: list[NewPage]


_found: ContextVar[_Found | None] = ContextVar("found", default=None)


class FrontierRequestManager(RequestManager):
    def __init__(self, folder: str | Path, strategy: str | Strategy = "opic", rules: Rules | None = None) -> None:
        """Open the frontier in a folder, or make a new one. `rules`: by default a second passes between two requests to a site."""
        self._folder, self._strategy = Path(folder), strategy
        self._rules = rules or Rules(delay_s=1.0, retries=_MOST_TRIES, backoff_s=10.0)
        self._open()

    def _open(self) -> None:
        self._frontier = DurableFrontier(self._folder, self._strategy, self._rules)
        self._visits: deque[_OpenVisit] = deque()
        self._running: dict[str, _Running] = {}

    # ---- requests

    async def add_request(self, request: str | Request, *, forefront: bool = False) -> ProcessedRequest | None:
        return self._add([self._transform_request(request)])[0]

    async def add_requests(
        self,
        requests: Sequence[str | Request],
        *,
        forefront: bool = False,
        batch_size: int = 1000,
        wait_time_between_batches: timedelta = timedelta(seconds=1),
        wait_for_all_requests_to_be_added: bool = False,
        wait_for_all_requests_to_be_added_timeout: timedelta | None = None,
    ) -> None:
        self._add(self._transform_requests(requests))

    def _add(self, requests: Sequence[Request]) -> list[ProcessedRequest]:
        known = [self._frontier.knows(request.unique_key) for request in requests]
        pages = [NewPage(request.url, _payload(request), request.unique_key) for request in requests]
        self._frontier.add(pages)
        if self._running:
            self._note_found(pages)
        return [_processed(request, was_known) for request, was_known in zip(requests, known, strict=True)]

    async def fetch_next_request(self) -> Request | None:
        """Return the next request; None: there is none at the moment. Wait for one that may be sent in a moment."""
        request = self._next()
        if isinstance(request, WaitUntil) and request.time - time.time() <= _SOON_S:
            await asyncio.sleep(max(0.0, request.time - time.time()))
            request = self._next()
        return request if isinstance(request, Request) else None

    def _next(self) -> Request | WaitUntil | None:
        while (found := self._next_page()) is None:
            answer = self._frontier.next()
            if not isinstance(answer, UrlVisit):
                return answer if isinstance(answer, WaitUntil) else None
            self._visits.append(_OpenVisit(answer, deque(answer.pages)))
        visit, page = found
        request = Request.model_validate_json(page.payload)
        visit.running = request.unique_key
        self._running[request.unique_key] = _Running(visit, page, time.time())
        return request

    def _next_page(self) -> tuple[_OpenVisit, QueuedPage] | None:
        visit = next((visit for visit in self._visits if visit.left and not visit.running), None)
        return None if visit is None else (visit, visit.left.popleft())

    async def mark_request_as_handled(self, request: Request) -> ProcessedRequest | None:
        running = self._running.pop(request.unique_key, None)
        if running is None:
            return None
        self._frontier.report(
            running.visit.visit, running.page, FETCHED, self._take_found(), time.time() - running.began
        )
        self._end_page(running.visit)
        return _processed(request, was_known=True, was_handled=True)

    async def reclaim_request(self, request: Request, *, forefront: bool = False) -> ProcessedRequest | None:
        running = self._running.pop(request.unique_key, None)
        if running is None:
            return None
        self._frontier.report(running.visit.visit, running.page, FAILED, payload=_payload(request))
        self._end_page(running.visit)
        return _processed(request, was_known=True)

    def _end_page(self, visit: _OpenVisit) -> None:
        visit.running = ""
        if not visit.left:
            self._visits.remove(visit)
            self._frontier.finish(visit.visit)

    # ---- which request others came from

    def _note_found(self, pages: list[NewPage]) -> None:
        """Remember that this task has added these pages. Crawlee marks the request in the same task, or in a child of it."""
        task, found = asyncio.current_task(), _found.get()
        if found is None or found.task is not task:
            found = _Found(task, [])
            _found.set(found)
        found.pages += pages

    def _take_found(self) -> list[NewPage]:
        """Return the pages that this task, or the task that has started it, has added."""
        found = _found.get()
        pages = list(found.pages) if found is not None else []
        if found is not None:
            found.pages.clear()
        return pages

    # ---- numbers

    async def get_total_count(self) -> int:
        return self._frontier.known

    async def get_handled_count(self) -> int:
        return self._frontier.done

    async def is_empty(self) -> bool:
        """Return whether no request can be fetched at the moment, or in a moment."""
        return not self._visits_have_pages() and self._frontier.opens_at() > time.time() + _SOON_S

    def _visits_have_pages(self) -> bool:
        return any(visit.left and not visit.running for visit in self._visits)

    async def is_finished(self) -> bool:
        return not self._running and not self._visits and self._frontier.is_drained

    # ---- the end

    async def drop(self) -> None:
        """Close the frontier and delete its folder."""
        self._frontier.close()
        shutil.rmtree(self._folder)

    async def purge(self) -> None:
        await self.drop()
        self._open()

    def close(self) -> None:
        """Close the frontier. Requests in progress are fetched again when it is opened next."""
        self._frontier.close()


def _payload(request: Request) -> bytes:
    return request.model_dump_json(by_alias=True).encode()


def _processed(request: Request, was_known: bool, was_handled: bool = False) -> ProcessedRequest:
    return ProcessedRequest(
        unique_key=request.unique_key, was_already_present=was_known, was_already_handled=was_handled
    )
