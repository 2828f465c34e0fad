"""The binary format of a batch of URLs: the links that one partition sends to another. This module knows the format,
and not who sends.

Rows are sorted by URL and front-coded: a URL is written as the length of the prefix that it shares with the URL before,
and its rest. All rows are then compressed together. Numbers are varints: seven bits per byte, the low bits first.

    magic "TLB1" | flags (1: with shares) | number of rows | for each row: shared, length, rest, links, depth, share as float64
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import zstandard

from trapline.errors import ConfigError

T = TypeVar("T")
MAGIC = b"TLB1"
BATCH_BYTES = 1 << 20  # of URLs and files in one message batch, unless a single item has more
MOST_BYTES = 64 << 20  # limit of the decompressed size: a batch comes from another process, and is not trusted
_WITH_SHARES = 1
_SHARE = struct.Struct("<d")


class LinkRow(NamedTuple):
    url: bytes
    links: int
    depth: int
    share: float = 0.0


def encode(rows: Iterable[LinkRow]) -> bytes:
    """Return the bytes of a batch of URLs.

    >>> rows = [LinkRow(b"http://a/2", 1, 3), LinkRow(b"http://a/1", 2, 0)]
    >>> decode(encode(rows)) == sorted(rows)
    True
    """
    ordered = sorted(rows)
    shares = any(row.share for row in ordered)
    body = bytearray()
    _put(body, len(ordered))
    before = b""
    for row in ordered:
        common = _common(before, row.url)
        for number in (common, len(row.url) - common):
            _put(body, number)
        body += row.url[common:]
        _put(body, row.links)
        _put(body, row.depth)
        if shares:
            body += _SHARE.pack(row.share)
        before = row.url
    return MAGIC + bytes([_WITH_SHARES if shares else 0]) + packed(bytes(body))


def decode(data: bytes) -> list[LinkRow]:
    """Return the rows of a batch, sorted. Raises `ConfigError` if the bytes are not a batch of URLs."""
    if data[:4] != MAGIC or len(data) < 5 or data[4] > _WITH_SHARES:
        raise ConfigError(
            "a message batch is not a batch of URLs, or another version wrote it: run the same version in all partitions"
        )
    try:
        return _rows(unpacked(data[5:]), bool(data[4]))
    except (zstandard.ZstdError, IndexError, struct.error) as error:
        raise ConfigError(f"a batch of URLs is damaged: {error}") from error


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


def _common(one: bytes, other: bytes) -> int:
    most = min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    low, high = 0, most  # the prefixes of length `low` are equal, those of length `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle)
    return low


def _put(body: bytearray, number: int) -> None:
    while number >= 128:
        body.append(number & 127 | 128)
        number >>= 7
    body.append(number)


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
