"""HTTP messages of the test web: requests as the server reads them, answers as bytes and how to send them.

This module knows the syntax of HTTP, and no web.
"""

from enum import Enum, auto
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

# ---- Requests: parses bytes into the values that an answer depends on. No socket, no web.

MOST_HEAD_BYTES = 65_536


class Fields(NamedTuple):
    """The header fields that matter to the server."""

    host: str  # without port, in lower case; "": missing
    close: bool
    keep_alive: bool
    gzip: bool
    body: bool  # whether a body follows
    ordinary: bool  # no options for the connection besides keep-alive, and no body
    none_match: str = ""  # If-None-Match, verbatim
    modified_since: str = ""  # If-Modified-Since, verbatim


class Request(NamedTuple):
    """A parsed request, with the values that an answer depends on."""

    method: str
    target: str  # path and query
    http11: bool
    gzip: bool  # whether the client accepts gzip
    none_match: str = ""
    modified_since: str = ""


def get(target: str) -> Request:
    return Request("GET", target, True, False)


def read_line(line: bytes, gzip: bool) -> Request | None:
    """Parse a request line; return None if it is invalid.

    >>> read_line(b"GET /a?b HTTP/1.0", False)[:4]
    ('GET', '/a?b', False, False)
    """
    parts = line.decode("latin-1").split(" ")
    if len(parts) != 3 or parts[2] not in ("HTTP/1.0", "HTTP/1.1") or not parts[1].startswith("/"):
        return None
    return Request(parts[0], parts[1], parts[2] == "HTTP/1.1", gzip)


@lru_cache(maxsize=10_000)
def read_fields(text: bytes) -> Fields:
    """Parse header fields. The result is cached, because a client sends the same fields with every request to a host."""
    found: dict[str, str] = {}
    for line in text.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        found[name.strip().lower()] = value.strip()
    connection = found.get("connection", "").lower()
    body = found.get("content-length", "0") != "0" or "transfer-encoding" in found
    return Fields(
        host=_without_port(found.get("host", "").lower()),
        close="close" in connection,
        keep_alive="keep-alive" in connection,
        gzip="gzip" in found.get("accept-encoding", "").lower(),
        body=body,
        ordinary=not (body or connection.replace("keep-alive", "")),
        none_match=found.get("if-none-match", ""),
        modified_since=found.get("if-modified-since", ""),
    )


def _without_port(host: str) -> str:
    """Remove the port from a Host field.

    >>> _without_port("a.org:8080"), _without_port("a.org")
    ('a.org', 'a.org')
    """
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


# ---- message

OTHER, ROBOTS_FILE = -2, -1
"""Numbers that stand in place of a page: OTHER for anything else, ROBOTS_FILE for a robots.txt."""


class Sending(Enum):
    """How an answer is sent."""

    WHOLE = auto()
    THEN_CLOSE = auto()
    HALF_THEN_RESET = auto()
    NEVER = auto()
    DRIBBLED = auto()
    """one byte a second"""
    ENDLESS_BODY = auto()
    """its head, then its body repeated without end"""
    ENDLESS_HEAD = auto()
    """a head without end: its body consists of further header fields, repeated without end"""


class ServedAnswer(NamedTuple):
    """An answer: its bytes, how to send them, and what the log records of it."""

    status: int
    head: bytes
    """status line and fields, each with its line end; without the fields of the connection and without the empty line. b"":
    only the body is sent, and it is not HTTP"""
    body: bytes
    sending: Sending = Sending.WHOLE
    page: int = OTHER
    version: int = -1
    """version of the page, if it is sent completely or confirmed by 304"""

    def message(self, fields: bytes = b"") -> bytes:
        """Return all the bytes. `fields` are the header fields that concern the connection."""
        return ready(self).message(fields)


class Ready(NamedTuple):
    """An answer as one piece of bytes, in the form in which it is cached and sent."""

    status: int
    text: bytes
    cut: int
    """where to insert the fields of the connection; 0: nowhere"""
    sending: Sending
    page: int
    version: int
    repeated: bytes
    """the part that an endless answer repeats"""

    def message(self, fields: bytes) -> bytes:
        if not fields or not self.cut:
            return self.text
        return b"".join((self.text[: self.cut], fields, self.text[self.cut :]))


def ready(answer: ServedAnswer) -> Ready:
    endless = answer.sending in (Sending.ENDLESS_BODY, Sending.ENDLESS_HEAD)
    headed = answer.head and answer.sending is not Sending.ENDLESS_HEAD
    text = b"".join((answer.head, b"\r\n" if headed else b"", answer.body))
    repeated = answer.body if endless else b""
    cut = len(answer.head) if headed else 0
    return Ready(answer.status, text, cut, answer.sending, answer.page, answer.version, repeated)


_REASONS = {int(status): status.phrase for status in HTTPStatus}


def head(status: int, *fields: str, http10: bool = False) -> bytes:
    return "\r\n".join((f"HTTP/1.{0 if http10 else 1} {status} {_REASONS[status]}", *fields, "")).encode()


def plain(status: int, *fields: str, http10: bool = False, body: bytes | None = None) -> ServedAnswer:
    """Return a plain-text answer. The default body is the status in words."""
    body = f"{status} {_REASONS[status]}\n".encode() if body is None else body
    about = ("Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}", *fields)
    return ServedAnswer(status, head(status, *about, http10=http10), body)


def html(body: bytes, http10: bool, page: int = OTHER, version: int = -1) -> ServedAnswer:
    """Return the regular answer for a page."""
    start = _HTML10 if http10 else _HTML11
    return ServedAnswer(200, b"%bContent-Length: %d\r\n" % (start, len(body)), body, Sending.WHOLE, page, version)


_HTML10, _HTML11 = (head(200, "Content-Type: text/html; charset=utf-8", http10=http10) for http10 in (True, False))
