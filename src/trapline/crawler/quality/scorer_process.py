"""The process that scores fetched pages, as the crawl loop sees it: pages go in, and their scores come back some time later.

`put` adds a page to a queue. A task sends the pages in batches, one batch at a time, and hands over the scores in the order of the
pages. `full` says when the queue is too long; the loop then starts no new request. Invariant: every page stays in the queue from
`put` until its score was handed over. The loop never waits for a score.

Pages of earlier runs that have no score (unscored.py) come first, a few at a time.
"""

import asyncio
import pickle
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, Protocol

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.page_stream import StreamedFetch
from trapline.errors import ConfigError
from trapline.strategies.base.inputs import CONTENT

LENGTH = struct.Struct("<Q")
MOST_WAITING, MOST_BYTES = 512, 32 << 20  # pages in the queue, and bytes of their bodies; then the crawl waits
BATCH, BATCH_BYTES = 32, 1 << 20  # pages of one batch, and bytes of their bodies, about
_LIMIT = 1 << 16


def check_scorer(options: CrawlOptions) -> None:
    """Raise `ConfigError` if the content of pages is to be scored and the scorer cannot be made. It is made in a process of its own."""
    if options.quality.startswith(CONTENT):
        command = _command(options.quality, options.modules)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
        problem = pickle.loads(done.stdout[LENGTH.size :]) if done.stdout else _ended(options.quality, done.returncode)
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


class Scored(NamedTuple):
    """The answer of the process for one page."""

    score: float
    error: str = ""  # why the page has the score 0, in one line; "": it was scored


class Unscored(Protocol):
    """Pages of earlier runs without a score."""

    def take(self) -> Sequence[StreamedFetch]:
        """Return the next few pages; none if all were returned."""

    def close(self) -> None: ...


class ScorerProcess:
    def __init__(
        self,
        process: asyncio.subprocess.Process,
        source: str,
        on_score: Callable[[StreamedFetch, Scored], None],
        on_failure: Callable[[str], None],
    ) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process, self._source = process, source
        self._input, self._output = process.stdin, process.stdout
        self._on_score, self._on_failure = on_score, on_failure
        self.on_room: Callable[[], None] = lambda: None  # called when the queue is no longer full
        self._waiting: deque[StreamedFetch] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self._unscored: Unscored | None = None
        self._is_over = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    @classmethod
    async def start(
        cls,
        source: str,
        folder: str,
        on_score: Callable[[StreamedFetch, Scored], None],
        on_failure: Callable[[str], None],
    ) -> "ScorerProcess":
        """Start the process and wait until it has its scorer. Raise `ConfigError` if that fails. `folder`: where a user's MODULE is.
        `on_score` is called for each page, in order; `on_failure` at most once: the process has ended unexpectedly."""
        process = await asyncio.create_subprocess_exec(
            *_command(source, folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LIMIT,
            start_new_session=True,  # Ctrl-C does not reach the process
        )
        assert process.stdout is not None
        try:
            problem = await _read(process.stdout)
        except EOFError:
            problem = _ended(source, await process.wait())
        except BaseException:
            process.kill()
            raise
        if problem:
            await process.wait()
            raise ConfigError(problem)
        return cls(process, source, on_score, on_failure)

    @property
    def waiting(self) -> int:
        """Number of pages without a score, as far as they are in the queue."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether all pages have their scores, those of earlier runs too, or will never have them."""
        return self._is_over or (not self._waiting and self._unscored is None)

    @property
    def full(self) -> bool:
        return not self._is_over and (len(self._waiting) >= MOST_WAITING or self._bytes >= MOST_BYTES)

    def put(self, fetch: StreamedFetch) -> None:
        self._waiting.append(fetch)
        self._bytes += len(fetch.record.body)
        self._news.set()

    def put_first(self, unscored: Unscored) -> None:
        """Score these pages of earlier runs, before others where possible."""
        self._unscored = unscored
        self._news.set()

    async def close(self) -> None:
        """End the process. Pages without a score have none; a resume scores them."""
        self._is_over = True
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        if self._unscored is not None:
            self._unscored.close()
        self._input.close()
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()  # it may be computing, and has nothing to write
        await self._process.wait()

    # ---- the task

    async def _run(self) -> None:
        try:
            while True:
                if self._unscored is not None and len(self._waiting) < BATCH:
                    await self._take_unscored(self._unscored)
                if not self._waiting:
                    self._news.clear()
                    await self._news.wait()
                    continue
                await self._score(self._next_batch())
        except (EOFError, OSError):
            self._is_over = True
            code = await self._process.wait()
            self._on_failure(_ended(self._source, code))

    async def _take_unscored(self, unscored: Unscored) -> None:
        fetches = await asyncio.to_thread(unscored.take)
        for fetch in fetches:
            self.put(fetch)
        if not fetches:
            unscored.close()
            self._unscored = None

    def _next_batch(self) -> list[StreamedFetch]:
        batch, size = [], 0
        for fetch in islice(self._waiting, BATCH):
            batch.append(fetch)
            size += len(fetch.record.body)
            if size >= BATCH_BYTES:
                break
        return batch

    async def _score(self, batch: list[StreamedFetch]) -> None:
        data = pickle.dumps([_without_wire(fetch) for fetch in batch], pickle.HIGHEST_PROTOCOL)
        self._input.write(LENGTH.pack(len(data)))
        self._input.write(data)
        await self._input.drain()
        scored = await _read(self._output)
        was_full = self.full
        for fetch, answer in zip(batch, scored, strict=True):
            self._waiting.popleft()
            self._bytes -= len(fetch.record.body)
            self._on_score(fetch, answer)
        if was_full and not self.full:
            self.on_room()


def _without_wire(fetch: StreamedFetch) -> StreamedFetch:
    """Return the fetch without what a `Page` does not need: a pipe carries it."""
    record = fetch.record._replace(request=b"", wire=b"", hrefs=(), links=b"", elsewhere=())
    return fetch._replace(record=record)


async def _read(stream: asyncio.StreamReader) -> Any:
    try:
        (length,) = LENGTH.unpack(await stream.readexactly(LENGTH.size))
        return pickle.loads(await stream.readexactly(length))  # of our own process
    except asyncio.IncompleteReadError:
        raise EOFError from None
