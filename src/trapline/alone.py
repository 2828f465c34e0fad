"""One process at a time: an exclusive flock on a file, for work that two at once would do twice.

It refuses to know the work. The lock frees itself when its holder ends, however that is. Where no lock can be made (a folder that
cannot be written, a file system without locks) everybody goes on without: the work is done twice, and no worse.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def alone(file: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Nobody else is in such a block with this file. `waiting` is called once, if somebody is there already."""
    descriptor = -1
    with suppress(OSError):  # nothing can be written there
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if descriptor >= 0:
            _lock(descriptor, waiting)
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _lock(descriptor: int, waiting: Callable[[], None]) -> None:
    with suppress(OSError):  # no locks there
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
