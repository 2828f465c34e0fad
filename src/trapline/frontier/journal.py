"""The log of calls: what was asked of the frontier, in order, so that a snapshot and the log give the frontier back.

One frame a call: length, checksum, then code, integers, floats, payload. Appended, never rewritten; a torn last frame
(a crash in the middle of a write) is where reading ends. Durability (fsync, where the file lies) is the store's
business: a journal writes to any binary file object.
"""

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from typing import BinaryIO, NamedTuple

import numpy as np

from trapline.frontier.layout import Array

_HEAD = struct.Struct("<II")
_BODY = struct.Struct("<BBBx")


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


FLOAT_PAYLOAD = frozenset({Call.SET_COLUMN, Call.IMPORT_SITE, Call.RESCORE})


class Frame(NamedTuple):
    call: Call
    integers: tuple[int, ...]
    floats: tuple[float, ...]
    payload: Array


class Journal:
    """Appends frames to a binary file. Who fills it: Frontier. Who reads it: `read`, for `replay`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(
        self, call: Call, integers: tuple[int, ...], floats: tuple[float, ...], payload: Array | None = None
    ) -> None:
        self._file.write(encode(call, integers, floats, payload))


def encode(call: Call, integers: tuple[int, ...], floats: tuple[float, ...], payload: Array | None) -> bytes:
    kind = np.float64 if call in FLOAT_PAYLOAD else np.int32
    tail = b"" if payload is None else payload.astype(kind, copy=False).tobytes()
    numbers = struct.pack(f"<{len(integers)}q{len(floats)}d", *integers, *floats)
    body = _BODY.pack(call, len(integers), len(floats)) + numbers + tail
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def read(file: BinaryIO) -> Iterator[Frame]:
    """Every whole frame, in order; ends at the end of the file or before a torn frame."""
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        length, checksum = _HEAD.unpack(head)
        body = file.read(length)
        if len(body) < length or zlib.crc32(body) != checksum:
            return
        yield _decode(body)


def _decode(body: bytes) -> Frame:
    code, n_integers, n_floats = _BODY.unpack_from(body)
    numbers = struct.unpack_from(f"<{n_integers}q{n_floats}d", body, _BODY.size)
    call = Call(code)
    tail = bytearray(body[_BODY.size + 8 * (n_integers + n_floats) :])  # writable, as kernels take arrays
    payload = np.frombuffer(tail, np.float64 if call in FLOAT_PAYLOAD else np.int32)
    return Frame(call, numbers[:n_integers], numbers[n_integers:], payload)
