"""The log of calls to a refresher: with a snapshot and the log since, a crawl that was killed goes on with the same evidence.

It refuses to know files and databases, like the frontier's (frontier/journal.py), whose form it has: a blob is a head of 16 bytes
(format, length
of the body, checksum of the body, checksum of the head), then frames, one a call: code, channel or flag, numbers of the payload, page; a
number; the
time; then the payload. Times are seconds since the refresher's start. Whatever is not as it was written is damage: `ConfigError`.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from trapline.errors import ConfigError
from trapline.frontier.layout import Array

FORMAT = b"TLR\x01"
_HEAD = struct.Struct("<4sII")
_HEAD_SUM = struct.Struct("<I")
_HEAD_SIZE = _HEAD.size + _HEAD_SUM.size
_FRAME = struct.Struct("<BBHidd")


NOTHING = np.zeros(0)


class Entry(NamedTuple):
    """A call (kernels.py has the codes; calls.py says what the others mean for each)."""

    call: int
    flag: int
    page: int
    number: float
    now: float
    payload: Array


class RefreshLog:
    """The calls since the last `take`. Who fills it: Refresher. Who empties it: whoever stores what it takes, in order."""

    def __init__(self) -> None:
        self._frames = bytearray()

    def write(self, entry: Entry) -> None:
        call, flag, page, number, now, payload = entry
        self._frames += _FRAME.pack(call, flag, len(payload), page, number, now)
        if len(payload):
            self._frames += payload.tobytes()

    def take(self) -> bytes:
        """All calls since the last time, as a blob; nothing if there were none."""
        body, self._frames = self._frames, bytearray()
        if not body:
            return b""
        head = _HEAD.pack(FORMAT, len(body), zlib.crc32(body))
        return b"".join((head, _HEAD_SUM.pack(zlib.crc32(head)), body))


def read(blobs: bytes) -> Iterator[Entry]:
    """Every call of blobs one after the other, in order."""
    at = 0
    while at < len(blobs):
        length, checksum = _length_and_sum(blobs[at : at + _HEAD_SIZE])
        body = blobs[at + _HEAD_SIZE : at + _HEAD_SIZE + length]
        if len(body) < length or zlib.crc32(body) != checksum:
            raise _damaged(f"a blob of {length} bytes is not as it was written")
        yield from _entries(body)
        at += _HEAD_SIZE + length


def _length_and_sum(head: bytes) -> tuple[int, int]:
    if len(head) < _HEAD_SIZE or _HEAD_SUM.unpack_from(head, _HEAD.size)[0] != zlib.crc32(head[: _HEAD.size]):
        raise _damaged("the head of a blob is not as it was written")
    kind, length, checksum = _HEAD.unpack_from(head)
    if kind != FORMAT:
        raise ConfigError(f"the log of refresh has format {kind!r}; this version reads {FORMAT!r}")
    return length, checksum


def _entries(body: bytes) -> Iterator[Entry]:
    at = 0
    while at < len(body):
        call, flag, count, page, number, now = _FRAME.unpack_from(body, at)
        at += _FRAME.size
        yield Entry(call, flag, page, number, now, np.frombuffer(body, np.float64, count, at))
        at += 8 * count


def _damaged(what: str) -> ConfigError:
    return ConfigError(f"the log of refresh is damaged: {what}; go on from a snapshot or a copy")
