"""The lock of a folder, which allows one crawl at a time: an exclusive flock on the file `lock`.

The file contains the process id, the machine, and whether the folder is being crawled or repaired. The loop takes the
lock and the store inherits it, so the lock is held as long as either of them lives, however they end. If the loop that
holds it is dead, a new process waits for the store of that loop, which is committing its last batches. Whether a loop
on another machine is dead, in a folder that machines share, cannot be known here.
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
_RETRY_S = 0.05
_LOOK_WITHIN_S = 0.5  # a shared lock that is held longer is that of a verification


@dataclass(frozen=True, slots=True)
class Holder:
    process: int = 0  # 0: the process has not written its id yet
    machine: str = ""
    doing: str = "crawled"  # what the process does with the folder, as a past participle

    def __str__(self) -> str:
        return f"process {self.process}" + (f" on {self.machine}" if self.is_elsewhere else "")

    def may_live(self) -> bool:
        if self.is_elsewhere:
            return True
        try:
            os.kill(self.process, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:  # the process belongs to another user
            return True
        return self.process != 0

    @property
    def is_elsewhere(self) -> bool:
        return self.machine not in ("", socket.gethostname())


class Lock:
    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor  # a child that shares the lock must inherit it

    def release(self) -> None:
        os.close(self.descriptor)


def take(folder: Path, doing: str = "crawled") -> Lock:
    """Take the exclusive lock of a folder. `doing`: what we do with the folder, for the messages of other processes."""
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
    """Take a shared lock, which keeps crawls out of the folder and writes nothing. None: there never was a crawl."""
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
    """Return the id of the process that crawls into this folder or repairs it now; None: the folder is free."""
    found = holding(folder)
    return None if found is None else found.process


def holding(folder: Path) -> Holder | None:
    """Return which process holds the lock of this folder, where it runs and what it does. None: the folder is free."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _locked(folder, descriptor, fcntl.LOCK_SH) else _holder(descriptor)
    finally:
        os.close(descriptor)


def _wait(folder: Path, descriptor: int, how: int = fcntl.LOCK_EX) -> None:
    give_up_at, verified_at = time.monotonic() + _STORE_ENDS_WITHIN_S, time.monotonic() + _LOOK_WITHIN_S
    while not _locked(folder, descriptor, how):
        if how == fcntl.LOCK_EX and _locked(folder, descriptor, fcntl.LOCK_SH):  # only shared locks are held
            if (
                time.monotonic() < verified_at
            ):  # `holding` takes one for a moment, and the dashboard calls it every second
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                time.sleep(_RETRY_S)
                continue
            raise ConfigError(f"{folder}: is being verified; try again when the check has ended")
        found = _holder(descriptor)
        if found.may_live() or time.monotonic() > give_up_at:
            raise ConfigError(
                f"{folder}: is being {found.doing} by {found}; wait until that process has ended, or stop it"
            )
        time.sleep(_RETRY_S)


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
