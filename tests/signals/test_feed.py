"""Feeds of every kind: entries, dates, hubs and rhythm. A feed is valid for its own host only."""

import json
from datetime import UTC, datetime
from email.utils import format_datetime
from math import isnan
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.signals.published import feed_formats
from trapline.signals.published.feed import CUT, MOST_ENTRIES, NO_DATE, NO_URL, OTHER_HOST, UNREADABLE, Feed, read_feed

NOW = 2e9
URL = "https://example.org/feed"
DAY = datetime(2024, 1, 1, tzinfo=UTC).timestamp()
ATOM, DC, RDF, RSS_1 = (
    "http://www.w3.org/2005/Atom",
    "http://purl.org/dc/elements/1.1/",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "http://purl.org/rss/1.0/",
)


def read(body: bytes | str, url: str = URL) -> Feed:
    return read_feed(body.encode() if isinstance(body, str) else body, url, NOW)


Row = tuple[str, datetime]
rows = st.lists(
    st.tuples(
        st.from_regex(r"https://example\.org/[a-z0-9]{1,8}(\?[a-z]=[0-9]&[a-z]=[0-9])?", fullmatch=True),
        st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1)).map(lambda at: at.replace(microsecond=0, tzinfo=UTC)),
    ),
    unique_by=lambda row: row[0],
    max_size=8,
)
NOISE = "<b>bold</b> & <link>https://example.org/not</link> ]]> "


def element(parent: ElementTree.Element, name: str, text: str = "", **attributes: str) -> ElementTree.Element:
    made = ElementTree.SubElement(parent, name, attributes)
    made.text = text
    return made


def rss_2(pages: list[Row]) -> bytes:
    root = ElementTree.Element("rss", version="2.0")
    channel = element(root, "channel")
    element(channel, "link", "https://example.org/")
    element(channel, f"{{{ATOM}}}link", rel="hub", href="https://hub.example/")
    element(channel, f"{{{ATOM}}}link", rel="self", href=URL)
    element(element(channel, "image"), "link", "https://example.org/image")
    for url, at in pages:
        item = element(channel, "item")
        element(item, "description", NOISE)
        element(item, "link", url)
        element(item, "pubDate", format_datetime(at))
    return ElementTree.tostring(root, "utf-8")


def rss_1(pages: list[Row]) -> bytes:
    root = ElementTree.Element(f"{{{RDF}}}RDF")
    channel = element(root, f"{{{RSS_1}}}channel")
    element(channel, f"{{{ATOM}}}link", rel="hub", href="https://hub.example/")
    element(channel, f"{{{ATOM}}}link", rel="self", href=URL)
    for url, at in pages:
        item = element(root, f"{{{RSS_1}}}item", **{f"{{{RDF}}}about": url})
        element(item, f"{{{RSS_1}}}link", url)
        element(item, f"{{{DC}}}date", at.isoformat())
    return ElementTree.tostring(root, "utf-8")


def atom(pages: list[Row]) -> bytes:
    root = ElementTree.Element(f"{{{ATOM}}}feed")
    element(root, f"{{{ATOM}}}link", rel="self", href=URL)
    element(root, f"{{{ATOM}}}link", rel="hub", href="https://hub.example/")
    element(root, f"{{{ATOM}}}updated", "2029-12-31T00:00:00Z")
    for url, at in pages:
        entry = element(root, f"{{{ATOM}}}entry")
        source = element(entry, f"{{{ATOM}}}source")
        element(source, f"{{{ATOM}}}link", href="https://example.org/source")
        element(source, f"{{{ATOM}}}updated", "2030-01-02T00:00:00Z")
        element(entry, f"{{{ATOM}}}link", rel="edit", href="https://example.org/edit")
        element(entry, f"{{{ATOM}}}link", href=url)
        element(entry, f"{{{ATOM}}}published", "1985-01-01")
        element(entry, f"{{{ATOM}}}updated", at.isoformat())
        xhtml = element(element(entry, f"{{{ATOM}}}content", type="xhtml"), "div")
        element(xhtml, "link", "x", href="https://example.org/not")
    return ElementTree.tostring(root, "utf-16")


def json_feed(pages: list[Row]) -> bytes:
    items = [
        {"id": 7, "url": url, "date_published": "1985-01-01", "date_modified": at.isoformat()} for url, at in pages
    ]
    hubs = [{"type": "rssCloud", "url": "https://no.example/"}, {"type": "WebSub", "url": "https://hub.example/"}]
    feed = {"version": "https://jsonfeed.org/version/1.1", "feed_url": URL, "hubs": hubs, "items": items}
    return json.dumps(feed).encode()


@pytest.mark.parametrize(("writer", "kind"), [(rss_2, "rss"), (rss_1, "rss"), (atom, "atom"), (json_feed, "json")])
@given(pages=rows)
def test_written_feeds_are_read_back(writer, kind: str, pages: list[Row]) -> None:  # type: ignore[no-untyped-def]
    """Written by writers that know nothing of the reader, with elements that must not be taken for those of an entry."""
    feed = read(writer(pages))
    assert (feed.kind, feed.entries) == (kind, [(url, at.timestamp()) for url, at in pages])
    assert (feed.hubs, feed.self_url, feed.rejected_links, dict(feed.problems)) == (
        ["https://hub.example/"],
        URL,
        [],
        {},
    )


@pytest.mark.parametrize(("name", "kind"), [("rss2.0.xml", "rss"), ("atom1.0.xml", "atom"), ("atom0.3.xml", "atom")])
def test_example_feeds_of_other_readers(recorded_data: Path, name: str, kind: str) -> None:
    feed = read((recorded_data / "sitemap-examples" / name).read_bytes())
    assert feed.kind == kind
    assert [entry.url for entry in feed.entries] == ["https://example.org/page1", "https://example.org/page2"]
    assert all(DAY <= entry.updated <= DAY + 2 * 86_400 for entry in feed.entries)


@pytest.mark.parametrize(
    ("item", "url"),
    [
        ("<link>/a</link>", "/a"),
        ("<link> <![CDATA[https://example.org/a?b&c]]> </link>", "/a?b&c"),
        ("<link>https://example.org/a?b&amp;c</link>", "/a?b&c"),
        ("<guid>https://example.org/a</guid>", "/a"),
        ("<guid isPermaLink='true'>https://example.org/a</guid>", "/a"),
        ("<LINK>/a</LINK>", "/a"),
        (
            "<link>https://counter.example/1</link><feedburner:origLink>https://example.org/a</feedburner:origLink>",
            "/a",
        ),
        ("<title>1 < 2 & <br></title><link>/a</link>", "/a"),
        ("<description><p><link>/no</link><link>/a</link></item><item><link>/a</link>", "/a"),
        ("<source><link>/no</link></source><link>/a</link>", "/a"),
        ("<!-- <link>/no</link> --><link>/a</link>", "/a"),
        ("<enclosure url='/no.mp3' title='a > b'/><link>/a</link>", "/a"),
    ],
)
def test_an_entry_is_read_in_many_notations(item: str, url: str) -> None:
    feed = read(f"<rss><channel><item>{item}</item></channel></rss>")
    assert [entry.url for entry in feed.entries] == ["https://example.org" + url]


def test_entries_that_are_not_pages_of_the_feeds_host_are_left_out() -> None:
    feed = read(
        "<rss><channel><item><link>https://other.example/a</link><pubDate>x</pubDate></item><item><title>t</title></item>"
        "<item><guid isPermaLink='false'>https://example.org/no</guid></item><item><link>/a</link><pubDate>x</pubDate></item>"
    )
    assert [entry.url for entry in feed.entries] == ["https://example.org/a"] and isnan(feed.entries[0].updated)
    assert feed.rejected_links == ["https://other.example/a"]
    assert dict(feed.problems) == {OTHER_HOST: 1, NO_URL: 2, NO_DATE: 1}


def test_a_page_listed_twice_has_its_latest_date() -> None:
    item = "<entry><link href='a'/><updated>%s</updated></entry>"
    feed = read("<feed xml:base='/x/'>" + item % "2024-01-01" + item % "2020-01-01" + item % "never" + "</feed>")
    assert feed.entries == [("https://example.org/x/a", DAY)]


def test_entries_are_limited_to_the_newest() -> None:
    feed = read("<rss><channel>" + "".join(f"<item><link>/{at}</link></item>" for at in range(MOST_ENTRIES + 1)))
    assert len(feed.entries) == MOST_ENTRIES and feed.entries[0].url == "https://example.org/0"
    assert dict(feed.problems) == {CUT: 1}


@pytest.mark.parametrize(
    "body",
    [b"", b"<html><body>", b"{}", b"[1]", b'{"version": 1, "items": [{"url": "/a"}]}', b"\x1f\x8b\x08broken", b"item"],
)
def test_a_body_that_is_not_a_feed_is_refused(body: bytes) -> None:
    feed = read(body)
    assert (feed.kind, feed.entries, dict(feed.problems)) == ("", [], {UNREADABLE: 1})


def test_rhythm_is_read_from_the_channel_alone() -> None:
    said = "<ttl>60</ttl><skipHours><hour>0</hour><hour>24</hour></skipHours><skipDays><day>Sunday</day></skipDays>"
    syndication = (
        "<sy:updatePeriod> daily </sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>"
        "<sy:updateBase>2000-01-01T12:00+00:00</sy:updateBase>"
    )
    feed = read(f"<rss><channel>{said}{syndication}<item><link>/a</link><ttl>5</ttl></item></channel></rss>")
    assert feed.rhythm == (86_400.0, 2, datetime(2000, 1, 1, 12, tzinfo=UTC).timestamp(), 3_600.0, {0}, {6})


@given(
    st.one_of(
        st.binary(),
        st.lists(
            st.sampled_from(
                [
                    b"<rss>",
                    b"<channel>",
                    b"<item>",
                    b"<entry ",
                    b"</item>",
                    b"<link>",
                    b"<link href='/x' rel=self/>",
                    b"</link>",
                    b"<updated>",
                    b"<guid>",
                    b"<ttl>",
                    b"-1",
                    b"<skipHours><hour>",
                    b"99",
                    b"<!--",
                    b"<![CDATA[",
                    b"]]>",
                    b"&#0;",
                    b"&nbsp;",
                    b"/a",
                    b"\0",
                    b"<feed xml:base='//b'>",
                    b"<a b='",
                    b">",
                    b"{",
                    b"[" * 99,
                ]
            )
        ).map(b"".join),
    )
)
def test_any_bytes_give_only_pages_of_the_feeds_host(body: bytes) -> None:
    feed = read_feed(body, "http://a.org/feed", NOW)
    assert all(entry.url.startswith(("http://a.org/", "https://a.org/")) for entry in feed.entries)
    assert all(NOW < at <= NOW + 1e6 for at in feed.points(NOW, 1e6))


def test_oversized_tags_do_not_hide_the_next_entry() -> None:
    deep = b"<a>" * (feed_formats._MOST_DEPTH * 3)
    feed = read(b"<rss><channel><item>" + deep + b"<link>/no</link></item><item><link>/a</link></item></channel></rss>")
    assert [entry.url for entry in feed.entries] == ["https://example.org/a"]
