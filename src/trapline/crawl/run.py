"""A live crawl from its beginning to its end: the parts put together, the timers, Ctrl-C, and the closing.

The loop does in this process what must be fast; the store is another (store/). A crawl that is stopped, by a goal or by Ctrl-C, ends
the visits under way and leaves a whole folder; one that is killed goes on from its last commit.
"""

import asyncio
import math
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import uvloop

from trapline.crawl import checkpoint, resume
from trapline.crawl.crawler import INTERRUPTED, SECONDS, Crawler, Goals
from trapline.crawl.known import Known
from trapline.crawl.live import Web
from trapline.crawl.names import Names
from trapline.crawl.opening import Opened, store_settings
from trapline.crawl.options import AGENT
from trapline.crawl.outbox import Outbox
from trapline.crawl.records import Batch, Progress
from trapline.crawl.scope import Scope
from trapline.crawl.scores import Scores
from trapline.crawl.shelf import Shelf
from trapline.crawl.standing import MOST_ROWS, Recent, Standing
from trapline.crawl.store.client import Store
from trapline.crawl.store.folder import DATABASE, note_begin, note_end
from trapline.crawl.summary import write_summary
from trapline.errors import ConfigError
from trapline.fetch.address import Guard
from trapline.fetch.dns import Resolver
from trapline.frontier.journal import Journal
from trapline.units import counted

Show = Callable[[Standing], None]
View = AbstractContextManager[Show]
_TICK_S = 0.5
_SNAPSHOT_PAGES = 100_000  # replay is some microseconds a page, so a resume takes a second or two


def run_crawl(opened: Opened, view: View) -> dict[str, Any]:
    """The crawl, until it ends or is ended; its summary. A `ConfigError` or a defect leaves a folder that can go on."""
    try:
        with view as show:
            return uvloop.run(LiveCrawl(opened, show).run())
    finally:
        opened.claim.release()


class LiveCrawl:
    """The parts of one run, and what happens to them as time passes."""

    def __init__(self, opened: Opened, show: Show) -> None:
        self._options, self._strategy, self._state = opened.options, opened.strategy, opened.state
        self._claim, self._inputs, self._new = opened.claim, opened.inputs, opened.new
        self._folder, self._show = opened.claim.path, show
        self._recent = Recent()
        self._uncommitted: deque[tuple[int, int]] = deque()  # batch, pages registered when it was sent
        self._snapshot_at = self._state.tally.fetched + _SNAPSHOT_PAGES
        self._failure = ""  # of the store
        self._error: BaseException | None = None  # what nobody expected
        self._closing = ""  # the step, once it has come to that

    async def run(self) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._defect)
        note_begin(self._claim)
        settings = store_settings(self._options)
        self._store = await Store.start(self._claim, settings, self._committed, self._store_failed)
        try:
            self._build(loop)
            self._begin(loop)
            with self._signals(loop), self._ticking(loop):
                await self._web.over
                return await self._close()
        except BaseException:
            await self._store.abandon()  # it ends with the batches that it has, and the folder can go on
            raise

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        frontier, now = self._state.frontier, self._web.now()
        self._began = time.monotonic()
        if self._new:
            frontier.discover(self._known.seed_pages(self._options.seeds, now), now)
        else:
            resume.settle(frontier, now)
        self._web.sweep()
        self._crawler.begin(self._web)
        if self._options.max_seconds < math.inf:
            loop.call_later(max(self._options.max_seconds - self._seconds(), 0.0), self._crawler.stop, SECONDS)

    def _build(self, loop: asyncio.AbstractEventLoop) -> None:
        options, state = self._options, self._state
        journal = Journal()
        state.frontier.journal = journal
        self._shelf = Shelf(self._folder / DATABASE)
        self._shelf.committed(state.frontier.pages)
        self._outbox = Outbox(journal, self._put, state.last_batch)
        names = Names(Resolver(options.hosts, options.nameservers), Guard(options.allow_private))
        scope = Scope(options.scope, options.seeds, options.include, options.exclude)
        self._known = Known(
            state.frontier, state.sites, state.seen, self._shelf, scope, self._outbox, self._inputs, names.locate
        )
        scores = Scores() if self._strategy.page.scores else None
        self._crawler = Crawler(
            state.frontier,
            self._known,
            self._shelf,
            self._outbox,
            connections=options.connections,
            goals=Goals(options.max_pages, options.max_seconds, options.max_bytes),
            agent=AGENT,
            expanded_bytes=options.limits.expanded_bytes,
            give_up=options.give_up,
            worth=self._worth(),
            keep_links=scores.keep if scores else None,
            keep_hrefs=options.metadata,
            tally=state.tally,
        )
        self._crawler.full = lambda: self._store.full
        self._web = Web(loop, options, self._crawler, names, scores)
        self._crawler.on_stop = self._web.end_pauses
        names.start(self._crawler, loop)

    def _worth(self) -> Callable[[int], float]:
        """What a page is worth as the page rank knows it: its cash, or the quality that was given."""
        columns, frontier = self._strategy.page.columns, self._state.frontier
        named = [name for name in ("quality", "cash", "pagerank", "history") if name in columns]
        if not named:
            return lambda page: 0.0
        column = columns.index(named[0])
        return lambda page: float(frontier.state.columns[page, column])

    # ---- the store

    def _put(self, batch: Batch) -> None:
        self._uncommitted.append((batch.number, self._state.frontier.pages))
        self._store.put(batch)

    def _committed(self, batch: int) -> None:
        pages = -1
        while self._uncommitted and self._uncommitted[0][0] <= batch:
            pages = self._uncommitted.popleft()[1]
        if pages >= 0:
            self._shelf.committed(pages)
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

    # ---- as time passes

    @contextmanager
    def _ticking(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Twice a second, to the end of the closing."""
        timer: asyncio.Handle

        def tick() -> None:
            nonlocal timer
            timer = loop.call_later(_TICK_S, tick)
            if not self._closing:
                self._note()
                if self._state.tally.fetched >= self._snapshot_at:
                    self._snapshot()
            self._show(self._standing())

        timer = loop.call_soon(tick)
        try:
            yield
        finally:
            timer.cancel()

    def _seconds(self) -> float:
        return self._state.tally.seconds_before + time.monotonic() - self._began

    def _note(self) -> None:
        self._outbox.progress = self._crawler.progress(self._seconds())
        self._outbox.flush()

    def _snapshot(self) -> None:
        self._outbox.flush()
        checkpoint.save(self._folder, self._outbox.number, self._state.frontier, self._state.seen)
        self._snapshot_at = self._state.tally.fetched + _SNAPSHOT_PAGES

    def _standing(self) -> Standing:
        tally, options = self._state.tally, self._options
        progress = self._crawler.progress(self._seconds())
        by_site, tally.recent = tally.recent, type(tally.recent)()
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
        )

    def _doing(self, progress: Progress) -> str:
        if self._closing:
            return f"closing: {self._closing}"
        if self._crawler.stopped_by:
            under_way = counted(progress.active, "visit")
            return f"stopping ({self._crawler.stopped_by}): {under_way} under way; Ctrl-C cuts them off"
        return "" if progress.pages or progress.errors else "starting: names, connections, robots.txt"

    @contextmanager
    def _signals(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Ctrl-C ends the visits under way after the page they are at; in a crawl that is stopping, at once."""

        def interrupted() -> None:
            if self._crawler.stopped_by:
                self._web.abort()
            self._crawler.stop(INTERRUPTED)

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupted)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    # ---- the end

    async def _close(self) -> dict[str, Any]:
        self._close_step("writing the last pages")
        self._web.abort()
        if not self._failure and self._error is None:
            self._note()
            await self._store.close(self._close_step)
        if self._error is not None:
            raise self._error
        if self._failure:
            hint = "" if "--resume" in self._failure else f"; when that is mended, go on with --resume {self._folder}"
            raise ConfigError(f"{self._failure}{hint}")
        checkpoint.save(self._folder, self._outbox.number, self._state.frontier, self._state.seen)
        note_end(self._claim, self._crawler.stopped_by)
        self._close_step("counting for the summary")
        return await asyncio.to_thread(write_summary, self._folder)

    def _close_step(self, step: str) -> None:
        self._closing = step
