"""The log of a crawl: DIR/crawl.log, one JSON object per line and event.

Several processes write it, each line with one `write` in append mode. The file is opened for each event, so that rotation needs no
agreement between them. An event that cannot be written is lost; the crawl goes on.

With --log-format heritrix, crawl.log has one line per fetch (crawler/store/fetch_log.py), and the events are in events.log.
"""

import fcntl
import json
import math
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

LOG = "crawl.log"
EVENTS = "events.log"
LEVELS = ("debug", "info", "warning", "error")
JSON, HERITRIX = "json", "heritrix"
FORMATS = (JSON, HERITRIX)
LOG_BYTES = 100_000_000
KEPT = 10  # older files: crawl.log.1 is the newest of them
_HEAD_BYTES = len('{"at": "1970-01-01T00:00:00.000Z"')  # of a line: its time


class LogFile:
    """A file of lines that several processes append to. A file that is full gets a number, and a new one begins."""

    def __init__(self, path: Path, most_bytes: int = LOG_BYTES) -> None:
        self._path, self._most_bytes = path, most_bytes

    def append(self, lines: bytes) -> None:
        """Write whole lines. Errors of the disk are ignored."""
        with suppress(OSError):
            descriptor = self._opened()
            try:
                size = os.fstat(descriptor).st_size
                if size and size + len(lines) > self._most_bytes:
                    self._rotate(descriptor)
                    os.close(descriptor)
                    descriptor = self._opened()
                    size = os.fstat(descriptor).st_size
                # A full disk may have cut the last line.
                is_torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
                os.write(descriptor, b"\n" + lines if is_torn else lines)
            finally:
                os.close(descriptor)

    def set_aside(self, is_json: bool) -> None:
        """Number the file if it has lines of JSON and `is_json` is false, or the other way round."""
        with suppress(OSError):
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                first = os.pread(descriptor, 1, 0)
                if first and (first == b"{") != is_json:
                    self._rotate(descriptor)
            finally:
                os.close(descriptor)

    def _opened(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def _rotate(self, descriptor: int) -> None:
        """Number the file, unless another process does so now, or has done so since the file was opened. Lines that are written to it
        meanwhile are in the numbered file."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if os.stat(self._path).st_ino == os.fstat(descriptor).st_ino:
            for number in range(KEPT - 1, 0, -1):
                with suppress(FileNotFoundError):
                    os.replace(numbered(self._path, number), numbered(self._path, number + 1))
            os.replace(self._path, numbered(self._path, 1))


def numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def event_files(folder: Path) -> list[Path]:
    """Return the files of a crawl that have events, the newest first: not those in the format of Heritrix."""
    paths = [folder / name for name in (EVENTS, LOG)]
    found = []
    for path in (*paths, *(numbered(path, number) for path in paths for number in range(1, KEPT + 1))):
        with suppress(OSError), path.open("rb") as file:
            if (head := file.read(_HEAD_BYTES)).startswith(b"{"):
                found.append((head, path))
    found.sort(key=lambda one: one[0], reverse=True)  # by time
    return [path for _, path in found]


class EventLog:
    def __init__(
        self, folder: Path | None, level: str = "info", log_format: str = JSON, most_bytes: int = LOG_BYTES
    ) -> None:
        """`folder`: None for a crawl without one, which has no log. `level`: events below it are not written. `log_format`: that of
        crawl.log. `most_bytes`: a file of this size is numbered, and a new one begins."""
        name = EVENTS if log_format == HERITRIX else LOG
        self._file = None if folder is None else LogFile(folder / name, most_bytes)
        self._least = LEVELS.index(level)

    def note(self, level: str, event: str, text: str, **fields: object) -> None:
        """Write an event. `event`: its kind, a word for programs. `text`: a sentence for people."""
        if self.writes(level):
            assert self._file is not None
            self._file.append(event_line(level, event, text, fields, time.time()))

    def writes(self, level: str) -> bool:
        """Return whether events of this level are written."""
        return self._file is not None and LEVELS.index(level) >= self._least


def event_line(level: str, event: str, text: str, fields: Mapping[str, object], at: float) -> bytes:
    """Return one line of JSON in ASCII, which has no line breaks or control characters. A number that JSON does not know becomes text.

    >>> event_line("info", "snapshot", "a\\nb", {"pages": 3, "most": math.inf}, 0.0)
    b'{"at": "1970-01-01T00:00:00.000Z", "level": "info", "event": "snapshot", "text": "a\\\\nb", "pages": 3, "most": "inf"}\\n'
    """
    values = {"at": utc(at), "level": level, "event": event, "text": text, **fields}
    return (json.dumps(_plain(values), default=str) + "\n").encode("ascii")


def utc(at: float) -> str:
    """Return a time with milliseconds, as in ISO 8601.

    >>> utc(1.5)
    '1970-01-01T00:00:01.500Z'
    """
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def begin_log(folder: Path, log_format: str) -> None:
    """Set a crawl.log aside that an earlier run wrote in the other format, so that no file has both."""
    LogFile(folder / LOG).set_aside(is_json=log_format == JSON)
