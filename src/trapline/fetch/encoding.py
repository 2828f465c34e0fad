"""In which encoding a page is written, as browsers find out, and its text.

Step 6 of the way of a URL, before any tag is read. It knows HTML's declarations and nothing else of HTML.

The order is the HTML standard's: a byte order mark, the charset of the Content-Type, a declaration in the first 1024 bytes.
Differs from browsers: if nothing is declared there they guess (by the reader's language, by statistics, windows-1252) and begin
again at a later declaration; here it is UTF-8 if the bytes are valid UTF-8, else what is declared later, else
windows-1252. And a label that stands for no text at all (`replacement`, a defence against scripts) is passed over.
"""

import re
from codecs import utf_8_decode
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import quote

from webencodings import lookup

from trapline.fetch.markup import ATTRIBUTES, any_case, values

UTF_8 = "utf-8"
_FALLBACK = "windows-1252"
_MARKS = ((b"\xef\xbb\xbf", UTF_8), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
_PRESCANNED_BYTES = 1024
# Where a late declaration is looked for; the latest of 7,448 real pages begins at byte 3,136.
_LATE_BYTES = 64 * 1024
_CHECKED_BYTES = 1 << 20  # that must be valid to be UTF-8, from the first piece on that is not ASCII
_PIECE_BYTES = 1 << 16
_MOST_LABEL = 64  # characters that are looked up and kept
_ESCAPE = b"\x1b"  # the one byte of ASCII that means something else elsewhere: in ISO-2022-JP

# "Prescan a byte stream to determine its encoding": tags are passed over whole, comments too, scripts are not.
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
_SAFE_IN_QUERY = "!$()*+,-./:=?@[\\]^_`{|}~"  # of the bytes of a character; those of a reference to one are not


def encoding_of(body: bytes, charset: str | None = None) -> str:
    """The encoding's name in the Encoding standard, in lower case. Plain ASCII is called UTF-8.

    >>> encoding_of(b"<p>"), encoding_of(b"\\xe9t\\xe9"), encoding_of(b"caf\\xc3\\xa9"), encoding_of(b"\\xe9", "Latin1")
    ('utf-8', 'windows-1252', 'utf-8', 'windows-1252')
    """
    declared = named(charset) if charset else None
    if body.isascii() and _ESCAPE not in body and not (declared and declared.startswith("utf-16")):
        return UTF_8
    return _found(body, declared)


def query_encoding(body: bytes, charset: str | None = None) -> str:
    """The encoding that the queries of a page's links are sent in: also of a page in ASCII, whose references may stand for any character.

    >>> query_encoding(b"<meta charset=iso-8859-1>"), query_encoding(b"<p>")
    ('windows-1252', 'utf-8')
    """
    return _found(body, named(charset) if charset else None)


def is_ascii_based(encoding: str) -> bool:
    """Whether `<`, `>`, `&`, `=`, `/`, quotes and blanks in this encoding are these bytes, and these bytes nothing else."""
    return not encoding.startswith("utf-16") and encoding != "iso-2022-jp"


def _found(body: bytes, declared: str | None) -> str:
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return encoding
    return declared or prescan(body[:_PRESCANNED_BYTES]) or _undeclared(body)


def decode(body: bytes, encoding: str) -> str:
    """The body as text; what cannot be read becomes U+FFFD."""
    if encoding == UTF_8:
        return body.decode("utf-8", "replace")
    return _decoder(encoding)(body, "replace")[0]


@lru_cache(maxsize=64)
def _decoder(encoding: str) -> Callable[[bytes, str], tuple[str, int]]:
    return lookup(encoding).codec_info.decode


def named(label: str) -> str | None:
    """The encoding that a label stands for, by the table of the Encoding standard; None if for none."""
    return _named(label[:_MOST_LABEL])


@lru_cache(maxsize=512)
def _named(label: str) -> str | None:
    found = lookup(label)
    return found.name if found and found.name != "replacement" else None


def prescan(head: bytes) -> str | None:
    """What a page declares at its beginning, in a meta element or failing that an XML declaration."""
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
    """A declaration that could be read as ASCII is not itself UTF-16."""
    encoding = named(label)
    if encoding is None:
        return None
    return {"utf-16le": UTF_8, "utf-16be": UTF_8, "x-user-defined": _FALLBACK}.get(encoding, encoding)


def _undeclared(body: bytes) -> str:
    """UTF-8 if it is valid, piece by piece, so that no text is made of a long body; else what is declared later."""
    at, checked = 0, 0
    while at < len(body) and checked < _CHECKED_BYTES:
        piece = body[at : at + _PIECE_BYTES]
        if not piece.isascii():
            checked += len(piece)
            try:
                _, read = utf_8_decode(piece, "strict", False)  # False: a piece may end within a character
            except UnicodeDecodeError:
                return prescan(body[:_LATE_BYTES]) or _FALLBACK
            piece = piece[:read]
        at += len(piece)
        if len(piece) < _PIECE_BYTES - 3:
            break
    return UTF_8


def in_encoding(link: str, encoding: str) -> str:
    """A link whose query is written as a browser sends it: in the encoding of the page that it stands on.

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
