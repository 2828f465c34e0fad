"""Reader of archives: yields the records of a WARC file in order, and the places where no record can be read.

Each record is a gzip member of its own. Its checksum detects every changed byte, except bytes of the gzip header that
do not affect the contents. After a damaged record, the reader continues at the next place where the database says that
a response begins. This module does not compare records with the database; archive_check.py does.
"""

import os
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from hashlib import sha1
from typing import NamedTuple

from isal import isal_zlib
from isal.igzip_lib import IsalError

from trapline.crawler.store import warc
from trapline.fetch.http.http1 import empty_line_end

_PIECE_BYTES = 1 << 14
_MOST_BYTES = 1 << 30  # the largest record: twice what --max-body allows
_FILLER_HEAD = bytes.fromhex("1f8b08 10 00000000 00ff")  # a gzip header with a comment
# Magic number and compression method. The rest of a gzip header differs between versions of a compressor and does not
# affect the contents.
_MAGIC = _FILLER_HEAD[:3]
_FILLER_TEXT = b"A damaged record was here. "
_FILLER_BYTES = 39  # the most bytes of a filler besides its WARC header, its block and the heads of stored blocks
_STORED_BYTES = 65_535  # the largest stored block of deflate
_ANSWERS = ("response", "revisit")


class Record(NamedTuple):
    offset: int
    length: int  # of its gzip member
    headers: Mapping[str, str]  # names in lower case
    block: bytes

    @property
    def kind(self) -> str:
        return self.headers.get("warc-type", "")

    @property
    def is_answer(self) -> bool:
        return self.kind in _ANSWERS

    @property
    def is_filler(self) -> bool:
        """Return whether a repair wrote this record in the place of damaged ones."""
        is_ours = self.kind == "metadata" and "warc-target-uri" not in self.headers
        return is_ours and self.block == _filler_block(len(self.block))

    def status(self) -> int:
        """Return the HTTP status; -1 if it cannot be read."""
        digits = self.block[9:12]
        return int(digits) if digits.isdigit() else -1

    def has_digest(self) -> bool:
        """Return whether the body matches the digest in the header.

        The result is also True for a record without a digest and for a body with a transfer coding.
        """
        stated = self.headers.get("warc-payload-digest", "")
        body = self._body() if stated and self.kind == "response" else None
        return body is None or stated == f"sha1:{warc.base32(sha1(body, usedforsecurity=False).digest())}"

    def _body(self) -> bytes | None:
        end = empty_line_end(self.block, 0, len(self.block))
        head, wire = (self.block[:end], self.block[end:]) if end >= 0 else (self.block, b"")
        return None if b"transfer-encoding" in head.lower() else wire


class Damage(NamedTuple):
    """Bytes in which no record can be read."""

    offset: int
    length: int
    why: str


class _Unreadable(Exception):
    """No record can be read here; the message says why."""


def read_back(descriptor: int, length: int, known: Mapping[int, int], start: int = 0) -> Iterator[Record | Damage]:
    """Yield all records and damages of an archive from `start` to `length`. `known`: lengths of responses by their offset."""
    starts, at = sorted(known), start
    while at < length:
        try:
            record = _record(descriptor, at, length)
        except _Unreadable as error:
            after = bisect_right(starts, at)
            nearest = min(starts[after], length) if after < len(starts) else length
            end = min(at + known[at] if known.get(at, 0) > 0 else nearest, nearest)
            yield Damage(at, end - at, str(error))
            at = end
        else:
            yield record
            at += record.length


def _record(descriptor: int, at: int, limit: int) -> Record:
    data, end = _inflated(descriptor, at, limit)
    head, separator, rest = data.partition(b"\r\n\r\n")
    lines = head.decode("utf-8", "replace").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    stated = headers.get("content-length", "")
    if lines[0] != "WARC/1.1" or not separator or not stated.isdecimal() or len(rest) != int(stated) + 4:
        raise _Unreadable("it is not a WARC record")
    return Record(at, end - at, headers, rest[:-4])


def _inflated(descriptor: int, at: int, limit: int) -> tuple[bytes, int]:
    """Return the contents of a gzip member, and the offset at which it ends."""
    inflater, pieces, size, place = isal_zlib.decompressobj(31), list[bytes](), 0, at
    while not inflater.eof:
        data = _read(descriptor, place, min(_PIECE_BYTES, limit - place))
        if place == at and data[:3] != _MAGIC:
            raise _Unreadable("no gzip member begins here")
        try:
            pieces.append(inflater.decompress(data))
        except IsalError:  # type: ignore[misc]  # the stub declares it as an instance
            raise _Unreadable("the record does not match its checksum") from None
        place += len(data)
        size += len(pieces[-1])
        if size > _MOST_BYTES:
            raise _Unreadable("the record expands to more bytes than a record may have")
    return b"".join(pieces), place - len(inflater.unused_data)


def _read(descriptor: int, at: int, count: int) -> bytes:
    try:
        data = os.pread(descriptor, count, at) if count > 0 else b""
    except OSError as error:
        raise _Unreadable(f"cannot be read: {error.strerror}") from None
    if not data:
        raise _Unreadable("the record is cut off")
    return data


def filler(length: int, at: float) -> bytes | None:
    """Return a record that replaces damaged ones: a gzip member of exactly `length` bytes. None: that is too short for a record.

    The block is stored uncompressed and makes up most of the length; a comment in the gzip header makes up the rest.
    """
    header = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <urn:uuid:{warc.new_record_id()}>\r\n"
        f"WARC-Date: {warc.warc_date(at)}\r\nContent-Length: "
    )
    size = length - len(header) - 5 * (length // _STORED_BYTES + 1) - _FILLER_BYTES
    if size < 0:
        return None
    data = b"%s%d\r\n\r\n%s\r\n\r\n" % (header.encode(), size, _filler_block(size))
    rest = b"\0" + _stored(data) + struct.pack("<II", zlib.crc32(data), len(data))
    return _FILLER_HEAD + b"." * (length - len(_FILLER_HEAD) - len(rest)) + rest


def _filler_block(size: int) -> bytes:
    return _FILLER_TEXT[:size].ljust(size, b".")


def _stored(data: bytes) -> bytes:
    pieces = [data[at : at + _STORED_BYTES] for at in range(0, len(data), _STORED_BYTES)]
    heads = (struct.pack("<BHH", piece is pieces[-1], len(piece), len(piece) ^ 0xFFFF) for piece in pieces)
    return b"".join(part for pair in zip(heads, pieces, strict=True) for part in pair)
