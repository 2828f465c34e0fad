"""The binary format of a batch of links: what one partition sends to another about pages of the other. This module knows the
format, and not who sends.

The URL of a page is sent once, in a `LinkRow`. Further links to the page have the fingerprint of its URL (crawler/discovery/seen/),
eight bytes, in `FurtherLinks`. All numbers are columns, so that no code runs for a single row. URLs are sorted, so that they compress
well.

    magic "TLB2" | flags (1: with shares, 2: with wide numbers) | compressed: number of URLs, number of fingerprints (uint32 each), then
    of the URLs: lengths in bytes, depths, links (uint8, or uint32 if they are wide), shares (float64), text
    of the fingerprints: fingerprints (int64), depths, links (uint32 each), shares (float64)

All numbers are little-endian. Most batches are small and have small numbers, which zstd alone does not shrink to a byte.

Batches of earlier versions ("TLB1") are read too: a crawl that is resumed may have some on its disk. Their URLs are front-coded: each is
the length of the prefix that it shares with the one before, and its rest. Their numbers are varints: seven bits per byte, the low ones
first.

    magic "TLB1" | flags | compressed: number of rows, for each row: shared, length, rest, links, depth, share as float64
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import zstandard

from trapline.errors import ConfigError
from trapline.frontier.layout import Array

T = TypeVar("T")
MAGIC, _FIRST_MAGIC = b"TLB2", b"TLB1"
BATCH_BYTES = 1 << 20  # of URLs and files in one message batch, unless a single item has more
MOST_BYTES = 64 << 20  # limit of the decompressed size: a batch comes from another process, and is not trusted
_WITH_SHARES, _WIDE = 1, 2
_SHARE, _COUNTS = struct.Struct("<d"), struct.Struct("<II")
_NUMBERS = ("B", "I")  # as struct writes them: narrow, wide
_FURTHER = tuple(map(np.dtype, ("<i8", "<u4", "<u4", "<f8")))  # fingerprints, depths, links, shares


class LinkRow(NamedTuple):
    url: bytes
    links: int
    depth: int
    share: float = 0.0


class FurtherLinks(NamedTuple):
    """Links to pages whose URLs an earlier batch for the same receiver had, or the same batch. Columns of the same length."""

    fingerprints: Array  # of the URLs, each once
    depths: Array
    links: Array
    shares: Array

    @property
    def size(self) -> int:
        return len(self.fingerprints)


NO_LINKS = FurtherLinks(*(np.zeros(0, numbers) for numbers in _FURTHER))


class LinkBatch(NamedTuple):
    rows: list[LinkRow]  # sorted
    further: FurtherLinks


def encode(rows: Iterable[LinkRow], further: FurtherLinks = NO_LINKS) -> bytes:
    """Return the bytes of a batch of links.

    >>> rows = [LinkRow(b"http://a/2", 1, 3), LinkRow(b"http://a/1", 2, 0)]
    >>> decode(encode(rows)).rows == sorted(rows)
    True
    """
    ordered = sorted(rows)
    count = len(ordered)
    urls, links, depths, shares = zip(*ordered, strict=True) if ordered else ((), (), (), ())
    has_shares = any(shares) or bool(further.shares.any())
    numbers = (*map(len, urls), *depths, *links)
    is_wide = max(numbers, default=0) > 255
    columns = [
        _COUNTS.pack(count, further.size),
        struct.pack(f"<{3 * count}{_NUMBERS[is_wide]}", *numbers),
        struct.pack(f"<{count}d", *shares) if has_shares else b"",
        *urls,
    ]
    if further.size:
        more = zip(further[: 4 if has_shares else 3], _FURTHER, strict=False)
        columns += [column.astype(kind).tobytes() for column, kind in more]
    return MAGIC + bytes([has_shares * _WITH_SHARES | is_wide * _WIDE]) + packed(b"".join(columns))


def decode(data: bytes) -> LinkBatch:
    """Return the contents of a batch. Raises `ConfigError` if the bytes are not a batch of links."""
    if data[:4] not in (MAGIC, _FIRST_MAGIC) or len(data) < 5 or data[4] > _WITH_SHARES | _WIDE:
        raise ConfigError(
            "a message batch is not a batch of URLs, or another version wrote it: run the same version in all partitions"
        )
    try:
        body, has_shares = unpacked(data[5:]), bool(data[4] & _WITH_SHARES)
        return (
            _columns(body, has_shares, bool(data[4] & _WIDE))
            if data[:4] == MAGIC
            else LinkBatch(_rows(body, has_shares), NO_LINKS)
        )
    except (zstandard.ZstdError, IndexError, ValueError, struct.error) as error:
        raise ConfigError(f"a batch of URLs is damaged: {error}") from error


def _columns(body: bytes, has_shares: bool, is_wide: bool) -> LinkBatch:
    count, further = _COUNTS.unpack_from(body)
    numbers = struct.Struct(f"<{3 * count}{_NUMBERS[is_wide]}")
    found = numbers.unpack_from(body, _COUNTS.size)
    at = _COUNTS.size + numbers.size
    shares: Sequence[float] = (0.0,) * count
    if has_shares:
        shares = struct.unpack_from(f"<{count}d", body, at)
        at += _SHARE.size * count
    ends = list(accumulate(found[:count], initial=at))
    urls = [body[start:end] for start, end in pairwise(ends)]
    columns = _further(body, ends[-1], further, has_shares)
    return LinkBatch(list(map(LinkRow, urls, found[2 * count :], found[count : 2 * count], shares)), columns)


def _further(body: bytes, at: int, count: int, has_shares: bool) -> FurtherLinks:
    if not count and at == len(body):
        return NO_LINKS
    columns = []
    for numbers in _FURTHER[: 4 if has_shares else 3]:
        end = at + numbers.itemsize * count
        columns.append(np.frombuffer(bytearray(body[at:end]), numbers))  # writable, as kernels want it
        at = end
    if at != len(body) or any(len(column) != count for column in columns):
        raise IndexError(f"it has {len(body)} bytes instead of {at}")
    return FurtherLinks(*columns, *(() if has_shares else (np.zeros(count),)))


def parts(things: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Divide items into lists, each small enough for a message batch: a hostile page can have a hundred megabytes of
    links, and a robots.txt half a megabyte."""
    part: list[T] = []
    total = 0
    for thing in things:
        if part and total + size(thing) > BATCH_BYTES:
            yield part
            part, total = [], 0
        part.append(thing)
        total += size(thing)
    yield part


def packed(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1, write_checksum=True).compress(body)


def unpacked(data: bytes) -> bytes:
    """Return the decompressed data. Raises `ConfigError` if that would take too much memory, and `ZstdError` if the
    data is damaged."""
    # Without this check the library would allocate as much memory as the zstd frame declares.
    if zstandard.frame_content_size(data) > MOST_BYTES:
        raise ConfigError(
            f"a message batch decompresses to more than {MOST_BYTES >> 20} MiB; no partition of this crawl makes such a batch"
        )
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=MOST_BYTES)


def _rows(body: bytes, shares: bool) -> list[LinkRow]:
    count, at = _get(body, 0)
    rows: list[LinkRow] = []
    before = b""
    for _ in range(count):
        common, at = _get(body, at)
        length, at = _get(body, at)
        url, at = before[:common] + body[at : at + length], at + length
        links, at = _get(body, at)
        depth, at = _get(body, at)
        share = 0.0
        if shares:
            (share,), at = _SHARE.unpack_from(body, at), at + _SHARE.size
        if len(url) != common + length:
            raise IndexError("a URL is shorter than its declared length")
        rows.append(LinkRow(url, links, depth, share))
        before = url
    return rows


def _get(body: Sequence[int], at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = body[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
        if shift > 63:
            raise IndexError("a number has more than 10 bytes")
