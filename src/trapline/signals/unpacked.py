"""A published file as UTF-8: gzip taken off, within a limit of bytes, in whatever encoding XML allows.

Shared by the readers of sitemaps and feeds. It knows nothing of what the file says. Not read: EBCDIC, which XML would allow too. Another
encoding is changed piece by piece, because a decoder holds the interpreter lock until it returns.
"""

import re
from codecs import IncrementalDecoder, getincrementaldecoder
from io import BytesIO

from webencodings import lookup

from trapline.fetch.content import decoded
from trapline.fetch.encoding import UTF_8, named

GZIP = b"\x1f\x8b"

_UTF_8_MARK = b"\xef\xbb\xbf"
# Marks before their own beginnings: UTF-32's begins with that of UTF-16. Then `<` as it looks without a mark (XML 1.0, appendix F).
_BEGINNINGS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_DAMAGED = "\ufffd"
_PIECE_BYTES = 16 * 1024
_MOST_DAMAGED = 1 << 20  # characters: each takes a microsecond; the file counts as far as the piece in which they end
_DECLARED = re.compile(rb"""\s*+<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")


def unpacked(body: bytes, most_bytes: int) -> bytes | None:
    """As UTF-8, of which a part may be unreadable; cut at the limit. None: gzip that is broken from the start, or expands beyond it."""
    if body.startswith(GZIP):
        expanded = decoded(body, b"gzip", most_bytes)
        if isinstance(expanded, str):
            return None
        body = expanded
    return _as_utf8(body[:most_bytes], most_bytes)


def _as_utf8(body: bytes, most_bytes: int) -> bytes:
    body = body.removeprefix(_UTF_8_MARK)
    for beginning, encoding in _BEGINNINGS:
        if body.startswith(beginning):
            # Up to the damage, as XML asks for.
            return _in_pieces(body, getincrementaldecoder(encoding)("strict"), most_bytes).removeprefix(_UTF_8_MARK)
    found = _DECLARED.match(body[:300])
    declared = (named(found[1].decode()) if found else None) or UTF_8
    if declared.startswith("utf-"):  # not UTF-16 either, if this could be read
        return body
    return _in_pieces(body, lookup(declared).codec_info.incrementaldecoder("replace"), most_bytes)


def _in_pieces(body: bytes, decoder: IncrementalDecoder, most_bytes: int) -> bytes:
    """The body in UTF-8, as far as it can be read, is not longer than the limit, and has little damage."""
    out, damaged = BytesIO(), 0
    for at in range(0, len(body), _PIECE_BYTES):
        end = at + _PIECE_BYTES
        try:
            text = decoder.decode(body[at:end], end >= len(body))
        except UnicodeDecodeError as error:
            out.write(_before(error).encode("utf-8", "replace"))
            break
        out.write(text.encode("utf-8", "replace"))
        damaged += text.count(_DAMAGED)
        if damaged > _MOST_DAMAGED or out.tell() >= most_bytes:
            break
    out.truncate(most_bytes)
    return out.getvalue()


def _before(error: UnicodeDecodeError) -> str:
    """The text before the damage."""
    return error.object[: error.start].decode(error.encoding, "ignore")
