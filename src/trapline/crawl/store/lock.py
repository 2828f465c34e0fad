"""One crawl at a time in a folder: an exclusive flock on the file `lock`, which holds the process number, the machine,
and whether the folder is crawled or repaired.

The loop takes it and the store inherits it, so it lasts as long as either lives, however they end. Whoever finds it
held by a loop that is dead waits for that loop's store, which is committing its last batches. Of a loop on another machine, in a folder
that machines share, nobody here can say whether it is dead.
"""

import fcntl
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from trapline.errors import ConfigError

LOCK = "lock"

_STORE_ENDS_WITHIN_S = 60.0
_ASK_AGAIN_S = 0.05


@dataclass(frozen=True, slots=True)
class Holder:
    process: int = 0  # 0: it has not written it yet
    machine: str = ""
    doing: str = "crawled"  # what happens to the folder

    def __str__(self) -> str:
        return f"process {self.process}" + (f" on {self.machine}" if self.is_elsewhere else "")

    def may_live(self) -> bool:
        if self.is_elsewhere:
            return True
        try:
            os.kill(self.process, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:  # it is another user's
            return True
        return self.process != 0

    @property
    def is_elsewhere(self) -> bool:
        return self.machine not in ("", socket.gethostname())


class Lock:
    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor  # what a child must inherit

    def release(self) -> None:
        os.close(self.descriptor)


def take(folder: Path, doing: str = "crawled") -> Lock:
    """`doing`: what happens to the folder meanwhile, for those who are kept out."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from None
    try:
        _wait(folder, descriptor)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {socket.gethostname()} {doing}\n".encode(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return Lock(descriptor)


def share(folder: Path) -> Lock | None:
    """Keep every crawl out of the folder, and write nothing into it. None: nobody has ever crawled there."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{folder / LOCK}: cannot be read: {error.strerror}") from None
    try:
        _wait(folder, descriptor, fcntl.LOCK_SH)
    except BaseException:
        os.close(descriptor)
        raise
    return Lock(descriptor)


def holder(folder: Path) -> int | None:
    """The process that crawls into this folder, or repairs it, now."""
    found = holding(folder)
    return None if found is None else found.process


def holding(folder: Path) -> Holder | None:
    """The process that has this folder now, where it runs, and what it does. None: the folder is free."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _locked(folder, descriptor, fcntl.LOCK_SH) else _holder(descriptor)
    finally:
        os.close(descriptor)


def _wait(folder: Path, descriptor: int, how: int = fcntl.LOCK_EX) -> None:
    give_up_at = time.monotonic() + _STORE_ENDS_WITHIN_S
    while not _locked(folder, descriptor, how):
        if how == fcntl.LOCK_EX and _locked(folder, descriptor, fcntl.LOCK_SH):  # only those hold it who share it
            if _locked(folder, descriptor, how):
                return
            raise ConfigError(f"{folder}: is being verified; try again when that has ended")
        found = _holder(descriptor)
        if found.may_live() or time.monotonic() > give_up_at:
            raise ConfigError(f"{folder}: is being {found.doing} by {found}")
        time.sleep(_ASK_AGAIN_S)


def _locked(folder: Path, descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be locked: {error.strerror}; name a folder on a local disk") from None
    return True


def _holder(descriptor: int) -> Holder:
    process, *rest = os.pread(descriptor, 300, 0).decode(errors="replace").split() or [""]
    return Holder(int(process), *rest[:2]) if process.isdecimal() else Holder()
