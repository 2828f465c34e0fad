"""Bodies that the archive holds already: digest -> the record that has it. Memory only, of the latest; empty at each start.

Who fills it: filing.py, with every whole response of SMALLEST bytes and more. Who empties it: itself, oldest first.
Invariant: at most `limit` entries, one bytes object each; nothing else grows with the crawl.
"""

import struct
from collections import deque
from typing import NamedTuple

SMALLEST = 1024  # bytes of a body: a record that refers to another takes some 400 itself

_PACKED = struct.Struct("<36sd")


class Original(NamedTuple):
    """The record that a revisit refers to, as far as it is known."""

    record_id: str  # ""
    started: float | None
    url: str


class Revisits:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._originals: dict[bytes, bytes] = {}
        self._order: deque[bytes] = deque()

    def find(self, digest: bytes) -> Original | None:
        packed = self._originals.get(digest)
        if packed is None:
            return None
        record_id, started = _PACKED.unpack_from(packed)
        return Original(record_id.decode(), started, packed[_PACKED.size :].decode())

    def remember(self, digest: bytes, record_id: str, started: float, url: str) -> None:
        if not self._limit:
            return
        if len(self._order) == self._limit:
            del self._originals[self._order.popleft()]
        self._originals[digest] = _PACKED.pack(record_id.encode(), started) + url.encode()
        self._order.append(digest)
