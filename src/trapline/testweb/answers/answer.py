"""The answer of a web to a request: a pure function, so that a crawl in virtual time can get answers without a network.

An answer depends on the web, on the time if the web changes, and on whether the page was requested before (for faults
that occur once). This module knows no connections: `connection` decides when one ends.
"""

import gzip
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from trapline.testweb.answers import robots_txt
from trapline.testweb.answers.message import ROBOTS_FILE, Request, Sending, ServedAnswer, head, html, plain
from trapline.testweb.answers.published import fields, published, robots_lines
from trapline.testweb.answers.redirects import location
from trapline.testweb.answers.render import render
from trapline.testweb.answers.validators import ServedValidators, http_date, validators
from trapline.testweb.web.behaviour import HARMLESS
from trapline.testweb.web.paths import EXTRA, ROBOTS_TXT
from trapline.testweb.web.served_web import ServedWeb

# ---- Faulty answers: one function for each fault, by the names of `behaviour`.
#
# Each takes the real body of the page and returns the bytes and how to send them. It opens no socket; `connection` sends.

BOMB_BYTES = 100_000_000
"""size to which the 100 kB of the gzip bomb expand"""
CHUNK_BYTES = 1_000
_HTML = "Content-Type: text/html; charset=utf-8"


class FaultContext(NamedTuple):
    """The inputs of a faulty answer."""

    body: bytes
    http10: bool
    http11_client: bool
    gzip: bool
    retry_after_s: int

    def whole(self) -> ServedAnswer:
        return html(self.body, self.http10)

    def head(self, *fields: str) -> bytes:
        return head(200, _HTML, *fields, http10=self.http10)

    def refused(self, status: int, *fields: str) -> ServedAnswer:
        return plain(status, *fields, http10=self.http10)


def faulty(web: ServedWeb, page: int, fault: str, request: Request, now: float) -> ServedAnswer:
    behaviour = web.behaviours[web.site[page]]
    context = FaultContext(
        render(web, page, now), behaviour.http10, request.http11, request.gzip, behaviour.retry_after_s
    )
    return BY_NAME[fault](context)


# ---- harmless


def _chunked(context: FaultContext) -> ServedAnswer:
    if context.http10 or not context.http11_client:
        return context.whole()
    return ServedAnswer(200, context.head("Transfer-Encoding: chunked"), b"".join(_chunks(context.body)) + b"0\r\n\r\n")


def _chunks(body: bytes) -> list[bytes]:
    pieces = (body[start : start + CHUNK_BYTES] for start in range(0, len(body), CHUNK_BYTES))
    return [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]


def _gzip(context: FaultContext) -> ServedAnswer:
    if not context.gzip:
        return context.whole()
    return _coded(context, gzip.compress(context.body, 1, mtime=0))


def _coded(context: FaultContext, coded: bytes) -> ServedAnswer:
    return ServedAnswer(200, context.head("Content-Encoding: gzip", f"Content-Length: {len(coded)}"), coded)


def _no_length(context: FaultContext) -> ServedAnswer:
    return ServedAnswer(200, context.head(), context.body, Sending.THEN_CLOSE)


# ---- refusals


def _unavailable(context: FaultContext) -> ServedAnswer:
    return context.refused(503, f"Retry-After: {context.retry_after_s}")


def _too_many(context: FaultContext) -> ServedAnswer:
    return context.refused(429, f"Retry-After: {context.retry_after_s}")


# ---- attacks


def _empty(context: FaultContext) -> ServedAnswer:
    return ServedAnswer(0, b"", b"", Sending.THEN_CLOSE)


def _silent(context: FaultContext) -> ServedAnswer:
    return ServedAnswer(0, b"", b"", Sending.NEVER)


def _reset(context: FaultContext) -> ServedAnswer:
    return context.whole()._replace(sending=Sending.HALF_THEN_RESET)


def _short_body(context: FaultContext) -> ServedAnswer:
    """Send less than Content-Length promises, then close the connection."""
    return ServedAnswer(
        200, context.head(f"Content-Length: {len(context.body) + 1_000}"), context.body, Sending.THEN_CLOSE
    )


def _long_body(context: FaultContext) -> ServedAnswer:
    """Send more than Content-Length says: the rest comes where the next answer should begin."""
    return ServedAnswer(200, context.head(f"Content-Length: {len(context.body) // 2}"), context.body)


def _dribble(context: FaultContext) -> ServedAnswer:
    return context.whole()._replace(sending=Sending.DRIBBLED)


def _bad_chunks(context: FaultContext) -> ServedAnswer:
    body = b"".join(_chunks(context.body)[:1]) + b"no number\r\n" + context.body
    return ServedAnswer(200, context.head("Transfer-Encoding: chunked"), body, Sending.THEN_CLOSE)


def _broken_gzip(context: FaultContext) -> ServedAnswer:
    coded = gzip.compress(context.body, 1, mtime=0)
    return _coded(context, coded[:10] + bytes(255 - byte for byte in coded[10:]))


def _gzip_bomb(context: FaultContext) -> ServedAnswer:
    return _coded(context, _bomb())


@cache
def _bomb() -> bytes:
    return gzip.compress(bytes(BOMB_BYTES), 9, mtime=0)


def _endless_body(context: FaultContext) -> ServedAnswer:
    return ServedAnswer(200, context.head(), context.body or b"\n", Sending.ENDLESS_BODY)


def _endless_headers(context: FaultContext) -> ServedAnswer:
    lines = b"".join(b"X-Field-%d: %b\r\n" % (number, b"x" * 60) for number in range(20))
    return ServedAnswer(200, context.head(), lines, Sending.ENDLESS_HEAD)


def _garbage(context: FaultContext) -> ServedAnswer:
    noise = bytes((number * 167 + 13) % 256 for number in range(2_000))
    return ServedAnswer(0, b"", noise, Sending.THEN_CLOSE)


BY_NAME: dict[str, Callable[[FaultContext], ServedAnswer]] = {
    "chunked": _chunked,
    "gzip": _gzip,
    "no-length": _no_length,
    "not-found": lambda context: context.refused(404),
    "gone": lambda context: context.refused(410),
    "error": lambda context: context.refused(500),
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


# ---- answer


def answer(
    web: ServedWeb, site: int, request: Request, requested_before: bool = False, now: float = 0.0
) -> ServedAnswer:
    """Return the answer of the site at the time `now`, in seconds since 1970.

    `requested_before` says that the same request was answered before. HEAD gets the answer to GET without its body.
    """
    if request.method not in ("GET", "HEAD"):
        return plain(405, "Allow: GET, HEAD", http10=web.behaviours[site].http10)
    made = _answer(web, site, request, requested_before, now)
    return made._replace(body=b"", version=-1) if request.method == "HEAD" else made


def _answer(web: ServedWeb, site: int, request: Request, requested_before: bool, now: float) -> ServedAnswer:
    http10, target = web.behaviours[site].http10, request.target
    if target == ROBOTS_TXT:
        return _robots(web, site)._replace(page=ROBOTS_FILE)
    page = web.paths.page(site, target)
    if page >= 0:
        return _page(web, page, request, requested_before, now)
    if web.providers and (file := published(web, site, target, now)):
        return file
    if target.startswith(EXTRA):
        if moved := location(web, site, target):
            return plain(moved[0], f"Location: {moved[1]}", http10=http10)
        number = target.removeprefix(f"{EXTRA}robots/")
        if number.isdecimal() and number.isascii() and len(number) < 10 and int(number) < web.sites:
            return plain(200, http10=http10, body=robots_txt.text(web, int(number)))._replace(page=ROBOTS_FILE)
    return plain(404, http10=http10)


def _robots(web: ServedWeb, site: int) -> ServedAnswer:
    http10, kind = web.behaviours[site].http10, web.behaviours[site].robots
    if kind == "none" and not robots_lines(web, site):
        return plain(404, http10=http10)
    if kind == "error":
        return plain(503, http10=http10)
    if elsewhere := robots_txt.location(web, site):
        return plain(301, f"Location: {elsewhere}", http10=http10)
    made = plain(200, http10=http10, body=robots_txt.text(web, site))
    return made._replace(sending=Sending.HALF_THEN_RESET) if kind == "reset" else made


def _page(web: ServedWeb, page: int, request: Request, requested_before: bool, now: float) -> ServedAnswer:
    http10, fault = web.behaviours[web.site[page]].http10, web.fault(page)
    if requested_before and fault == "unavailable-once":
        fault = ""
    if web.constant and not fault:
        return html(render(web, page), http10, page, version=0)
    if not web.exists(page, now):
        return plain(404, http10=http10)._replace(page=page)
    if fault:
        version = web.version(page, now) if fault in HARMLESS else -1
        return faulty(web, page, fault, request, now)._replace(page=page, version=version)
    return _version(web, page, request, now)


def _version(web: ServedWeb, page: int, request: Request, now: float) -> ServedAnswer:
    """Return the answer for a page that may change or that has validators."""
    http10, version = web.behaviours[web.site[page]].http10, web.version(page, now)
    valid = validators(web, page, now)
    if valid.confirm(request):
        return ServedAnswer(
            304, head(304, http10=http10) + _about(web, page, valid, now), b"", page=page, version=version
        )
    made = html(render(web, page, now), http10, page, version)
    return made._replace(head=made.head + _about(web, page, valid, now))


def _about(web: ServedWeb, page: int, valid: ServedValidators, now: float) -> bytes:
    lines = (f"Date: {http_date(now)}", *valid.fields(), *fields(web, page))
    return "".join(f"{line}\r\n" for line in lines).encode()
