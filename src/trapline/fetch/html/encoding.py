"""Character encodings of pages: determines the encoding as browsers do, and decodes text.

Step 6 in docs/architecture.md, before any tag is read. The module knows the encoding declarations of HTML and nothing else of it.

The order is that of the HTML standard: a byte order mark, the charset of the Content-Type, a declaration in the first 1024 bytes.
Differs from browsers: if nothing is declared there, browsers guess (by the user's language, by statistics, windows-1252) and start again
at a later declaration. This module chooses UTF-8 if the bytes are valid UTF-8, else what is declared later, else windows-1252. And a
label that stands for no text at all (`replacement`, a defence against scripts) is ignored.
"""

import re
from codecs import utf_8_decode
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import quote

from webencodings import lookup

from trapline.fetch.html.markup import ATTRIBUTES, any_case, values

UTF_8 = "utf-8"
_FALLBACK = "windows-1252"
_MARKS = ((b"\xef\xbb\xbf", UTF_8), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
_UTF_16_FIRST_BYTES = (b"\xff", b"\xfe")  # of its byte order marks
_PRESCANNED_BYTES = 1024
# Bytes that are searched for a late declaration; the latest in 7,448 real pages begins at byte 3,136.
_LATE_BYTES = 64 * 1024
_CHECKED_BYTES = 1 << 20  # bytes in non-ASCII pieces that are checked for valid UTF-8
_PIECE_BYTES = 1 << 16
_MOST_LABEL = 64  # characters of a label that are looked up and cached
_ESCAPE = b"\x1b"  # the only ASCII byte with another meaning in some encoding: in ISO-2022-JP

# "Prescan a byte stream to determine its encoding": skips whole tags and comments, but not scripts.
_META = re.compile(
    r"<(?:!--(?:-?>|(?:[^-]++|-(?!->))*+)|"
    + any_case("meta")
    + r"(?=[ \t\n\f\r/])("
    + ATTRIBUTES
    + r")>|/?[a-zA-Z][^ \t\n\f\r>]*+"
    + ATTRIBUTES
    + r"|[!/?][^>]*+)"
)
_CHARSET = re.compile(
    r"""charset[ \t\n\f\r]*=[ \t\n\f\r]*(?:"([^"]*)"|'([^']*)'|["']|([^ \t\n\f\r;]*))""", re.IGNORECASE
)
_XML = re.compile(r"""<\?xml[^>]*?encoding[\x00-\x20]*=[\x00-\x20]*(?:"([^"\x00-\x20>]*)"|'([^'\x00-\x20>]*)')""")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
# Bytes of encoded characters that are not percent-encoded. `&`, `#` and `;` of character references are.
_SAFE_IN_QUERY = "!$()*+,-./:=?@[\\]^_`{|}~"


def encoding_of(body: bytes, charset: str | None = None) -> str:
    """Return the encoding of a page, by its name in the Encoding standard, in lower case. Plain ASCII counts as UTF-8.

    >>> encoding_of(b"<p>"), encoding_of(b"\\xe9t\\xe9"), encoding_of(b"caf\\xc3\\xa9"), encoding_of(b"\\xe9", "Latin1")
    ('utf-8', 'windows-1252', 'utf-8', 'windows-1252')
    """
    declared = named(charset) if charset else None
    if declared == UTF_8 and body[:1] not in _UTF_16_FIRST_BYTES:
        return UTF_8  # only a mark of UTF-16 could overrule it
    if body.isascii() and _ESCAPE not in body and not (declared and declared.startswith("utf-16")):
        return UTF_8
    return _found(body, declared)


def query_encoding(body: bytes, charset: str | None = None) -> str:
    """Return the encoding in which the queries of a page's links are sent.

    It matters for ASCII pages too, whose character references may stand for any character.

    >>> query_encoding(b"<meta charset=iso-8859-1>"), query_encoding(b"<p>")
    ('windows-1252', 'utf-8')
    """
    return _found(body, named(charset) if charset else None)


def is_ascii_based(encoding: str) -> bool:
    """Return whether this encoding writes `<`, `>`, `&`, `=`, `/`, quotes and blanks as in ASCII, and nothing else as these bytes."""
    return not encoding.startswith("utf-16") and encoding != "iso-2022-jp"


def _found(body: bytes, declared: str | None) -> str:
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return encoding
    return declared or prescan(body[:_PRESCANNED_BYTES]) or _undeclared(body)


def decode(body: bytes, encoding: str) -> str:
    """Decode a body; what cannot be decoded becomes U+FFFD."""
    if encoding == UTF_8:
        return body.decode("utf-8", "replace")
    return _decoder(encoding)(body, "replace")[0]


@lru_cache(maxsize=64)
def _decoder(encoding: str) -> Callable[[bytes, str], tuple[str, int]]:
    return lookup(encoding).codec_info.decode


def named(label: str) -> str | None:
    """Return the encoding of a label, by the table of the Encoding standard; None if it is unknown."""
    return _named(label[:_MOST_LABEL])


@lru_cache(maxsize=512)
def _named(label: str) -> str | None:
    found = lookup(label)
    return found.name if found and found.name != "replacement" else None


def prescan(head: bytes) -> str | None:
    """Return the encoding that a page declares in its first bytes, in a meta element or else in an XML declaration."""
    ascii = head.decode("latin-1")
    for attributes in _META.findall(ascii):
        if attributes and (encoding := _declared(values(attributes))):
            return encoding
    found = _XML.match(ascii)
    return _readable(found[1] or found[2]) if found else None


def _declared(meta: dict[str, str]) -> str | None:
    if "charset" in meta:
        return _readable(meta["charset"])
    if meta.get("http-equiv", "").lower() != "content-type":
        return None
    found = _CHARSET.search(meta.get("content", ""))
    return _readable(found[1] or found[2] or found[3] or "") if found else None


def _readable(label: str) -> str | None:
    """Return the encoding of a declared label. A declared UTF-16 means UTF-8, because the declaration was readable as ASCII."""
    encoding = named(label)
    if encoding is None:
        return None
    return {"utf-16le": UTF_8, "utf-16be": UTF_8, "x-user-defined": _FALLBACK}.get(encoding, encoding)


def _undeclared(body: bytes) -> str:
    """Return UTF-8 if the body is valid UTF-8; else what is declared later, or the fallback.

    The check goes piece by piece, so that it does not decode a long body as a whole.
    """
    at, checked = 0, 0
    while at < len(body) and checked < _CHECKED_BYTES:
        piece = body[at : at + _PIECE_BYTES]
        if not piece.isascii():
            checked += len(piece)
            try:
                _, read = utf_8_decode(piece, "strict", False)  # not final: a piece may end within a character
            except UnicodeDecodeError:
                return prescan(body[:_LATE_BYTES]) or _FALLBACK
            piece = piece[:read]
        at += len(piece)
        if len(piece) < _PIECE_BYTES - 3:
            break
    return UTF_8


def in_encoding(link: str, encoding: str) -> str:
    """Return a link with its query as a browser sends it: percent-encoded in the encoding of its page.

    >>> in_encoding("/é?q=é#é", "windows-1252")
    '/é?q=%E9#é'
    """
    before, hash_mark, fragment = link.partition("#")
    path, mark, query = before.partition("?")
    if query.isascii() or encoding.startswith("utf-"):
        return link
    return path + mark + _NOT_ASCII.sub(lambda found: _escaped(found[0], encoding), query) + hash_mark + fragment


def _escaped(characters: str, encoding: str) -> str:
    encoded, _ = lookup(encoding).codec_info.encode(characters, "xmlcharrefreplace")
    return quote(encoded, safe=_SAFE_IN_QUERY)
