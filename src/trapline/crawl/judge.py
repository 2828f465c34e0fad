"""What comes of an answer: is the page had, may it be tried again, where do its links lead, does the server want to rest?

Pure: bytes and numbers in, a verdict out. Step 6 of the way of a URL, and what the frontier is told in step 8.
"""

from typing import NamedTuple

from trapline.fetch import failure
from trapline.fetch.content import decoded
from trapline.fetch.fingerprint import fingerprint, of_redirect
from trapline.fetch.headers import content_type, link_targets, retry_after_s, robots_marks, url_text
from trapline.fetch.links import NO_LINKS, Links
from trapline.fetch.markup import BYTES_OF_A_PAGE
from trapline.fetch.page import NOFOLLOW, is_html, read_page
from trapline.fetch.response import Response
from trapline.frontier import FAILED, FETCHED, REFUSED

# RFC 9110: the server may answer another time. Every other 4xx is an answer for good.
_TRY_AGAIN = frozenset({408, 425, 429})
_WANTS_REST = frozenset({429, 503})
NOT_MODIFIED = 304
_NO_TEXT = "application/octet-stream"
_MEDIA = ("image/", "video/", "audio/", "font/")


class Verdict(NamedTuple):
    result: int  # FETCHED, FAILED or REFUSED
    error: str  # a kind of fetch/failure.py, or ""
    mime: str
    marks: int
    links: Links  # to follow
    base: str  # what they are relative to; "": the page's own URL
    rest_s: float  # what the server asks for; 0: nothing
    ends_visit: bool  # a server in trouble is left alone
    unchanged: bool = False  # the page is as we have it, says the server, and was asked for that
    fingerprint: bytes = b""  # of what people read; b"": not asked for, or not known
    body: bytes = b""  # decoded; b"": it cannot be, or nobody reads this type


def judge(
    response: Response,
    agent: str,
    expanded_bytes: int,
    now_wall: float,
    conditional: bool = False,
    fingerprints: bool = False,
) -> Verdict:
    """The verdict on an answer that is whole, or cut at a limit. `conditional`: the page was asked for only if it has changed."""
    status, headers = response.status, response.headers
    mime, charset = content_type(headers.get(b"content-type", b""))
    marks = robots_marks(headers[b"x-robots-tag"], agent) if b"x-robots-tag" in headers else 0
    if 200 <= status < 300:
        return _page(response, mime, charset, marks, agent, expanded_bytes, fingerprints)
    if status == NOT_MODIFIED:
        return _not_modified(mime, marks, conditional)
    if 300 <= status < 400:
        where = of_redirect(headers.get(b"location", b"")) if fingerprints else b""
        return Verdict(FETCHED, "", mime, marks, _location(headers), "", 0.0, False, fingerprint=where)
    rest_s = retry_after_s(headers.get(b"retry-after", b""), now_wall) or 0.0 if status in _WANTS_REST else 0.0
    result = FAILED if status >= 500 or status in _TRY_AGAIN or status < 200 else REFUSED
    return Verdict(result, failure.HTTP, mime, marks, NO_LINKS, "", rest_s, result == FAILED)


def _not_modified(mime: str, marks: int, conditional: bool) -> Verdict:
    """To one who has nothing it says nothing: then it is no answer."""
    if conditional:
        return Verdict(FETCHED, "", mime, marks, NO_LINKS, "", 0.0, False, unchanged=True)
    return Verdict(FAILED, failure.HTTP, mime, marks, NO_LINKS, "", 0.0, True)


def _page(
    response: Response, mime: str, charset: str | None, marks: int, agent: str, most: int, fingerprints: bool
) -> Verdict:
    headers = response.headers
    follows = b"link" in headers and not marks & NOFOLLOW
    more = [target for target, _ in link_targets(headers[b"link"])] if follows else []
    coded = bool(response.codings)
    if coded and not _is_read(mime, fingerprints):
        as_received = _fingerprint(response, "", mime, charset) if fingerprints else b""
        return Verdict(FETCHED, "", mime, marks, Links.of(more), "", 0.0, False, fingerprint=as_received)
    body = _content(response, mime, most, fingerprints) if coded else response.body
    read = _fingerprint(response, body, mime, charset) if fingerprints else b""
    if isinstance(body, str):  # it cannot be read, but it is had
        return Verdict(FETCHED, body, mime, marks, Links.of(more), "", 0.0, False, fingerprint=read)
    if not is_html(mime, body):
        return Verdict(FETCHED, "", mime, marks, Links.of(more), "", 0.0, False, False, read, body)
    facts = read_page(body, charset, agent)
    marks |= facts.marks
    links = NO_LINKS if marks & NOFOLLOW else facts.links.followed_by(more)
    return Verdict(FETCHED, "", mime, marks, links, facts.base or "", 0.0, False, False, read, body)


def _is_read(mime: str, fingerprints: bool) -> bool:
    """Whether anybody reads such a body. Those who ask for fingerprints also read lists, which come as any type but these."""
    return is_html(mime, b"") or not mime or (fingerprints and not mime.startswith(_MEDIA))


def _content(response: Response, mime: str, most: int, fingerprints: bool) -> bytes | str:
    """A body without its codings. More of a page than is read need not be made; lists are read whole."""
    is_page = is_html(mime, b"") or not fingerprints
    cut = is_page and most >= BYTES_OF_A_PAGE
    return decoded(response.body, response.codings, BYTES_OF_A_PAGE if cut else most, cut)


def _fingerprint(response: Response, body: bytes | str, mime: str, charset: str | None) -> bytes:
    """`body`: decoded; text: it is not, and the bytes count as they were received."""
    if response.truncated == "time":
        return b""  # the next time it would be cut elsewhere
    return fingerprint(response.body, _NO_TEXT) if isinstance(body, str) else fingerprint(body, mime, charset)


def _location(headers: dict[bytes, bytes]) -> Links:
    """Where a redirect leads: a URL discovered like any other, with a rank and a turn of its own."""
    where = headers.get(b"location")
    return Links.of([url_text(where).strip()]) if where else NO_LINKS
