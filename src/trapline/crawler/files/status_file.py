"""The status of a running crawl on disk: DIR/live/status. The process that crawls writes it twice a second; any process reads it.

The database has the progress, too, but the store writes it. This file says what happens while the store is slow, or after
the disk was full: it is overwritten in place, which needs no new space and no rename. The first line has the length and the
CRC-32 of the JSON object that follows, so that a reader never takes half of a record for a whole one. What cannot be
written is lost; the crawl goes on. engine/status_reporter.py makes the record.
"""

import json
import os
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from trapline.errors import ConfigError

LIVE = "live"  # the folder of all that concerns the running crawl
STATUS = "status"
FORMAT = 1  # of the record

_ROOM = 16 * 1024  # the file has a multiple of this length, so that a longer record later needs no new space
_MOST_BYTES = 16 << 20
_TRIES, _RETRY_S = 3, 0.005


class StatusFile:
    """The file of a crawl that runs. As a context, it notes the error that ends the crawl."""

    def __init__(self, folder: Path | None) -> None:
        """`folder`: None for a crawl without one, which writes nothing. The file is opened at the first write."""
        self.folder, self._descriptor = folder, -1
        self._last: Mapping[str, Any] | None = None

    def write(self, value: Mapping[str, Any]) -> None:
        if self.folder is None:
            return
        self._last = value
        data = json.dumps(value, separators=(",", ":")).encode("ascii")
        record = b"%d %08x\n%b" % (len(data), zlib.crc32(data), data)
        with suppress(OSError):
            if self._descriptor < 0:
                self._descriptor = _opened(self.folder)
            os.pwrite(self._descriptor, record.ljust(-len(record) // _ROOM * -_ROOM), 0)

    def write_failure(self, why: str) -> None:
        """Write the last record once more, with the reason why the crawl has failed."""
        if self.folder is not None:
            last = self._last or read_status(self.folder) or {}
            self.write({**last, "format": FORMAT, "at": time.time(), "process": os.getpid(), "failure": why})

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):
                os.close(descriptor)

    def __enter__(self) -> "StatusFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self.write_failure(str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}")
        self.close()


def free_bytes(folder: Path) -> int:
    """Return the free space on the disk of a folder, for users without privileges; 0 if that cannot be read."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def _opened(folder: Path) -> int:
    (folder / LIVE).mkdir(exist_ok=True)
    return os.open(folder / LIVE / STATUS, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)


def read_status(folder: Path) -> dict[str, Any] | None:
    """Return the last record of a crawl, running or not. None: there is none, or it cannot be read now. Its key `at` says when
    it was written, and `process` by which process: a crawl that was killed leaves its last record."""
    for attempt in range(_TRIES):
        try:
            found = _parsed(_bytes_of(folder / LIVE / STATUS))
        except OSError:
            return None
        if found is not None:
            return found
        if attempt + 1 < _TRIES:
            time.sleep(_RETRY_S)  # the record was being written
    return None


def _bytes_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES)


def _parsed(data: bytes) -> dict[str, Any] | None:
    """Return the record, or None if it is not whole."""
    head, _, rest = data.partition(b"\n")
    try:
        length, checksum = int(head.split()[0]), int(head.split()[1], 16)
        body = rest[:length]
        if len(body) < length or zlib.crc32(body) != checksum:
            return None
        found = json.loads(body)
    except (ValueError, IndexError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
