"""The store as the loop sees it: a face that takes batches without ever blocking, and says when they are durable.

Who fills its backlog: `put`. Who empties it: the store's acknowledgements. Invariant: every batch that was put is in it
until it is committed; `full` says when that is too much, and then the loop starts no new request.
It runs on any asyncio loop, by readiness of two pipes alone.
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

from trapline.crawl.records import Batch
from trapline.crawl.store.closing import Closed
from trapline.crawl.store.folder import Claim
from trapline.crawl.store.frames import Kind, Reports, encode, encode_batch
from trapline.crawl.store.settings import StoreSettings
from trapline.errors import ConfigError

_PIPE_BYTES = 1 << 20  # what Linux lets anyone ask for: a batch or two fit, and `put` mostly writes at once
_READ_BYTES = 1 << 16
_PIECES = 64  # of one write
_DIES_WITHIN_S = 5.0


class StoreDiedError(ConfigError):
    """The store's process ended unasked, killed perhaps: whoever goes on from the folder has all that was committed."""


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
        self._backlog: deque[tuple[int, int]] = deque()  # batch, bytes: put and not committed
        self._backlog_bytes = 0
        self._ended = False
        self.died = False  # its process ended unasked
        self._failure = ""  # why it ended, once that is known
        self._failing: asyncio.Task[None] | None = None  # finds that out
        self._awaited: asyncio.Future[Any] = self._loop.create_future()  # what `start` or `close` waits for
        self.warc_bytes = 0  # committed

    @classmethod
    async def start(
        cls,
        claim: Claim,
        settings: StoreSettings,
        on_commit: Callable[[int], None],
        on_failure: Callable[[str], None],
    ) -> "Store":
        """The store of a claimed folder, with its files put right; `ConfigError` if that cannot be.

        `on_commit(n)`: batch n is durable; in order, once each. `on_failure(line)`: nothing will be any more; once.
        """
        store = cls(_spawn(claim, settings), settings, on_commit, on_failure)
        store._loop.add_reader(store._output, store._readable)
        try:
            await store._awaited
        except BaseException:  # also if the loop is told to stop in the meantime
            store._end()
            raise
        return store

    @property
    def full(self) -> bool:
        """Too much is on its way, or nothing more can be: start no new request."""
        settings = self._settings
        is_behind = self._backlog_bytes > settings.backlog_bytes or len(self._backlog) > settings.backlog_batches
        return is_behind or self._ended

    def put(self, batch: Batch) -> None:
        """Send a batch on its way. After a failure it goes nowhere: `on_failure` says so, as soon as the cause is known."""
        size = self._send(encode_batch(batch))
        self._backlog.append((batch.number, size))
        self._backlog_bytes += size

    async def close(self, on_step: Callable[[str], None] = lambda step: None) -> Closed:
        """Commit what is on its way, put the folder in order, end the store. `ConfigError` if it fails or has failed."""
        if self._failing is not None:
            await self._failing
        if self._ended:
            raise self._error(self._failure or "the store has ended before the crawl was closed")
        self._on_closing = on_step
        self._awaited = self._loop.create_future()
        self._send(encode(Kind.CLOSE))
        closed: Closed = await self._awaited
        await asyncio.to_thread(self._process.wait)
        return closed

    async def abandon(self) -> None:
        """Let the store go without putting the folder in order: it commits the batches that it has whole, and ends."""
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
        """Whether all is sent."""
        try:
            while self._unsent:
                self._sent(os.writev(self._input, list(islice(self._unsent, _PIECES))))
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self._unsent.clear()  # why it is gone is heard from the other pipe
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
            self._hear(kind, payload)
        if not data:
            self.died = not self._ended
            self._fail("the store ended unasked")

    def _hear(self, kind: Kind, payload: Any) -> None:
        if kind == Kind.COMMITTED:
            self._committed(*payload)
        elif kind == Kind.READY:
            self.warc_bytes = payload
            self._answer(None)
        elif kind == Kind.CLOSING:
            self._on_closing(payload)
        elif kind == Kind.CLOSED:
            self._end()
            self._answer(Closed(*payload))
        elif kind == Kind.FAILED:
            self._fail(payload)

    def _answer(self, value: Closed | None) -> None:
        if not self._awaited.done():  # whoever waited may have been cancelled
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
        self._failing = self._loop.create_task(self._say_why(why))

    async def _say_why(self, why: str) -> None:
        """How the process ended says more, and it may take a moment to: the loop goes on meanwhile."""
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
        """No more of either pipe. To the store, the end of its input."""
        if self._ended:
            return
        self._ended = True
        self._unsent.clear()
        self._loop.remove_reader(self._output)
        self._loop.remove_writer(self._input)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def _spawn(claim: Claim, settings: StoreSettings) -> subprocess.Popen[bytes]:
    # -P: what lies in the working directory is not imported. A session of its own: Ctrl-C does not even reach it.
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "trapline.crawl.store", str(claim.path), settings.to_json()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        pass_fds=(claim.lock.descriptor,),
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    os.set_blocking(process.stdin.fileno(), False)
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # a user has a limited share of pipes' memory; a small pipe is slower, no more
            fcntl.fcntl(process.stdin.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return process


def _ending(code: int) -> str:
    """
    >>> _ending(-9), _ending(1)
    (': killed by signal 9', '')
    """
    return f": killed by signal {-code}" if code < 0 else ""
