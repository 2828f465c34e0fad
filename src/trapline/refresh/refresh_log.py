"""The log of calls to a refresher: with a snapshot and the log since, a crawl that was killed goes on with the same evidence.

It refuses to know files and databases, like the frontier's (frontier/journal.py). Blobs (blobs.py) of frames, one a call: code,
channel or flag, numbers of the payload, page; a number; the time; then the payload. Times are seconds since the refresher's start.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from trapline.blobs import BlobKind
from trapline.frontier.layout import Array

BLOBS = BlobKind(b"TLR\x01", "the log of refresh")
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
        return BLOBS.blob(body)


def read(blobs: bytes) -> Iterator[Entry]:
    """Every call of blobs one after the other, in order."""
    for body in BLOBS.bodies(blobs):
        yield from _entries(body)


def _entries(body: bytearray) -> Iterator[Entry]:
    at = 0
    while at < len(body):
        call, flag, count, page, number, now = _FRAME.unpack_from(body, at)
        at += _FRAME.size
        yield Entry(call, flag, page, number, now, np.frombuffer(body, np.float64, count, at))
        at += 8 * count
