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

from trapline.crawl.ends import INTERRUPTED, TERMINATED
from trapline.crawl.interrupts import interrupts
from trapline.crawl.options import CrawlOptions
from trapline.crawl.records import Progress
from trapline.crawl.standing import Standing
from trapline.crawl.store.folder import DATABASE
from trapline.crawl.store.lock import take
from trapline.crawl.store.reading import Reading
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
_CUT_S = 5.0  # for partitions that are to end at once


def crawl_with(
    manifest: Manifest, show: Show, launch: Launch, listen: str = "127.0.0.1", patience_s: float = inf
) -> Manifest:
    """Until all is crawled, a goal is reached or somebody stops it; the manifest says which. A `ConfigError` leaves a folder that can
    go on. `listen`: where the coordinator is called; `patience_s`: how long partitions go on without it;
    infinity: as long as whoever started them is there."""
    lock = take(manifest.folder)
    try:
        for number, part in enumerate(manifest.parts):  # before anything is started
            if (part / DATABASE).exists():
                check_mark(part, manifest.mark(number), manifest.sizes[-1], manifest.began)
        ended = uvloop.run(_crawl(manifest, show, launch, listen, patience_s))
        ended.write()
        return ended
    finally:
        lock.release()


async def _crawl(manifest: Manifest, show: Show, launch: Launch, listen: str, patience_s: float) -> Manifest:
    """With as many partitions as there are; if it is to have more, all over again with these."""
    before = _before(manifest)
    seconds = max((one.seconds for one in before.values()), default=0.0)  # of whoever was at it longest
    while True:
        manifest.write()
        crew = _Crew(manifest, launch, before, seconds)
        await crew.crawl(show, listen, patience_s)
        if crew.coordinator.stopped_by != RESIZED:
            return replace(manifest, stopped_by=crew.coordinator.stopped_by)
        manifest, seconds = manifest.grown(crew.coordinator.size), crew.coordinator.seconds
        before = _latest(_before(manifest), crew.coordinator.progress)


class _Crew:
    """The partitions of a crawl while their number stays the same."""

    def __init__(self, manifest: Manifest, launch: Launch, before: dict[int, Progress], seconds: float) -> None:
        """`before`, `seconds`: how each stood after earlier runs, and how long these took."""
        self._manifest, self._launch = manifest, launch
        self._token = secrets.token_hex(16)
        self.coordinator = _coordinator(manifest, self._token, before, seconds)
        self._runs: dict[int, asyncio.Future[tuple[int, str]]] = {}  # of partitions that are not at their end
        self._cutting: asyncio.Task[None] | None = None  # it is to end at once

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
                if self._cutting is not None:
                    self._cutting.cancel()
                coordinator.close()
                with suppress(asyncio.CancelledError):
                    await leading

    def _interrupted(self, why: str) -> None:
        """Who still opens its folder is not reached by the coordinator: if it is asked again, it is not waited for."""
        if self.coordinator.interrupt(why):
            self._cutting = self._cutting or asyncio.ensure_future(self._cut_off())
            for partition, run in self._runs.items():
                if not self.coordinator.is_here(partition):
                    run.cancel()

    async def _cut_off(self) -> None:
        """Whoever hangs: it would not hear that it is to end. One that closes a large folder answers meanwhile, and is waited for."""
        while True:
            self.coordinator.count()  # if its view has failed, nobody else asks them
            await asyncio.sleep(_CUT_S)
            for partition in self.coordinator.late & self._runs.keys():
                self._runs[partition].cancel()

    async def _keep_alive(self, task: Task) -> None:
        """Run a partition; again, if it died. Also when the crawl is to stop: then it closes its folder."""
        deaths, pages = 0, -1
        while True:
            code, complaint = await self._run(task)
            is_cut = self._cutting is not None
            if code == 0 or (is_cut and code not in (1, 2)):  # those say what is wrong, also now
                # If the crawl was not to stop, somebody has ended this one by hand, and the others would wait for it.
                self.coordinator.stop(TERMINATED)
                return
            now = self._pages_of(task.partition)
            deaths, pages = deaths + 1 if now == pages else 1, now
            if is_cut or code == 2 or deaths >= _MOST_DEATHS:
                self.coordinator.stop(INTERRUPTED)
                raise _end_of(task, code, deaths, complaint)
            self.coordinator.trouble = f"partition {task.partition} died ({_how(code)}) and is started again"

    async def _run(self, task: Task) -> tuple[int, str]:
        run = self._runs[task.partition] = asyncio.ensure_future(self._launch(task))
        try:
            return await run
        except asyncio.CancelledError:
            if self._cutting is None:
                raise
            return -signal.SIGTERM, ""
        finally:
            del self._runs[task.partition]

    def _pages_of(self, partition: int) -> int:
        answer = self.coordinator.answers.get(partition)
        return answer.progress.pages if answer else 0


def _coordinator(manifest: Manifest, token: str, before: dict[int, Progress], seconds: float) -> Coordinator:
    options, partitions = manifest.options, manifest.partitioning.partitions
    limits = Limits(options.max_pages, options.max_bytes, options.max_seconds)
    own = Pass(manifest.crawl, token.encode(), COORDINATOR)
    return Coordinator(own, partitions, limits, manifest.grown, before, seconds)


def _together(manifest: Manifest) -> Together:
    options, partitions = manifest.options, manifest.partitioning.partitions
    name, robots = strategy_name(options), options.connections * partitions
    return Together(name, str(manifest.folder), options.max_pages, robots, partitions)


def _before(manifest: Manifest) -> dict[int, Progress]:
    """How each partition stood when it last ran; its robots are at home since."""
    found = {}
    for number, part in enumerate(manifest.parts):
        if (part / DATABASE).exists():
            with closing(Reading(part)) as reading:
                progress = reading.progress()
            if progress is not None:
                found[number] = progress._replace(active=0)
    return found


def _latest(found: dict[int, Progress], told: dict[int, Progress]) -> dict[int, Progress]:
    """Of a partition on another machine nothing is found here, or something old; of one that is here, more than it could still tell."""
    every = [(number, progress._replace(active=0)) for one in (told, found) for number, progress in one.items()]
    return dict(sorted(every, key=lambda one: one[1].pages))


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
            began=manifest.began,
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
    complaint = complaint.replace(f"--resume {task.folder}", f"--resume {Path(task.folder).parent}")
    if code == 2:
        return ConfigError(complaint)
    often = f" {deaths} times in a row" if deaths > 1 else ""
    line = f"partition {task.partition} died{often} ({_how(code)}): {complaint or 'it said nothing'}"
    return ConfigError(line) if code < 0 or code == os.EX_TEMPFAIL else InvariantError(line)


def _how(code: int) -> str:
    """
    >>> _how(-9), _how(1)
    ('signal 9', 'exit code 1')
    """
    return f"signal {-code}" if code < 0 else f"exit code {code}"
