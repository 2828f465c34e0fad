"""A request manager for Crawlee: requests are kept by a durable frontier, which decides what is fetched next, and when.

Crawlee fetches a request, runs the handler, adds the requests that the handler enqueued, and marks the request as handled. Added requests
are in the frontier at once. When their parent is marked, they are reported as its links too, because strategies such as OPIC need them.
Crawlee does not say which request they came from; the manager finds that out by the task that adds and marks (`_found`).
"""

import asyncio
import logging
import math
import shutil
import time
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from crawlee import Request
from crawlee.request_loaders import RequestManager
from crawlee.storage_clients.models import ProcessedRequest

from trapline.durable import DurableFrontier, NewPage, QueuedPage, UrlVisit
from trapline.durable.open_visits import OpenVisits, RunningPage
from trapline.errors import ConfigError
from trapline.fetch.urls import canonical
from trapline.frontier import FAILED, FETCHED, REFUSED, Outcome, Rules, WaitUntil
from trapline.strategies import Strategy

logger = logging.getLogger(__name__)

_SOON_S = 0.5  # Crawlee asks about as often; a shorter wait is waited for
_MOST_TRIES = 10  # the most that the frontier allows
_MOST_LINKS = 10_000  # of one page; a task that adds requests for ever is not the handler of a page


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
        # Without a lease: a request whose handler takes long must not be handed out a second time
        self._rules = replace(rules or Rules(delay_s=1.0, retries=_MOST_TRIES, backoff_s=10.0), lease_s=math.inf)
        self._adding = 0  # calls under way that add requests
        self._open()

    def _open(self) -> None:
        self._frontier = DurableFrontier(self._folder, self._strategy, self._rules)
        self._visits = OpenVisits[str]()  # by the unique key of the request

    # ---- requests

    async def add_request(self, request: str | Request, *, forefront: bool = False) -> ProcessedRequest | None:
        """Add a request. Raise `ConfigError` if it cannot be kept, for example because its user data cannot be written as JSON."""
        given = self._transform_request(request)
        is_new = self._add([given]) == 1
        return _processed(given, not is_new, was_handled=not is_new and self._frontier.is_done(given.unique_key))

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
        """Add requests, in batches, so that other tasks can run in between. All are added when the call returns."""
        given = self._transform_requests(requests)
        self._adding += 1
        try:
            for first in range(0, len(given), batch_size):
                self._add(given[first : first + batch_size])
                await asyncio.sleep(0)
        finally:
            self._adding -= 1

    def _add(self, requests: Sequence[Request]) -> int:
        """Add requests and return how many are new."""
        pages = list(map(_page, requests))
        if len(self._visits):
            self._note_found(pages)
        return self._frontier.add(pages)

    async def fetch_next_request(self) -> Request | None:
        """Return the next request; None: there is none at the moment. Wait for one that may be sent in a moment."""
        request = self._next()
        if isinstance(request, WaitUntil) and (wait_s := request.time - self._frontier.now) <= _SOON_S:
            await asyncio.sleep(max(0.0, wait_s))
            request = self._next()
        return request if isinstance(request, Request) else None

    def _next(self) -> Request | WaitUntil | None:
        while True:
            if (found := self._visits.next_page()) is None:
                answer = self._frontier.next()
                if not isinstance(answer, UrlVisit):
                    return answer if isinstance(answer, WaitUntil) else None
                self._visits.begin(answer)
                continue
            visit, page = found
            if (request := _request(page)) is not None:
                self._visits.hand_out(visit, page, request.unique_key)
                return request
            self._frontier.report(visit.visit, page, REFUSED)
            self._finish_over()

    async def mark_request_as_handled(self, request: Request) -> ProcessedRequest | None:
        running = self._end(request, is_answered=True)
        if running is None:
            return None
        request.handled_at = request.handled_at or datetime.now(UTC)
        taken_s = time.monotonic() - running.handed_out_s
        try:
            self._frontier.report(running.visit.visit, running.page, FETCHED, self._take_found(), taken_s)
        finally:  # the visit is over even if the disk is full
            self._finish_over()
        return _processed(request, was_known=True, was_handled=True)

    async def reclaim_request(self, request: Request, *, forefront: bool = False) -> ProcessedRequest | None:
        """Give a request back, as it is now. It waits again with a lower rank, and its site backs off."""
        payload = _payload(request)
        running = self._end(request, is_answered=False)
        if running is None:
            return None
        try:
            self._frontier.set_payload(running.page, payload)
            # A page that was not reported waits again when its visit is over. How often is for Crawlee to say, not for the frontier
            if self._frontier.retries_left(running.page) > 0:
                self._frontier.report(running.visit.visit, running.page, FAILED)
        finally:
            self._finish_over()
        return _processed(request, was_known=True)

    def _end(self, request: Request, is_answered: bool) -> RunningPage[str] | None:
        """End a request in progress; None: it is not in progress."""
        if (running := self._visits.find(request.unique_key)) is None:
            return None
        running.was_sent, running.is_answered = True, is_answered
        return self._visits.end(request.unique_key)

    def _finish_over(self) -> None:
        for visit in self._visits.over():
            self._frontier.finish(visit.visit, Outcome(failed=visit.has_failed))

    # ---- which request others came from

    def _note_found(self, pages: list[NewPage]) -> None:
        """Remember that this task has added these pages. Crawlee marks the request in the same task, or in a child of it."""
        task, found = asyncio.current_task(), _found.get()
        if found is None or found.task is not task:
            found = _Found(task, [])
            _found.set(found)
        found.pages += (page._replace(payload=b"") for page in pages[: _MOST_LINKS - len(found.pages)])

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
        return not self._visits.has_pages and self._frontier.opens_at() > self._frontier.now + _SOON_S

    async def is_finished(self) -> bool:
        return not self._adding and not len(self._visits) and self._frontier.is_drained

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


def _page(request: Request) -> NewPage:
    """Return the page of a request. A URL that only Crawlee takes, such as a very long one, gets the site that its text says."""
    url = request.url
    parts = urlsplit(url)
    site = "" if canonical(url) else f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"
    return NewPage(url, _payload(request), request.unique_key, site)


def _payload(request: Request) -> bytes:
    """Return a request as JSON, and after a null byte its body, which need not be text."""
    try:
        text = request.model_dump_json(by_alias=True, exclude={"payload"}).encode()
    except ValueError as error:
        raise ConfigError(f"{request.url}: the request cannot be written as JSON: {error}") from error
    return text if request.payload is None else text + b"\0" + request.payload


def _request(page: QueuedPage) -> Request | None:
    """Return the request of a page; None: it cannot be read, for example because another version of Crawlee has written it."""
    text, null, body = page.payload.partition(b"\0")
    try:
        return Request.model_validate_json(text).model_copy(update={"payload": body if null else None})
    except ValueError as error:
        logger.error("The request for %s is lost: %s", page.url, error)
        return None


def _processed(request: Request, was_known: bool, was_handled: bool = False) -> ProcessedRequest:
    return ProcessedRequest(
        unique_key=request.unique_key, was_already_present=was_known, was_already_handled=was_handled
    )
