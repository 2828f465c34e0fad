"""A published file as UTF-8: gzip taken off, within a limit of bytes, in whatever encoding XML allows.

Shared by the readers of sitemaps and feeds. It knows nothing of what the file says. Not read: EBCDIC, which XML would allow too.
"""

import re

from trapline.fetch.content import decoded
from trapline.fetch.encoding import UTF_8, decode, named

GZIP = b"\x1f\x8b"

_UTF_8_MARK = b"\xef\xbb\xbf"
# Marks before their own beginnings: UTF-32's begins with that of UTF-16. Then `<` as it looks without a mark (XML 1.0, appendix F).
_BEGINNINGS = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_DECLARED = re.compile(rb"""\s*+<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")


def unpacked(body: bytes, most_bytes: int) -> bytes | None:
    """As UTF-8, of which a part may be unreadable; cut at the limit. None: gzip that is broken from the start, or expands beyond it."""
    if body.startswith(GZIP):
        expanded = decoded(body, b"gzip", most_bytes)
        if isinstance(expanded, str):
            return None
        body = expanded
    return _as_utf8(body[:most_bytes])


def _as_utf8(body: bytes) -> bytes:
    body = body.removeprefix(_UTF_8_MARK)
    for beginning, encoding in _BEGINNINGS:
        if body.startswith(beginning):
            return _up_to_damage(body, encoding).removeprefix("\ufeff").encode("utf-8", "replace")
    found = _DECLARED.match(body[:300])
    declared = (named(found[1].decode()) if found else None) or UTF_8
    if declared.startswith("utf-"):  # not UTF-16 either, if this could be read
        return body
    return decode(body, declared).encode("utf-8", "replace")


def _up_to_damage(body: bytes, encoding: str) -> str:
    """As XML asks for. To replace what is damaged instead takes a fifth of a microsecond for every byte of a file made of damage."""
    try:
        return body.decode(encoding)
    except UnicodeDecodeError as error:
        return body[: error.start].decode(encoding, "ignore")
