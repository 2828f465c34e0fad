"""A crawl of several local processes: starts them, starts those again that die, and ends when they have ended.

What they say to each other passes by none of this (delivery.py); how they stand, and when it is over, is the coordinator's.
"""

import asyncio
import secrets
import sys
from collections.abc import Callable
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
from trapline.parallel.coordinator import Coordinator, Limits
from trapline.parallel.delivery import Address
from trapline.parallel.manifest import Manifest
from trapline.parallel.worker import Task, check_mark

_MOST_DEATHS = 5  # of one partition without a page between them
_HOST = "127.0.0.1"


def crawl_in_processes(manifest: Manifest, show: Callable[[Standing], None]) -> Manifest:
    """Until all is crawled, a goal is reached or somebody stops it; the manifest says which. A `ConfigError` leaves a folder that can
    go on."""
    lock = take(manifest.folder)
    try:
        for number, part in enumerate(manifest.parts):
            if (part / DATABASE).exists():
                check_mark(part, manifest.mark(number))  # before anything is started
        manifest.write()
        ended = replace(manifest, stopped_by=uvloop.run(_crawl(manifest, show)))
        ended.write()
        return ended
    finally:
        lock.release()


async def _crawl(manifest: Manifest, show: Callable[[Standing], None]) -> str:
    options, partitions = manifest.options, manifest.partitioning.partitions
    token = secrets.token_hex(16)
    limits = Limits(options.max_pages, options.max_bytes, options.max_seconds)
    coordinator = Coordinator(manifest.crawl, token.encode(), partitions, limits, _seconds_before(manifest))
    together = Together(
        strategy_name(options), str(manifest.folder), options.max_pages, options.connections * partitions
    )
    tasks = _tasks(manifest, token, await coordinator.listen(_HOST))
    with interrupts(asyncio.get_running_loop(), coordinator.interrupt):
        leading = asyncio.ensure_future(coordinator.lead(show, together))
        leading.add_done_callback(lambda _: coordinator.stop(INTERRUPTED))  # nobody else would: it has failed
        keeping = [asyncio.ensure_future(_keep_alive(task, coordinator)) for task in tasks]
        try:
            await asyncio.gather(*keeping)
        finally:
            coordinator.stop(INTERRUPTED)  # one has failed: the others end in order
            await asyncio.gather(*keeping, return_exceptions=True)
            leading.cancel()
            coordinator.close()
            with suppress(asyncio.CancelledError):
                await leading
    return coordinator.stopped_by


def _seconds_before(manifest: Manifest) -> float:
    """Of crawling, in earlier runs: as the partition has it that was at it longest."""
    found = [0.0]
    for part in manifest.parts:
        if (part / DATABASE).exists():
            with closing(opened(part)) as database:
                found += database.execute("select coalesce(max(seconds), 0) from progress").fetchone()
    return max(found)


def _tasks(manifest: Manifest, token: str, coordinator: Address) -> list[Task]:
    options, told = part_options(manifest.options, manifest.partitioning.partitions), asdict(manifest.partitioning)
    limited = manifest.options.max_pages < inf
    return [
        Task(
            str(part), manifest.mark(at), manifest.crawl, token, at, told, options.to_json(), coordinator, limited
        )
        for at, part in enumerate(manifest.parts)
    ]  # fmt: skip


def part_options(options: CrawlOptions, partitions: int) -> CrawlOptions:
    """Of each part: goals are watched by the coordinator, bandwidth and the rate of refresh are shared, robots are not."""
    again = options.refresh and replace(options.refresh, rate=options.refresh.rate / partitions)
    none = {"max_pages": inf, "max_seconds": inf, "max_bytes": inf}
    return replace(options, **none, bandwidth=options.bandwidth / partitions, refresh=again)  # type: ignore[arg-type]


async def _keep_alive(task: Task, coordinator: Coordinator) -> None:
    """Run a partition; again, if it died. Also when the crawl is to stop: then it closes its folder."""
    deaths, pages = 0, -1
    while True:
        code, complaint = await _run(task)
        if code == 0:
            coordinator.stop(
                INTERRUPTED
            )  # unless it was: somebody has ended this one by hand, and the others would wait for it
            return
        now = coordinator.answers[task.partition].progress.pages if task.partition in coordinator.answers else 0
        deaths, pages = deaths + 1 if now == pages else 1, now
        if code == 2 or deaths >= _MOST_DEATHS:
            coordinator.stop(INTERRUPTED)
            raise _end_of(task, code, deaths, complaint)
        coordinator.doing = f"partition {task.partition} died ({_how(code)}) and is started again"


def _end_of(task: Task, code: int, deaths: int, complaint: str) -> Exception:
    """The user's to mend, unless it died of itself. Whoever goes on does so with the whole crawl."""
    if code == 2:
        whole = Path(task.folder).parent
        return ConfigError(complaint.replace(f"--resume {task.folder}", f"--resume {whole}"))
    line = f"partition {task.partition} died {deaths} times in a row ({_how(code)}): {complaint or 'it said nothing'}"
    return ConfigError(line) if code < 0 else InvariantError(line)


def _how(code: int) -> str:
    """
    >>> _how(-9), _how(1)
    ('signal 9', 'exit code 1')
    """
    return f"signal {-code}" if code < 0 else f"exit code {code}"


async def _run(task: Task) -> tuple[int, str]:
    """Its exit code, and the last line of what it complained about."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # not what lies in the user's folder
        "-m",
        "trapline.parallel.worker",
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is the coordinator's
    )
    try:
        _, complaint = await process.communicate(task.to_line())
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        raise
    lines = complaint.decode(errors="replace").strip().splitlines()
    return process.returncode or 0, lines[-1] if lines else ""
