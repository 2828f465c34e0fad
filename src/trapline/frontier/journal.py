"""The log of calls: every call to the frontier, in order. A snapshot and the log since then restore the frontier.

It knows no files or databases: frames gather in memory until the caller takes them, as one blob, and stores them. In step
7 of "The way of a URL" (docs/architecture.md) the store writes the blob together with the pages of the same period.

Format: blobs (blobs.py), whose bodies consist of frames, one per call. A frame is the code of the call and the length of
its payload, then the numbers of the call (`_LAYOUTS`), then the payload, padded to a multiple of 8 bytes.
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
NOT_GIVEN = -2  # an integer argument of SET_SITE that was None; a time that was None is NaN


class Call(IntEnum):
    """The calls that change the frontier. The numbers are part of the format: add new ones, never reuse one."""

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
    GONE_ELSEWHERE = 16
    FETCHED_ELSEWHERE = 17
    CHANGE_RULES = 18
    CHANGE_STRATEGY = 19
    WITHDRAW = 20
    READMIT = 21
    VISIT = 22
    SET_QUALITY = 23


# The numbers of each call, as struct codes (q: integer, d: float), and the type of its payload.
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
    Call.GONE_ELSEWHERE: ("d", np.int32),
    Call.FETCHED_ELSEWHERE: ("d", np.int32),
    Call.CHANGE_RULES: ("d", np.float64),
    Call.CHANGE_STRATEGY: ("qqd", np.int32),
    Call.WITHDRAW: ("d", np.int32),
    Call.READMIT: ("d", np.int32),
    Call.VISIT: ("qqdd", np.int64),
    Call.SET_QUALITY: ("qdd", np.int32),
}
# Lists indexed by code, for speed. No call has code 0.
_CODES = range(1, len(_LAYOUTS) + 1)
FRAMES = [struct.Struct("<"), *(struct.Struct(FRAME_HEAD.format + _LAYOUTS[Call(code)][0]) for code in _CODES)]
_KINDS: list[np.dtype[Any]] = [np.dtype(np.int32), *(np.dtype(_LAYOUTS[Call(code)][1]) for code in _CODES)]
_PACKERS = [frame.pack for frame in FRAMES]


class JournalFrame(NamedTuple):
    """One logged call: its kind, its numbers and its payload."""

    call: Call
    numbers: tuple[Any, ...]
    payload: Array


class Journal:
    """The calls since the last `take`. The frontier writes them; the caller that stores the blobs takes them, and keeps their order."""

    def __init__(self) -> None:
        self._frames = bytearray()

    def write(self, call: int, payload: Any, count: int, *numbers: float) -> None:
        """Append one call. `payload`: `count` numbers of the call's payload type, as an array or a memoryview; or None."""
        frames = self._frames
        frames += _PACKERS[call](call, count, *numbers)
        if count:
            frames.extend(payload)  # not `+=`: numpy would add the numbers
            if len(frames) % _STEP:
                frames += b"\0\0\0\0"

    def take(self) -> bytes:
        """Remove and return all frames as one blob; empty bytes if there are no frames."""
        body, self._frames = self._frames, bytearray()
        return BLOBS.blob(body)


def read(source: bytes | BinaryIO) -> Iterator[JournalFrame]:
    """Yield every call of a log, in order. `source`: concatenated blobs, or a file that they were appended to."""
    for body in BLOBS.bodies(source):
        at = 0
        while at < len(body):
            frame, at = frame_at(body, at)
            yield frame


def frame_at(body: bytearray, at: int) -> tuple[JournalFrame, int]:
    """Return the frame that begins at byte `at`, and the byte at which the next frame begins."""
    code, count = FRAME_HEAD.unpack_from(body, at)
    _, _, *numbers = FRAMES[code].unpack_from(body, at)
    start, kind = at + FRAMES[code].size, _KINDS[code]
    frame = JournalFrame(Call(code), tuple(numbers), np.frombuffer(body, kind, count, start))
    return frame, start + -(-count * kind.itemsize // _STEP) * _STEP
