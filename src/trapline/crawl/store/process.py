"""The store's process: batches from the loop's pipe, committed and acknowledged, until the loop closes it or is gone.

The loop owns it. Signals that go to all processes of a terminal or of a service are ignored here: the loop hears them,
and ends the store by closing it or by dying; either is an end of the pipe.
"""

import errno
import os
import signal
import sqlite3
import traceback
from pathlib import Path
from typing import Any

from trapline.crawl.store.frames import Incoming, Kind, encode
from trapline.crawl.store.keeper import Keeper
from trapline.crawl.store.settings import StoreSettings
from trapline.errors import ConfigError
from trapline.terminal import say_text

_NOT_OURS = (
    sqlite3.OperationalError,
    sqlite3.DatabaseError,
)  # the latter itself: damage. Others of its kind are our bugs
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Outgoing:
    """Reports to the loop. If nobody listens any more, the work goes on without them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, kind: Kind, payload: Any) -> None:
        data = memoryview(b"".join(encode(kind, payload)))
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BrokenPipeError:
            pass


def main(folder: Path, settings: StoreSettings) -> int:
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    outgoing = Outgoing(os.dup(1))
    os.dup2(2, 1)  # whoever prints must not print among the reports
    try:
        serve(Keeper(folder, settings), Incoming(0), outgoing)
    except Exception as error:
        if not (isinstance(error, ConfigError | OSError) or type(error) in _NOT_OURS):
            say_text(traceback.format_exc().rstrip(), err=True)
        outgoing.send(Kind.FAILED, explain(folder, error))
        return 1
    return 0


def serve(keeper: Keeper, incoming: Incoming, outgoing: Outgoing) -> None:
    outgoing.send(Kind.READY, keeper.warc_bytes())
    while group := incoming.group():
        keeper.commit(group)
        outgoing.send(Kind.COMMITTED, (keeper.last_batch, keeper.warc_bytes()))
    if incoming.closing:
        closed = keeper.close(lambda step: outgoing.send(Kind.CLOSING, step))
        outgoing.send(Kind.CLOSED, tuple(closed))
    else:
        keeper.leave()


def explain(folder: Path, error: Exception) -> str:
    """One line for the user.

    >>> explain(Path("crawl"), OSError(errno.ENOSPC, "No space left on device"))
    'crawl: the disk is full; make room and go on with --resume crawl'
    >>> explain(Path("crawl"), OSError(errno.EIO, "Input/output error"))
    'crawl: cannot be written: [Errno 5] Input/output error; mend that and go on with --resume crawl'
    """
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or (isinstance(error, sqlite3.OperationalError) and "full" in str(error)):
        return f"{folder}: the disk is full; make room and go on with --resume {folder}"
    if isinstance(error, ConfigError):
        return str(error)
    if isinstance(error, OSError) or type(error) in _NOT_OURS:
        return f"{folder}: cannot be written: {error}; mend that and go on with --resume {folder}"
    return f"the store failed: {type(error).__name__}: {error}"
