"""The log of calls: what was asked of the frontier, in order, so that a snapshot and the log give the frontier back.

It refuses to know files and databases: frames gather in memory until somebody takes them, as one blob, to a place that
lasts. Step 7 of the way of a URL: the store writes the blob together with the pages of the same moment.

The format: blobs (blobs.py), whose bodies are frames, one a call. A frame: its code and the length of its payload, then the numbers
that its call has (`_LAYOUTS`), then the payload, all of it in steps of 8 bytes.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from trapline.blobs import BlobKind
from trapline.frontier.layout import Array

BLOBS = BlobKind(b"TLJ\x03", "the frontier's log")
FRAME_HEAD = struct.Struct("<BxxxI")
_STEP = 8
NOT_GIVEN = -2  # a whole number of SET_SITE; of its times it is NaN


class Call(IntEnum):
    """What can be asked. Numbers are part of the format: add, never reuse."""

    ADD_SITES = 1
    ADD_PAGES = 2
    SET_COLUMN = 3
    DISCOVER = 4
    NEXT = 5
    REPORT = 6
    FINISH = 7
    RESOLVE = 8
    SET_SITE = 9
    EXPORT_SITE = 10
    IMPORT_SITE = 11
    RESCORE = 12
    HOLD_ALL = 13
    REVISIT = 14
    RECEIVE = 15
    HAD_ELSEWHERE = 16
    FETCHED_ELSEWHERE = 17


# The numbers of a call (q: integer, d: float), and of what its payload consists.
_LAYOUTS: dict[Call, tuple[str, type]] = {
    Call.ADD_SITES: ("d", np.int32),
    Call.ADD_PAGES: ("q", np.int32),
    Call.SET_COLUMN: ("qq", np.float64),
    Call.DISCOVER: ("d", np.int32),
    Call.NEXT: ("qdd", np.int64),
    Call.REPORT: ("qqqdd", np.int32),
    Call.FINISH: ("qqqddd", np.int32),
    Call.RESOLVE: ("qqd", np.int32),
    Call.SET_SITE: ("qqqddd", np.int32),
    Call.EXPORT_SITE: ("qd", np.int32),
    Call.IMPORT_SITE: ("qqd", np.float64),
    Call.RESCORE: ("d", np.float64),
    Call.HOLD_ALL: ("d", np.int32),
    Call.REVISIT: ("qqqdd", np.int32),
    Call.RECEIVE: ("d", np.float64),
    Call.HAD_ELSEWHERE: ("d", np.int32),
    Call.FETCHED_ELSEWHERE: ("d", np.int32),
}
# By code, for speed: a code is a place in a list. Nothing has code 0.
_CODES = range(1, len(_LAYOUTS) + 1)
FRAMES = [struct.Struct("<"), *(struct.Struct(FRAME_HEAD.format + _LAYOUTS[Call(code)][0]) for code in _CODES)]
_KINDS: list[np.dtype[Any]] = [np.dtype(np.int32), *(np.dtype(_LAYOUTS[Call(code)][1]) for code in _CODES)]
_PACKERS = [frame.pack for frame in FRAMES]


class Frame(NamedTuple):
    call: Call
    numbers: tuple[Any, ...]
    payload: Array


class Journal:
    """The calls since the last `take`. Who fills it: Frontier. Who empties it: whoever stores what it takes, in order."""

    def __init__(self) -> None:
        self._frames = bytearray()

    def write(self, call: int, payload: Any, count: int, *numbers: float) -> None:
        """`payload`: `count` numbers of the call's kind, as an array or a view of one; or None."""
        frames = self._frames
        frames += _PACKERS[call](call, count, *numbers)
        if count:
            frames.extend(payload)  # `+=` would be numpy's addition
            if len(frames) % _STEP:
                frames += b"\0\0\0\0"

    def take(self) -> bytes:
        """All frames since the last time, as a blob; nothing if there are none."""
        body, self._frames = self._frames, bytearray()
        return BLOBS.blob(body)


def read(source: bytes | BinaryIO) -> Iterator[Frame]:
    """Every call of a log, in order: of blobs one after the other, or of a file that they were appended to."""
    for body in BLOBS.bodies(source):
        at = 0
        while at < len(body):
            frame, at = frame_at(body, at)
            yield frame


def frame_at(body: bytearray, at: int) -> tuple[Frame, int]:
    """The frame that begins at byte `at`, and where the next one does."""
    code, count = FRAME_HEAD.unpack_from(body, at)
    _, _, *numbers = FRAMES[code].unpack_from(body, at)
    start, kind = at + FRAMES[code].size, _KINDS[code]
    frame = Frame(Call(code), tuple(numbers), np.frombuffer(body, kind, count, start))
    return frame, start + -(-count * kind.itemsize // _STEP) * _STEP
