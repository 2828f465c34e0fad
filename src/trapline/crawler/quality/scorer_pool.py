"""The processes that score fetched pages, as the crawl loop sees them: pages go in, and their scores come back some time later.

`put` adds a page to the queue. Each process has a task, which sends it a batch of pages and hands over their scores. `full` says when
too many pages wait; the loop then starts no new request, and never waits for a score itself. Invariant: every page is in the queue or
in the batch of one process from `put` until its score was handed over.

Pages of earlier runs that have no score (unscored.py) are taken a few at a time, while the queue is short.
"""

import asyncio
import os
import pickle
import signal
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.page_stream import StreamedFetch
from trapline.errors import ConfigError
from trapline.strategies.base.inputs import CONTENT

LENGTH = struct.Struct("<Q")
# Pages that wait for each process, and bytes of their bodies; then the crawl waits.
MOST_WAITING, MOST_BYTES = 512, 32 << 20
BATCH, BATCH_BYTES = 32, 1 << 20  # pages of one batch, and bytes of their bodies, about


def check_scorer(options: CrawlOptions) -> None:
    """Raise `ConfigError` if the content of pages is to be scored and the scorer cannot be made. It is made in a process of its own."""
    if options.quality.startswith(CONTENT):
        command = _command(options.quality, options.modules)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
        problem = (
            pickle.loads(done.stdout[LENGTH.size :]) if done.stdout else _not_begun(options.quality, done.returncode)
        )
        if problem:
            raise ConfigError(problem)


def _command(source: str, folder: str) -> list[str]:
    # -P: do not import modules from the working directory
    return [sys.executable, "-P", "-m", "trapline.crawler.quality", source, folder]


def _ended(source: str, code: int) -> str:
    """
    >>> _ended("content:a:b", -9)
    '--quality content:a:b: the process of the scorer ended: killed by signal 9'
    """
    how = f": killed by signal {-code}" if code < 0 else f" with exit code {code}"
    return f"--quality {source}: the process of the scorer ended{how}"


def _not_begun(source: str, code: int) -> str:
    return f"{_ended(source, code)} before it could score a page; correct the module or the model that it loads"


class Scored(NamedTuple):
    """The answer of a process for one page."""

    score: float
    error: str = ""  # why the page has the score 0, in one line; "": it was scored


class Unscored(Protocol):
    """Pages of earlier runs without a score."""

    def take(self) -> Sequence[StreamedFetch]:
        """Return the next few pages; none if all were returned."""

    def close(self) -> None: ...


class ScorerProcess:
    """One process. It scores one batch at a time."""

    def __init__(self, process: asyncio.subprocess.Process, source: str) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process, self._source = process, source
        self._input, self._output = process.stdin, process.stdout
        self._ended = asyncio.ensure_future(self._whole_end())

    @classmethod
    async def start(cls, source: str, folder: str) -> "ScorerProcess":
        """Start a process and wait until it has its scorer. Raise `ConfigError` if that fails."""
        process = await asyncio.create_subprocess_exec(
            *_command(source, folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C does not reach the process
        )
        started = cls(process, source)
        try:
            problem = await started._read()
        except EOFError:
            raise ConfigError(_not_begun(source, await started._ended)) from None
        except BaseException:
            await started.end()
            raise
        if problem:
            await started.end()
            raise ConfigError(problem)
        return started

    async def scores(self, batch: Sequence[StreamedFetch]) -> list[Scored]:
        """Return the answer for each page. Raise EOFError or OSError if the process has ended."""
        data = pickle.dumps([_without_wire(fetch) for fetch in batch], pickle.HIGHEST_PROTOCOL)
        if self._input.is_closing():  # the process ended after its last batch; uvloop would raise RuntimeError
            raise EOFError
        self._input.write(LENGTH.pack(len(data)) + data)
        await self._input.drain()
        answers: list[Scored] = await self._read()
        return answers

    async def ending(self) -> str:
        """Return how the process ended, which it has done."""
        return _ended(self._source, await self._ended)

    async def end(self) -> None:
        self._input.close()
        with suppress(ProcessLookupError):
            self._process.kill()  # it may be computing, and has nothing to write
        await self._ended

    async def _whole_end(self) -> int:
        """Wait until the process has ended, then end what it has started: nobody else does, and it may hold the pipes open, so that the
        end would not be noticed. Return the exit code."""
        code = await self._process.wait()
        with suppress(ProcessLookupError, PermissionError):  # nothing is left
            os.killpg(self._process.pid, signal.SIGKILL)
        return code

    async def _read(self) -> Any:
        try:
            (length,) = LENGTH.unpack(await self._output.readexactly(LENGTH.size))
            return pickle.loads(await self._output.readexactly(length))  # of our own process
        except asyncio.IncompleteReadError:
            raise EOFError from None


class ScorerPool:
    """All processes, and the pages that wait for them."""

    def __init__(
        self,
        on_score: Callable[[StreamedFetch, Scored], None],
        on_room: Callable[[], None],
        on_failure: Callable[[str], None],
    ) -> None:
        """`on_score` is called for each page, `on_room` when the queue is no longer full, and `on_failure` at most once: a process
        has ended unexpectedly, and no page will be scored any more."""
        self._on_score, self._on_room, self._on_failure = on_score, on_room, on_failure
        self._processes: list[ScorerProcess] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._queue: deque[StreamedFetch] = deque()
        self._in_batches = self._bytes = 0  # pages in batches; bytes of all pages
        self._news = asyncio.Event()
        self._unscored: Unscored | None = None
        self._taking: asyncio.Future[Sequence[StreamedFetch]] | None = None  # a thread that reads pages of earlier runs
        self._has_failed = False

    async def start(self, source: str, folder: str, processes: int, unscored: Unscored | None) -> None:
        """Start the processes. Raise `ConfigError` if one cannot make its scorer. `folder`: where a user's MODULE is. `unscored`: pages
        of earlier runs."""
        self._unscored = unscored

        async def start_one() -> None:
            self._processes.append(await ScorerProcess.start(source, folder))

        # A cancelled gather waits for all of them, too; `close` ends those that have started.
        for problem in await asyncio.gather(*(start_one() for _ in range(processes)), return_exceptions=True):
            if problem is not None:
                raise problem
        self._tasks = [asyncio.ensure_future(self._serve(process)) for process in self._processes]

    @property
    def waiting(self) -> int:
        """Number of pages without a score, apart from those of earlier runs that were not read yet."""
        return len(self._queue) + self._in_batches

    @property
    def is_idle(self) -> bool:
        """Whether all pages have their scores, those of earlier runs too, or will never have them."""
        return self._has_failed or (not self.waiting and self._unscored is None)

    @property
    def full(self) -> bool:
        processes = max(len(self._processes), 1)
        is_behind = self.waiting >= MOST_WAITING * processes or self._bytes >= MOST_BYTES * processes
        return is_behind and not self._has_failed

    def put(self, fetch: StreamedFetch) -> None:
        self._queue.append(fetch)
        self._bytes += len(fetch.record.body)
        self._news.set()

    async def close(self) -> None:
        """End the processes. Pages without a score have none; a resume scores them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._taking is not None:
            await asyncio.wait([self._taking])  # its thread uses what is closed next
        if self._unscored is not None:
            self._unscored.close()
            self._unscored = None
        for process in self._processes:
            await process.end()

    # ---- the tasks

    async def _serve(self, process: ScorerProcess) -> None:
        try:
            while True:
                await self._take_unscored()
                if self._queue:
                    await self._score(process, self._next_batch())
                else:
                    self._news.clear()
                    await self._news.wait()
        except (EOFError, OSError):
            why = await process.ending()
            if not self._has_failed:
                self._has_failed = True
                self._on_failure(why)
        except Exception as error:  # of the user's rank, or of the database of earlier runs
            self._has_failed = True
            asyncio.get_running_loop().call_exception_handler({"message": "no scores", "exception": error})

    async def _take_unscored(self) -> None:
        """Let pages of earlier runs join the queue if it is short. One task does it at a time."""
        if self._unscored is None or self._taking is not None or len(self._queue) >= BATCH:
            return
        self._taking = asyncio.ensure_future(asyncio.to_thread(self._unscored.take))
        fetches = await asyncio.shield(self._taking)
        self._taking = None
        for fetch in fetches:
            self.put(fetch)
        if not fetches:
            self._unscored.close()
            self._unscored = None
        self._news.set()  # the other tasks may take the next ones

    def _next_batch(self) -> list[StreamedFetch]:
        """Remove and return a batch, small enough that every process gets one."""
        most = min(BATCH, -(-len(self._queue) // len(self._processes)))
        batch: list[StreamedFetch] = []
        size = 0
        while len(batch) < most and size < BATCH_BYTES:
            batch.append(self._queue.popleft())
            size += len(batch[-1].record.body)
        self._in_batches += len(batch)
        return batch

    async def _score(self, process: ScorerProcess, batch: Sequence[StreamedFetch]) -> None:
        answers = await process.scores(batch)
        was_full = self.full
        for fetch, answer in zip(batch, answers, strict=True):
            self._in_batches -= 1
            self._bytes -= len(fetch.record.body)
            self._on_score(fetch, answer)
        if was_full and not self.full:
            self._on_room()


def _without_wire(fetch: StreamedFetch) -> StreamedFetch:
    """Return the fetch without what a `Page` does not need: a pipe carries it."""
    record = fetch.record._replace(request=b"", wire=b"", hrefs=(), links=b"", elsewhere=())
    return fetch._replace(record=record)
