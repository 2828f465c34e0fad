"""Blobs: pieces of a log with checksums, one after the other in a file or in a database.

This module does not know what blobs contain (frontier/journal.py and refresh/live/calls.py do), nor where they are stored.

The format
- A blob is a head of 16 bytes (format, length of the body, checksum of the body, checksum of the head), followed by the
  body. There is one checksum per blob: with one per frame, the log cost as much as the decisions in it.
- Torn or damaged: a crash in the middle of an append leaves a file that is too short, never one with different contents.
  A file that ends before the end of its last blob is therefore torn, and reading stops there. Every other error (a wrong
  checksum or format, a blob from a database that is too short) is damage and raises `ConfigError`. The head has its own
  checksum, because otherwise a wrong length would look like a torn file.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from trapline.errors import ConfigError, OtherVersionError

_HEAD = struct.Struct("<4sII")
_HEAD_SUM = struct.Struct("<I")
HEAD_SIZE = _HEAD.size + _HEAD_SUM.size


class BlobKind(NamedTuple):
    """The blobs of one log: four bytes that identify the log and its format version, and the log's name in messages."""

    format: bytes
    log: str

    def blob(self, body: bytes | bytearray) -> bytes:
        """Return the body as a blob. An empty body gives empty bytes."""
        if not body:
            return b""
        head = _HEAD.pack(self.format, len(body), zlib.crc32(body))
        return b"".join((head, _HEAD_SUM.pack(zlib.crc32(head)), body))

    def bodies(self, source: bytes | BinaryIO) -> Iterator[bytearray]:
        """Yield the checked bodies of the blobs in `source`: the bytes of consecutive blobs, or a file to which they were appended."""
        if not isinstance(source, bytes):
            yield from self._of_file(source)
            return
        at = 0
        while at < len(source):
            length, checksum = self._length_and_sum(source[at : at + HEAD_SIZE])
            yield self._checked(source[at + HEAD_SIZE : at + HEAD_SIZE + length], length, checksum)
            at += HEAD_SIZE + length

    def _of_file(self, source: BinaryIO) -> Iterator[bytearray]:
        while len(head := source.read(HEAD_SIZE)) == HEAD_SIZE:
            length, checksum = self._length_and_sum(head)
            body = source.read(length)
            if len(body) < length:
                return  # torn: see the module's docstring
            yield self._checked(body, length, checksum)

    def _length_and_sum(self, head: bytes) -> tuple[int, int]:
        if len(head) < HEAD_SIZE or _HEAD_SUM.unpack_from(head, _HEAD.size)[0] != zlib.crc32(head[: _HEAD.size]):
            raise self._damaged("the checksum of a blob's head does not match")
        kind, length, checksum = _HEAD.unpack_from(head)
        if kind != self.format:
            raise OtherVersionError(
                f"{self.log} has format {kind!r}; this version reads {self.format!r}: use the version that wrote it"
            )
        return length, checksum

    def _checked(self, body: bytes, length: int, checksum: int) -> bytearray:
        if len(body) < length or zlib.crc32(body) != checksum:
            raise self._damaged(f"a blob of {length} bytes is too short or its checksum does not match")
        return bytearray(body)  # writable, because kernels take writable arrays

    def _damaged(self, reason: str) -> ConfigError:
        return ConfigError(
            f"{self.log} is damaged: {reason}; restore the folder from a copy, or begin again in another folder"
        )
