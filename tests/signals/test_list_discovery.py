"""Where a site publishes its files, by Link header, HTML head and robots.txt, and what a page may name."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.fetch.html.page import read_page
from trapline.fetch.robots.parser import LIMIT_BYTES, Robots, parse
from trapline.signals.published import list_discovery
from trapline.signals.published.list_discovery import (
    MOST_OF_A_KIND,
    MOST_SITEMAPS,
    NOTHING,
    Relations,
    of_response,
    of_robots,
)

URL = "https://example.org/blog/"
HUB = "https://hub.example/"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            b'<https://hub.example/>; rel="hub", <https://example.org/f>; rel="self"',
            Relations((HUB,), "https://example.org/f"),
        ),
        (b'<https://hub.example/>; rel="nofollow HUB"', Relations((HUB,))),
        (b"</when.json>; rel=crawl-schedule", Relations(schedules=("https://example.org/when.json",))),
        (b"<http://example.org/when.json>; rel=crawl-schedule", Relations()),
        (b"<https://evil.net/when.json>; rel=crawl-schedule", Relations()),
        (b"<s.xml>; rel=sitemap", Relations(sitemaps=("https://example.org/blog/s.xml",))),
        (b"<f>; rel=alternate; type=application/atom+xml", Relations(feeds=("https://example.org/blog/f",))),
        (
            b'<f>; rel=alternate; type="application/rss+xml; charset=utf-8"',
            Relations(feeds=("https://example.org/blog/f",)),
        ),
        (b"<f>; rel=alternate; type=application/json, <g>; rel=alternate; hreflang=de", Relations()),
        (b'<https://hub.example/>; rel="hub"; anchor="/other"', Relations()),
        (b"<javascript:x>; rel=hub, <>; rel=stylesheet", Relations()),
    ],
)
def test_link_headers(value: bytes, expected: Relations) -> None:
    assert of_response({b"link": value}, URL) == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("<link rel=alternate type=application/rss+xml href=/f>", Relations(feeds=("https://example.org/f",))),
        (
            "<LINK HREF='f&amp;2' TYPE='Application/Atom+XML' REL='Alternate'/>",
            Relations(feeds=("https://example.org/blog/f&2",)),
        ),
        (
            "<base href=/x/><link rel=hub href=https://hub.example><link rel=self href=f>",
            Relations((HUB,), "https://example.org/x/f"),
        ),
        ("<link rel=alternate hreflang=de href=/de><link rel=stylesheet href=/feed.css>", NOTHING),
        ("<!-- <link rel=hub href=https://hub.example> -->", NOTHING),
        ("<script>'<link rel=hub href=https://hub.example>'</script>", NOTHING),
        ("</head><body><link rel=hub href=https://hub.example>", NOTHING),
        ("<link rel=alternate type=text/xml href=https://other.example/f>", NOTHING),
        (
            "<link rel=crawl-schedule href=/when.json><link rel=sitemap href=/s.xml>",
            Relations(schedules=("https://example.org/when.json",), sitemaps=("https://example.org/s.xml",)),
        ),
    ],
)
def test_links_of_an_html_head(head: str, expected: Relations) -> None:
    assert of_response({}, URL, f"<html><head><title>x</title>{head}".encode()) == expected


RELS = ["alternate", "ALTERNATE", "hub", "self", "sitemap", "crawl-schedule", "stylesheet", "icon", "feed", "hubs"]
RELS += ["alternate icon", "icon\tHub", "sitemap\x0b", "self\xa0", "&#104;ub", "", "crawl-scheduler", "x" * 9]
LINKS = st.builds(
    lambda name, rel, quote, kind, content: f"<{name} {content}rel={quote}{rel}{quote} type={kind} href=/x>",
    st.sampled_from(["link", "LINK", "a", "svg><link", "template><link", "script><link"]),
    st.sampled_from(RELS),
    st.sampled_from(["'", '"', ""]),
    st.sampled_from(["text/xml", "application/rss+xml", "text/css"]),
    st.sampled_from(["", "rel=icon ", "x='<link rel=hub>' "]),
)


@given(st.lists(LINKS, max_size=4).map("".join))
@settings(max_examples=examples(1000))
def test_the_parser_of_pages_notices_every_page_that_names_something(html: str) -> None:
    """Only pages with this mark are searched. The mark may also be on others, but not on pages without any such word."""
    body = html.encode()
    has_relations = read_page(body, "utf-8").has_relations
    assert has_relations or of_response({}, URL, body) == NOTHING
    if has_relations and html.isascii() and "&" not in html:
        assert any(word in html.lower() for word in ("alternate", "hub", "self", "sitemap", "crawl-schedule"))


def test_an_empty_page_has_no_mark_of_the_page_before() -> None:
    assert read_page(b"<link rel=hub href=/x>", None).has_relations
    assert not read_page(b"", None).has_relations


def test_the_header_comes_first() -> None:
    html = (
        b"<link rel=self href=/page><link rel=hub href=https://second.example><link rel=hub href=https://hub.example>"
    )
    found = of_response({b"link": b"<https://hub.example>; rel=hub, </header>; rel=self"}, URL, html)
    assert (found.hubs, found.self_url) == ((HUB, "https://second.example/"), "https://example.org/header")


def test_example_robots_txt_of_other_readers(recorded_data: Path) -> None:
    found = of_robots(
        (recorded_data / "sitemap-examples" / "robots.txt").read_bytes(), "https://example.org/robots.txt"
    )
    assert [url.rpartition("/")[2] for url in found.sitemaps] == [
        "sitemap.xml",
        "weirdly-named-sitemap.xml",
        "another-sitemap.xml",
        "and-another-sitemap.xml",
    ]


def test_sitemap_lines_of_robots_txt() -> None:
    body = (
        "User-agent: *\nDisallow: /\n CRAWL-SCHEDULE : /when.json # ours\ncrawl-schedule: https://evil.net/x\r\n"
        "Sitemap: https://other.example/é.xml\nSitemap: /s.xml\nSitemap: /s.xml"
    )
    found = of_robots(body.encode(), "https://example.org/robots.txt")
    assert found.schedules == ("https://example.org/when.json",)
    assert found.sitemaps == ("https://other.example/%C3%A9.xml", "https://example.org/s.xml")


def test_the_number_of_relations_is_limited() -> None:
    header = b", ".join(b"<https://%d.example/>; rel=hub" % at for at in range(99))
    assert len(of_response({b"link": header}, URL).hubs) == MOST_OF_A_KIND
    robots = b"\n".join(b"Sitemap: /%d\nCrawl-schedule: /%d" % (at, at) for at in range(2_000))
    found = of_robots(robots, "https://example.org/robots.txt")
    assert (len(found.sitemaps), len(found.schedules)) == (MOST_SITEMAPS, MOST_OF_A_KIND)


pieces = st.lists(
    st.sampled_from(
        [
            b"<link ",
            b"rel=hub ",
            b"href='//x",
            b"'",
            b">",
            b"</head>",
            b"<base href=:>",
            b'<x>; rel="',
            b"self",
            b",",
            b";",
            b"sitemap:",
            b"\n",
            b"\xff",
        ]
    )
).map(b"".join)


@given(st.one_of(st.binary(), pieces))
def test_any_bytes_give_valid_relations(body: bytes) -> None:
    of_response({b"link": body}, URL, body)
    of_robots(body, "https://example.org/robots.txt")


@pytest.mark.parametrize(
    "body",
    [
        b"Sitemap: http://a.org/1",
        b"\xef\xbb\xbfSITEMAP: http://a.org/1",
        b"\xbf site-map: http://a.org/1",
        b"User-agent: *\r sitemap : http://a.org/1 # it\rDisallow: /",
        "Disallow: /\nSitemap: http://a.org/1\n".encode("utf-16"),
        b"Disallow: /sitemap\nSitemap: http://a.org/1".ljust(LIMIT_BYTES, b"\n") + b"\nSitemap: http://a.org/2",
        b"Sitemap: http://a.org/1\n".ljust(LIMIT_BYTES - 20, b"\n") + b"Sitemap: http://a.org/2",
    ],
)
def test_sitemaps_equal_those_of_the_full_robots_txt_parser(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    built = list[Robots]()
    monkeypatch.setattr(list_discovery, "parse", lambda *given: built.append(parse(*given)) or built[-1])
    assert of_robots(body, "http://a.org/robots.txt").sitemaps == parse(body, "").sitemaps == ("http://a.org/1",)
    assert list(built[0].lines()) == []  # no rule was built to find them
