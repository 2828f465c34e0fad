"""Frames on the two pipes between the loop and the store: batches in one direction, reports in the other.

A frame has a kind, a length and a payload. Payloads are pickles of our own plain tuples, sent between a process and its
own child; data from outside is never unpickled.
"""

import os
import pickle
import select
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

from trapline.crawler.engine.records import Batch, Fetched

HEAD = struct.Struct("<BQ")
# Batches that arrive during a commit are committed together, up to this size: about as many as fit into the pipe.
GROUP_BYTES = 1_000_000


class StoreFrameKind(IntEnum):
    # To the store.
    BATCH = 1
    CLOSE = 2
    # From the store.
    READY = 3  # the files match the database; payload: bytes of all archives
    COMMITTED = 4  # a batch and all before it are durable; payload: number of the batch, bytes of all archives
    CLOSING = 5  # payload: the step of closing that begins now, in words
    CLOSED = 6  # payload: Closed
    FAILED = 7  # payload: the reason, in one line


class Closed(NamedTuple):
    """Totals over all runs of the crawl, and the time that closing took."""

    batches: int
    fetches: int  # rows of `fetch`, with any result
    archives: int
    warc_bytes: int
    index_s: float  # time to build the indexes of the database
    sort_s: float  # time to sort index.cdxj


def encode(kind: StoreFrameKind, payload: Any = None) -> tuple[bytes, bytes]:
    """Return head and payload separately, so that a payload of half a megabyte is not copied to join them."""
    data = pickle.dumps(payload, protocol=5)
    return HEAD.pack(kind, len(data)), data


def encode_batch(batch: Batch) -> tuple[bytes, bytes]:
    """Encode a batch. Fetches are sent as plain tuples, because pickling them with their class takes the loop twice as long."""
    return encode(StoreFrameKind.BATCH, tuple(batch._replace(fetches=list(map(tuple, batch.fetches)))))  # type: ignore[arg-type]


def decode_batch(data: bytearray) -> Batch:
    batch = Batch(*pickle.loads(data))
    return batch._replace(fetches=list(map(Fetched._make, batch.fetches)))


class Incoming:
    """The store's end of the pipe from the loop. It blocks, and reads no more than the store can take in."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.closing = False  # the loop sent CLOSE; if the pipe ends without it, the loop has died

    def group(self) -> list[Batch]:
        """Return the batches that have arrived, at least one; an empty list at the end of the pipe.

        A batch that is incomplete because the loop died is dropped.
        """
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
        self.closing = kind == StoreFrameKind.CLOSE
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
    """The loop's end of the pipe from the store. It takes bytes as they arrive, and yields frames when they are complete."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[StoreFrameKind, Any]]:
        self._pending += data
        while len(self._pending) >= HEAD.size:
            kind, length = HEAD.unpack_from(self._pending)
            end = HEAD.size + length
            if len(self._pending) < end:
                return
            payload = pickle.loads(self._pending[HEAD.size : end])
            del self._pending[:end]
            yield StoreFrameKind(kind), payload
