"""The main function of the store process: it commits and acknowledges batches until the loop closes the store or dies.

The loop owns this process. The store ignores signals that are sent to all processes of a terminal or of a service: the
loop handles them, and ends the store by closing it or by dying. In both cases the pipe ends.
"""

import errno
import os
import signal
import sqlite3
import traceback
from pathlib import Path
from typing import Any

from trapline.crawler.store.frames import Incoming, StoreFrameKind, encode
from trapline.crawler.store.keeper import Keeper
from trapline.crawler.store.settings import StoreSettings
from trapline.errors import ConfigError
from trapline.terminal import say_text

# Errors that are not our bugs. DatabaseError itself, as opposed to its other subclasses, means a damaged file.
_NOT_OURS = (
    sqlite3.OperationalError,
    sqlite3.DatabaseError,
)
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StoreReports:
    """The pipe for reports to the loop. If the loop no longer reads it, the work goes on without reports."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, kind: StoreFrameKind, payload: Any) -> None:
        data = memoryview(b"".join(encode(kind, payload)))
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BrokenPipeError:
            pass


def main(folder: Path, settings: StoreSettings) -> int:
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    outgoing = StoreReports(os.dup(1))
    os.dup2(2, 1)  # so that anything printed to stdout does not end up among the reports
    try:
        serve(Keeper(folder, settings), Incoming(0), outgoing)
    except Exception as error:
        if not (isinstance(error, ConfigError | OSError) or type(error) in _NOT_OURS):
            say_text(traceback.format_exc().rstrip(), err=True)
        outgoing.send(StoreFrameKind.FAILED, explain(folder, error))
        return 1
    return 0


def serve(keeper: Keeper, incoming: Incoming, outgoing: StoreReports) -> None:
    outgoing.send(StoreFrameKind.READY, keeper.warc_bytes())
    while group := incoming.group():
        keeper.commit(group)
        outgoing.send(StoreFrameKind.COMMITTED, (keeper.last_batch, keeper.warc_bytes()))
    if incoming.closing:
        closed = keeper.close(lambda step: outgoing.send(StoreFrameKind.CLOSING, step))
        outgoing.send(StoreFrameKind.CLOSED, tuple(closed))
    else:
        keeper.leave()


def explain(folder: Path, error: Exception) -> str:
    """Return one line for the user that says what failed and what to do.

    >>> explain(Path("crawl"), OSError(errno.ENOSPC, "No space left on device"))
    'crawl: the disk is full; make room and continue with --resume crawl'
    >>> explain(Path("crawl"), OSError(errno.EIO, "Input/output error"))
    'crawl: cannot be written: [Errno 5] Input/output error; fix that and continue with --resume crawl'
    """
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or (isinstance(error, sqlite3.OperationalError) and "full" in str(error)):
        return f"{folder}: the disk is full; make room and continue with --resume {folder}"
    if isinstance(error, ConfigError):
        return str(error)
    if isinstance(error, OSError) or type(error) in _NOT_OURS:
        return f"{folder}: cannot be written: {error}; fix that and continue with --resume {folder}"
    return f"the store failed: {type(error).__name__}: {error}"
