"""Decoder of content codings, up to a limit of bytes: gzip, deflate, br, zstd, or two of them.

The module knows bytes and the value of Content-Encoding, and not where they come from. It runs between steps 5 and 6 in
docs/architecture.md. Decoders produce pieces, so that a body which expands too far is rejected or truncated at the limit, and the rest is
never decoded. Of a body that is incomplete or damaged, the part that can be decoded counts, as in browsers; a body of which nothing can
be decoded is a failure. Bytes after the end of a coded body are ignored. A body with an unknown coding, such as `utf-8`, is returned
unchanged, whatever other codings are named: Chrome and Firefox do the same, and most such servers send plain pages. isal is not used for
gzip, because it inflates pages hardly faster than zlib (docs/decisions/014-own-http-reader.md).

The work is bounded too, because a coded body can keep a decoder busy without any output. A decoder reads a limited number of coded
bytes, as many as take a few tenths of a second in the worst case; a longer body is treated as if it ended there. Of two codings, the
output of the outer one is limited to what the inner one reads (docs/decisions/034-bounds-of-one-page.md).
"""

import zlib
from collections.abc import Callable, Generator, Iterator
from io import BytesIO
from typing import Any, NamedTuple

import brotli
import zstandard

from trapline.fetch.failure import ENCODING

ACCEPT_ENCODING = b"gzip, br, zstd"

# Most pages expand to less: then the only piece is the result, without a copy.
_PIECE_BYTES = 256 * 1024
# brotli's own limit applies to a buffer that grows by doubling, so one call may return three times as much:
# github.com/google/brotli/issues/1396.
_BROTLI_PIECE_BYTES = 64 * 1024
# Most coded bytes that are lost of a long body that is damaged, or that has bytes after its end.
_BROTLI_SLICE_BYTES = 16 * 1024
# The limit of RFC 9659 for zstd over HTTP.
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
# As many as curl accepts, including `identity` and empty ones.
_MOST_NAMES = 5
# One content coding and one transfer coding.
_MOST_CODINGS = 2
# Real servers send no more, and brotli is the slowest decoder.
_MOST_BROTLI = 1
# Coded bytes that any decoder reads, even if the limit of the output is small.
_LEAST_READ_BYTES = 256 * 1024
# Of gzip members and zstd frames. One is usual; a body of empty ones takes microseconds for every twenty bytes.
_MOST_MEMBERS = 1000
_SHORT_FRAME_BYTES = 4096
_SLICE_BYTES = 32 * 1024
# Pieces in which a failed slice is decoded again; the piece that fails is then decoded byte by byte.
_SHORT_BYTES = 256

_GZIP, _ZLIB, _RAW = 31, 15, -15  # zlib's wbits
_BROKEN = (zlib.error, brotli.error, zstandard.ZstdError)


def decoded(body: bytes, content_encoding: bytes, most_bytes: int, cut: bool = False) -> bytes | str:
    """Return the decoded body, or a kind of fetch/failure.py. With `cut`, a body longer than `most_bytes` is truncated; otherwise it fails.

    >>> decoded(zlib.compress(b"page"), b"deflate", 100)
    b'page'
    >>> decoded(b"page", b"utf-8", 100)
    b'page'
    """
    if not content_encoding or not body:
        return body
    named = [coding.strip() for coding in content_encoding.lower().split(b",", _MOST_NAMES)]
    if len(named) > _MOST_NAMES:
        return ENCODING
    if not all(name in _DECODERS or name in _NO_CODINGS for name in named):
        return body
    decoders = [_DECODERS[name] for name in named if name not in _NO_CODINGS]
    if len(decoders) > _MOST_CODINGS or named.count(b"br") > _MOST_BROTLI:
        return ENCODING
    return _all_decoded(body, decoders, most_bytes, cut)


def _all_decoded(body: bytes, decoders: list["_Decoder"], most_bytes: int, cut: bool) -> bytes | str:
    """Decode a body. `decoders` are in the order in which their codings were applied, so the last one runs first."""
    while decoders and body:
        decoder = decoders.pop()
        if len(body) > (reads := decoder.reads_bytes(most_bytes)):
            body = body[:reads]
        if decoders:  # the next decoder reads no more than this, and accepts an incomplete body
            expanded = _collected(decoder.pieces(body), decoders[-1].reads_bytes(most_bytes), True)
        else:
            expanded = _collected(decoder.pieces(body), most_bytes, cut)
        if expanded is None:
            return ENCODING
        body = expanded
    return body if len(body) <= most_bytes else body[:most_bytes] if cut else ENCODING


def _collected(pieces: Iterator[bytes], most_bytes: int, cut: bool) -> bytes | None:
    """Join the pieces; return None if they are too long, or if decoding fails before the first piece."""
    first, out, length = b"", BytesIO(), 0
    try:
        for piece in pieces:
            if length + len(piece) > most_bytes:
                if not cut:
                    return None
                piece = piece[: most_bytes - length]
            if length == 0:
                first = piece  # most pages have only this piece, and then nothing is copied
            else:
                if out.tell() == 0:
                    out.write(first)
                out.write(piece)
            length += len(piece)
            if cut and length == most_bytes:
                break
    except _BROKEN:
        if length == 0:
            return None
    return first if length == len(first) else out.getvalue()  # getvalue does not copy


def _gzip(body: bytes) -> Iterator[bytes]:
    """Decode all members of a gzip body. Ignores what follows the last one."""
    at = 0
    for _ in range(_MOST_MEMBERS):
        at = yield from _inflated(body, at, _GZIP)
        if body[at : at + 2] != b"\x1f\x8b":
            return
    raise zlib.error("too many members")


def _deflate(body: bytes) -> Iterator[bytes]:
    """Decode deflate: RFC 9110 means the zlib format, but some servers send raw deflate data."""
    is_zlib = body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    yield from _inflated(body, 0, _ZLIB if is_zlib else _RAW)


def _inflated(body: bytes, at: int, format_bits: int) -> Generator[bytes, None, int]:
    """Yield the pieces of the stream that begins at `at`, and return its end.

    zlib copies the input that it does not consume, so it gets the body in slices.
    """
    inflater, given, piece = zlib.decompressobj(format_bits), b"", b""
    while not inflater.eof:
        given = inflater.unconsumed_tail
        if not given:
            given = body[at : at + _SLICE_BYTES]
            at += len(given)
        # zlib may hold back output after it has consumed all input: then the last piece was full.
        if not given and len(piece) < _PIECE_BYTES:
            raise zlib.error("incomplete stream")
        before = inflater.copy()
        try:
            piece = inflater.decompress(given, _PIECE_BYTES)
        except zlib.error:
            yield from _before_damage(before, given)
            raise
        if piece:
            yield piece
    return at - len(inflater.unused_data)


def _before_damage(inflater: Any, given: bytes) -> Iterator[bytes]:
    """Yield the output before the damage. zlib discards the output of a failing call, so the input is decoded again in short pieces,
    and the short piece that fails byte by byte."""
    for at in range(0, len(given), _SHORT_BYTES):
        short, before = given[at : at + _SHORT_BYTES], inflater.copy()
        try:
            piece = inflater.decompress(short)
        except zlib.error:
            yield from _byte_by_byte(before, short)
            return
        if piece:
            yield piece


def _byte_by_byte(inflater: Any, given: bytes) -> Iterator[bytes]:
    for at in range(len(given)):
        if piece := inflater.decompress(given[at : at + 1]):
            yield piece


def _brotli(body: bytes) -> Iterator[bytes]:
    """Decode a brotli body.

    If bytes follow the end of the stream, the decoder discards the output of the call in which the stream ends; and it cannot be copied.
    In this case a new decoder decodes the body again, the failing slice in short pieces; and then another one the failing short piece
    byte by byte. A body that is too long to be decoded that often loses the failing slice, or the failing piece.
    """
    done, begin, end, given = 0, 0, len(body), 0
    for step in (_BROTLI_SLICE_BYTES, _SHORT_BYTES, 1):
        if given + end > max(_LEAST_READ_BYTES, len(body)):
            break
        decoder, skipped = brotli.Decompressor(), done
        try:
            for start, stop in _bounds(begin, end, step):
                for piece in _brotli_pieces(decoder, body[start:stop]):
                    if len(piece) > skipped:
                        done += len(piece) - skipped
                        yield piece[skipped:]
                    skipped = max(0, skipped - len(piece))
                if decoder.is_finished():
                    return
        except brotli.error:
            begin, end, given = start, stop, given + stop
        else:
            break
    raise brotli.error("incomplete or damaged stream")


def _bounds(begin: int, end: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of pieces: slices up to `begin`, and from there to `end` pieces of `step` bytes."""
    for start in range(0, begin, _BROTLI_SLICE_BYTES):
        yield start, min(start + _BROTLI_SLICE_BYTES, begin)
    for start in range(begin, end, step):
        yield start, min(start + step, end)


def _brotli_pieces(decoder: Any, given: bytes) -> Iterator[bytes]:
    yield decoder.process(given, output_buffer_limit=_BROTLI_PIECE_BYTES)
    while piece := decoder.process(b"", output_buffer_limit=_BROTLI_PIECE_BYTES):
        yield piece


def _zstd(body: bytes) -> Iterator[bytes]:
    short = 0
    # A decoder of its own for each body: zstandard's are not safe for use by several threads.
    decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    with decoder.stream_reader(body, read_across_frames=True) as reader:
        # Not `read`: it continues with what follows the last frame before it returns, and fails there.
        piece = reader.read1(_PIECE_BYTES)
        if not piece and zstandard.frame_content_size(body) != 0:
            raise zstandard.ZstdError("incomplete stream")
        while piece:
            yield piece
            short += len(piece) < _SHORT_FRAME_BYTES
            if short == _MOST_MEMBERS:
                raise zstandard.ZstdError("too many frames")
            piece = reader.read1(_PIECE_BYTES)


class _Decoder(NamedTuple):
    pieces: Callable[[bytes], Iterator[bytes]]
    share: int  # the decoder reads the limit divided by this, in coded bytes

    def reads_bytes(self, most_bytes: int) -> int:
        return max(most_bytes // self.share, _LEAST_READ_BYTES)


# The worst input, blocks that consist only of tables, takes about 0.1 us per byte in zlib and 1.3 us in brotli. The largest real pages
# have 1.1 MB as gzip.
_DECODERS = {
    b"gzip": _Decoder(_gzip, 12),
    b"x-gzip": _Decoder(_gzip, 12),
    b"deflate": _Decoder(_deflate, 12),
    b"br": _Decoder(_brotli, 96),
    b"zstd": _Decoder(_zstd, 12),
}
_NO_CODINGS = frozenset({b"", b"identity", b"none"})  # empty list items too, as RFC 9110 allows
