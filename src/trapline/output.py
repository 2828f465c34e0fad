"""Output files for the user, written completely or not at all.

A file is written beside its destination, made durable, and renamed over it: a crash, a full disk or Ctrl-C leaves the
previous file. This module does not know what it writes. If a destination cannot be written, a `ConfigError` names it;
`check_writable` raises the same error before a long run instead of after it.
"""

import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from trapline.errors import ConfigError, InvariantError

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def check_writable(path: str | Path) -> None:
    """Raise `ConfigError` unless a file could be written at `path` now. No file is left there."""
    path = Path(path)
    if _is_device(path):
        return
    partial = _partial(_target(path))
    try:
        # Permission bits are wrong for root and for read-only mounts, so we create a file to find out.
        os.close(os.open(partial, _NEW_FILE, 0o666))
        partial.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


@contextmanager
def atomic(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a binary file that appears at `path`, complete and durable, when the block ends without an exception."""
    path = Path(path)
    device = _is_device(path)
    target = path if device else _target(path)
    partial = path if device else _partial(target)
    try:
        with partial.open("wb") if device else _replacing(target, partial) as file:
            yield file
    except BrokenPipeError:
        raise  # the reader of a pipe has closed it: the command line ends without a message
    except OSError as error:
        # A failed write names no file. An error with another name is about a file that the caller's block used.
        if error.filename in (None, str(partial)):
            raise _unwritable(path, error) from error
        raise


def write_bytes(path: str | Path, data: bytes) -> None:
    with atomic(path) as file:
        file.write(data)


def write_text(path: str | Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as JSON. Raise `InvariantError` for NaN and infinity: they are not JSON, and a result with one is wrong."""
    try:
        text = json.dumps(value, allow_nan=False, indent=1)
    except ValueError as error:
        raise InvariantError(f"{path}: a value to be written is NaN, infinite or circular") from error
    write_text(path, text + "\n")


def sync(path: Path) -> None:
    """Make a file durable; for a folder, make the names of its new and replaced files durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_device(path: Path) -> bool:
    """Return whether `path` is a terminal, pipe or device such as /dev/stdout.

    These are written in place, because a rename would remove them.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _target(path: Path) -> Path:
    """Return the file that a rename must replace: the target of a symbolic link, not the link."""
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        if target.parent.is_dir():
            return target
        raise ConfigError(
            f"cannot write {path}: there is no folder {target.parent}; create it first, or give another path"
        ) from None
    except OSError as error:
        raise _unwritable(path, error) from error
    if stat.S_ISDIR(mode):
        raise ConfigError(f"cannot write {path}: it is a folder; give the path of a file")
    if not os.access(target, os.W_OK):
        raise ConfigError(f"cannot write {path}: it is read-only; make it writable, or give another path")
    return target


def _partial(target: Path) -> Path:
    # The partial file is in the same folder, because a rename is atomic only within one file system.
    return target.parent / f".trapline-{secrets.token_hex(6)}.partial"


@contextmanager
def _replacing(target: Path, partial: Path) -> Iterator[IO[bytes]]:
    # `tempfile` is not used: other users could not read its files after the rename.
    descriptor = os.open(partial, _NEW_FILE, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # some file systems refuse to sync a folder; the file itself is durable already
        sync(target.parent)


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"cannot write {path}: {error.strerror or error}; give another path")
