"""A live crawl from its beginning to its end: the timers, the store, Ctrl-C, and the closing. Its parts come from parts.py.

The loop does in this process what must be fast; the store is another (store/). A crawl that is stopped, by a goal or by Ctrl-C, ends
the visits under way and leaves a whole folder; one that is killed goes on from its last commit.
"""

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvloop

from trapline.crawl import resume
from trapline.crawl.ends import SECONDS
from trapline.crawl.interrupts import interrupts
from trapline.crawl.memory import give_back_what_is_freed
from trapline.crawl.opening import Opened, opened, prepare_new, prepare_old, store_settings
from trapline.crawl.options import CrawlOptions
from trapline.crawl.outbox import Stands
from trapline.crawl.partition import Member, Others
from trapline.crawl.parts import built
from trapline.crawl.records import Batch, Progress
from trapline.crawl.standing import MOST_ROWS, FetchedAgain, Recent, Standing, stopping
from trapline.crawl.store.client import Store, StoreDiedError
from trapline.crawl.store.folder import note_begin, note_end
from trapline.crawl.store.process import explain
from trapline.crawl.summary import write_summary
from trapline.errors import ConfigError

Show = Callable[[Standing], None]
View = AbstractContextManager[Show]
_TICK_S = 0.5
_IDLE_S = 10.0  # between two notes of how the crawl stands, while nothing happens
_GRACE_S = 10.0  # for the pages under way when a crawl is stopped: some servers would take minutes


def open_crawl(options: CrawlOptions, folder: Path, view: View) -> dict[str, Any]:
    """A new crawl into a new folder; its summary."""
    return run_crawl(opened(prepare_new(options, folder)), view)


def resume_crawl(folder: Path, view: View, **changes: float) -> dict[str, Any]:
    """A crawl that goes on; its summary. `changes`: goals other than those it began with."""
    return run_crawl(opened(prepare_old(folder, None, **changes)), view)


def run_crawl(crawl: Opened, view: View, member: Member | None = None) -> dict[str, Any]:
    """The crawl, until it ends or is ended; its summary. A `ConfigError` or a defect leaves a folder that can go on."""
    give_back_what_is_freed()
    try:
        with view as show:
            return uvloop.run(LiveCrawl(crawl, show, member).run())
    finally:
        crawl.claim.release()


class LiveCrawl:
    """The parts of one run, and what happens to them as time passes."""

    def __init__(self, crawl: Opened, show: Show, member: Member | None = None) -> None:
        """`member`: the crawl is one of several."""
        self._options, self._strategy, self._state = crawl.options, crawl.strategy, crawl.state
        self._claim, self._crawl = crawl.claim, crawl
        self._folder, self._show, self._member = crawl.claim.path, show, member
        self._others: Others | None = None
        self._recent = Recent()
        self._uncommitted: deque[tuple[int, int]] = deque()  # batch, pages registered when it was sent
        self._noted_at = -math.inf  # seconds of crawling
        self._cut_at = math.inf  # seconds of crawling; from then on, what is under way is given up
        self._failure = ""  # of the store
        self._unsaved = ""  # why a snapshot could not be written
        self._error: BaseException | None = None  # what nobody expected
        self._closing = ""  # the step, once it has come to that

    async def run(self) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        note_begin(self._claim, asdict(self._options))
        settings = store_settings(self._options)
        try:
            self._store = await Store.start(self._claim, settings, self._committed, self._store_failed)
        except StoreDiedError as error:
            raise StoreDiedError(_with_the_way_on(str(error), self._folder)) from None
        try:
            self._build(loop)
            loop.set_exception_handler(self._defect)
            self._begin(loop)
            if self._others is not None:
                await self._others.open(self._crawler, self._web)
            with interrupts(loop, self._interrupted), self._ticking(loop):
                await self._web.over
                return await self._close()
        except BaseException:
            await self._store.abandon()  # it ends with the batches that it has, and the folder can go on
            raise

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        frontier, now = self._state.frontier, self._web.now()
        self._began = time.monotonic()
        if self._state.last_batch == 0:  # new, or killed before its first commit
            frontier.discover(self._known.seed_pages(self._options.seeds, now), now)
            if self._others is not None:
                self._others.begin(self._options.seeds)
        if not self._crawl.new:
            resume.settle(frontier, now, self._state.refresher)
        self._web.sweep()
        self._crawler.begin(self._web)
        self._outbox.stands = self._stands
        if self._options.max_seconds < math.inf:
            loop.call_later(max(self._options.max_seconds - self._seconds(), 0.0), self._crawler.stop, SECONDS)

    def _build(self, loop: asyncio.AbstractEventLoop) -> None:
        parts = built(loop, self._crawl, self._member, self._put)
        self._shelf, self._outbox, self._snapshots = parts.shelf, parts.outbox, parts.snapshots
        self._known, self._others, self._again = parts.known, parts.others, parts.again
        self._crawler, self._web = parts.crawler, parts.web
        self._crawler.full = lambda: self._store.full

    # ---- the store

    def _put(self, batch: Batch) -> None:
        if self._others is not None:
            self._others.sent(batch.number, batch.between)
        self._uncommitted.append((batch.number, self._state.frontier.pages))
        self._store.put(batch)

    def _committed(self, batch: int) -> None:
        pages = -1
        while self._uncommitted and self._uncommitted[0][0] <= batch:
            pages = self._uncommitted.popleft()[1]
        if pages >= 0:
            self._shelf.committed(pages)
            if self._again is not None:
                self._again.copies.committed(batch)
        self._snapshots.committed(batch)
        if self._others is not None:
            self._others.committed(batch)
        if not self._store.full:
            self._crawler.go_on()

    def _store_failed(self, line: str) -> None:
        self._failure = line
        self._web.ended()

    def _defect(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What nobody expected happened in a callback: the crawl ends, and the command says that it is ours to mend."""
        error = context.get("exception")
        if error is not None and self._error is None:
            self._error = error
            self._web.ended()

    def _take_snapshot(self) -> None:
        """If it cannot be written, the crawl ends; the store still commits what came in, and a resume replays the log."""
        try:
            self._snapshots.take()
        except OSError as error:
            self._unsaved = explain(self._folder, error)
            self._web.ended()

    # ---- as time passes

    @contextmanager
    def _ticking(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Twice a second, to the end of the closing."""
        timer: asyncio.Handle

        def tick() -> None:
            nonlocal timer
            timer = loop.call_later(_TICK_S, tick)
            if not self._closing:
                self._hear()
                self._note_if_new()
                self._cut_off(self._seconds())
                if self._snapshots.is_due and not self._unsaved:
                    self._take_snapshot()
            self._show(self._standing())

        timer = loop.call_soon(tick)
        try:
            yield
        finally:
            timer.cancel()

    def _hear(self) -> None:
        if self._again is not None and self._again.hearsay.poll(self._web.now()):
            self._crawler.soon()

    def _cut_off(self, seconds: float) -> None:
        """What has not come in long after the crawl was stopped does not."""
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
        return self._crawler.progress(self._seconds()), list(self._state.tally.left_out.items())

    def _standing(self) -> Standing:
        tally, options = self._state.tally, self._options
        progress = self._crawler.progress(self._seconds())
        by_site, tally.recent = tally.recent, Counter()
        pages_per_s, bytes_per_s = self._recent.note(progress, by_site)
        return Standing(
            progress,
            pages_per_s,
            bytes_per_s,
            lambda: [(self._state.sites[site].origin, pages) for site, pages in self._recent.busiest()],
            tally.errors.most_common(MOST_ROWS),
            self._strategy.name,
            str(self._folder),
            self._doing(progress),
            options.max_pages,
            options.connections,
            tally.given_up.most_common(MOST_ROWS),
            tally.left_out.most_common(MOST_ROWS),
            self._fetched_again(),
        )

    def _fetched_again(self) -> FetchedAgain | None:
        if self._again is None or self._state.refresher is None:
            return None
        tally = self._state.tally
        return FetchedAgain(tally.refetched, tally.changed, self._again.hearsay.heard, self._state.refresher.by_quality)

    def _doing(self, progress: Progress) -> str:
        if self._closing:
            return f"closing: {self._closing}"
        if self._crawler.stopped_by:
            return stopping(self._crawler.stopped_by, progress.active)
        if self._again is not None and self._again.hearsay.trouble:
            return self._again.hearsay.trouble
        waits_for = self._crawler.waits_for
        if not waits_for and not progress.pages and not progress.errors:
            return "starting: names, connections, robots.txt"
        return waits_for

    def _interrupted(self, why: str) -> None:
        """Ctrl-C or SIGTERM ends the visits under way after the page they are at; in a crawl that is stopping, at once."""
        if self._crawler.stopped_by:
            self._web.abort()
        self._crawler.stop(why)

    # ---- the end

    async def _close(self) -> dict[str, Any]:
        self._close_step("writing the last pages")
        self._web.abort()
        if self._again is not None:
            self._again.close()
        if not self._failure and self._error is None:
            self._note()
            if not self._unsaved:
                self._take_snapshot()  # before anything is awaited: what names come in later is not in the database
            try:
                await self._store.close(self._close_step)
            except ConfigError as error:
                self._failure = str(error)
        if self._others is not None:
            await self._others.close()
        if self._error is not None:
            raise self._error
        if failure := self._failure or self._unsaved:
            line = _with_the_way_on(failure, self._folder)
            raise StoreDiedError(line) if self._store.died else ConfigError(line)
        note_end(self._claim, self._crawler.stopped_by)
        self._close_step("counting for the summary")
        return await asyncio.to_thread(write_summary, self._folder)

    def _close_step(self, step: str) -> None:
        self._closing = step


def _with_the_way_on(failure: str, folder: Path) -> str:
    """
    >>> _with_the_way_on("the store ended unasked: killed by signal 9", Path("c"))
    'c: the store ended unasked: killed by signal 9; go on with --resume c'
    >>> _with_the_way_on("c: the disk is full; make room and go on with --resume c", Path("c"))
    'c: the disk is full; make room and go on with --resume c'
    >>> _with_the_way_on("the store ended unasked: exit code 1", Path("the"))
    'the: the store ended unasked: exit code 1; go on with --resume the'
    """
    line = failure if failure.startswith(f"{folder}:") else f"{folder}: {failure}"
    return line if "--resume" in line else f"{line}; go on with --resume {folder}"
