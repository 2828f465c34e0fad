"""What an answer gives us to ask "has it changed?" by the next time, and how that is asked. RFC 9110, sections 8.8 and 13.1.

Pure, and part of steps 5 and 9 of the way of a URL. It knows headers and nothing of what is done with them. The values are a server's,
go into a database and back into a request: whatever bytes come, what is written is at most two header lines, of at most 1 KB each.
"""

import re
from typing import NamedTuple

from trapline.fetch.headers import http_date

MOST_BYTES = 1024  # of a value; a longer one is not kept
# An entity tag, in the standard's form; or without its quotes, as some servers have it. Neither a list nor `*`, which is everything.
_ETAG = re.compile(rb'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"|[A-Za-z0-9._:+/=~-]+')
_DATE = re.compile(rb"[A-Za-z0-9,: +-]{1,64}")

_WEB_BEGAN = 631_152_000.0  # 1990: a page that claims to be older has no clock
# A server that says "modified now" says so each time: it stamps its answers.
_NOW_S = 5.0


class Validators(NamedTuple):
    """As the server wrote them; b"": none."""

    etag: bytes = b""
    modified: bytes = b""

    def renewed(self, headers: dict[bytes, bytes]) -> "Validators":
        """As they are after an answer that the page has not changed, which may bring others (RFC 9111, section 3.2)."""
        new = validators_of(headers)
        return Validators(new.etag or self.etag, new.modified or self.modified)


NO_VALIDATORS = Validators()


def validators_of(headers: dict[bytes, bytes]) -> Validators:
    """
    >>> validators_of({b"etag": b'W/"67ab43"', b"last-modified": b"Mon, 12 Oct 2025 07:28:00 GMT"}).etag
    b'W/"67ab43"'
    """
    etag, modified = headers.get(b"etag", b""), headers.get(b"last-modified", b"")
    if not (etag or modified):
        return NO_VALIDATORS
    return Validators(_fit(_ETAG, etag), _fit(_DATE, modified))


def _fit(pattern: re.Pattern[bytes], value: bytes) -> bytes:
    return value if len(value) <= MOST_BYTES and pattern.fullmatch(value) else b""


def conditional(validators: Validators) -> bytes:
    """The header lines that ask for a page only if it is another than the one with these validators; b"": nothing to ask by.

    Both are sent: who understands the first ignores the second.

    >>> conditional(Validators(b'"a"', b""))
    b'If-None-Match: "a"\\r\\n'
    """
    etag, modified = _fit(_ETAG, validators.etag), _fit(_DATE, validators.modified)
    lines = b"If-None-Match: " + etag + b"\r\n" if etag else b""
    return lines + b"If-Modified-Since: " + modified + b"\r\n" if modified else lines


def modified_at(validators: Validators, now_wall: float) -> float | None:
    """When the page last changed by its Last-Modified, in seconds since 1970; None if that cannot be believed: no date, one before there
    were pages, in the future, or of just now.

    >>> modified_at(Validators(b"", b"Sun, 12 Oct 2025 07:28:00 GMT"), 1.8e9)
    1760254080.0
    """
    at = http_date(validators.modified) if validators.modified else None
    return at if at is not None and _WEB_BEGAN <= at < now_wall - _NOW_S else None
