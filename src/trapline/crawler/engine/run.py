"""One run of a live crawl: the timers, the store, Ctrl-C, and the closing. wiring.py builds its parts.

This process runs the loop; the store is a process of its own (store/). A crawl that is stopped, by a goal or by Ctrl-C,
ends the visits under way and leaves a complete folder. A crawl that is killed can be resumed from its last commit.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import uvloop

from trapline.crawler.control.action_handler import ENDING, ActionHandler
from trapline.crawler.control.crawl_control import CrawlControl
from trapline.crawler.engine import scope_change
from trapline.crawler.engine.content_quality import ContentQuality, failures_before, run_number
from trapline.crawler.engine.crawl_events import CrawlEvents
from trapline.crawler.engine.freed_memory import give_back_what_is_freed
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.page_stream import PageStream
from trapline.crawler.engine.partition_member import Member, PartitionExchange
from trapline.crawler.engine.records import Batch
from trapline.crawler.engine.scope_change import ScopeChange
from trapline.crawler.engine.status import CrawlStatus
from trapline.crawler.engine.status_reporter import StatusReporter, StatusWriter
from trapline.crawler.engine.stop_reasons import BY_HAND, MAX_TIME, STOPPED, TERMINATED, interrupts
from trapline.crawler.engine.wiring import built
from trapline.crawler.files import resume
from trapline.crawler.files.control_mailbox import STOP, Action
from trapline.crawler.files.layout import note_begin, note_end
from trapline.crawler.files.opening import Opened, opened, prepare_new, prepare_old, store_settings
from trapline.crawler.files.status_file import StatusFile
from trapline.crawler.handler.handler_thread import HandlerThread
from trapline.crawler.handler.unhandled import restore_stream
from trapline.crawler.inspect.summary import write_summary
from trapline.crawler.quality.scorer_pool import ScorerPool
from trapline.crawler.store.client import NoStore, Store, StoreDiedError
from trapline.crawler.store.outbox import Stands
from trapline.crawler.store.process import explain
from trapline.errors import ConfigError, RankError
from trapline.processor import processor_clock
from trapline.units import counted

Show = Callable[[CrawlStatus], None]
View = AbstractContextManager[Show]
_TICK_S = 0.5
_IDLE_S = 10.0  # between two batches with the crawl's progress, while nothing happens
_POLL_S = 0.02  # between two looks at the handler, at the end, or at a store that is behind, at the beginning
_GRACE_S = 10.0  # for the pages in flight when a crawl is stopped: some servers would take minutes


def open_crawl(options: CrawlOptions, folder: Path, view: View) -> dict[str, Any]:
    """Run a new crawl into a new folder. Return its summary."""
    return run_crawl(opened(prepare_new(options, folder)), view)


def resume_crawl(folder: Path, view: View, **changes: Any) -> dict[str, Any]:
    """Resume a crawl. Return its summary. `changes`: options that differ from those it had."""
    return run_crawl(opened(prepare_old(folder, None, **changes)), view)


def run_crawl(
    crawl: Opened, view: View, member: Member | None = None, stream: PageStream | None = None
) -> dict[str, Any]:
    """Run the crawl until it ends or is stopped. Return its summary. After a `ConfigError` or a defect it can be resumed.
    `stream`: takes the pages, and may stop the crawl; signals are then left to the program."""
    if stream is None:
        give_back_what_is_freed()  # not in a program that takes the pages: the setting is that of its process
    try:
        handler = None
        if stream is None and crawl.options.handler and crawl.folder is not None:
            handler = HandlerThread(crawl.options, crawl.folder)
        with view as show, StatusFile(crawl.folder) as file:
            return uvloop.run(LiveCrawl(crawl, StatusWriter(show, file, crawl.options), member, stream, handler).run())
    finally:
        crawl.release()


class LiveCrawl:
    """One run: its parts, and the events that concern them."""

    def __init__(
        self,
        crawl: Opened,
        show: Show,
        member: Member | None = None,
        stream: PageStream | None = None,
        handler: HandlerThread | None = None,
    ) -> None:
        """`member`: the membership, if the crawl is one of several. `stream`: takes the pages for a program, `handler` for the
        user's handler."""
        self._options, self._strategy, self._state = crawl.options, crawl.strategy, crawl.state
        self._claim, self._crawl, self._handler = crawl.claim, crawl, handler
        self._stream = stream if handler is None else handler.stream
        self._leaves_signals = stream is not None  # to the program
        self._folder, self._show, self._member = crawl.folder, show, member
        self._events = CrawlEvents.of(crawl.options, crawl.folder)
        if handler is not None:
            handler.on_error = self._events.handler_error
        self._others: PartitionExchange | None = None
        self._uncommitted: deque[tuple[int, int]] = deque()  # batch, pages registered when it was sent
        self._noted_at = -math.inf  # seconds of crawling
        self._cut_at = math.inf  # seconds of crawling; then the visits under way are aborted
        self._failure = ""  # of the store
        self._unsaved = ""  # why a snapshot could not be written
        self._error: BaseException | None = None  # an unexpected exception
        self._early_stop = ""  # why the crawl is stopped, if that happened before it had its parts and its scorer
        self._is_built = False
        self._content: ContentQuality | None = None  # scores the content of pages; None: nothing does
        self._starting: asyncio.Future[None] | None = None  # the start of the scorer; None: it has not begun
        self._has_begun = False  # the first visit may have begun
        self._closing = ""  # the step of the closing; "": the crawl is not closing yet

    async def run(self) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        with nullcontext() if self._leaves_signals else interrupts(loop, self._interrupted):
            return await self._run(loop)

    async def _run(self, loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
        self._store = await self._started_store(loop)
        try:
            self._build(loop)
            loop.set_exception_handler(self._defect)
            if self._content is not None and not self._early_stop:
                await self._start_scorer(self._content)
            self._is_built = True
            self._restore()
            if self._early_stop:
                self._crawler.enter(self._web)
                self._crawler.stop(self._early_stop)
            if self._crawl.has_new_scope:
                with self._ticking(loop):
                    await self._change_scope(self._web.now())
            self._begin(loop)
            if self._others is not None:
                await self._others.open(self._crawler, self._web, self._control.obey)
            with self._ticking(loop):
                await self._web.over
                return await self._close()
        except BaseException as error:
            self._events.failed(error)
            if self._handler is not None:
                self._handler.stop()
            if self._content is not None:
                await self._content.pool.close()
            await self._store.abandon()  # the store ends with the batches that it has, and the crawl can be resumed
            if isinstance(error, RankError):
                raise self._with_url(error) from None
            raise

    async def _started_store(self, loop: asyncio.AbstractEventLoop) -> "Store | NoStore":
        if self._claim is None:
            return NoStore(loop, self._committed)
        if self._crawl.new:
            self._events.began(self._options)
        else:
            self._events.resumed(self._options, self._state.tally.fetched)
        note_begin(self._claim, self._crawl.keys)
        settings = store_settings(self._options)
        try:
            return await Store.start(self._claim, settings, self._committed, self._store_failed)
        except ConfigError as error:
            self._events.failed(error)
            if isinstance(error, StoreDiedError):
                raise StoreDiedError(_with_resume_hint(str(error), self._claim.path)) from None
            raise

    def _restore(self) -> None:
        """Begin as an interrupted crawl, or with the seeds."""
        frontier, now = self._state.frontier, self._web.now()
        self._began = time.monotonic()
        if self._state.last_batch == 0:  # new, or killed before its first commit
            frontier.discover(self._link_resolver.seed_pages(self._options.seeds, now), now)
            if self._others is not None:
                self._others.begin(self._options.seeds)
        if not self._crawl.new:
            resume.settle(frontier, now, self._state.refresher)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._web.sweep()
        self._crawler.begin(self._web)
        self._control.begin()
        self._has_begun = True
        self._outbox.stands = self._stands
        self._outbox.processor = processor_clock()
        if self._options.max_seconds < math.inf:
            loop.call_later(max(self._options.max_seconds - self._seconds(), 0.0), self._crawler.stop, MAX_TIME)

    async def _change_scope(self, now: float) -> None:
        assert self._folder is not None
        self._crawler.enter(self._web)
        parts = (self._state.frontier, self._link_resolver, self._options, self._folder, self._others)
        counts = await ScopeChange(*parts, self._goes_on).apply(now)
        self._status_reporter.preparing = ""
        if counts is not None:
            self._crawler.results.scope_notes.append(counts.note)
            self._outbox.meta[scope_change.KEY] = None
            self._outbox.flush(is_due=True)
        while self._uncommitted and not self._web.over.done():  # other partitions need what is on disk
            await asyncio.sleep(_POLL_S)

    async def _goes_on(self, preparing: str) -> bool:
        """Send what has changed before the first visit, and wait until the store has room. Return whether the crawl goes on."""
        self._status_reporter.preparing = preparing
        self._outbox.flush()
        await asyncio.sleep(0)
        while self._store.full and not self._is_over:
            await asyncio.sleep(_POLL_S)
        return not self._is_over

    @property
    def _is_over(self) -> bool:
        return bool(self._crawler.stopped_by) or self._web.over.done()

    def _build(self, loop: asyncio.AbstractEventLoop) -> None:
        parts = built(loop, self._crawl, self._member, self._put, self._events)
        self._url_store, self._outbox, self._snapshots = parts.url_store, parts.outbox, parts.snapshots
        self._link_resolver, self._others, self._refresh = parts.link_resolver, parts.others, parts.refresh_setup
        self._crawler, self._web, self._lists = parts.crawler, parts.web, parts.list_setup
        self._status_reporter = StatusReporter(self._crawl, parts, self._handler, self._store, self._stream)
        self._control = CrawlControl(self._crawl, parts, lambda: self._interrupted(TERMINATED))
        # The coordinator receives the actions for its partitions.
        self._action_handler = ActionHandler(self._folder if self._member is None else None, self._events.log)
        if self._crawl.given.is_scored:
            self._build_content()
        self._crawler.full = lambda: self._is_full
        if (stream := self._stream) is not None:
            self._crawler.results.stream = stream
            if self._folder is not None:
                depths = self._state.frontier.page_depths
                self._outbox.last_fetch = restore_stream(stream, self._folder, self._options, depths)
            stream.connect(
                loop.call_soon_threadsafe,
                self._crawler.go_on,
                self._stopped_by_program,
                lambda: self._state.frontier.page_depths,
                self._url_store.urls,
            )
        if self._handler is not None:
            self._handler.start()

    def _build_content(self) -> None:
        parts = (self._state.frontier, self._outbox, self._state.tally, self._events)
        number, failures = run_number(self._folder), failures_before(self._folder)
        self._content = ContentQuality(
            *parts, self._web.now, number, self._crawler.go_on, self._scorer_failed, failures
        )
        self._crawler.results.content = self._content

    async def _start_scorer(self, content: ContentQuality) -> None:
        """Start the scorer, which may load a model for minutes. If the crawl is stopped meanwhile, it has no scorer, and needs none."""
        starting = self._starting = asyncio.ensure_future(content.start(self._options, self._folder))
        try:
            await asyncio.wait([starting])
        finally:
            starting.cancel()
        if starting.cancelled():
            await content.pool.close()
        else:
            starting.result()

    @property
    def _is_full(self) -> bool:
        """Whether the store, the scorer or the program that takes the pages is behind."""
        if self._store.full or (self._content is not None and self._content.pool.full):
            return True
        return self._stream is not None and self._stream.holds_up()

    # ---- the store

    def _put(self, batch: Batch) -> None:
        if self._others is not None:
            self._others.sent(batch.number, batch.traffic)
        self._uncommitted.append((batch.number, self._state.frontier.pages))
        self._store.put(batch)

    def _committed(self, batch: int) -> None:
        pages = -1
        while self._uncommitted and self._uncommitted[0][0] <= batch:
            pages = self._uncommitted.popleft()[1]
        if pages >= 0:
            self._url_store.committed(pages)
            if self._refresh is not None:
                self._refresh.copies.committed(batch)
        if self._snapshots is not None:
            self._snapshots.committed(batch)
        if self._stream is not None:
            self._stream.committed(batch)
        self._control.committed(batch)
        if self._others is not None:
            self._others.committed(batch)
        if not self._store.full:
            self._crawler.go_on()

    def _store_failed(self, line: str) -> None:
        self._failure = line
        self._web.ended()

    def _scorer_failed(self, line: str) -> None:
        self._failure = line
        self._web.ended()

    def _defect(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the crawl after an unexpected exception in a callback. The command reports it as a defect of Trapline."""
        error = context.get("exception")
        if error is not None and self._error is None:
            self._error = self._with_url(error)
            self._web.ended()

    def _with_url(self, error: BaseException) -> BaseException:
        """Return the error. That of a page's rank also gets the URL of the page, which the frontier does not know."""
        if not isinstance(error, RankError) or error.page < 0:
            return error
        return ConfigError(f"{error}; the page is {self._url_store.urls([error.page])[0]}")

    def _take_snapshot(self) -> None:
        """Write a snapshot. If that fails, the crawl ends; the store still commits all results, and a resume replays the log."""
        if self._snapshots is None or self._folder is None:
            return
        began = time.monotonic()
        try:
            self._snapshots.take()
            self._events.snapshot(self._outbox.number, time.monotonic() - began)
        except OSError as error:
            self._unsaved = explain(self._folder, error)
            self._web.ended()

    # ---- as time passes

    @contextmanager
    def _ticking(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Call `tick` twice a second until the closing has ended."""
        timer: asyncio.Handle

        def tick() -> None:
            nonlocal timer
            timer = loop.call_later(_TICK_S, tick)
            self._action_handler.poll(self._control.obey, self._why_refused)
            if not self._closing:
                self._take_signals()
                self._note_if_new()
                self._cut_off(self._seconds())
                self._events.watch(self._store.full, self._seconds())
                if self._snapshots is not None and self._snapshots.is_due and not self._unsaved:
                    self._take_snapshot()
            self._show(self._status_reporter.status(self._seconds(), self._closing))

        timer = loop.call_soon(tick)
        try:
            yield
        finally:
            timer.cancel()

    def _why_refused(self, action: Action) -> str:
        if self._closing or self._crawler.stopped_by:
            return ENDING
        has_begun = self._has_begun or action.name == STOP
        return "" if has_begun else "the crawl is being prepared; try again when it fetches pages"

    def _take_signals(self) -> None:
        if self._refresh is not None and self._refresh.signal_intake.poll(self._web.now()):
            self._crawler.soon()

    def _cut_off(self, seconds: float) -> None:
        """Abort the visits that are still under way _GRACE_S seconds after the crawl was stopped."""
        if self._crawler.stopped_by and self._cut_at == math.inf:
            self._cut_at = seconds + _GRACE_S
        if seconds >= self._cut_at:
            self._web.abort()

    def _seconds(self) -> float:
        return self._state.tally.seconds_before + time.monotonic() - self._began

    def _note_if_new(self) -> None:
        news = self._outbox.has_news or (self._others is not None and self._others.has_news)
        if news or self._seconds() - self._noted_at >= _IDLE_S:
            self._note()

    def _note(self) -> None:
        self._noted_at = self._seconds()
        self._outbox.flush(is_due=True)

    def _stands(self) -> Stands:
        return self._crawler.progress(self._seconds()), list(self._state.tally.rejected_links.items())

    def _interrupted(self, why: str) -> None:
        """Stop the crawl on Ctrl-C or SIGTERM. The visits under way end after their current page; the second time, at once."""
        if self._stops_early(why):
            return
        if self._crawler.stopped_by:
            self._web.abort()
        self._crawler.stop(why)
        if self._handler is not None:
            if self._closing and not self._handler.is_over(0.0):
                self._crawler.stopped_by = why  # the crawl had ended, but not its handler
            self._handler.stop()
        if self._closing and self._content is not None and not self._content.pool.is_idle:
            self._crawler.stopped_by = why  # the crawl had ended, but not its scores
        # At once, so that the user sees that the key was heard.
        self._show(self._status_reporter.status(self._seconds(), self._closing))

    def _stopped_by_program(self) -> None:
        if not self._stops_early(STOPPED):
            self._crawler.stop(STOPPED)

    def _stops_early(self, why: str) -> bool:
        """Note a stop that comes before the crawl can begin. Return whether this is one."""
        if not self._is_built:
            self._early_stop = why
            if self._starting is not None:
                self._starting.cancel()
        return not self._is_built

    # ---- the end

    async def _close(self) -> dict[str, Any]:
        self._close_step("writing the last pages")
        self._show(self._status_reporter.status(self._seconds(), self._closing))  # a crawl of an instant has notes, too
        self._web.abort()
        if self._refresh is not None:
            self._refresh.close()
        if self._lists is not None:
            self._lists.close()
        if self._content is not None:
            await self._finish_scoring(self._content.pool)
        if not self._failure and self._error is None:
            self._note()
            if not self._unsaved:
                self._take_snapshot()  # before the first await: addresses that arrive later are not in the database
            try:
                await self._store.close(self._close_step)
            except ConfigError as error:
                self._failure = str(error)
        if self._handler is not None:
            await self._finish(self._handler)
        if self._others is not None:
            await self._others.close()
        self._url_store.close()
        if self._error is not None:
            raise self._error
        if self._claim is None:
            if self._web.proxy_trouble:
                raise ConfigError(self._web.proxy_trouble)
            return self._status_reporter.brief_summary(self._seconds())
        if failure := self._failure or self._unsaved:
            line = _with_resume_hint(failure, self._claim.path)
            raise StoreDiedError(line) if self._store.died else ConfigError(line)
        note_end(self._claim, self._crawler.stopped_by)
        self._events.ended(self._crawler.stopped_by, self._crawler.progress(self._seconds()))
        self._close_step("counting for the summary")
        summary = await asyncio.to_thread(write_summary, self._claim.path)
        if self._web.proxy_trouble:
            raise ConfigError(_with_resume_hint(self._web.proxy_trouble, self._claim.path))
        return summary

    async def _finish_scoring(self, pool: ScorerPool) -> None:
        """Wait until all pages have their scores; if the crawl was stopped or has failed, not longer than the grace period."""
        began = time.monotonic()
        while not (pool.is_idle or self._failure or self._error is not None):
            if self._crawler.stopped_by in BY_HAND and time.monotonic() - began > _GRACE_S:
                break
            self._close_step(f"scoring the last pages, {counted(pool.waiting, 'page')} left; Ctrl-C ends it")
            await asyncio.sleep(_POLL_S)
        await pool.close()

    async def _finish(self, handler: HandlerThread) -> None:
        """Wait until the handler has received all pages; if the crawl was stopped or has failed, until it has done the current one."""
        handler.stream.end(None, None)
        if self._failure or self._error is not None or self._crawler.stopped_by in BY_HAND:
            handler.stop()
        while not handler.is_over(_GRACE_S):
            self._close_step(f"waiting for the handler, {counted(handler.counts.pages, 'page')} so far; Ctrl-C ends it")
            await asyncio.sleep(_POLL_S)
        self._error = self._error or handler.error

    def _close_step(self, step: str) -> None:
        self._closing = step


def _with_resume_hint(failure: str, folder: Path) -> str:
    """Return the failure as one line that names the folder and says how to resume.

    >>> _with_resume_hint("the store ended unasked: killed by signal 9", Path("c"))
    'c: the store ended unasked: killed by signal 9; continue with --resume c'
    >>> _with_resume_hint("c: the disk is full; make room and continue with --resume c", Path("c"))
    'c: the disk is full; make room and continue with --resume c'
    >>> _with_resume_hint("the store ended unasked: exit code 1", Path("the"))
    'the: the store ended unasked: exit code 1; continue with --resume the'
    """
    line = failure if failure.startswith(f"{folder}:") else f"{folder}: {failure}"
    return line if "--resume" in line else f"{line}; continue with --resume {folder}"
