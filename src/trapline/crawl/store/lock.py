"""One crawl at a time in a folder: an exclusive flock on the file `lock`, which holds the loop's process number.

The loop takes it and the store inherits it, so it lasts as long as either lives, however they end. Whoever finds it
held by a loop that is dead waits for that loop's store, which is committing its last batches.
"""

import fcntl
import os
import time
from pathlib import Path

from trapline.errors import ConfigError

LOCK = "lock"

_STORE_ENDS_WITHIN_S = 60.0
_ASK_AGAIN_S = 0.05


class Lock:
    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor  # what a child must inherit

    def release(self) -> None:
        os.close(self.descriptor)


def take(folder: Path) -> Lock:
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from None
    try:
        _wait(folder, descriptor)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return Lock(descriptor)


def holder(folder: Path) -> int | None:
    """The process that crawls into this folder now."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _locked(folder, descriptor, fcntl.LOCK_SH) else _process(descriptor)
    finally:
        os.close(descriptor)


def _wait(folder: Path, descriptor: int) -> None:
    give_up_at = time.monotonic() + _STORE_ENDS_WITHIN_S
    while not _locked(folder, descriptor, fcntl.LOCK_EX):
        process = _process(descriptor)
        if _alive(process) or time.monotonic() > give_up_at:
            raise ConfigError(f"{folder}: is being crawled by process {process}")
        time.sleep(_ASK_AGAIN_S)


def _locked(folder: Path, descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be locked: {error.strerror}; name a folder on a local disk") from None
    return True


def _process(descriptor: int) -> int:
    """0: its holder has not written it yet."""
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else 0


def _alive(process: int) -> bool:
    if process == 0:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's
        return True
    return True
