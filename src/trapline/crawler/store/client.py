"""The client of the store process, used by the crawl loop. It sends batches without blocking, and reports when they are durable.

`put` adds batches to a backlog, and the acknowledgements of the store remove them. Invariant: every batch stays in the
backlog from `put` until it is committed. `full` says when the backlog is too large; the loop then starts no new request.
The client runs on any asyncio loop and uses only the readiness of two pipes.
"""

import asyncio
import fcntl
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import Any

from trapline.crawler.engine.records import Batch
from trapline.crawler.files.layout import FolderClaim
from trapline.crawler.speed.connection_states import StoreBacklog
from trapline.crawler.store.frames import Closed, Reports, StoreFrameKind, encode, encode_batch
from trapline.crawler.store.settings import StoreSettings
from trapline.errors import ConfigError

_PIPE_BYTES = 1 << 20  # the most that Linux allows any user: one or two batches fit, so `put` mostly writes at once
_READ_BYTES = 1 << 16
_PIECES = 64  # buffers in one writev
_DIES_WITHIN_S = 5.0


class StoreDiedError(ConfigError):
    """The store process ended unexpectedly; it may have been killed. A resume from the folder has all that was committed."""


class NoStore:
    """In place of the store, in a crawl without a folder: every batch counts as durable at once, and is dropped."""

    full = died = False
    backlog = StoreBacklog()

    def __init__(self, loop: asyncio.AbstractEventLoop, on_commit: Callable[[int], None]) -> None:
        self._loop, self._on_commit = loop, on_commit

    def put(self, batch: Batch) -> None:
        self._loop.call_soon(self._on_commit, batch.number)

    async def close(self, on_step: Callable[[str], None]) -> None:
        await asyncio.sleep(0)  # the last batches are reported

    async def abandon(self) -> None: ...


class Store:
    def __init__(
        self,
        process: subprocess.Popen[bytes],
        settings: StoreSettings,
        on_commit: Callable[[int], None],
        on_failure: Callable[[str], None],
    ) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._settings = settings
        self._on_commit = on_commit
        self._on_failure = on_failure
        self._on_closing: Callable[[str], None] = lambda step: None
        self._loop = asyncio.get_running_loop()
        self._input, self._output = process.stdin.fileno(), process.stdout.fileno()
        self._reports = Reports()
        self._unsent: deque[memoryview] = deque()
        self._backlog: deque[tuple[int, int]] = deque()  # (batch, bytes), sent and not committed
        self._backlog_bytes = 0
        self._ended = False
        self.died = False  # the process ended unexpectedly
        self._failure = ""  # why the store ended, once that is known
        self._failing: asyncio.Task[None] | None = None  # the task that finds out why the store ended
        self._awaited: asyncio.Future[Any] = self._loop.create_future()  # the answer that `start` or `close` waits for
        self.warc_bytes = 0  # committed

    @classmethod
    async def start(
        cls,
        claim: FolderClaim,
        settings: StoreSettings,
        on_commit: Callable[[int], None],
        on_failure: Callable[[str], None],
    ) -> "Store":
        """Start the store of a claimed folder and wait until it has put the files of the folder in order.

        Raise `ConfigError` if the store cannot do that. `on_commit(n)` is called once for each batch n, in order, when
        it is durable. `on_failure(line)` is called at most once: the store has failed and will commit no further batch.
        """
        store = cls(_spawn(claim, settings), settings, on_commit, on_failure)
        store._loop.add_reader(store._output, store._readable)
        try:
            await store._awaited
        except BaseException:  # includes cancellation, if the loop is told to stop in the meantime
            store._end()
            raise
        return store

    @property
    def full(self) -> bool:
        """Whether the loop must start no new request: the backlog is too large, or the store has ended."""
        settings = self._settings
        is_behind = self._backlog_bytes > settings.backlog_bytes or len(self._backlog) > settings.backlog_batches
        return is_behind or self._ended

    @property
    def backlog(self) -> StoreBacklog:
        return StoreBacklog(len(self._backlog), self._backlog_bytes, self.warc_bytes)

    def put(self, batch: Batch) -> None:
        """Send a batch to the store without blocking.

        After a failure the batch is dropped; `on_failure` is called as soon as the cause of the failure is known.
        """
        size = self._send(encode_batch(batch))
        self._backlog.append((batch.number, size))
        self._backlog_bytes += size

    async def close(self, on_step: Callable[[str], None] = lambda step: None) -> Closed:
        """Let the store commit its backlog, finish the folder and end. Raise `ConfigError` if the store fails or has failed."""
        if self._failing is not None:
            await self._failing
        if self._ended:
            raise self._error(self._failure or "the store process ended before the crawl was closed")
        self._on_closing = on_step
        self._awaited = self._loop.create_future()
        self._send(encode(StoreFrameKind.CLOSE))
        closed: Closed = await self._awaited
        await asyncio.to_thread(self._process.wait)
        return closed

    async def abandon(self) -> None:
        """End the store without finishing the folder: it commits the batches that it has received completely, and ends."""
        self._end()
        await asyncio.to_thread(self._process.wait)

    def _send(self, pieces: tuple[bytes, bytes]) -> int:
        if not self._ended:
            idle = not self._unsent
            self._unsent.extend(map(memoryview, pieces))
            if idle and not self._write():
                self._loop.add_writer(self._input, self._writable)
        return sum(map(len, pieces))

    def _writable(self) -> None:
        if self._write():
            self._loop.remove_writer(self._input)

    def _write(self) -> bool:
        """Write as much as the pipe takes, and return whether everything is sent."""
        try:
            while self._unsent:
                self._sent(os.writev(self._input, list(islice(self._unsent, _PIECES))))
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self._unsent.clear()  # the other pipe reports why the store has ended
        return True

    def _sent(self, count: int) -> None:
        while count:
            piece = self._unsent.popleft()
            if count < len(piece):
                self._unsent.appendleft(piece[count:])
            count -= min(count, len(piece))

    def _readable(self) -> None:
        data = os.read(self._output, _READ_BYTES)
        for kind, payload in self._reports.feed(data):
            self._on_report(kind, payload)
        if not data:
            self.died = not self._ended
            self._fail("the store process ended unexpectedly")

    def _on_report(self, kind: StoreFrameKind, payload: Any) -> None:
        if kind == StoreFrameKind.COMMITTED:
            self._committed(*payload)
        elif kind == StoreFrameKind.READY:
            self.warc_bytes = payload
            self._answer(None)
        elif kind == StoreFrameKind.CLOSING:
            self._on_closing(payload)
        elif kind == StoreFrameKind.CLOSED:
            self._end()
            self._answer(Closed(*payload))
        elif kind == StoreFrameKind.FAILED:
            self._fail(payload)

    def _answer(self, value: Closed | None) -> None:
        if not self._awaited.done():  # the waiting task may have been cancelled
            self._awaited.set_result(value)

    def _committed(self, last: int, warc_bytes: int) -> None:
        self.warc_bytes = warc_bytes
        while self._backlog and self._backlog[0][0] <= last:
            number, size = self._backlog.popleft()
            self._backlog_bytes -= size
            self._on_commit(number)

    def _fail(self, why: str) -> None:
        if self._ended:
            return
        self._end()
        self._failing = self._loop.create_task(self._report_failure(why))

    async def _report_failure(self, why: str) -> None:
        """Wait for the exit code of the process, add it to the reason, and report the failure.

        The process may take a moment to end; the loop goes on meanwhile.
        """
        with suppress(subprocess.TimeoutExpired):
            why += _ending(await asyncio.to_thread(self._process.wait, _DIES_WITHIN_S))
        self._failure = why
        if self._awaited.done():
            self._on_failure(why)
        else:
            self._awaited.set_exception(self._error(why))

    def _error(self, why: str) -> ConfigError:
        return StoreDiedError(why) if self.died else ConfigError(why)

    def _end(self) -> None:
        """Close both pipes. The store sees the end of its input."""
        if self._ended:
            return
        self._ended = True
        self._unsent.clear()
        self._loop.remove_reader(self._output)
        self._loop.remove_writer(self._input)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def _spawn(claim: FolderClaim, settings: StoreSettings) -> subprocess.Popen[bytes]:
    # -P: do not import modules from the working directory. A session of its own: Ctrl-C does not reach the store.
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "trapline.crawler.store", str(claim.path), settings.to_json()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        pass_fds=(claim.lock.descriptor,),
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    os.set_blocking(process.stdin.fileno(), False)
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # the memory for pipes is limited per user; a small pipe is only slower
            fcntl.fcntl(process.stdin.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return process


def _ending(code: int) -> str:
    """Describe the exit of a process that a signal killed; empty for any other exit.

    >>> _ending(-9), _ending(1)
    (': killed by signal 9', '')
    """
    return f": killed by signal {-code}" if code < 0 else ""
