"""Content codings taken off a body, as far as a limit: gzip, deflate, br, zstd, any stack of them.

Knows bytes and the value of Content-Encoding; not where they came from. Between steps 5 and 6 of the way of a URL.
Decoders answer in pieces, so that a body which expands too far is given up or cut at the limit and the rest is never made.
A body that breaks off or is damaged counts as far as it came out, as browsers show it; one of which nothing comes out
is a failure. Bytes behind the end of a coded body are no part of it. A body with a coding that nobody knows, such as `utf-8`, is taken as
it is, whatever else was applied: so do Chrome and Firefox, and most of these servers send plain pages. Not isal for gzip: it inflates
pages hardly faster than zlib does (docs/decisions/014-own-http-reader.md).
"""

import zlib
from collections.abc import Callable, Generator, Iterator
from io import BytesIO
from typing import Any

import brotli
import zstandard

from trapline.fetch.failure import ENCODING

ACCEPT_ENCODING = b"gzip, br, zstd"

# Most pages expand to less: their one piece is the result, without a copy.
_PIECE_BYTES = 256 * 1024
# brotli's own limit stops growth by doubling, so one call may answer three times as much:
# github.com/google/brotli/issues/1396.
_BROTLI_PIECE_BYTES = 64 * 1024
_BROTLI_SLICE_BYTES = 64 * 1024
# What RFC 9659 allows zstd over HTTP.
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
# As many as curl takes.
_MOST_CODINGS = 5
# Nobody sends more, and each may have to be decoded three times.
_MOST_BROTLI = 1
# Of gzip: one is usual; a body made of empty ones takes microseconds for every twenty bytes.
_MOST_MEMBERS = 1000
_SLICE_BYTES = 32 * 1024
# Of a slice that fails: 256 pieces at most, and then the bytes of one.
_SHORT_BYTES = 256

_GZIP, _ZLIB, _RAW = 31, 15, -15  # zlib's wbits
_BROKEN = (zlib.error, brotli.error, zstandard.ZstdError)

_zstd_decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)


def decoded(body: bytes, content_encoding: bytes, most_bytes: int, cut: bool = False) -> bytes | str:
    """The body without its codings, or a kind of failure.py. `cut`: one that is longer than `most_bytes` counts as far as these.

    >>> decoded(zlib.compress(b"page"), b"deflate", 100)
    b'page'
    >>> decoded(b"page", b"utf-8", 100)
    b'page'
    """
    if not content_encoding or not body:
        return body
    codings = [coding.strip() for coding in content_encoding.lower().split(b",")]
    if len(codings) > _MOST_CODINGS or codings.count(b"br") > _MOST_BROTLI:
        return ENCODING
    if not all(coding in _DECODERS for coding in codings):
        return body
    for coding in reversed(codings):
        expanded = _collected(_DECODERS[coding](body), most_bytes, cut)
        if expanded is None:
            return ENCODING
        body = expanded
    return body


def _collected(pieces: Iterator[bytes], most_bytes: int, cut: bool) -> bytes | None:
    """The pieces as one; None if they are too long, or if they break and nothing came before."""
    first, out, length = b"", BytesIO(), 0
    try:
        for piece in pieces:
            if length + len(piece) > most_bytes:
                if not cut:
                    return None
                piece = piece[: most_bytes - length]
            if length == 0:
                first = piece  # most pages have no other, and then nothing is copied
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
    return first if length == len(first) else out.getvalue()  # which is no copy


def _identity(body: bytes) -> Iterator[bytes]:
    yield body


def _gzip(body: bytes) -> Iterator[bytes]:
    """One member after the other. What follows the last one is no part of the page."""
    at = 0
    for _ in range(_MOST_MEMBERS):
        at = yield from _inflated(body, at, _GZIP)
        if body[at : at + 2] != b"\x1f\x8b":
            return
    raise zlib.error("too many members")


def _deflate(body: bytes) -> Iterator[bytes]:
    """RFC 9110 means zlib's format; some servers send only what is inside of it."""
    is_zlib = body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    yield from _inflated(body, 0, _ZLIB if is_zlib else _RAW)


def _inflated(body: bytes, at: int, format_bits: int) -> Generator[bytes, None, int]:
    """Pieces of what begins there; returns where it ends. zlib copies what it does not use of its input, so it is given slices."""
    inflater, given, piece = zlib.decompressobj(format_bits), b"", b""
    while not inflater.eof:
        given = inflater.unconsumed_tail
        if not given:
            given = body[at : at + _SLICE_BYTES]
            at += len(given)
        # It may hold back output even though it has taken all input: then the piece was full.
        if not given and len(piece) < _PIECE_BYTES:
            raise zlib.error("it breaks off")
        before = inflater.copy()
        try:
            piece = inflater.decompress(given, _PIECE_BYTES)
        except zlib.error:
            yield from _as_far_as_the_damage(before, given)
            raise
        if piece:
            yield piece
    return at - len(inflater.unused_data)


def _as_far_as_the_damage(inflater: Any, given: bytes) -> Iterator[bytes]:
    """zlib forgets the piece that it fails in, so it gets that one again in short pieces, and the short one that fails byte by byte."""
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
    """The decoder forgets the piece in which the stream ends, if more follows, and cannot be copied. Then a new decoder gets the body
    again, that slice of it in short pieces; and then another one the short piece that fails, byte by byte."""
    done, begin, end = 0, 0, len(body)
    for step in (_BROTLI_SLICE_BYTES, _SHORT_BYTES, 1):
        decoder, again = brotli.Decompressor(), done
        try:
            for start, stop in _bounds(begin, end, step):
                for piece in _brotli_pieces(decoder, body[start:stop]):
                    if len(piece) > again:
                        done += len(piece) - again
                        yield piece[again:]
                    again = max(0, again - len(piece))
                if decoder.is_finished():
                    return
        except brotli.error:
            begin, end = start, stop
        else:
            break
    raise brotli.error("it breaks off, or is damaged")


def _bounds(begin: int, end: int, step: int) -> Iterator[tuple[int, int]]:
    """Where pieces begin and end: slices as far as `begin`, and from there to `end` pieces of `step` bytes."""
    for start in range(0, begin, _BROTLI_SLICE_BYTES):
        yield start, min(start + _BROTLI_SLICE_BYTES, begin)
    for start in range(begin, end, step):
        yield start, min(start + step, end)


def _brotli_pieces(decoder: Any, given: bytes) -> Iterator[bytes]:
    yield decoder.process(given, output_buffer_limit=_BROTLI_PIECE_BYTES)
    while piece := decoder.process(b"", output_buffer_limit=_BROTLI_PIECE_BYTES):
        yield piece


def _zstd(body: bytes) -> Iterator[bytes]:
    with _zstd_decoder.stream_reader(body, read_across_frames=True) as reader:
        # Not `read`: it goes on to what follows the last frame before it answers, and fails there.
        piece = reader.read1(_PIECE_BYTES)
        if not piece and zstandard.frame_content_size(body) != 0:
            raise zstandard.ZstdError("it breaks off")
        while piece:
            yield piece
            piece = reader.read1(_PIECE_BYTES)


_DECODERS: dict[bytes, Callable[[bytes], Iterator[bytes]]] = {
    b"": _identity,  # of an empty list item, as RFC 9110 allows
    b"identity": _identity,
    b"none": _identity,
    b"gzip": _gzip,
    b"x-gzip": _gzip,
    b"deflate": _deflate,
    b"br": _brotli,
    b"zstd": _zstd,
}
