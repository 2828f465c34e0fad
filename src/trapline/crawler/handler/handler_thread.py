"""The thread in which the handler of a crawl receives the pages, one after the other. The crawl itself runs in another thread.

An exception of the handler is written to handler.log with the URL and the traceback, and counted; the page then counts as
handled. When the user stops the crawl, the handler ends after its current page; the other pages are handed over after a
resume. When the crawl ends by itself, the handler first receives all pages.
"""

import asyncio
import math
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from inspect import isawaitable
from pathlib import Path
from typing import Any

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.page_stream import PageStream, StreamedFetch
from trapline.crawler.files.handled import HandledCounts
from trapline.crawler.handler.page import FailedFetch, Page
from trapline.crawler.handler.user_handler import UserHandler, made_handler

HANDLER_LOG = "handler.log"
_MOST_TRACEBACKS = 100  # in a run; of later errors the log has one line each


class HandlerThread:
    def __init__(self, options: CrawlOptions, folder: Path) -> None:
        """Make the handler. Raise `ConfigError` if that fails."""
        self._handler: UserHandler = made_handler(options)
        self.stream = PageStream()
        self._log_path = folder / HANDLER_LOG
        self.on_error: Callable[[str, BaseException], None] = lambda what, error: None  # called in this thread
        self._logged = 0
        self._news = threading.Event()
        self._stopped_at = math.inf
        self._thread = threading.Thread(target=self._run, name="trapline-handler", daemon=True)
        self._exits = ExitStack()
        self._runner: asyncio.Runner | None = None  # made for the first coroutine
        self.error: BaseException | None = None  # why the thread ended early; not an error of the handler

    # ---- for the crawl

    def start(self) -> None:
        self.stream.on_news(self._news.set)
        self._thread.start()

    def stop(self) -> None:
        """End after the current page."""
        self._stopped_at = min(self._stopped_at, time.monotonic())
        self._news.set()

    def is_over(self, grace_s: float) -> bool:
        """Return whether the thread has ended, or was stopped more than `grace_s` seconds ago and cannot be waited for."""
        return not self._thread.is_alive() or time.monotonic() - self._stopped_at > grace_s

    @property
    def counts(self) -> HandledCounts:
        return self.stream.handled_counts

    # ---- in the thread

    def _run(self) -> None:
        try:
            with self._exits:
                self._take_all()
                if self._handler.close is not None:
                    self._try("close", self._handler.close)
        except BaseException as error:  # a file of the folder cannot be read or written
            self.error = error
            self.stream.stop()
        self.stream.close()

    def _take_all(self) -> None:
        while True:
            self._news.clear()
            has_ended = self.stream.has_ended  # asked first: nothing arrives after the end
            fetches = self.stream.take()
            for fetch in fetches:
                if self._is_stopped:
                    return
                self.stream.handled(fetch, errors=not self._handle(fetch))
            if self._is_stopped or (has_ended and not fetches):
                return
            if not fetches:
                self._news.wait()

    @property
    def _is_stopped(self) -> bool:
        return self._stopped_at < math.inf

    def _handle(self, fetch: StreamedFetch) -> bool:
        """Call the handler. Return whether it succeeded."""
        if fetch.is_page:
            return self._try(fetch.record.url, self._handler.page, Page(fetch))
        if self._handler.failed is not None:
            return self._try(fetch.record.url, self._handler.failed, FailedFetch(fetch))
        return True

    def _try(self, what: str, function: Callable[..., object], *arguments: Any) -> bool:
        try:
            answer = function(*arguments)
            if isawaitable(answer):
                self._await(answer)
        except BaseException as error:  # of the user's code
            self._log(what, error)
            if self._logged <= _MOST_TRACEBACKS:
                self.on_error(what, error)
            return False
        return True

    def _await(self, answer: Awaitable[object]) -> None:
        async def awaited() -> None:
            await answer

        if self._runner is None:
            self._runner = self._exits.enter_context(asyncio.Runner())
        self._runner.run(awaited())

    def _log(self, what: str, error: BaseException) -> None:
        self._logged += 1
        lines = traceback.format_exception(error)
        text = "".join(lines) + "\n" if self._logged <= _MOST_TRACEBACKS else lines[-1]
        with suppress(OSError), self._log_path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {what}\n{text}")
