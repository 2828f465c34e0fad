"""Signals on their way to the inbox, in groups: one transaction for all that came within `every_s`, and none per request.

Who fills its queue: the endpoint's handlers. Who empties it: a thread of its own, one group at a time, so that the disk never
holds up the loop. A handler that must know waits for what `put` answers.
"""

import asyncio
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from trapline.signals.inbox import Inbox, Signal

EVERY_S = 0.05
MOST_QUEUED_BYTES = 64 * 1024 * 1024
_SIGNAL_BYTES = 400  # beside its URL


class InboxWriter:
    def __init__(self, inbox: Inbox, every_s: float = EVERY_S) -> None:
        self._inbox, self._every_s = inbox, every_s
        self._thread = ThreadPoolExecutor(1, "inbox")
        self._queue: list[Signal] = []
        self._queue_bytes = 0
        self._written: asyncio.Future[bool] | None = None  # of the group in the queue
        self._writing: asyncio.Future[bool] | None = None  # of the group that is being written
        self._last_at = 0.0
        self.failed = ""  # why the last group could not be written; "": it was

    @property
    def has_room(self) -> bool:
        """Beyond it senders are to be sent away; what one request brings may still come on top."""
        return self._queue_bytes < MOST_QUEUED_BYTES

    def put(self, signals: Sequence[Signal]) -> "asyncio.Future[bool]":
        """Whether they are on disk, when it is known. Not to be cancelled by one who waits: others do too."""
        loop = asyncio.get_running_loop()
        self._queue += signals
        self._queue_bytes += sum(len(signal.url) + _SIGNAL_BYTES for signal in signals)
        if self._written is None:
            self._written = loop.create_future()
            if self._writing is None:
                self._begin_soon(loop)
        return self._written

    async def settled(self) -> bool:
        """When all that was put before is on disk, or False if some of it could not be written."""
        under_way = [one for one in (self._writing, self._written) if one is not None]
        return all([await asyncio.shield(one) for one in under_way])

    async def close(self) -> None:
        """Writes what is left."""
        while self._written is not None or self._writing is not None:
            await self.settled()
        self._thread.shutdown()

    def _begin_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_at(self._last_at + self._every_s, self._begin)

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        group, written = self._queue, self._written
        assert written is not None
        self._queue, self._queue_bytes, self._written = [], 0, None
        self._writing, self._last_at = written, loop.time()
        writing = loop.run_in_executor(self._thread, self._inbox.put, group)
        writing.add_done_callback(lambda done: self._end(written, done.exception()))

    def _end(self, written: "asyncio.Future[bool]", error: BaseException | None) -> None:
        self._writing = None
        self.failed = "" if error is None else f"signals could not be written: {error}"
        if error is None or isinstance(error, sqlite3.Error):  # a full disk: the senders are told, and may come again
            written.set_result(error is None)
        else:
            written.set_exception(error)
        if self._written is not None:
            self._begin_soon(asyncio.get_running_loop())
