"""The table of URLs seen: 64-bit fingerprints, and the page that each stands for.

It refuses to know URLs (shelf.py keeps their text) and sites. Two URLs with one fingerprint would be one page: among 10^7 URLs that
happens to some pair once in 370,000 crawls (n^2 / 2^65), so nobody checks.

256 segments, by the first byte of the fingerprint, each of which grows by a third on its own when four fifths of it are in use:
12 bytes a slot are 15 to 20 a URL, and the longest pause is the move of one segment, 1/256 of the table.

Who fills it: the crawl loop, with the links of every page. Nobody empties it.
"""

import secrets
import zlib
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from trapline import jit, output
from trapline.crawl.seen.hashing import PADDING
from trapline.crawl.seen.kernels import (
    COUNT,
    KEY_0,
    SEGMENTS,
    SLOT,
    Segment,
    Table,
    add_seen,
    find_seen,
    move_slots,
    take_fingerprints,
)
from trapline.errors import ConfigError, InvariantError
from trapline.frontier.layout import Array
from trapline.pinned import Pin

SMALLEST = 64
MOST_ID = 2**31 - 1
FILE = "seen.bin"
FORMAT = np.frombuffer(b"TLSEEN\x00\x02", np.uint8)
_HEAD = 8 * (1 + 4 + SEGMENTS)  # bytes: the format, head, used
_INT64 = np.dtype(np.int64)


class Seen:
    """Fingerprint -> page, for as many URLs as memory holds."""

    def __init__(self, key: bytes = b"") -> None:
        """`key`: 16 bytes for the hash; without them nobody knows what it will be."""
        jit.ready()
        head = np.array([0, -1, 0, 0])
        head[KEY_0:] = np.frombuffer(key or secrets.token_bytes(16), np.int64)
        self._slots = [np.zeros(SMALLEST, SLOT) for _ in range(SEGMENTS)]
        self._pins = [Pin(Segment(slots)) for slots in self._slots]
        handles: Any = [pin.handle for pin in self._pins]
        self._table = Table(head, np.zeros(SEGMENTS, np.int64), handles if jit.DISABLED else np.array(handles))
        self._pin = Pin(self._table)
        self.handle = self._pin.handle
        self._head = self._table.head.data

    def __len__(self) -> int:
        return int(self._head[COUNT])

    def fingerprints(self, urls: Sequence[str]) -> Array:
        """One int64 each."""
        texts = [url.encode() for url in urls]
        out = np.empty(len(texts), np.int64)
        text = np.frombuffer(b"".join((*texts, bytes(PADDING))), np.uint8)
        take_fingerprints(self.handle, text, np.fromiter(accumulate(map(len, texts)), np.int32, len(texts)), out)
        return out

    def find(self, fingerprints: Array, out: Array) -> None:
        """out[i] = the page of each, or -1."""
        _check(fingerprints, out)
        find_seen(self.handle, fingerprints, out)

    def add(self, fingerprints: Array, first: int, out: Array) -> int:
        """out[i] = the page of each; those that are new get first, first + 1, ... in order. How many are new."""
        _check(fingerprints, out)
        before = self._head[COUNT]
        if first < 0 or first + len(fingerprints) > MOST_ID:
            raise ConfigError(f"page {first}: 2^31 pages are the most; crawl with more partitions")
        done = add_seen(self.handle, fingerprints, 0, first - before, out)
        while done < len(fingerprints):
            self._grow((int(fingerprints[done]) >> 56) % SEGMENTS)
            done = add_seen(self.handle, fingerprints, done, first - before, out)
        return int(self._head[COUNT] - before)

    def _grow(self, k: int) -> None:
        self._move(k, self._slots[k], len(self._slots[k]) * 4 // 3)

    def _move(self, k: int, slots: Array, size: int) -> None:
        source = Pin(Segment(slots))
        self._set_segment(k, np.zeros(size, SLOT))
        move_slots(source.handle, self._table.segments[k])

    def _set_segment(self, k: int, slots: Array) -> None:
        self._slots[k], self._pins[k] = slots, Pin(Segment(slots))
        self._table.segments[k] = self._pins[k].handle

    # ---- as a file

    def save(self, folder: Path) -> None:
        """Write the table into the folder, in place of the one that was there."""
        folder.mkdir(parents=True, exist_ok=True)
        in_use = (slots[slots["fingerprint"] != 0] for slots in self._slots)
        with output.atomic(folder / FILE) as file:
            checksum = 0
            for part in (FORMAT, self._table.head, self._table.used, *in_use):
                data = part.view(np.uint8).data
                file.write(data)
                checksum = zlib.crc32(data, checksum)
            file.write(checksum.to_bytes(4, "little"))

    @classmethod
    def load(cls, folder: Path) -> "Seen":
        """The table that was saved there."""
        seen, data = cls(), _whole(folder / FILE)
        numbers = data[len(FORMAT) : _HEAD].view(np.int64)
        seen._table.head[:], seen._table.used[:] = numbers[:-SEGMENTS], numbers[-SEGMENTS:]
        at = _HEAD
        for k, used in enumerate(seen._table.used.tolist()):
            end = at + SLOT.itemsize * used
            seen._move(k, data[at:end].view(SLOT), max(SMALLEST, used * 3 // 2))
            at = end
        return seen


def _whole(path: Path) -> Array:
    """What `save` wrote, as bytes, without the checksum that it bears."""
    try:
        data = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:  # ValueError: there is nothing in it
        raise ConfigError(f"{path}: no table of URLs: {error}") from error
    body, checksum = data[:-4], int.from_bytes(data[-4:].tobytes(), "little")
    if not np.array_equal(body[: len(FORMAT)], FORMAT) or zlib.crc32(body.data) != checksum:
        raise ConfigError(
            f"{path}: not a table of URLs that this version wrote, or damaged; go on from another snapshot"
        )
    return body


def _check(fingerprints: Array, out: Array) -> None:
    """Numba refuses what is not in one row, and an `out` that is not int32."""
    if fingerprints.dtype != _INT64 or len(out) < len(fingerprints):
        raise InvariantError(f"{fingerprints.dtype} fingerprints, {len(fingerprints)}, with room for {len(out)} pages")
