"""What goes out instead of a page that misbehaves: one function a fault, by the names of `behaviour`.

Each takes the page's real body and answers with the bytes and how they leave. It opens no socket; `connection` sends.
"""

import gzip
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from trapline.testweb.message import Answer, Sending, head, html, plain
from trapline.testweb.render import render
from trapline.testweb.request import Request
from trapline.testweb.web import Web

BOMB_BYTES = 100_000_000
"""what the bomb's 100 kB expand to"""
CHUNK_BYTES = 1_000
_HTML = "Content-Type: text/html; charset=utf-8"


class Asked(NamedTuple):
    """What a fault may depend on."""

    body: bytes
    http10: bool
    http11_client: bool
    gzip: bool
    retry_after_s: int

    def whole(self) -> Answer:
        return html(self.body, self.http10)

    def head(self, *fields: str) -> bytes:
        return head(200, _HTML, *fields, http10=self.http10)

    def refused(self, status: int, *fields: str) -> Answer:
        return plain(status, *fields, http10=self.http10)


def faulty(web: Web, page: int, fault: str, request: Request, now: float) -> Answer:
    behaviour = web.behaviours[web.site[page]]
    asked = Asked(render(web, page, now), behaviour.http10, request.http11, request.gzip, behaviour.retry_after_s)
    return BY_NAME[fault](asked)


# ---- harmless


def _chunked(asked: Asked) -> Answer:
    if asked.http10 or not asked.http11_client:
        return asked.whole()
    return Answer(200, asked.head("Transfer-Encoding: chunked"), b"".join(_chunks(asked.body)) + b"0\r\n\r\n")


def _chunks(body: bytes) -> list[bytes]:
    pieces = (body[start : start + CHUNK_BYTES] for start in range(0, len(body), CHUNK_BYTES))
    return [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]


def _gzip(asked: Asked) -> Answer:
    if not asked.gzip:
        return asked.whole()
    return _coded(asked, gzip.compress(asked.body, 1, mtime=0))


def _coded(asked: Asked, coded: bytes) -> Answer:
    return Answer(200, asked.head("Content-Encoding: gzip", f"Content-Length: {len(coded)}"), coded)


def _no_length(asked: Asked) -> Answer:
    return Answer(200, asked.head(), asked.body, Sending.THEN_CLOSE)


# ---- refusals


def _unavailable(asked: Asked) -> Answer:
    return asked.refused(503, f"Retry-After: {asked.retry_after_s}")


def _too_many(asked: Asked) -> Answer:
    return asked.refused(429, f"Retry-After: {asked.retry_after_s}")


# ---- attacks


def _empty(asked: Asked) -> Answer:
    return Answer(0, b"", b"", Sending.THEN_CLOSE)


def _silent(asked: Asked) -> Answer:
    return Answer(0, b"", b"", Sending.NEVER)


def _reset(asked: Asked) -> Answer:
    return asked.whole()._replace(sending=Sending.HALF_THEN_RESET)


def _short_body(asked: Asked) -> Answer:
    """Less than Content-Length promises; then the end."""
    return Answer(200, asked.head(f"Content-Length: {len(asked.body) + 1_000}"), asked.body, Sending.THEN_CLOSE)


def _long_body(asked: Asked) -> Answer:
    """More than Content-Length says: the rest stands where the next answer should."""
    return Answer(200, asked.head(f"Content-Length: {len(asked.body) // 2}"), asked.body)


def _dribble(asked: Asked) -> Answer:
    return asked.whole()._replace(sending=Sending.DRIBBLED)


def _bad_chunks(asked: Asked) -> Answer:
    body = b"".join(_chunks(asked.body)[:1]) + b"no number\r\n" + asked.body
    return Answer(200, asked.head("Transfer-Encoding: chunked"), body, Sending.THEN_CLOSE)


def _broken_gzip(asked: Asked) -> Answer:
    coded = gzip.compress(asked.body, 1, mtime=0)
    return _coded(asked, coded[:10] + bytes(255 - byte for byte in coded[10:]))


def _gzip_bomb(asked: Asked) -> Answer:
    return _coded(asked, _bomb())


@cache
def _bomb() -> bytes:
    return gzip.compress(bytes(BOMB_BYTES), 9, mtime=0)


def _endless_body(asked: Asked) -> Answer:
    return Answer(200, asked.head(), asked.body or b"\n", Sending.ENDLESS_BODY)


def _endless_headers(asked: Asked) -> Answer:
    lines = b"".join(b"X-Field-%d: %b\r\n" % (number, b"x" * 60) for number in range(20))
    return Answer(200, asked.head(), lines, Sending.ENDLESS_HEAD)


def _garbage(asked: Asked) -> Answer:
    noise = bytes((number * 167 + 13) % 256 for number in range(2_000))
    return Answer(0, b"", noise, Sending.THEN_CLOSE)


BY_NAME: dict[str, Callable[[Asked], Answer]] = {
    "chunked": _chunked,
    "gzip": _gzip,
    "no-length": _no_length,
    "not-found": lambda asked: asked.refused(404),
    "gone": lambda asked: asked.refused(410),
    "error": lambda asked: asked.refused(500),
    "unavailable": _unavailable,
    "unavailable-once": _unavailable,
    "too-many": _too_many,
    "empty": _empty,
    "silent": _silent,
    "reset": _reset,
    "short-body": _short_body,
    "long-body": _long_body,
    "dribble": _dribble,
    "bad-chunks": _bad_chunks,
    "broken-gzip": _broken_gzip,
    "gzip-bomb": _gzip_bomb,
    "endless-body": _endless_body,
    "endless-headers": _endless_headers,
    "garbage": _garbage,
}
