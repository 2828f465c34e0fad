"""Content codings taken off a body, as far as a limit: gzip, deflate, br, zstd, or two of them.

Knows bytes and the value of Content-Encoding; not where they came from. Between steps 5 and 6 of the way of a URL.
Decoders answer in pieces, so that a body which expands too far is given up or cut at the limit and the rest is never made.
A body that breaks off or is damaged counts as far as it came out, as browsers show it; one of which nothing comes out
is a failure. Bytes behind the end of a coded body are no part of it. A body with a coding that nobody knows, such as `utf-8`, is taken as
it is, whatever else was applied: so do Chrome and Firefox, and most of these servers send plain pages. Not isal for gzip: it inflates
pages hardly faster than zlib does (docs/decisions/014-own-http-reader.md).

The work is bounded too, because a coded body can keep a decoder busy without any output. A decoder reads a limited number of coded
bytes, as many as its worst input takes a few tenths of a second for; a longer body counts as one that breaks off there. What the outer one
of two codings makes is bounded by what the inner one reads (docs/decisions/034-bounds-of-one-page.md).
"""

import zlib
from collections.abc import Callable, Generator, Iterator
from io import BytesIO
from typing import Any, NamedTuple

import brotli
import zstandard

from trapline.fetch.failure import ENCODING

ACCEPT_ENCODING = b"gzip, br, zstd"

# Most pages expand to less: their one piece is the result, without a copy.
_PIECE_BYTES = 256 * 1024
# brotli's own limit stops growth by doubling, so one call may answer three times as much:
# github.com/google/brotli/issues/1396.
_BROTLI_PIECE_BYTES = 64 * 1024
# What is lost at most of a long body that is damaged or has bytes behind its end; as coded.
_BROTLI_SLICE_BYTES = 16 * 1024
# What RFC 9659 allows zstd over HTTP.
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
# As many as curl takes, `identity` and empty ones included.
_MOST_NAMES = 5
# One for the content and one for its transfer.
_MOST_CODINGS = 2
# Nobody sends more, and it is the slowest of all.
_MOST_BROTLI = 1
# Coded bytes that any decoder reads, however little may come out.
_LEAST_READ_BYTES = 256 * 1024
# Of gzip members and of zstd frames: one is usual; a body made of empty ones takes microseconds for every twenty bytes.
_MOST_MEMBERS = 1000
_SHORT_FRAME_BYTES = 4096
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
    named = [coding.strip() for coding in content_encoding.lower().split(b",", _MOST_NAMES)]
    if len(named) > _MOST_NAMES:
        return ENCODING
    if not all(name in _DECODERS or name in _NO_CODINGS for name in named):
        return body
    decoders = [_DECODERS[name] for name in named if name not in _NO_CODINGS]
    if len(decoders) > _MOST_CODINGS or named.count(b"br") > _MOST_BROTLI:
        return ENCODING
    return _all_taken_off(body, decoders, most_bytes, cut)


def _all_taken_off(body: bytes, decoders: list["_Decoder"], most_bytes: int, cut: bool) -> bytes | str:
    """The decoders in the order in which their codings were applied."""
    while decoders and body:
        decoder = decoders.pop()
        if len(body) > (reads := decoder.reads_bytes(most_bytes)):
            body = body[:reads]
        if decoders:  # the next one reads no more than this, and takes a part for the whole
            expanded = _collected(decoder.pieces(body), decoders[-1].reads_bytes(most_bytes), True)
        else:
            expanded = _collected(decoder.pieces(body), most_bytes, cut)
        if expanded is None:
            return ENCODING
        body = expanded
    return body if len(body) <= most_bytes else body[:most_bytes] if cut else ENCODING


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
    again, that slice of it in short pieces; and then another one the short piece that fails, byte by byte. A body that is too long to be
    decoded so often loses that slice, or that piece."""
    done, begin, end, given = 0, 0, len(body), 0
    for step in (_BROTLI_SLICE_BYTES, _SHORT_BYTES, 1):
        if given + end > max(_LEAST_READ_BYTES, len(body)):
            break
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
            begin, end, given = start, stop, given + stop
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
    short = 0
    with _zstd_decoder.stream_reader(body, read_across_frames=True) as reader:
        # Not `read`: it goes on to what follows the last frame before it answers, and fails there.
        piece = reader.read1(_PIECE_BYTES)
        if not piece and zstandard.frame_content_size(body) != 0:
            raise zstandard.ZstdError("it breaks off")
        while piece:
            yield piece
            short += len(piece) < _SHORT_FRAME_BYTES
            if short == _MOST_MEMBERS:
                raise zstandard.ZstdError("too many frames")
            piece = reader.read1(_PIECE_BYTES)


class _Decoder(NamedTuple):
    pieces: Callable[[bytes], Iterator[bytes]]
    share: int  # it reads this part of the limit, in coded bytes

    def reads_bytes(self, most_bytes: int) -> int:
        return max(most_bytes // self.share, _LEAST_READ_BYTES)


# The worst input, blocks that are nothing but tables, takes about 0.1 us a byte in zlib and 1.3 us in brotli. The largest real pages have
# 1.1 MB as gzip.
_DECODERS = {
    b"gzip": _Decoder(_gzip, 12),
    b"x-gzip": _Decoder(_gzip, 12),
    b"deflate": _Decoder(_deflate, 12),
    b"br": _Decoder(_brotli, 96),
    b"zstd": _Decoder(_zstd, 12),
}
_NO_CODINGS = frozenset({b"", b"identity", b"none"})  # empty list items too, as RFC 9110 allows
