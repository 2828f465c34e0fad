"""The partitions of a live crawl, from the first start to the last end: started, started again if they die, ended together.

How a partition is started, and where, is the launcher's business (processes.py, on_ray.py). What partitions say to each other passes by
none of this (delivery.py); how they stand, and when it is over, is the coordinator's.
"""

import asyncio
import os
import secrets
import signal
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from dataclasses import asdict, replace
from math import inf
from pathlib import Path

import uvloop

from trapline.crawl.crawler import INTERRUPTED
from trapline.crawl.folder import opened
from trapline.crawl.interrupts import interrupts
from trapline.crawl.options import CrawlOptions
from trapline.crawl.standing import Standing
from trapline.crawl.store.folder import DATABASE
from trapline.crawl.store.lock import take
from trapline.crawl.summary import strategy_name
from trapline.errors import ConfigError, InvariantError
from trapline.parallel.answer import Together
from trapline.parallel.coordinator import COORDINATOR, RESIZED, Coordinator, Limits
from trapline.parallel.manifest import Manifest
from trapline.parallel.watching import announced
from trapline.parallel.wire import Address, Pass
from trapline.parallel.worker import Task, check_mark

# Runs a worker (worker.py) to its end: its exit code, and the last line of what it complained about. Cancelled, it ends the worker.
Launch = Callable[[Task], Awaitable[tuple[int, str]]]
Show = Callable[[Standing], None]

_MOST_DEATHS = 5  # of one partition without a page between them


def crawl_with(
    manifest: Manifest, show: Show, launch: Launch, listen: str = "127.0.0.1", patience_s: float = 0.0
) -> Manifest:
    """Until all is crawled, a goal is reached or somebody stops it; the manifest says which. A `ConfigError` leaves a folder that can
    go on. `listen`: where the coordinator is called; `patience_s`: how long partitions go on without it."""
    lock = take(manifest.folder)
    try:
        for number, part in enumerate(manifest.parts):
            if (part / DATABASE).exists():
                check_mark(part, manifest.mark(number))  # before anything is started
        ended = uvloop.run(_crawl(manifest, show, launch, listen, patience_s))
        ended.write()
        return ended
    finally:
        lock.release()


async def _crawl(manifest: Manifest, show: Show, launch: Launch, listen: str, patience_s: float) -> Manifest:
    """With as many partitions as there are; if it is to have more, all over again with these."""
    seconds = _seconds_before(manifest)
    while True:
        manifest.write()
        crew = _Crew(manifest, launch, seconds)
        await crew.crawl(show, listen, patience_s)
        if crew.coordinator.stopped_by != RESIZED:
            return replace(manifest, stopped_by=crew.coordinator.stopped_by)
        manifest, seconds = manifest.grown(crew.coordinator.size), crew.coordinator.seconds


class _Crew:
    """The partitions of a crawl while their number stays the same."""

    def __init__(self, manifest: Manifest, launch: Launch, seconds_before: float) -> None:
        self._manifest, self._launch = manifest, launch
        self._token = secrets.token_hex(16)
        self.coordinator = _coordinator(manifest, self._token, seconds_before)
        self._runs: dict[int, asyncio.Future[tuple[int, str]]] = {}  # of partitions that are not at their end
        self._is_cut = False

    async def crawl(self, show: Show, listen: str, patience_s: float) -> None:
        manifest, coordinator = self._manifest, self.coordinator
        address = await coordinator.listen(listen)
        tasks = _tasks(manifest, self._token, address, patience_s)
        where = announced(manifest.folder, manifest.crawl, self._token, address)
        with where, interrupts(asyncio.get_running_loop(), self._interrupted):
            leading = asyncio.ensure_future(coordinator.lead(show, _together(manifest)))
            leading.add_done_callback(lambda _: coordinator.stop(INTERRUPTED))  # nobody else would: it has failed
            keeping = [asyncio.ensure_future(self._keep_alive(task)) for task in tasks]
            try:
                await asyncio.gather(*keeping)
            finally:
                coordinator.stop(INTERRUPTED)  # one has failed: the others end in order
                await asyncio.gather(*keeping, return_exceptions=True)
                leading.cancel()
                coordinator.close()
                with suppress(asyncio.CancelledError):
                    await leading

    def _interrupted(self) -> None:
        """Who still opens its folder is not reached by the coordinator: if it is asked again, it is not waited for."""
        if self.coordinator.interrupt():
            self._is_cut = True
            for partition, run in self._runs.items():
                if not self.coordinator.is_here(partition):
                    run.cancel()

    async def _keep_alive(self, task: Task) -> None:
        """Run a partition; again, if it died. Also when the crawl is to stop: then it closes its folder."""
        deaths, pages = 0, -1
        while True:
            code, complaint = await self._run(task)
            if code == 0 or self._is_cut:
                # Unless it was: somebody has ended this one by hand, and the others would wait for it.
                self.coordinator.stop(INTERRUPTED)
                return
            now = self._pages_of(task.partition)
            deaths, pages = deaths + 1 if now == pages else 1, now
            if code == 2 or deaths >= _MOST_DEATHS:
                self.coordinator.stop(INTERRUPTED)
                raise _end_of(task, code, deaths, complaint)
            self.coordinator.doing = f"partition {task.partition} died ({_how(code)}) and is started again"

    async def _run(self, task: Task) -> tuple[int, str]:
        run = self._runs[task.partition] = asyncio.ensure_future(self._launch(task))
        try:
            return await run
        except asyncio.CancelledError:
            if not self._is_cut:
                raise
            return -signal.SIGTERM, ""
        finally:
            del self._runs[task.partition]

    def _pages_of(self, partition: int) -> int:
        answer = self.coordinator.answers.get(partition)
        return answer.progress.pages if answer else 0


def _coordinator(manifest: Manifest, token: str, seconds_before: float) -> Coordinator:
    options, partitions = manifest.options, manifest.partitioning.partitions
    limits = Limits(options.max_pages, options.max_bytes, options.max_seconds)
    own = Pass(manifest.crawl, token.encode(), COORDINATOR)
    return Coordinator(own, partitions, limits, manifest.grown, seconds_before)


def _together(manifest: Manifest) -> Together:
    options, partitions = manifest.options, manifest.partitioning.partitions
    return Together(strategy_name(options), str(manifest.folder), options.max_pages, options.connections * partitions)


def _seconds_before(manifest: Manifest) -> float:
    """Of crawling, in earlier runs: as the partition has it that was at it longest."""
    found = [0.0]
    for part in manifest.parts:
        if (part / DATABASE).exists():
            with closing(opened(part)) as database:
                found += database.execute("select coalesce(max(seconds), 0) from progress").fetchone()
    return max(found)


def _tasks(manifest: Manifest, token: str, coordinator: Address, patience_s: float) -> list[Task]:
    partitions = manifest.partitioning.partitions
    options = part_options(manifest.options, partitions).to_json()
    return [
        Task(
            folder=str(part),
            mark=manifest.mark(number),
            crawl=manifest.crawl,
            token=token,
            partition=number,
            partitioning=asdict(manifest.partitioning),
            sizes=list(manifest.sizes),
            options=options,
            coordinator=coordinator,
            limited=manifest.options.max_pages < inf,
            patience_s=patience_s,
        )
        for number, part in enumerate(manifest.parts)
    ]


def part_options(options: CrawlOptions, partitions: int) -> CrawlOptions:
    """Of each part: goals are watched by the coordinator, bandwidth and the rate of refresh are shared, robots are not."""
    again = options.refresh and replace(options.refresh, rate=options.refresh.rate / partitions)
    none = {"max_pages": inf, "max_seconds": inf, "max_bytes": inf}
    return replace(options, **none, bandwidth=options.bandwidth / partitions, refresh=again)  # type: ignore[arg-type]


def _end_of(task: Task, code: int, deaths: int, complaint: str) -> Exception:
    """The user's to mend, unless it died of itself. Whoever goes on does so with the whole crawl."""
    if code == 2:
        whole = Path(task.folder).parent
        return ConfigError(complaint.replace(f"--resume {task.folder}", f"--resume {whole}"))
    line = f"partition {task.partition} died {deaths} times in a row ({_how(code)}): {complaint or 'it said nothing'}"
    return ConfigError(line) if code < 0 or code == os.EX_TEMPFAIL else InvariantError(line)


def _how(code: int) -> str:
    """
    >>> _how(-9), _how(1)
    ('signal 9', 'exit code 1')
    """
    return f"signal {-code}" if code < 0 else f"exit code {code}"
