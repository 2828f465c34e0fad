"""An answer as bytes, and how they are to leave. It knows HTTP's form and no web."""

from enum import Enum, auto
from http import HTTPStatus
from typing import NamedTuple

OTHER, ROBOTS_FILE = -2, -1
"""Instead of a page's number: something else; a robots.txt."""


class Sending(Enum):
    """How an answer leaves."""

    WHOLE = auto()
    THEN_CLOSE = auto()
    HALF_THEN_RESET = auto()
    NEVER = auto()
    DRIBBLED = auto()
    """a byte a second"""
    ENDLESS_BODY = auto()
    """its head, then its body again and again"""
    ENDLESS_HEAD = auto()
    """its head does not end: its body, again and again, is more of it"""


class Answer(NamedTuple):
    status: int
    head: bytes
    """status line and fields, each with its line end; without the connection's own and the empty line. b"": the body is all that
    is sent, and it is no HTTP"""
    body: bytes
    sending: Sending = Sending.WHOLE
    page: int = OTHER
    version: int = -1
    """of the page, if it is sent whole or confirmed"""

    def message(self, fields: bytes = b"") -> bytes:
        """All the bytes. `fields`: what the connection says of itself."""
        return ready(self).message(fields)


class Ready(NamedTuple):
    """An answer in one piece, as it is kept and sent."""

    status: int
    text: bytes
    cut: int
    """where the connection's fields go; 0: nowhere"""
    sending: Sending
    page: int
    version: int
    repeated: bytes
    """by endless answers"""

    def message(self, fields: bytes) -> bytes:
        if not fields or not self.cut:
            return self.text
        return b"".join((self.text[: self.cut], fields, self.text[self.cut :]))


def ready(answer: Answer) -> Ready:
    endless = answer.sending in (Sending.ENDLESS_BODY, Sending.ENDLESS_HEAD)
    headed = answer.head and answer.sending is not Sending.ENDLESS_HEAD
    text = b"".join((answer.head, b"\r\n" if headed else b"", answer.body))
    repeated = answer.body if endless else b""
    cut = len(answer.head) if headed else 0
    return Ready(answer.status, text, cut, answer.sending, answer.page, answer.version, repeated)


_REASONS = {int(status): status.phrase for status in HTTPStatus}


def head(status: int, *fields: str, http10: bool = False) -> bytes:
    return "\r\n".join((f"HTTP/1.{0 if http10 else 1} {status} {_REASONS[status]}", *fields, "")).encode()


def plain(status: int, *fields: str, http10: bool = False, body: bytes | None = None) -> Answer:
    """Text; without a body given, its own status in words."""
    body = f"{status} {_REASONS[status]}\n".encode() if body is None else body
    about = ("Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}", *fields)
    return Answer(status, head(status, *about, http10=http10), body)


def html(body: bytes, http10: bool, page: int = OTHER, version: int = -1) -> Answer:
    """A page as it should be."""
    start = _HTML10 if http10 else _HTML11
    return Answer(200, b"%bContent-Length: %d\r\n" % (start, len(body)), body, Sending.WHOLE, page, version)


_HTML10, _HTML11 = (head(200, "Content-Type: text/html; charset=utf-8", http10=http10) for http10 in (True, False))
