"""A file lock that lets one process at a time do some work: an exclusive flock, for work that two processes would do twice.

This module does not know the work. The lock is released when its holder ends, in any way. Where a lock is not possible
(a folder that cannot be written, a file system without locks), all processes go on without it: the work is done twice,
with no other harm.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def alone(file: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of this file during the block. `waiting` is called once, if another process holds the lock."""
    descriptor = -1
    with suppress(OSError):  # the folder cannot be written
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if descriptor >= 0:
            _lock(descriptor, waiting)
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _lock(descriptor: int, waiting: Callable[[], None]) -> None:
    with suppress(OSError):  # the file system has no locks
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
