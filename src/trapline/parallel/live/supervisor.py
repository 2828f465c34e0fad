"""The supervisor of a live crawl's partitions: starts them, restarts them if they die, and ends them together.

A launcher decides how and where a partition is started: `launched` below starts processes on this machine,
parallel/ray/cluster.py starts them on a Ray cluster. The supervisor does not see the messages between partitions
(parallel/transport/delivery.py). The coordinator (coordinator.py) collects progress and decides when the crawl is
complete.
"""

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, replace
from math import inf
from pathlib import Path

import uvloop

from trapline.crawler.control.action_handler import ActionHandler, tables_after
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.engine.status import CrawlStatus
from trapline.crawler.engine.status_reporter import StatusWriter
from trapline.crawler.engine.stop_reasons import INTERRUPTED, TERMINATED, interrupts
from trapline.crawler.files.control_mailbox import Action
from trapline.crawler.files.event_log import EventLog
from trapline.crawler.files.layout import DATABASE
from trapline.crawler.files.lock import take
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.status_file import StatusFile
from trapline.crawler.inspect.summary import strategy_name
from trapline.errors import ConfigError, InvariantError
from trapline.parallel.folder.manifest import Manifest, check_mark
from trapline.parallel.live.action_relay import ActionRelay
from trapline.parallel.live.control import announced
from trapline.parallel.live.coordinator import COORDINATOR, RESIZED, Coordinator, CrawlLimits
from trapline.parallel.live.partition_report import Together
from trapline.parallel.live.worker import COMMAND, WorkerTask
from trapline.parallel.transport.wire import Address, Pass
from trapline.units import counted

# Runs a worker (worker.py) to its end, and returns its exit code and the last line of its standard error. Cancelling it
# ends the worker.
Launch = Callable[[WorkerTask], Awaitable[tuple[int, str]]]
Show = Callable[[CrawlStatus], None]

_MOST_DEATHS = 5  # deaths of one partition in a row, without a page fetched between them
_CUT_S = 5.0  # time for partitions to end, when they must end at once


def crawl_with(
    manifest: Manifest, show: Show, launch: Launch, listen: str = "127.0.0.1", patience_s: float = inf
) -> Manifest:
    """Crawl until everything is fetched, a limit is reached or the user stops the crawl. Return the manifest, which
    says what stopped it. After a `ConfigError` the folder can be resumed. `listen`: the address on which the
    coordinator listens. `patience_s`: how long partitions continue without the coordinator; infinity: as long as the
    process that started them exists."""
    lock = take(manifest.folder)
    try:
        for number, part in enumerate(manifest.parts):  # check all of them before any is started
            if (part / DATABASE).exists():
                check_mark(part, manifest.mark(number), manifest.sizes[-1], manifest.began)
        with StatusFile(manifest.folder) as file:
            shown = StatusWriter(show, file, manifest.options)
            ended = uvloop.run(_crawl(manifest, shown, launch, listen, patience_s))
        ended.write()
        text = f"the crawl ended ({ended.stopped_by})"
        _log(manifest).note("info", "crawl_ended", text, stopped_by=ended.stopped_by)
        return ended
    finally:
        lock.release()


async def _crawl(manifest: Manifest, show: Show, launch: Launch, listen: str, patience_s: float) -> Manifest:
    """Crawl with the manifest's number of partitions. If the crawl is resized, stop all of them and start again with
    the new number."""
    before = _before(manifest)
    # Of the partition that crawled longest
    seconds = max((progress.seconds for progress in before.values()), default=0.0)
    event, paused = "crawl_resumed" if before else "crawl_began", False
    while True:
        manifest.write()
        _note_partitions(manifest, event)
        supervisor = _Supervisor(manifest, launch, before, seconds, paused)
        await supervisor.crawl(show, listen, patience_s)
        coordinator, manifest = supervisor.coordinator, supervisor.manifest
        if coordinator.stopped_by != RESIZED:
            return replace(manifest, stopped_by=coordinator.stopped_by)
        manifest, seconds, paused = manifest.grown(coordinator.size), coordinator.seconds, coordinator.is_paused
        event = "crawl_resized"
        before = _latest(_before(manifest), coordinator.progress)


class _Supervisor:
    """Runs the partitions of a crawl while their number stays the same."""

    def __init__(
        self, manifest: Manifest, launch: Launch, before: dict[int, CrawlProgress], seconds: float, paused: bool
    ) -> None:
        """`before`: the progress of each partition after earlier runs. `seconds`: the duration of those runs. `paused`: whether the
        crawl begins paused."""
        self.manifest, self._launch, self._log = manifest, launch, _log(manifest)
        self._token = secrets.token_hex(16)
        self.coordinator = _coordinator(manifest, self._token, before, seconds)
        handler, members = ActionHandler(manifest.folder, self._log), self.coordinator.members
        self.coordinator.actions = ActionRelay(handler, members, self._keep_sites, self.coordinator.send_control)
        self.coordinator.actions.is_paused = paused
        self._runs: dict[int, asyncio.Future[tuple[int, str]]] = {}  # partitions that are running
        self._cutting: asyncio.Task[None] | None = None  # set if the crawl must end at once

    async def crawl(self, show: Show, listen: str, patience_s: float) -> None:
        manifest, coordinator = self.manifest, self.coordinator
        address = await coordinator.listen(listen)
        tasks = _tasks(manifest, self._token, address, patience_s)
        where = announced(manifest.folder, manifest.crawl, self._token, address)
        with where, interrupts(asyncio.get_running_loop(), self._interrupted):
            leading = asyncio.ensure_future(coordinator.lead(show, _together(manifest)))
            # If `lead` fails, nothing else stops the crawl
            leading.add_done_callback(lambda _: coordinator.stop(INTERRUPTED))
            keeping = [asyncio.ensure_future(self._keep_alive(task)) for task in tasks]
            try:
                await asyncio.gather(*keeping)
            finally:
                coordinator.stop(INTERRUPTED)  # if one partition failed, the others end in order
                await asyncio.gather(*keeping, return_exceptions=True)
                leading.cancel()
                if self._cutting is not None:
                    self._cutting.cancel()
                coordinator.close()
                with suppress(asyncio.CancelledError):
                    await leading

    def _interrupted(self, why: str) -> None:
        """Handle Ctrl-C or SIGTERM. On the second one, cancel partitions that still open their folder: the coordinator
        cannot reach them yet."""
        if self.coordinator.interrupt(why):
            self._cutting = self._cutting or asyncio.ensure_future(self._cut_off())
            for partition, run in self._runs.items():
                if not self.coordinator.is_here(partition):
                    run.cancel()

    async def _cut_off(self) -> None:
        """Cancel partitions that hang, because they would not notice the order to end. A partition that is closing a
        large folder still answers, and gets the time that it needs."""
        while True:
            self.coordinator.count()  # if `lead` has failed, nothing else counts
            await asyncio.sleep(_CUT_S)
            for partition in self.coordinator.late & self._runs.keys():
                self._runs[partition].cancel()

    async def _keep_alive(self, task: WorkerTask) -> None:
        """Run a partition, and restart it if it dies. A stopping crawl restarts it too: it must close its folder."""
        deaths, pages = 0, -1
        while True:
            code, complaint = await self._run(self._present(task))
            is_cut = self._cutting is not None
            # 1 and 2 come with an error message, which the user must see
            if code == 0 or (is_cut and code not in (1, 2)):
                # If the crawl was not stopping, the user ended this process by hand, and the others would wait for it.
                self.coordinator.stop(TERMINATED)
                return
            now = self._pages_of(task.partition)
            deaths, pages = deaths + 1 if now == pages else 1, now
            if is_cut or code == 2 or deaths >= _MOST_DEATHS:
                self.coordinator.stop(INTERRUPTED)
                error = _end_of(task, code, deaths, complaint)
                self._log.note("error", "partition_failed", str(error), partition=task.partition)
                raise error
            self.coordinator.restarts[task.partition] += 1
            self.coordinator.trouble = f"partition {task.partition} died ({_how(code)}) and is being restarted"
            self._log.note("warning", "partition_restarted", self.coordinator.trouble, partition=task.partition)

    def _keep_sites(self, action: Action) -> None:
        """Keep the settings of sites after an action, for all partitions and for a resume."""
        options = self.manifest.options
        self.manifest = replace(self.manifest, options=replace(options, sites=tables_after(options, action)))
        self.manifest.write()

    def _present(self, task: WorkerTask) -> WorkerTask:
        """Return the task with what actions have changed since it was made."""
        options = part_options(self.manifest.options, self.manifest.partitioning.partitions)
        return replace(task, options=options.to_json(), paused=self.coordinator.is_paused)

    async def _run(self, task: WorkerTask) -> tuple[int, str]:
        self._log.note("info", "partition_started", f"partition {task.partition} starts", partition=task.partition)
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


def _log(manifest: Manifest) -> EventLog:
    """Return the log of the whole crawl. Each partition has its own in its folder."""
    options = manifest.options
    return EventLog(manifest.folder, options.log_level, options.log_format, options.log_bytes)


def _note_partitions(manifest: Manifest, event: str) -> None:
    partitions = manifest.partitioning.partitions
    _log(manifest).note("info", event, f"the crawl has {counted(partitions, 'partition')}", partitions=partitions)


def _coordinator(manifest: Manifest, token: str, before: dict[int, CrawlProgress], seconds: float) -> Coordinator:
    options, partitions = manifest.options, manifest.partitioning.partitions
    limits = CrawlLimits(options.max_pages, options.max_bytes, options.max_seconds)
    own = Pass(manifest.crawl, token.encode(), COORDINATOR)
    return Coordinator(own, partitions, limits, manifest.grown, before, seconds)


def _together(manifest: Manifest) -> Together:
    options, partitions = manifest.options, manifest.partitioning.partitions
    name, connections = strategy_name(options), options.connections * partitions
    return Together(name, str(manifest.folder), options.max_pages, connections, partitions)


def _before(manifest: Manifest) -> dict[int, CrawlProgress]:
    """Return the progress of each partition after its last run, with no active connections."""
    found = {}
    for number, part in enumerate(manifest.parts):
        if (part / DATABASE).exists():
            with closing(Reading(part)) as reading:
                progress = reading.progress()
            if progress is not None:
                found[number] = progress._replace(active=0)
    return found


def _latest(found: dict[int, CrawlProgress], reported: dict[int, CrawlProgress]) -> dict[int, CrawlProgress]:
    """Return the latest progress of each partition: the one with more pages of `found` in its folder and `reported` to
    the coordinator. The folder of a partition on another machine is missing here or old; the folder of a partition on
    this machine has more than the partition could report before its end."""
    every = [(number, progress._replace(active=0)) for part in (reported, found) for number, progress in part.items()]
    return dict(sorted(every, key=lambda item: item[1].pages))


def _tasks(manifest: Manifest, token: str, coordinator: Address, patience_s: float) -> list[WorkerTask]:
    partitions = manifest.partitioning.partitions
    options = part_options(manifest.options, partitions).to_json()
    return [
        WorkerTask(
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
            policy=asdict(manifest.policy),
            seen_key=manifest.seen_key,
        )
        for number, part in enumerate(manifest.parts)
    ]


def part_options(options: CrawlOptions, partitions: int) -> CrawlOptions:
    """Return the options of one partition. The coordinator enforces the limits; bandwidth and refetch rate are divided
    among the partitions; each partition has the full number of connections."""
    refresh = options.refresh and replace(options.refresh, rate=options.refresh.rate / partitions)
    none = {"max_pages": inf, "max_seconds": inf, "max_bytes": inf}
    return replace(options, **none, bandwidth=options.bandwidth / partitions, refresh=refresh)  # type: ignore[arg-type]


def _end_of(task: WorkerTask, code: int, deaths: int, complaint: str) -> Exception:
    """Return the error for a partition that cannot be restarted: `ConfigError` if the user can act on it,
    `InvariantError` if it is a defect. A hint to resume names the folder of the whole crawl."""
    complaint = complaint.replace(f"--resume {task.folder}", f"--resume {Path(task.folder).parent}")
    if code == 2:
        return ConfigError(complaint)
    often = f" {deaths} times in a row" if deaths > 1 else ""
    line = f"partition {task.partition} died{often} ({_how(code)}): {complaint or 'without an error message'}"
    return ConfigError(line) if code < 0 or code == os.EX_TEMPFAIL else InvariantError(line)


def _how(code: int) -> str:
    """Describe an exit code.

    >>> _how(-9), _how(1)
    ('signal 9', 'exit code 1')
    """
    return f"signal {-code}" if code < 0 else f"exit code {code}"


# ---- The launcher for processes on this machine: starts a worker, writes its task to standard input, and waits for its end.

_END_S = 3.0  # time to end after SIGTERM, before SIGKILL


def crawl_in_processes(manifest: Manifest, show: Show) -> Manifest:
    return crawl_with(manifest, show, launched)


async def launched(task: WorkerTask, before: Sequence[str] = ()) -> tuple[int, str]:
    """Run a worker to its end. Return its exit code and the last line of its standard error. `before`: a command that
    runs the worker's command, as `nice` does."""
    process = await asyncio.create_subprocess_exec(
        *before,
        sys.executable,
        *COMMAND,
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # so that Ctrl-C reaches this process only, and the coordinator handles it
    )
    try:
        return await _watched(process, task)
    except asyncio.CancelledError:
        await _end(process)
        raise


async def _end(process: asyncio.subprocess.Process) -> None:
    """Terminate a process; kill it if it does not end in time, because it hangs. Its folder survives that."""
    with suppress(ProcessLookupError):
        process.terminate()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_S):
                    await process.wait()
        finally:  # also if this task is cancelled once more
            if process.returncode is None:
                process.kill()
    await process.wait()


async def _watched(process: asyncio.subprocess.Process, task: WorkerTask) -> tuple[int, str]:
    """Send the task and wait for the end. Standard input stays open until then: a worker dies when its other end is closed."""
    assert process.stdin is not None and process.stderr is not None
    with suppress(OSError):  # the worker has died already
        process.stdin.write(task.to_line())
        await process.stdin.drain()
    complaint = await process.stderr.read()
    code = await process.wait()
    process.stdin.close()
    return code, last_line(complaint)


def last_line(complaint: bytes) -> str:
    """Return the last line of an error output.

    >>> last_line(b"Traceback\\n  ...\\nKeyError: 1\\n\\n"), last_line(b"")
    ('KeyError: 1', '')
    """
    lines = complaint.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
