"""The verdict on an answer follows from its status, its headers and its body."""

import tracemalloc
import zlib
from email.utils import formatdate
from typing import Any

import pytest

from trapline.crawler.visits.judge import FetchVerdict, judge
from trapline.fetch.html.markup import BYTES_OF_A_PAGE
from trapline.fetch.html.page import NOARCHIVE, NOFOLLOW, NOINDEX
from trapline.fetch.http.content import decoded
from trapline.fetch.http.response import Response
from trapline.frontier import FAILED, FETCHED, REFUSED

NOW = 1_700_000_000.0
HTML = {"content-type": "text/html"}


def verdict(status: int = 200, body: bytes = b"", expanded: int = 10_000, **headers: str) -> FetchVerdict:
    named = {name.replace("_", "-").encode(): value.encode("utf-8") for name, value in headers.items()}
    return judge(Response(status, 11, b"", named, True, body, body), "trapline", expanded, NOW)


def page(body: bytes, **headers: str) -> FetchVerdict:
    return verdict(body=body, **{"content_type": "text/html", **headers})


def hrefs(verdict: FetchVerdict) -> list[str]:
    return list(verdict.links)


# ---- by status


@pytest.mark.parametrize(
    ("statuses", "result", "error", "ends_visit"),
    [
        ((200, 201, 203, 204, 206, 299), FETCHED, "", False),
        ((300, 301, 302, 303, 307, 308, 399), FETCHED, "", False),
        ((304,), FAILED, "http", True),  # the request had no condition
        ((400, 401, 403, 404, 405, 410, 451, 499), REFUSED, "http", False),
        ((408, 425, 429), FAILED, "http", True),
        ((500, 501, 502, 503, 504, 520, 599), FAILED, "http", True),
        ((101, 199), FAILED, "http", True),
        ((600, 999), FAILED, "http", True),
    ],
)
def test_a_status_decides_whether_a_page_is_fetched_and_may_be_retried(
    statuses: tuple[int, ...], result: int, error: str, ends_visit: bool
) -> None:
    for status in statuses:
        found = verdict(status)
        assert (found.result, found.error, found.ends_visit) == (result, error, ends_visit), status


@pytest.mark.parametrize("status", [404, 410, 429, 500, 503])
def test_the_links_of_an_error_page_are_not_followed(status: int) -> None:
    assert hrefs(verdict(status, b'<a href="/x">', content_type="text/html", link="</y>; rel=next")) == []


# ---- delays


@pytest.mark.parametrize(
    ("status", "said", "longest_delay_s"),
    [
        (429, "120", 120.0),
        (503, "7", 7.0),
        (503, formatdate(NOW + 60, usegmt=True), 60.0),
        (503, formatdate(NOW - 60, usegmt=True), 0.0),
        (503, "999999999", 86_400.0),
        (503, "-5", 0.0),
        (503, "soon", 0.0),
        (500, "120", 0.0),
        (404, "120", 0.0),
        (200, "120", 0.0),
        (301, "120", 0.0),
    ],
)
def test_a_server_gets_the_delay_that_it_asks_for(status: int, said: str, longest_delay_s: float) -> None:
    assert verdict(status, retry_after=said).retry_after_s == longest_delay_s


# ---- redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_leads_to_one_page_and_its_body_is_not_read(status: int) -> None:
    found = verdict(status, b'<a href="/x">', content_type="text/html", location=" http://b.org/ü#top ")
    assert hrefs(found) == ["http://b.org/ü#top"] and found.base == ""


def test_a_redirect_without_a_usable_target_counts_as_fetched() -> None:
    assert hrefs(verdict(301)) == hrefs(verdict(301, location="")) == []


@pytest.mark.parametrize(("said", "read"), [(b"/caf\xe9", "/caf%E9"), (b"/\xff?q=\xc3\xa9\xe9", "/%FF?q=é%E9")])
def test_bytes_of_a_location_that_are_not_utf_8_are_percent_encoded(said: bytes, read: str) -> None:
    response = Response(301, 11, b"", {b"location": said, b"link": b"<" + said + b">; rel=next"}, True)
    assert hrefs(judge(response, "trapline", 99, NOW)) == [read]
    response.status = 200
    assert hrefs(judge(response, "trapline", 99, NOW)) == [read]


# ---- pages


def test_links_of_the_page_come_before_those_of_the_header() -> None:
    found = page(b'<a href="/a">', link='</b>; rel="next", </c.css>; rel=stylesheet')
    assert hrefs(found) == ["/a", "/b"]


def test_a_base_is_reported() -> None:
    assert page(b'<base href="/d/"><a href="a">').base == "/d/"


def test_a_body_that_is_not_html_has_only_the_links_of_its_header() -> None:
    found = verdict(body=b'<a href="/a">', content_type="application/pdf", link="</b>; rel=next")
    assert hrefs(found) == ["/b"] and found.mime == "application/pdf"


@pytest.mark.parametrize("mime", ["text/html", "application/xml", "text/plain", "text/htm", "application/octet-stream"])
def test_a_body_of_any_type_may_name_a_feed(mime: str) -> None:
    assert verdict(body=b"<link rel=alternate type=text/xml href=/f>", content_type=mime).has_relations


def test_a_page_without_a_type_is_html_if_it_looks_like_html() -> None:
    assert hrefs(verdict(body=b'<!doctype html><a href="/a">')) == ["/a"]
    assert hrefs(verdict(body=b'x <a href="/a">')) == []


def test_the_charset_of_the_header_is_used() -> None:
    assert hrefs(page('<a href="/ü">'.encode("latin-1"), content_type="text/html; charset=iso-8859-1")) == ["/ü"]


# ---- robots directives


def test_directives_of_header_and_page_add_up() -> None:
    found = page(b'<meta name="robots" content="noindex"><a href="/a">', x_robots_tag="noarchive")
    assert found.marks == NOINDEX | NOARCHIVE and hrefs(found) == ["/a"]


@pytest.mark.parametrize(
    ("tag", "followed"),
    [("nofollow", False), ("none", False), ("otherbot: nofollow", True), ("Trapline: nofollow", False), ("all", True)],
)
@pytest.mark.parametrize("kind", ["text/html", "application/pdf", "undecodable"])
def test_nofollow_in_the_header_holds_for_every_link(tag: str, followed: bool, kind: str) -> None:
    coded = {"content_encoding": "gzip"} if kind == "undecodable" else {}
    mime = "text/html" if kind == "undecodable" else kind
    found = verdict(body=b'<a href="/a">', content_type=mime, link="</b>; rel=next", x_robots_tag=tag, **coded)
    assert bool(found.links) == followed
    assert bool(found.marks & NOFOLLOW) != followed


def test_nofollow_in_the_page_holds_for_links_of_the_header_too() -> None:
    assert hrefs(page(b'<meta name=robots content=nofollow><a href="/a">', link="</b>; rel=next")) == []


def test_a_nofollow_link_is_not_followed() -> None:
    assert hrefs(page(b'<a href="/a" rel="nofollow"><a href="/b">')) == ["/b"]


# ---- codings


def test_a_compressed_page_is_read() -> None:
    assert hrefs(page(zlib.compress(b'<a href="/a">'), content_encoding="deflate")) == ["/a"]


@pytest.mark.parametrize("coding", ["utf-8", "UTF-8", "rot13", "none"])
def test_a_page_in_an_unknown_coding_is_read_as_it_is(coding: str) -> None:
    found = page(b"<a href=/a>", content_encoding=coding)
    assert (found.result, found.error, hrefs(found)) == (FETCHED, "", ["/a"])


def test_a_page_with_a_transfer_coding_is_read() -> None:
    body = zlib.compress(b"<a href=/a>")
    assert hrefs(page(body, transfer_encoding="deflate, chunked")) == ["/a"]
    assert hrefs(page(zlib.compress(body), content_encoding="deflate", transfer_encoding="Deflate, chunked")) == ["/a"]


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_page_that_cannot_be_decoded_is_fetched_with_an_error(coding: str) -> None:
    found = page(b"<p>plain", content_encoding=coding)
    assert (found.result, found.error, hrefs(found)) == (FETCHED, "encoding", [])


def test_a_page_that_expands_too_far_is_fetched_with_an_error() -> None:
    body = zlib.compress(b'<a href="/a">' + b" " * 10_000)
    found = page(body, content_encoding="deflate")
    assert (found.result, found.error, hrefs(found)) == (FETCHED, "encoding", [])


def test_a_page_is_decoded_only_as_far_as_it_is_read() -> None:
    body = zlib.compress(b"<a href=/a>" + b" " * BYTES_OF_A_PAGE + b"<a href=/b>", 1)
    tracemalloc.start()
    try:
        found = verdict(body=body, expanded=50 << 20, content_type="text/html", content_encoding="deflate")
        assert tracemalloc.get_traced_memory()[1] < 1.3 * BYTES_OF_A_PAGE
    finally:
        tracemalloc.stop()
    assert (found.result, found.error, hrefs(found)) == (FETCHED, "", ["/a"])


@pytest.fixture
def decoded_types(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Record the bodies that were decoded."""
    bodies: list[bytes] = []

    def counted(body: bytes, *options: Any) -> bytes | str:
        bodies.append(body)
        return decoded(body, *options)

    monkeypatch.setattr("trapline.crawler.visits.judge.decoded", counted)
    return bodies


MEDIA = ["image/png", "image/svg+xml", "video/mp4", "audio/ogg", "font/woff2"]
LISTS = ["text/plain", "application/xml", "application/rss+xml", "application/json", "application/octet-stream"]


def test_a_compressed_body_that_is_not_read_is_not_decoded(decoded_types: list[bytes]) -> None:
    for mime in MEDIA + LISTS:
        found = verdict(body=b"no such coding", content_type=mime, content_encoding="gzip", link="</b>; rel=next")
        assert (found.result, found.error, found.body, hrefs(found)) == (FETCHED, "", b"", ["/b"])
    assert decoded_types == []


def test_fingerprints_need_lists_of_any_type_but_no_media(decoded_types: list[bytes]) -> None:
    coded = zlib.compress(b"<urlset>")
    for mime in LISTS:
        assert refetched(body=coded, content_type=mime, content_encoding="deflate").body == b"<urlset>"
    assert len(decoded_types) == len(LISTS)
    for mime in MEDIA:
        found = refetched(body=coded, content_type=mime, content_encoding="deflate")
        assert (found.error, found.body) == ("", b"")
        assert found.fingerprint == refetched(body=coded, content_type=mime).fingerprint  # of the bytes as received
    assert len(decoded_types) == len(LISTS)


def test_a_compressed_page_without_a_type_is_read(decoded_types: list[bytes]) -> None:
    assert hrefs(verdict(body=zlib.compress(b"<html><a href=/a>"), content_encoding="deflate")) == ["/a"]


# ---- whether the page has changed


def refetched(status: int = 200, body: bytes = b"", truncated: str = "", **headers: str) -> FetchVerdict:
    named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    response = Response(status, 11, b"", named, True, body, body, truncated)
    return judge(response, "trapline", 10_000, NOW, conditional=True, fingerprints=True)


def test_an_unchanged_page_is_fetched_and_has_no_links() -> None:
    found = refetched(304, location="/x", link="</y>; rel=next")
    assert (found.result, found.error, found.unchanged, hrefs(found)) == (FETCHED, "", True, [])
    assert found.fingerprint == b"" and not found.ends_visit


def test_only_a_304_means_unchanged() -> None:
    for status in (200, 204, 301, 404, 500):
        assert not refetched(status).unchanged


def test_the_fingerprint_does_not_depend_on_the_coding() -> None:
    plain = refetched(body=b"<p>text", content_type="text/html").fingerprint
    noisy = b"<script>1</script><p>text"
    coded = refetched(body=zlib.compress(noisy), content_type="text/html", content_encoding="deflate")
    assert len(plain) == 8 and coded.fingerprint == plain
    assert refetched(body=b"<p>other", content_type="text/html").fingerprint != plain
    assert page(b"<p>text").fingerprint == b""  # the request did not ask for a fingerprint


def test_the_fingerprint_of_an_undecodable_body_is_that_of_its_bytes() -> None:
    first, second = (refetched(body=body, content_type="text/html", content_encoding="gzip") for body in (b"a", b"b"))
    assert first.error == "encoding" and b"" != first.fingerprint != second.fingerprint


def test_the_fingerprint_of_a_redirect_is_that_of_its_target() -> None:
    first, again, second = (
        refetched(301, body, location=to) for body, to in [(b"1", "/a"), (b"2", "/a"), (b"2", "/b")]
    )
    assert first.fingerprint == again.fingerprint != second.fingerprint


def test_a_body_that_a_timeout_cut_has_no_fingerprint() -> None:
    assert refetched(body=b"<p>te", truncated="time", content_type="text/html").fingerprint == b""
    assert refetched(body=b"<p>te", truncated="length", content_type="text/html").fingerprint != b""


@pytest.mark.parametrize("status", [404, 410, 429, 500])
def test_an_error_has_no_fingerprint(status: int) -> None:
    assert refetched(status, b"<p>gone", content_type="text/html").fingerprint == b""
