"""What crosses the two pipes between the loop and the store: a kind, a length, a payload. Batches one way, reports the other.

Payloads are pickles of our own plain tuples, from a process to its own child; nothing from outside is ever unpickled.
"""

import os
import pickle
import select
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from trapline.crawl.records import Batch, Fetched

HEAD = struct.Struct("<BQ")
GROUP_BYTES = 1_000_000  # batches that came while the last were written are committed together, up to this: as many as fit the pipe


class Kind(IntEnum):
    # to the store
    BATCH = 1
    CLOSE = 2
    # from the store
    READY = 3  # its files are as the database says; payload: bytes of all archives
    COMMITTED = 4  # this batch, and all before it; payload: its number, bytes of all archives
    CLOSING = 5  # what it does now, in words
    CLOSED = 6  # totals
    FAILED = 7  # why, in one line


def encode(kind: Kind, payload: Any = None) -> tuple[bytes, bytes]:
    """Head and payload apart: a payload of half a megabyte is not copied to join them."""
    data = pickle.dumps(payload, protocol=5)
    return HEAD.pack(kind, len(data)), data


def encode_batch(batch: Batch) -> tuple[bytes, bytes]:
    """Fetches cross as bare tuples: to pickle one by its class takes twice as long, and this is done in the loop."""
    return encode(Kind.BATCH, tuple(batch._replace(fetches=list(map(tuple, batch.fetches)))))  # type: ignore[arg-type]


def decode_batch(data: bytearray) -> Batch:
    batch = Batch(*pickle.loads(data))
    return batch._replace(fetches=list(map(Fetched._make, batch.fetches)))


class Incoming:
    """The store's end of the loop's pipe. Blocks; reads only what it can take in."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.closing = False  # the loop said so; else its end is a death

    def group(self) -> list[Batch]:
        """The next batches, all that have come; none: the end. A batch that is cut off by the loop's death never was."""
        group: list[Batch] = []
        size = 0
        while not group or (size < GROUP_BYTES and self._waiting()):
            data = self._batch()
            if data is None:
                break
            size += len(data)
            group.append(decode_batch(data))
        return group

    def _batch(self) -> bytearray | None:
        head = None if self.closing else self._exactly(HEAD.size)
        if head is None:
            return None
        kind, length = HEAD.unpack(head)
        data = self._exactly(length)
        self.closing = kind == Kind.CLOSE
        return None if self.closing else data

    def _exactly(self, length: int) -> bytearray | None:
        data = bytearray(length)
        view = memoryview(data)
        while view:
            count = os.readv(self._descriptor, [view])
            if count == 0:
                return None
            view = view[count:]
        return data

    def _waiting(self) -> bool:
        return bool(select.select([self._descriptor], [], [], 0)[0])


class Reports:
    """The loop's end of the store's pipe: bytes as they come, frames as they are whole."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Kind, Any]]:
        self._pending += data
        while len(self._pending) >= HEAD.size:
            kind, length = HEAD.unpack_from(self._pending)
            end = HEAD.size + length
            if len(self._pending) < end:
                return
            payload = pickle.loads(self._pending[HEAD.size : end])
            del self._pending[:end]
            yield Kind(kind), payload
