"""The verdict on a response: whether the page is fetched or may be tried again, its links, and the delay that the server wants.

The functions are pure: bytes and numbers in, a verdict out. This is step 6 in docs/architecture.md; the frontier learns
the result in step 8.
"""

from typing import NamedTuple

from trapline.fetch import failure
from trapline.fetch.html.fingerprint import fingerprint, of_redirect
from trapline.fetch.html.markup import BYTES_OF_A_PAGE
from trapline.fetch.html.page import NO_LINKS, NOFOLLOW, Links, is_html, read_page
from trapline.fetch.http.content import decoded
from trapline.fetch.http.headers import content_type, link_targets, retry_after_s, robots_marks, url_text
from trapline.fetch.http.response import SKIPPED, Response
from trapline.frontier import FAILED, FETCHED, REFUSED

# RFC 9110: the server may give another answer later; 407 comes from a proxy, and says nothing about the page. Every other 4xx is final.
_TRY_AGAIN = frozenset({407, 408, 425, 429})
_MAY_SAY_RETRY_AFTER = frozenset({429, 503})
NOT_MODIFIED = 304
_NO_TEXT = "application/octet-stream"
_MEDIA = ("image/", "video/", "audio/", "font/")


class FetchVerdict(NamedTuple):
    result: int  # FETCHED, FAILED or REFUSED
    error: str  # a kind of fetch/failure.py, or ""
    mime: str
    marks: int
    links: Links  # to follow
    base: str  # the URL that the links are relative to; "": the page's own URL
    retry_after_s: float  # the delay that the server wants; 0: none
    ends_visit: bool  # whether the server is in trouble and gets no further request in this visit
    unchanged: bool = False  # whether the server confirmed our copy, in answer to a conditional request
    fingerprint: bytes = b""  # of the text that people read; b"": not wanted, or not known
    body: bytes = b""  # decoded; b"": it cannot be decoded, or bodies of this type are not read
    has_relations: bool = False  # whether a <link> in the body may name a feed, a sitemap, a schedule or a hub


def judge(
    response: Response,
    agent: str,
    expanded_bytes: int,
    now_wall: float,
    conditional: bool = False,
    fingerprints: bool = False,
    lists: bool = False,
) -> FetchVerdict:
    """Return the verdict on a response that is complete, or truncated at a limit. `conditional`: the request was a
    conditional one. `fingerprints`: whether the crawl compares pages with earlier copies. `lists`: whether it reads sitemaps
    and feeds."""
    status, headers = response.status, response.headers
    mime, charset = content_type(headers.get(b"content-type", b""))
    marks = robots_marks(headers[b"x-robots-tag"], agent) if b"x-robots-tag" in headers else 0
    if response.truncated == SKIPPED:
        return FetchVerdict(REFUSED, failure.MIME, mime, marks, NO_LINKS, "", 0.0, False)
    if 200 <= status < 300:
        return _page(response, mime, charset, marks, agent, expanded_bytes, fingerprints, lists or fingerprints)
    if status == NOT_MODIFIED:
        return _not_modified(mime, marks, conditional)
    if 300 <= status < 400:
        target = of_redirect(headers.get(b"location", b"")) if fingerprints else b""
        return FetchVerdict(FETCHED, "", mime, marks, _location(headers), "", 0.0, False, fingerprint=target)
    wanted_s = (
        retry_after_s(headers.get(b"retry-after", b""), now_wall) or 0.0 if status in _MAY_SAY_RETRY_AFTER else 0.0
    )
    result = FAILED if status >= 500 or status in _TRY_AGAIN or status < 200 else REFUSED
    return FetchVerdict(result, failure.HTTP, mime, marks, NO_LINKS, "", wanted_s, result == FAILED)


def _not_modified(mime: str, marks: int, conditional: bool) -> FetchVerdict:
    """Judge "304 Not Modified". If the request had no condition, the response says nothing and counts as a failure."""
    if conditional:
        return FetchVerdict(FETCHED, "", mime, marks, NO_LINKS, "", 0.0, False, unchanged=True)
    return FetchVerdict(FAILED, failure.HTTP, mime, marks, NO_LINKS, "", 0.0, True)


def _page(
    response: Response,
    mime: str,
    charset: str | None,
    marks: int,
    agent: str,
    max_bytes: int,
    fingerprints: bool,
    lists: bool,
) -> FetchVerdict:
    headers = response.headers
    follows = b"link" in headers and not marks & NOFOLLOW
    header_links = [target for target, _ in link_targets(headers[b"link"])] if follows else []
    coded = bool(response.codings)
    if coded and not _is_read(mime, lists):
        as_received = _fingerprint(response, "", mime, charset) if fingerprints else b""
        return FetchVerdict(FETCHED, "", mime, marks, Links.of(header_links), "", 0.0, False, fingerprint=as_received)
    body = _content(response, mime, max_bytes, lists) if coded else response.body
    page_fingerprint = _fingerprint(response, body, mime, charset) if fingerprints else b""
    if isinstance(body, str):  # a kind of error: the body cannot be decoded, but the page counts as fetched
        return FetchVerdict(
            FETCHED, body, mime, marks, Links.of(header_links), "", 0.0, False, fingerprint=page_fingerprint
        )
    if not is_html(mime, body):
        header = Links.of(header_links)  # the body is not parsed, so nobody knows what it names
        return FetchVerdict(FETCHED, "", mime, marks, header, "", 0.0, False, False, page_fingerprint, body, True)
    facts = read_page(body, charset, agent)
    marks |= facts.marks
    links = NO_LINKS if marks & NOFOLLOW else facts.links.followed_by(header_links)
    base, has_relations = facts.base or "", facts.has_relations
    return FetchVerdict(FETCHED, "", mime, marks, links, base, 0.0, False, False, page_fingerprint, body, has_relations)


def _is_read(mime: str, lists: bool) -> bool:
    """Return whether bodies of this type are read. Published lists may have any type but media types."""
    return is_html(mime, b"") or not mime or (lists and not mime.startswith(_MEDIA))


def _content(response: Response, mime: str, max_bytes: int, lists: bool) -> bytes | str:
    """Return the body without its content codings, or a kind of error. A page is decoded only as far as it is parsed;
    published lists are decoded whole."""
    is_page = is_html(mime, b"") or not lists
    cut = is_page and max_bytes >= BYTES_OF_A_PAGE
    return decoded(response.body, response.codings, BYTES_OF_A_PAGE if cut else max_bytes, cut)


def _fingerprint(response: Response, body: bytes | str, mime: str, charset: str | None) -> bytes:
    """Return the fingerprint of a body. If `body` is a string, the body is not decoded; then the bytes count as received."""
    if response.truncated == "time":
        return b""  # the next response would be truncated at another place
    return fingerprint(response.body, _NO_TEXT) if isinstance(body, str) else fingerprint(body, mime, charset)


def _location(headers: dict[bytes, bytes]) -> Links:
    """Return the target of a redirect. It is discovered like any other URL, and has a rank and a turn of its own."""
    target = headers.get(b"location")
    return Links.of([url_text(target).strip()]) if target else NO_LINKS
