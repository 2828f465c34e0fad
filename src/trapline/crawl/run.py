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
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import uvloop

from trapline.crawl import checkpoint, resume
from trapline.crawl.crawler import INTERRUPTED, SECONDS, Crawler, Goals
from trapline.crawl.known import Known
from trapline.crawl.live import Web
from trapline.crawl.names import Names
from trapline.crawl.options import AGENT, CrawlOptions
from trapline.crawl.outbox import Outbox
from trapline.crawl.records import Batch
from trapline.crawl.scope import Scope
from trapline.crawl.seeds import check_seeds
from trapline.crawl.shelf import Shelf
from trapline.crawl.standing import Recent, Standing
from trapline.crawl.store.client import Store
from trapline.crawl.store.folder import DATABASE, Claim, claim_existing, claim_new, note_begin, note_end
from trapline.crawl.store.reading import Reading
from trapline.crawl.store.settings import StoreSettings
from trapline.crawl.summary import write_summary
from trapline.crawl.worth import Given, given_by, worth
from trapline.errors import ConfigError
from trapline.fetch.address import Guard
from trapline.fetch.dns import Resolver
from trapline.frontier.journal import Journal
from trapline.strategies.inputs import default_rules

Show = Callable[[Standing], None]
View = AbstractContextManager[Show]
_TICK_S = 0.5
_PAGES_EXPECTED = (
    35_000  # nobody knows; it only says how often PageRank is run, if the user does not: every 1,000 pages
)
_GRACE_S = 10.0  # for the pages under way when a crawl is stopped: some servers would take minutes


def open_crawl(options: CrawlOptions, folder: Path, view: View) -> dict[str, Any]:
    """A new crawl into a new folder; its summary."""
    strategy = resume.strategy_of(options)
    # No lease runs out: our robots end their visits themselves, and a second one at a site would be impolite.
    rules = replace(default_rules(strategy, options.rules, _PAGES_EXPECTED), lease_s=math.inf)
    options = replace(options, rules=rules)
    given = given_by(options, strategy)
    uvloop.run(check_seeds(options))
    claim = claim_new(folder, asdict(options))
    return _run(options, given, claim, resume.fresh(options, strategy), view, new=True)


def resume_crawl(folder: Path, view: View, **changes: Any) -> dict[str, Any]:
    """A crawl that goes on; its summary. `changes`: goals other than those it began with."""
    claim = claim_existing(folder)
    reading = Reading(folder)
    options = replace(CrawlOptions.from_json(reading.meta()["options"]), **changes)
    reading.close()
    strategy = resume.strategy_of(options)
    given = given_by(options, strategy)
    return _run(options, given, claim, resume.restored(folder, options, strategy), view, new=False)


def _run(
    options: CrawlOptions, given: Given, claim: Claim, state: resume.State, view: View, new: bool
) -> dict[str, Any]:
    try:
        with view as show:
            return uvloop.run(LiveCrawl(options, given, claim.path, state, show).run(claim, new))
    finally:
        claim.release()


class LiveCrawl:
    """The parts of one run, and what happens to them as time passes."""

    def __init__(self, options: CrawlOptions, given: Given, folder: Path, state: resume.State, show: Show) -> None:
        self._options, self._given, self._folder, self._state, self._show = options, given, folder, state, show
        self._strategy = state.frontier.strategy
        self._recent = Recent()
        self._uncommitted: deque[tuple[int, int]] = deque()  # batch, pages registered when it was sent
        self._snapshot_at = state.tally.fetched + options.snapshot_pages
        self._cut_at = math.inf  # seconds of crawling; from then on, what is under way is given up
        self._failure = ""

    async def run(self, claim: Claim, new: bool) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._defect)
        options, state = self._options, self._state
        settings = StoreSettings(user_agent=options.user_agent, operator=options.contact, metadata=options.metadata)
        note_begin(claim)
        self._store = await Store.start(claim, settings, self._committed, self._store_failed)
        self._build(loop)
        self._began = time.monotonic()
        now = self._web.now()
        if state.last_batch == 0:  # new, or killed before its first commit
            state.frontier.discover(self._known.seed_pages(options.seeds, now), now)
        if not new:
            resume.settle(state.frontier, now)
        self._web.sweep()
        self._crawler.begin(self._web)
        with self._signals(loop):
            ticking = loop.create_task(self._tick())
            try:
                await self._web.over
            finally:
                ticking.cancel()
            return await self._close(claim)

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
            state.frontier, state.sites, state.seen, self._shelf, scope, self._outbox, self._given.inputs, names.locate
        )
        scores = resume.scores_of(self._folder) if self._strategy.page.scores else None
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
            worth=worth(self._given, state.frontier),
            keep_links=scores.keep if scores else None,
            keep_hrefs=options.metadata,
            tally=state.tally,
        )
        self._crawler.full = lambda: self._store.full
        self._web = Web(loop, options, self._crawler, names, scores)
        names.start(self._crawler, loop)
        names.look_up_rest(state.sites)

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
        if error is not None and not self._web.over.done():
            self._web.over.set_exception(error)

    # ---- as time passes

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            progress = self._note()
            if progress.seconds >= self._options.max_seconds:
                self._crawler.stop(SECONDS)
            self._cut_off(progress.seconds)
            if self._state.tally.fetched >= self._snapshot_at:
                self._snapshot()
            self._show(self._standing())

    def _cut_off(self, seconds: float) -> None:
        """What has not come in long after the crawl was stopped does not."""
        if self._crawler.stopped_by and self._cut_at == math.inf:
            self._cut_at = seconds + _GRACE_S
        if seconds >= self._cut_at:
            self._web.abort()

    def _seconds(self) -> float:
        return self._state.tally.seconds_before + time.monotonic() - self._began

    def _note(self) -> Any:
        self._outbox.progress = progress = self._crawler.progress(self._seconds())
        self._outbox.flush()
        return progress

    def _snapshot(self) -> None:
        self._outbox.flush()
        checkpoint.save(self._folder, self._outbox.number, self._state.frontier, self._state.seen)
        self._snapshot_at = self._state.tally.fetched + self._options.snapshot_pages

    def _standing(self) -> Standing:
        tally, options = self._state.tally, self._options
        progress = self._crawler.progress(self._seconds())
        by_site, tally.recent = tally.recent, type(tally.recent)()
        pages_per_s, bytes_per_s = self._recent.note(progress, by_site)
        stopping = (
            f"stopping ({self._crawler.stopped_by}): {progress.active} visits under way"
            if self._crawler.stopped_by
            else ""
        )
        return Standing(
            progress,
            pages_per_s,
            bytes_per_s,
            [(self._state.sites[site].origin, pages) for site, pages in self._recent.busiest()],
            tally.errors.most_common(6),
            f"trapline: {self._strategy.name}, into {self._folder}",
            stopping or "Ctrl-C ends it and leaves a whole folder",
            options.max_pages,
            options.connections,
            f"{tally.quality:,.4g}" if tally.quality else "",
        )

    @contextmanager
    def _signals(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Ctrl-C ends the visits under way after the page they are at; once more, at once."""

        def interrupted() -> None:
            if self._crawler.stopped_by == INTERRUPTED:
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

    async def _close(self, claim: Claim) -> dict[str, Any]:
        self._web.abort()
        if not self._failure:
            self._note()
            self._snapshot()  # before anything is awaited: what names come in later is not in the database
            await self._store.close()
        if self._failure:
            raise ConfigError(
                f"{self._folder}: {self._failure}; go on with --resume {self._folder} when that is mended"
            )
        note_end(claim, self._crawler.stopped_by)
        return write_summary(self._folder)
