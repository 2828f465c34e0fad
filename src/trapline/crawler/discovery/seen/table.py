"""The table of seen URLs: 64-bit fingerprints, and the page of each.

The table knows neither the text of URLs (crawler/discovery/url_store.py does) nor sites. Two URLs with the same fingerprint
would be one page. Among 10^7 URLs that happens to some pair in one of 370,000 crawls (n^2 / 2^65), so it is not checked.

There are 256 segments, by the first byte of the fingerprint. Each grows by a third on its own when four fifths of its
slots are in use. A slot has 12 bytes, which makes 15 to 20 bytes per URL. The longest pause is the move of one segment,
1/256 of the table.

The crawl loop adds the links of every page. Nothing is removed.
"""

import secrets
import zlib
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from trapline import output
from trapline.compiled import jit
from trapline.compiled.array_handles import Pin
from trapline.crawler.discovery.seen.hashing import LONGEST, PADDING
from trapline.crawler.discovery.seen.kernels import (
    COUNT,
    KEY_0,
    SEGMENTS,
    SLOT,
    LookupArrays,
    Segment,
    Table,
    add_seen,
    find_links,
    find_seen,
    move_slots,
    take_fingerprints,
)
from trapline.errors import ConfigError, InvariantError
from trapline.fetch.html.page import Links
from trapline.frontier.layout import Array

SMALLEST = 64
MOST_ID = 2**31 - 1
FILE = "seen.bin"
FORMAT = np.frombuffer(b"TLSEEN\x00\x02", np.uint8)
_HEAD = 8 * (1 + 4 + SEGMENTS)  # bytes of the file's header: FORMAT, `head`, `used`
_INT64 = np.dtype(np.int64)


class SeenTable:
    """A map from fingerprints to pages, for as many URLs as memory holds."""

    def __init__(self, key: bytes = b"") -> None:
        """`key`: 16 bytes for the hash; without it, a random key is used."""
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

    @property
    def key(self) -> bytes:
        return bytes(self._table.head[KEY_0:].tobytes())

    def fingerprints(self, urls: Sequence[str]) -> Array:
        """Return the fingerprints of the URLs as int64."""
        texts = [url.encode() for url in urls]
        out = np.empty(len(texts), np.int64)
        text = np.frombuffer(b"".join((*texts, bytes(PADDING))), np.uint8)
        take_fingerprints(self.handle, text, np.fromiter(accumulate(map(len, texts)), np.int32, len(texts)), out)
        return out

    def find(self, fingerprints: Array, out: Array) -> None:
        """Write out[i], the page of fingerprints[i], or -1."""
        _check(fingerprints, out)
        find_seen(self.handle, fingerprints, out)

    def add(self, fingerprints: Array, first: int, out: Array) -> int:
        """Write out[i], the page of fingerprints[i]; new ones get first, first + 1, ... in order. Return how many are new."""
        _check(fingerprints, out)
        before = self._head[COUNT]
        if first < 0 or first + len(fingerprints) > MOST_ID:
            raise ConfigError(
                f"page {first} exceeds the limit of 2^31 pages in one partition; crawl with more partitions"
            )
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
        """Write the table into the folder. It replaces a table that is there."""
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
    def load(cls, folder: Path) -> "SeenTable":
        """Read the table that was saved in the folder."""
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
    """Return the bytes that `save` wrote, without the checksum. Raise `ConfigError` if the checksum does not match."""
    try:
        data = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:  # ValueError: the file is empty
        raise ConfigError(
            f"{path}: the table of seen URLs cannot be read: {error}; resume from another snapshot"
        ) from error
    body, checksum = data[:-4], int.from_bytes(data[-4:].tobytes(), "little")
    if not np.array_equal(body[: len(FORMAT)], FORMAT) or zlib.crc32(body.data) != checksum:
        raise ConfigError(
            f"{path}: the table of seen URLs is damaged or of another version; resume from another snapshot"
        )
    return body


def _check(fingerprints: Array, out: Array) -> None:
    """Check what Numba does not: it refuses arrays that are not contiguous, and an `out` that is not int32, by itself."""
    if fingerprints.dtype != _INT64 or len(out) < len(fingerprints):
        raise InvariantError(
            f"{len(fingerprints)} fingerprints of type {fingerprints.dtype}, room for {len(out)} pages; pass int64 and enough room"
        )


# ---- The lookup: finds the pages of links that were seen before, without making a string or a URL of them.
#
# Most links lead to known pages, and most of the others were seen before too: links out of scope, links to no page, and known pages in
# another spelling. Known pages are found in the table of seen URLs. Results for the other links are remembered, each in the only slot
# that its fingerprint may have. The memory is therefore bounded, and a new result replaces the old one of its slot.

UNKNOWN = -1
SLOTS = 1 << 15
_USUAL, _MOST = 1024, 4096  # links that the arrays have room for at first; larger arrays than _MOST are not kept


class Lookup:
    """Finds the pages of links as far as they are known."""

    def __init__(self, seen: SeenTable, slots: int = SLOTS) -> None:
        """`slots`: a power of two."""
        self._seen = seen
        text, met, met_pages = (
            np.zeros(LONGEST + PADDING, np.uint8),
            np.zeros(slots, np.int64),
            np.full(slots, UNKNOWN, np.int32),
        )
        empty = np.zeros(0, np.int32)
        self._use(LookupArrays(text, met, met_pages, np.zeros(0, np.int64), empty, empty, np.zeros(0, np.uint8)))
        self._make_room(_USUAL)

    def _use(self, desk: LookupArrays) -> None:
        self._desk, self._pin = desk, Pin(desk)

    def _make_room(self, links: int) -> None:
        slots = np.zeros(1 << (2 * links - 1).bit_length(), np.int32)
        self._use(
            self._desk._replace(fingerprints=np.zeros(links, np.int64), pages=np.zeros(links, np.int32), slots=slots)
        )

    def mark(self, marks: Array) -> None:
        """Use this array of marks (uint8, by page) until the next call: not 0 if a link to the page needs a closer look. Changes made
        to the array later take effect."""
        if marks.dtype != np.uint8 or not marks.flags.c_contiguous:
            raise InvariantError(f"marks of type {marks.dtype}; pass a contiguous array of uint8")
        self._use(self._desk._replace(marks=marks))

    def find(self, links: Links, url: bytes, wants_distinct: bool = False) -> tuple[Array, int]:
        """Look up the links of the page at `url`. Return an array, which the next call overwrites, and what it has.

        0 or more: the distinct pages that the links lead to, in order; and after them, for this number of links, the remembered numbers
        up to LINKS_ELSEWHERE, whose fingerprints `elsewhere` returns. They are given if they are wanted, and every link leads to a known
        page without a mark, or elsewhere. -1: for each link its page, UNKNOWN, or the remembered number.
        """
        count = len(links)
        room = len(self._desk.pages)
        if count > room or room > _MOST:
            self._make_room(max(count, _USUAL))
        text, base = np.frombuffer(links.text or b" ", np.uint8), np.frombuffer(url, np.uint8)
        found = find_links(self._seen.handle, self._pin.handle, text, links.spans, base, wants_distinct)
        if found < 0:
            return self._desk.pages[:count], -1
        elsewhere = found >> 32
        return self._desk.pages[: (found & 0xFFFFFFFF) + elsewhere], elsewhere

    def elsewhere(self, count: int) -> list[int]:
        """Return the fingerprints of the links that lead elsewhere, as many as `find` returned last."""
        found: list[int] = self._desk.fingerprints[:count].tolist()
        return found

    def forget(self) -> None:
        """Forget all remembered results: they may no longer be true."""
        self._desk.met[:] = 0
        self._desk.met_pages[:] = UNKNOWN

    def remember(self, at: int, page: int, found_by: int = 0) -> None:
        """Remember the result for link `at` of the last call of `find`: its page, or NO_PAGE or less. Nothing is remembered if
        the table finds the page by the same fingerprint (`found_by`)."""
        fingerprint = int(self._desk.fingerprints[at])
        if fingerprint and (page < 0 or fingerprint != found_by):
            slot = fingerprint & (len(self._desk.met) - 1)
            self._desk.met[slot], self._desk.met_pages[slot] = fingerprint, page

    def remember_all(self, fingerprints: Array, page: int) -> None:
        """Remember one result, NO_PAGE or less, for links with these fingerprints."""
        known = fingerprints[fingerprints != 0]
        slots = known & (len(self._desk.met) - 1)
        self._desk.met[slots], self._desk.met_pages[slots] = known, page

    def fingerprints_at(self, places: Sequence[int]) -> list[int]:
        """Return the fingerprints of these links of the last call of `find`."""
        found: list[int] = self._desk.fingerprints[places].tolist()
        return found
