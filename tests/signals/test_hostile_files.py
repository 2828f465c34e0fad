"""Hostile published files. Each is read to its end, in time and memory that grow no faster than its bytes, and gives
its content.

The sizes are such that a reader of quadratic time would not return.

"""

import gzip
import json
import struct
import tracemalloc
import zlib

import pytest

from tests.effort import sample
from trapline.signals.published.feed import read_feed
from trapline.signals.published.list_discovery import kind_of, of_response, of_robots
from trapline.signals.published.schedule import read_schedule
from trapline.signals.published.sitemap import read_sitemap

URL = "http://a.org/x"
NOW = 1.7e9
MANY = 65_536
MB = 1024 * 1024


def entity_bomb(root: str, inside: str) -> bytes:
    laughs = "".join(f'<!ENTITY l{level} "{f"&l{level - 1};" * 10}">' for level in range(1, 10))
    return f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]><{root}>{inside.format("&l9;")}'.encode()


def external_entity(root: str, inside: str) -> bytes:
    return f'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><{root}>{inside.format("&e;")}'.encode()


SITEMAP = "urlset", "<url><loc>http://a.org/{}</loc></url><url><loc>http://a.org/b</loc></url>"
RSS = "rss", "<channel><item><link>http://a.org/{}</link></item><item><link>http://a.org/b</link></item>"


@pytest.mark.parametrize("attack", [entity_bomb, external_entity])
def test_entities_are_never_resolved(attack) -> None:  # type: ignore[no-untyped-def]
    sitemap, feed = read_sitemap(attack(*SITEMAP), URL, False, NOW), read_feed(attack(*RSS), URL, NOW)
    for entries in (sitemap.entries, feed.entries):
        assert len(entries) == 2 and entries[0].url in ("http://a.org/&l9;", "http://a.org/&e;")
        assert entries[1].url == "http://a.org/b"


REPEATED = [
    b"<a>",
    b"<url>",
    b"<loc>",
    b"<loc ",
    b"<item>",
    b"<item ",
    b"<link>",
    b"<link href='",
    b'<a b="',
    b"</item>",
    b"<![CDATA[",
    b"<loc><![CDATA[",
    b"<!--",
    b"<!---->",
    b"<!-- -",
    b"&",
    b"&amp;",
    b"&#",
    b"<?xml ",
    b"<!DOCTYPE [",
    b"]]>",
    b"-",
    b"<",
    b">",
    b" ",
    b"\n",
    b"\0",
    b"\xff",
    b"<\0",
    b"http://a.org/\n",
    b"{",
    b"[",
    b'{"a":',
    b"[],",
    b"<rss><channel><skipHours><hour>1",
    b"Sitemap: x\n",
    b"Crawl-schedule: x\n",
    b"<x>; rel=hub,",
    b'<x>; rel="',
    b"\\",
]


@pytest.mark.parametrize("piece", sample(REPEATED, 3), ids=repr)
@pytest.mark.parametrize("before", [b"", b"<urlset><url><loc>", b"<rss><channel><item><link>"], ids=repr)
def test_any_repeated_piece_is_read_to_its_end(before: bytes, piece: bytes) -> None:
    body = before + piece * MANY
    read_sitemap(body, URL, False, NOW)
    read_feed(body, URL, NOW)
    read_schedule(body[:MB], URL, NOW)
    kind_of("text/xml", body, URL)


@pytest.mark.parametrize("piece", REPEATED, ids=repr)
def test_relations_of_a_page_with_any_repeated_piece(piece: bytes) -> None:
    body = piece * MANY
    of_response({b"link": body[:65_536]}, URL, body)
    of_robots(body, "http://a.org/robots.txt")


def test_a_million_nested_tags() -> None:
    body = b"<url>" * 10**6 + b"<loc>http://a.org/a</loc>" + b"</url>" * 10**6
    assert read_sitemap(b"<urlset>" + body, URL, False, NOW).entries == []
    assert read_feed(b"<rss><channel><item>" + b"<p>" * 10**6, URL, NOW).entries == []


def test_no_closing_tags_at_all() -> None:
    sitemap = read_sitemap(
        b"<urlset>" + b"".join(b"<url><loc>http://a.org/%d" % at for at in range(2_000)), URL, False, NOW
    )
    assert len(sitemap.entries) == 1_999  # the last one may be part of another
    feed = read_feed(b"<rss><channel>" + b"".join(b"<item><link>http://a.org/%d" % at for at in range(2_000)), URL, NOW)
    assert len(feed.entries) == 1_999


def bomb(mega: int) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return b"".join(packer.compress(bytes(MB)) for _ in range(mega)) + packer.flush()


def test_a_gzip_bomb_stops_at_the_limit() -> None:
    packed = bomb(200)
    tracemalloc.start()
    try:
        assert read_sitemap(packed, URL, False, NOW).entries == []
        assert read_feed(packed, URL, NOW).entries == []
        assert kind_of("application/gzip", packed, URL) == ""
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * MB


def test_memory_is_not_allocated_for_a_claimed_gigabyte() -> None:
    packed = gzip.compress(b"<urlset><url><loc>http://a.org/a</loc></url>")[:-4] + struct.pack("<I", 10**9)
    tracemalloc.start()
    try:
        assert len(read_sitemap(packed, URL, False, NOW).entries) == 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * MB


@pytest.mark.parametrize(
    "claimed",
    [
        "utf-8",
        "utf-16",
        "utf-32",
        "shift_jis",
        "iso-2022-jp",
        "ebcdic-cp-us",
        "utf-7",
        "idna",
        "zip",
        "hex",
        "rot13",
        "x" * 99,
    ],
)
@pytest.mark.parametrize("real", ["utf-8", "utf-16", "latin-1"])
def test_a_wrong_encoding_harms_no_plain_url(claimed: str, real: str) -> None:
    body = f"<?xml version='1.0' encoding='{claimed}'?><urlset><url><loc>http://a.org/a</loc></url><!-- ü --></urlset>"
    assert [entry.url for entry in read_sitemap(body.encode(real), URL, False, NOW).entries] == ["http://a.org/a"]
    rss = body.replace("urlset", "rss").replace("url>", "item>").replace("loc>", "link>")
    assert [entry.url for entry in read_feed(rss.encode(real), URL, NOW).entries] == ["http://a.org/a"]


def test_nul_bytes_do_not_end_a_file() -> None:
    body = b"<urlset><url>\0<loc>http://a.org/\0a</loc></url>\0<url><loc>http://a.org/b</loc></url>"
    assert [entry.url for entry in read_sitemap(body, URL, False, NOW).entries][-1] == "http://a.org/b"


def test_the_costliest_schedules_are_read_in_bounded_time() -> None:
    entries = [{"url": "/", "rrule": f"FREQ=MINUTELY;INTERVAL=99999;BYMINUTE={at % 60}"} for at in range(9_000)]
    entries += [
        {"url": "/", "rrule": "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "tzid": f"No/Such{at}"} for at in range(1_000)
    ]
    feed = {"version": 1, "host": "a.org", "expires": NOW + 1e9, "entries": entries}
    assert read_schedule(json.dumps(feed).encode(), URL, NOW).points == {}
    feed["entries"] = [{"url": "/", "updates": [{}] * 300_000}]
    assert read_schedule(json.dumps(feed, separators=(",", ":")).encode(), URL, NOW).points == {}
