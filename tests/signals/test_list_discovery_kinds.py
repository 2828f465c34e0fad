"""The kind of a published file follows from the beginning of its body, whatever its stated type."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.signals.published.list_discovery import FEED, NONE, SCHEDULE, SITEMAP, kind_of

HTML, XML, PLAIN, JSON = "text/html", "application/xml", "text/plain", "application/json"
PAGE = "http://a.org/x"


@pytest.mark.parametrize(
    ("mime", "body", "url", "kind"),
    [
        (HTML, b"<!DOCTYPE html><html><p>", PAGE, NONE),
        (HTML, b"\n<HTML><a href=/rss>", PAGE, NONE),
        (HTML, b"<p>no head at all", PAGE, NONE),
        (HTML, b"<?xml version='1.0'?>\n<rss version='2.0'>", PAGE, FEED),
        (HTML, b"\xef\xbb\xbf<feed xmlns='http://www.w3.org/2005/Atom'>", PAGE, FEED),
        ("application/xhtml+xml", b"<?xml version='1.0'?><html xmlns='x'>", PAGE, NONE),
        (XML, b"<?xml version='1.0'?><!-- by x --><urlset xmlns='x'>", PAGE, SITEMAP),
        (XML, b"<sm:sitemapindex\nxmlns:sm='x'>", PAGE, SITEMAP),
        (XML, b"<?xml version='1.0'?><note><feeding>", PAGE, NONE),
        (XML, b"<rdf:RDF xmlns:rdf='y' xmlns='http://purl.org/rss/1.0/'>", PAGE, FEED),
        (XML, b"<rdf:RDF xmlns:rdf='y' xmlns:foaf='http://xmlns.com/foaf/0.1/'>", PAGE, NONE),
        ("", "\ufeff<?xml version='1.0'?><urlset>".encode("utf-16-le"), PAGE, SITEMAP),
        ("", "<?xml version='1.0'?><urlset>".encode("utf-16-be"), PAGE, SITEMAP),
        (
            "application/gzip",
            gzip.compress(b"<?xml version='1.0'?><urlset>" + b"<url>" * 9_000, mtime=0),
            PAGE,
            SITEMAP,
        ),
        ("application/gzip", gzip.compress(b"a tar file", mtime=0), PAGE, NONE),
        ("application/gzip", b"\x1f\x8b\x08broken", PAGE, NONE),
        (PLAIN, b"http://a.org/1\nhttp://a.org/2\n", "http://a.org/sitemap-1.txt", SITEMAP),
        (PLAIN, b"http://a.org/1\nhttp://a.org/2\n", "http://a.org/links.txt", NONE),
        (PLAIN, b"no URLs here", "http://a.org/sitemap.txt", NONE),
        (JSON, b'{"version": "https://jsonfeed.org/version/1.1", "title": "x"', PAGE, FEED),
        (JSON, b'{"title": "x", "version":"https:\\/\\/jsonfeed.org\\/version\\/1"}', PAGE, FEED),
        (JSON, b'{"version":1,"host":"a.org","generated":0,', PAGE, SCHEDULE),
        (JSON, b'{"version": 10, "host": "a.org"}', PAGE, NONE),
        (JSON, b'{"version": 1}', PAGE, NONE),
        ("image/svg+xml", b"<svg><feed >", PAGE, NONE),
        ("", b"", "", NONE),
    ],
)
def test_kinds_of_published_files(mime: str, body: bytes, url: str, kind: str) -> None:
    assert kind_of(mime, body, url) == kind


def test_kinds_of_example_files_of_other_readers(recorded_data: Path) -> None:
    kinds = {
        path.name: kind_of(XML, path.read_bytes(), path.name)
        for path in (recorded_data / "sitemap-examples").glob("*.xml")
    }
    assert {name for name, kind in kinds.items() if kind == FEED} == {"rss2.0.xml", "atom1.0.xml", "atom0.3.xml"}
    assert set(kinds.values()) == {FEED, SITEMAP}


@given(st.sampled_from([HTML, XML, PLAIN, JSON, ""]), st.binary())
def test_any_bytes_have_a_kind(mime: str, body: bytes) -> None:
    assert kind_of(mime, body, PAGE) in (SITEMAP, FEED, SCHEDULE, NONE)
