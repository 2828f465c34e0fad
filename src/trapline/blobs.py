"""Blobs: pieces of a log that know whether they are whole, one after the other in a file or out of a database.

It refuses to know what is in them (frontier/journal.py and refresh/refresh_log.py do) and where they lie.

The format
- A blob: a head of 16 bytes (format, length of the body, checksum of the body, checksum of the head), then the body. One
  checksum a blob: at a checksum a frame, the log cost as much as the decisions in it.
- Torn or damaged? A crash in the middle of an append leaves a file that is too short, never one with other contents. So a file
  that ends before its last blob does was torn, and reading ends there. Whatever else is wrong (a checksum, the format, a blob out of a
  database that is too short) is damage: `ConfigError`. The head has a checksum of its own, or a wrong length would look torn.
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
    """The blobs of one log: four bytes that say whose they are and in which version, and the log's name for the user."""

    format: bytes
    log: str

    def blob(self, body: bytes | bytearray) -> bytes:
        """The body as a blob; nothing stays nothing."""
        if not body:
            return b""
        head = _HEAD.pack(self.format, len(body), zlib.crc32(body))
        return b"".join((head, _HEAD_SUM.pack(zlib.crc32(head)), body))

    def bodies(self, source: bytes | BinaryIO) -> Iterator[bytearray]:
        """What the blobs hold, whole and as it was written: of blobs one after the other, or of a file that they were appended to."""
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
                return  # torn: see above
            yield self._checked(body, length, checksum)

    def _length_and_sum(self, head: bytes) -> tuple[int, int]:
        if len(head) < HEAD_SIZE or _HEAD_SUM.unpack_from(head, _HEAD.size)[0] != zlib.crc32(head[: _HEAD.size]):
            raise self._damaged("the head of a blob is not as it was written")
        kind, length, checksum = _HEAD.unpack_from(head)
        if kind != self.format:
            raise OtherVersionError(
                f"{self.log} has format {kind!r}; this version reads {self.format!r}: go on with the version that wrote it"
            )
        return length, checksum

    def _checked(self, body: bytes, length: int, checksum: int) -> bytearray:
        if len(body) < length or zlib.crc32(body) != checksum:
            raise self._damaged(f"a blob of {length} bytes is not as it was written")
        return bytearray(body)  # writable, as kernels take arrays

    def _damaged(self, what: str) -> ConfigError:
        return ConfigError(f"{self.log} is damaged: {what}; go on from a snapshot or a copy")
