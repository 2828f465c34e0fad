"""A live crawl for Python programs: iterate over it, with `for` or `async for`, to receive its pages as they come.

The crawl runs in a thread of its own, with its own event loop, so that a program that computes for a while does not keep
connections waiting. See docs/how-to/crawl-from-python.md.
"""

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from inspect import isawaitable, iscoroutinefunction
from pathlib import Path
from typing import Any

from trapline.api.hooks import LOG, Accept, Hooks, OnError, OnPage, Quality
from trapline.api.keyword_errors import as_keywords, keyword_errors
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.page_stream import PageStream, StreamedFetch
from trapline.crawler.engine.settings import CrawlSettings, seed_of
from trapline.crawler.handler.page import Page
from trapline.errors import ConfigError
from trapline.strategies.base.inputs import PROGRAM

_TURN_S = (
    0.01  # of a program that receives pages with `async for`, before other tasks of its event loop have their turn
)


@keyword_errors()
def crawl(
    seeds: str | Iterable[str] = (),
    *,
    output: str | Path | None = None,
    resume: str | Path | None = None,
    on_page: OnPage | None = None,
    on_error: OnError | None = None,
    accept: Accept | None = None,
    quality: str | Quality | None = None,
    settings: CrawlSettings | None = None,
    **changes: Any,
) -> "Crawl":
    """Prepare a crawl. It begins when the program iterates over it, or calls `run`.

    Args:
        seeds: one URL or several.
        output: folder to create for the crawl. None: nothing is written to disk.
        resume: folder of a crawl to continue, instead of seeds and `output`.
        on_page: called by `run` for each page; may be a coroutine function.
        on_error: called for each failed attempt to fetch a page, and for each page that robots.txt forbids or whose media type is not
            wanted.
        accept: called for URLs in scope, in the thread of the crawl; the crawl follows those for which it returns True.
        quality: a function that returns the quality of a fetched page, 0 or more, in the thread of the crawl. Or the name of a
            source, as for the option --quality.
        settings: all settings of the crawl.
        changes: single settings by name, such as `max_pages=1000`; the names are those of the options of `trapline crawl`.

    Raises:
        ConfigError: a setting does not exist or is invalid.
    """
    hooks = Hooks(on_page, on_error, accept, quality if callable(quality) else None)
    hooks.check()
    given = [seeds] if isinstance(seeds, str) else list(seeds)
    checked = changes  # now; the others when the folder is opened
    if resume is not None:
        from trapline.crawler.files.changed_options import NEED_OTHERS, refuse_unchangeable

        if isinstance(quality, str):
            changes["quality"] = quality
        if given or output is not None or settings is not None:
            raise ConfigError("resume: a resumed crawl keeps its seeds, folder and settings; give none of them")
        refuse_unchangeable(changes)
        checked = {name: value for name, value in changes.items() if name not in NEED_OTHERS}
    elif not given:
        raise ConfigError("no seed URL; give at least one")
    elif quality is not None:
        changes["quality"] = PROGRAM if callable(quality) else quality
    chosen = CrawlSettings.of(checked) if settings is None else settings.changed(checked)
    canonical_seeds = tuple(map(seed_of, given))
    options = chosen.options(canonical_seeds)  # raises ConfigError for an invalid setting
    return Crawl(options, output, resume, changes if resume is not None else {}, hooks)


class Crawl:
    """A crawl, made by `trapline.crawl`. It can be iterated over once.

    `summary` is None until the crawl has ended; then it has the keys of summary.json (docs/crawl-summary.md), or without a
    folder those that the crawl itself knows.
    """

    def __init__(
        self,
        options: CrawlOptions,
        output: str | Path | None,
        resume: str | Path | None,
        resumed_with: Mapping[str, Any],
        hooks: Hooks,
    ) -> None:
        """`resumed_with`: the settings that a resumed crawl changes."""
        self._options, self._resumed_with = options, resumed_with
        self._output = None if output is None else Path(output)
        self._resume = None if resume is None else Path(resume)
        self._hooks, self._on_page = hooks, hooks.on_page
        self._stream = PageStream()
        self._thread: threading.Thread | None = None
        self._is_managed = False  # `async with` waits for the end
        self.handler_errors = 0
        """Number of pages for which `on_page` raised an exception."""

    @property
    def summary(self) -> dict[str, Any] | None:
        return self._stream.summary

    def __repr__(self) -> str:
        return f"<Crawl of {', '.join(self._options.seeds[:3]) or self._resume}: {self._state}>"

    def _repr_html_(self) -> str | None:
        """Return the numbers of a crawl that has ended, for notebooks. None: it has not, or its folder cannot be read."""
        from trapline.report.notebook import folder_html, summary_html  # imported late: most programs need no charts

        folder = self._output or self._resume
        if self.summary is None:
            return None
        if folder is None:
            return summary_html(self.summary, ", ".join(self._options.seeds[:3]))
        try:
            return folder_html(folder)
        except (ConfigError, OSError, sqlite3.Error):
            return None

    @property
    def _state(self) -> str:
        if self._stream.error is not None:
            return f"failed: {self._stream.error}"
        if self._stream.has_ended:
            return "ended"
        return "not begun" if self._thread is None else "running"

    def stop(self) -> None:
        """Stop the crawl. The iteration ends when the pages under way have arrived. May be called from any thread."""
        self._stream.stop()

    # ---- with `for`

    def __iter__(self) -> Iterator[Page]:
        news = threading.Event()
        self._begin(news.set)
        try:
            while True:
                news.clear()
                has_ended = self._stream.has_ended  # asked first: nothing arrives after the end
                fetches = self._stream.take()
                yield from self._pages_of(fetches)
                if not fetches:
                    if has_ended:
                        break
                    news.wait()
        except BaseException:  # break, an exception of the program, or Ctrl-C
            self._close()
            self._log_error()
            raise
        self._close()
        self._raise()

    def run(self) -> dict[str, Any]:
        """Run the crawl, and call `on_page` for each page. Return the summary. An exception of `on_page` is logged with the URL
        of the page, and the crawl continues."""
        if iscoroutinefunction(self._on_page):
            raise ConfigError("on_page is a coroutine function; call `await crawl.run_async()` instead of run()")
        for page in self:
            try:
                answer = self._on_page(page) if self._on_page else None
                if isawaitable(answer):
                    raise ConfigError(
                        "on_page is a coroutine function; call `await crawl.run_async()` instead of run()"
                    )
            except ConfigError:
                raise
            except Exception:
                self._report(page)
        return self.summary or {}

    # ---- with `async for`

    def __aiter__(self) -> AsyncIterator[Page]:
        return _AsyncPages(self)

    async def __aenter__(self) -> "Crawl":
        self._is_managed = True
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        """Stop the crawl, and wait for its end without blocking the event loop."""
        self.stop()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
            self._stream.close()
        if kind is None:
            self._raise()

    async def run_async(self) -> dict[str, Any]:
        """Like `run`, for `on_page` functions that are coroutines."""
        async with self:
            await self._handle_all()
        return self.summary or {}

    async def _handle_all(self) -> None:
        async for page in self:
            try:
                answer = self._on_page(page) if self._on_page else None
                if isawaitable(answer):
                    await answer
            except Exception:
                self._report(page)

    # ---- both

    def _begin(self, on_news: Callable[[], None]) -> None:
        if self._thread is not None:
            raise ConfigError("a crawl can be iterated over once; call trapline.crawl again, or resume its folder")
        self._stream.on_news(on_news)
        # A daemon, so that a program can exit in the middle of its iteration. That is like a crash: the crawl can be resumed.
        self._thread = threading.Thread(target=self._run_thread, name="trapline-crawl", daemon=True)
        self._thread.start()

    def _pages_of(self, fetches: Iterable[StreamedFetch]) -> Iterator[Page]:
        """Yield the pages, and report failed fetches to `on_error`. A page is handled when the program asks for the next one:
        the page at which the program leaves its loop comes again after a resume."""
        for fetch in fetches:
            if fetch.is_page:
                yield Page(fetch)
            else:
                self._hooks.failed(fetch)
            self._stream.handled(fetch)

    def _report(self, page: Page) -> None:
        self.handler_errors += 1
        LOG.exception("on_page raised an exception for %s", page.url)

    def _close(self) -> None:
        """Stop the crawl, and wait until it has ended."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
        self._stream.close()

    def _log_error(self) -> None:
        """Log an error of the crawl that is not raised, because the program left the iteration."""
        if self._stream.error is not None:
            LOG.error("the crawl ended with an error: %s", self._stream.error)

    def _raise(self) -> None:
        if self._stream.error is not None:
            raise self._stream.error

    # ---- in the thread of the crawl

    def _run_thread(self) -> None:
        summary, error = None, None
        try:
            with keyword_errors():
                summary = self._run()
        except BaseException as raised:
            error = raised
        self._stream.end(summary, error)

    def _run(self) -> dict[str, Any]:
        from trapline.crawler.engine.page_quality import ProgramQuality
        from trapline.crawler.engine.run import run_crawl
        from trapline.crawler.files.opening import opened, prepare_new, prepare_old
        from trapline.parallel.folder.manifest import is_parallel, refuse_partition

        if self._resume is None:
            prepared = prepare_new(self._options, self._output)
        else:
            refuse_partition(self._resume)
            if is_parallel(self._resume):
                raise ConfigError(
                    f"{self._resume}: is a crawl of several processes; continue it with trapline crawl --resume"
                )
            prepared = prepare_old(self._resume, settings=self._resumed_with)
        hooks = self._hooks
        self._check_quality(prepared.options)
        for note in prepared.notes:
            LOG.warning(as_keywords(note))
        quality = ProgramQuality(hooks.quality_of) if hooks.quality else None
        crawl = replace(opened(prepared, quality=quality), accept=hooks.accepts if hooks.accept else None)
        return run_crawl(crawl, nullcontext(lambda status: None), stream=self._stream)

    def _check_quality(self, options: CrawlOptions) -> None:
        """Raise `ConfigError` if the function `quality` of a resumed crawl is missing, or if it began without one."""
        if (options.quality == PROGRAM) != (self._hooks.quality is not None):
            cure = (
                "began without a function `quality`; omit it"
                if self._hooks.quality
                else "needs the function `quality` again"
            )
            raise ConfigError(f"{self._resume}: the crawl {cure}")


class _AsyncPages:
    """The iterator of `async for`. When the loop is left, by `break` or by an exception, Python deletes the iterator, and the
    crawl is stopped and closed before the program continues. `async with` does the same without blocking the event loop."""

    def __init__(self, crawl: Crawl) -> None:
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:  # must not refer to the iterator, which would then never be deleted
            with suppress(RuntimeError):  # the event loop of the program is closed
                loop.call_soon_threadsafe(news.set)

        self._pages: Iterator[Page] = iter(())
        self._news = news
        self._turn_ends_at = 0.0
        crawl._begin(tell)
        self._crawl = crawl

    def __aiter__(self) -> "_AsyncPages":
        return self

    async def __anext__(self) -> Page:
        stream = self._crawl._stream
        while (page := next(self._pages, None)) is None:
            self._news.clear()
            has_ended = stream.has_ended  # asked first: nothing arrives after the end
            fetches = stream.take()
            self._pages = self._crawl._pages_of(fetches)
            if fetches:
                continue
            if has_ended:
                self._crawl._close()
                self._crawl._raise()
                raise StopAsyncIteration
            await self._pausing(self._news.wait())
        if (
            time.monotonic() >= self._turn_ends_at
        ):  # pages are ready all the time, but other tasks and signals have their turn
            await self._pausing(asyncio.sleep(0))
        return page

    async def _pausing(self, pause: Awaitable[object]) -> None:
        try:
            await pause
        except BaseException:  # cancelled: the iterator may live on in a traceback
            self._crawl.stop()
            raise
        self._turn_ends_at = time.monotonic() + _TURN_S

    def __del__(self) -> None:
        if not hasattr(self, "_crawl"):  # the crawl could not begin
            return
        self._crawl.stop()
        # In the thread of the crawl, garbage collection deletes it; that thread cannot wait for its own end.
        if not self._crawl._is_managed and threading.current_thread() is not self._crawl._thread:
            self._crawl._close()
            self._crawl._log_error()
