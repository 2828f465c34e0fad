"""Answers of hostile sites: whatever is changed at random, each answer is read or refused, within bounds, and nothing else happens."""

import gzip
import json
import zlib
from collections.abc import Iterator

import brotli
import zstandard

from tests.fetch.test_http1 import SMALL, read
from tests.proof.fuzzing import FULL, SHORT, Reader, fuzzed
from tests.proof.section import Finding, Section
from trapline.crawler.visits.judge import judge
from trapline.fetch.failure import ENCODING
from trapline.fetch.html.fingerprint import fingerprint
from trapline.fetch.html.page import MOST_LINKS, read_page
from trapline.fetch.http.content import decoded
from trapline.fetch.http.http1 import ResponseReader
from trapline.fetch.limits import Limits
from trapline.fetch.robots.parser import parse, written
from trapline.fetch.urls import canonical
from trapline.signals.published import feed
from trapline.signals.published import schedule as schedule_feed
from trapline.signals.published.feed import MOST_POINTS, read_feed
from trapline.signals.published.list_discovery import kind_of, of_response, of_robots
from trapline.signals.published.schedule import HORIZON_S, read_schedule
from trapline.signals.published.sitemap import MOST_URLS, read_sitemap

_METHOD = """
A mutator with a fixed seed changes valid examples. It makes the changes that the next section lists, and also inserts words of the
format, once or 200 times. None of these readers may raise an exception. Their results are checked: the response reader gives the same
result for any division of the bytes into pieces, and nothing longer than its limits; the rules of a robots.txt, written out and parsed
again, allow the same URLs; every URL of a list is canonical; no list, feed or page gives more entries than its limit; a decoded body is
within its limit. An input that takes longer than ten seconds is a failure. For every hundredth input, all calls of Python and C
functions are counted. They may not exceed a fixed number plus a number per byte of input. The table shows failing inputs in
hexadecimal.
"""
_NOW = 1.7e9
_PAGE, _FOLDER = "http://a.test/d/page", "http://a.test/d/"
_AGENT = "trapline"
_EXPANDED = 1 << 16  # bytes: small, so that inputs reach the limit


def run(full: bool) -> Iterator[Finding]:
    for title, readers in (
        ("The response reader", _responses()),
        ("robots.txt", _robots()),
        ("Links in pages", _pages()),
        ("Sitemaps", _sitemaps()),
        ("Feeds and schedules", _feeds()),
        ("Content decoding", _codings()),
    ):
        yield fuzzed(title, readers, FULL if full else SHORT)


# ---- responses


def _responses() -> list[Reader]:
    page = b"<a href=/x>"
    examples = [
        b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 11\r\nETag: "a"\r\n\r\n' + page,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\n<a hr\r\n6\r\nef=/x>\r\n0\r\nX: y\r\n\r\n" * 2,
        b"HTTP/1.0 200 OK\nServer: x\nLink: </y>;\n rel=canonical\n\n" + page,
        b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\nHTTP/1.1 304 Not Modified\r\nKeep-Alive: timeout=5, max=9\r\n\r\n",
        b"HTTP/1.1 301 Moved\r\nLocation: /z\r\nContent-Length: 0\r\nRetry-After: 120\r\nCache-Control: max-age=60\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 31\r\n\r\n" + gzip.compress(page, mtime=0),
    ]
    words = [
        b"\r\n\r\n", b"\n", b"\r", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"Content-Length: 5\r\n",
        b"Content-Length: 99999999999999999999\r\n", b"Transfer-Encoding: gzip, chunked\r\n", b"Connection: close\r\n",
        b"fffffffffffffff\r\n", b"0\r\n\r\n", b"1\r\nx\r\n", b"0x1F", b"+1", b" ", b"\t", b",", b":", b";",
        b"Content-Type: text/html; charset=", b"Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n", b"max-age=", b"rel=hub",
    ]  # fmt: skip
    return [
        Reader("responses", _read_however_cut, examples, words=words, calls=(400, 40)),
        Reader("answers", _judged, examples, words=words, calls=(2_000, 40)),
    ]


def _read_however_cut(data: bytes) -> None:
    size = 1 + zlib.crc32(data) % 64
    whole, failure = read([data])
    assert (whole, failure) == read([data[at : at + size] for at in range(0, len(data), size)])
    for response in whole:
        assert len(response.head) <= SMALL.header_bytes and len(response.wire) <= SMALL.body_bytes
        assert len(response.body) <= len(response.wire) and response.head in data and response.wire in data
    reader = ResponseReader(SMALL)
    reader.feed(data)
    reader.next()
    reader.has_more()
    reader.cut("time")


def _judged(data: bytes) -> None:
    for response in read([data], Limits())[0]:
        verdict = judge(response, _AGENT, _EXPANDED, _NOW, bool(len(data) % 2), True)
        assert len(verdict.links) <= MOST_LINKS
        of_response(response.headers, _PAGE, response.body)


# ---- robots.txt


def _robots() -> list[Reader]:
    examples = [
        b"User-agent: *\nDisallow: /a\nAllow: /a/*.html$\nCrawl-delay: 2.5\n\nUser-agent: trapline\nDisallow: /b*c*d\n",
        b"\xef\xbb\xbfUser-agent: trapline # us\r\nuser-agent: other\r\nDisallow: /%7Ex/\xc3\xa9\r\nSitemap: http://a.test/s.xml\r\n",
        "User-agent: *\nDisallow: /\nAllow: /index.html\nSchedule: /t.json\n".encode("utf-16"),
    ]
    words = [
        b"User-agent: trapline\n", b"User-agent: *\n", b"Disallow: ", b"Allow: ", b"\nDisallow: /", b"*", b"$", b"**", b"*$",
        b"%", b"%2", b"%2F", b"#", b":", b"Crawl-delay: 1e9\n", b"Crawl-delay: .\n", b"Sitemap: ", b"\r", b"\x85", b"\xff\xfe",
    ]  # fmt: skip
    return [Reader("robots.txt", _read_robots, examples, words=words, calls=(1_000, 40))]


_TARGETS = ("/", "/robots.txt", "/a/b.html", "/b/c/d?e*$", "/%7Ex/%C3%A9", "/" + "bcd" * 600)


def _read_robots(data: bytes) -> None:
    rules = parse(data, _AGENT)
    again = parse(written(rules), _AGENT)
    for target in _TARGETS:
        assert rules.allows(target) == again.allows(target)
    assert rules.crawl_delay_s is None or 0.0 <= rules.crawl_delay_s <= 86_400.0
    of_robots(data, "http://a.test/robots.txt")


# ---- pages


def _pages() -> list[Reader]:
    examples = [
        b'<!doctype html><meta charset=utf-8><base href="/d/"><title>T</title><link rel=canonical href=/c><a href="x?a=1&amp;b=2">1</a>'
        b"<a href='/y' rel='nofollow'>2</a><area href=z><iframe src=f></iframe><!-- <a href=no> --><script>'<a href=no>'</script>",
        b"<html><head><meta name=robots content='noindex, nofollow'><meta http-equiv=refresh content='0; url=/r'></head>"
        b"<svg><title><a href=t></a></title><style><a href=s></style></svg><textarea><a href=no></textarea><a href=last>",
        '<meta charset=shift_jis><a href="/日本?q=日本">日本</a>'.encode("shift_jis"),
        '<a href="/é?ü=ß">x</a>'.encode("utf-16"),
        '<meta charset=windows-1252><a href="?q=é">x</a><p>'.encode("latin-1"),
    ]
    words = [
        b"<a href=", b"<a href='", b'"', b"'", b">", b"/>", b"<", b"</", b"<!--", b"-->", b"<script>", b"</script>", b"<svg>", b"<math>",
        b"<base href=//b.test/>", b"&#x41;", b"&#xD800;", b"&notin;", b"&", b"<![CDATA[", b"]]>", b"<template>", b"<plaintext>",
        b"<meta charset=iso-2022-jp>", b"\x1b$B", b"<meta name=trapline content=none>", b"rel=nofollow ", b"\xc3", b"\x81", b"http://[",
    ]  # fmt: skip
    return [
        Reader("pages", _read_page, examples, words=words, calls=(1_000, 15)),
        Reader("fingerprints", lambda data: fingerprint(data, "text/html"), examples, words=words, calls=(500, 5)),
    ]


def _read_page(data: bytes) -> None:
    charset = (None, "utf-8", "shift_jis", "utf-16", "no-such")[zlib.crc32(data) % 5]
    facts = read_page(data, charset, _AGENT)
    assert len(facts.links) <= len(data)
    base = (canonical(facts.base, _PAGE) if facts.base else None) or _PAGE
    for link in facts.links:
        _check_url(canonical(link, base))


def _check_url(url: str | None) -> None:
    assert url is None or (url.isascii() and len(url) <= 2048 and canonical(url) == url)


# ---- published lists


def _sitemaps() -> list[Reader]:
    entry = "<url><loc>http://a.test/d/{0}</loc><lastmod>2023-01-{0}</lastmod><changefreq>daily</changefreq><priority>0.5</priority></url>"
    sitemap = (
        '<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'
    )
    whole = sitemap.format("".join(entry.format(day) for day in range(10, 14))).encode()
    examples = [
        whole,
        b"<s:sitemapindex xmlns:s='x'><s:sitemap><s:loc><![CDATA[http://a.test/d/2.xml?a&b]]></s:loc></s:sitemap></s:sitemapindex>",
        b"http://a.test/d/1\nhttp://a.test/d/2\r\n# no\n",
        whole.decode().replace("UTF-8", "UTF-16").encode("utf-16"),
    ]
    words = [
        b"<url>", b"</url>", b"<loc>", b"</loc>", b"<lastmod>", b"<sitemap>", b"<!--", b"-->", b"--", b"<![CDATA[", b"]]>", b"&lt;", b"&#x",
        b"http://b.test/", b"<image:loc>", b"<urlset>", b"<priority>1e400", b"\n", b"9999-12-31", b"T24:00:00+99:99", b"\0",
    ]  # fmt: skip
    # An expression is compiled for each new prefix, which takes some thousand calls.
    packed = Reader(
        "packed sitemaps",
        _read_sitemap,
        examples,
        (),
        lambda data: gzip.compress(data, 1, mtime=0),
        words,
        (20_000, 100),
    )
    return [Reader("sitemaps", _read_sitemap, examples, words=words, calls=(20_000, 10)), packed]


def _read_sitemap(data: bytes) -> None:
    found = read_sitemap(data, _FOLDER + "s.xml", bool(len(data) % 2), _NOW)
    assert len(found.entries) + len(found.sitemaps) <= MOST_URLS
    for entry in (*found.entries, *found.sitemaps):
        _check_url(entry.url)
        assert not entry.lastmod > _NOW + HORIZON_S and not (entry.priority < 0.0 or entry.priority > 1.0)
    kind_of("text/xml", data, _PAGE)


def _feeds() -> list[Reader]:
    rss = (
        b'<?xml version="1.0"?><rss version="2.0"><channel><ttl>60</ttl><skipHours><hour>3</hour></skipHours><link>http://a.test/</link>'
        b'<item><guid isPermaLink="false">1</guid><link>http://a.test/1</link><pubDate>Mon, 01 Jan 2024 00:00:00 +0100</pubDate></item>'
        b"<item><link><![CDATA[/2]]></link></item></channel></rss>"
    )
    atom = (
        b'<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/b/"><link rel="hub" href="https://h.test/"/><link rel="self" href="/f"/>'
        b"<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency><sy:updateBase>2024-01-01T00:00Z</sy:updateBase>"
        b'<entry><link href="1"/><updated>2024-01-01T00:00:00Z</updated></entry></feed>'
    )
    item = {"url": "http://a.test/3", "date_modified": "2024-01-01T00:00:00Z"}
    as_json = {
        "version": "https://jsonfeed.org/version/1.1",
        "items": [item] * 3,
        "hubs": [{"type": "WebSub", "url": "/h"}],
    }
    rule = {"url": "/r", "rrule": "FREQ=WEEKLY;BYDAY=MO,TH;BYHOUR=6;INTERVAL=2", "tzid": "Europe/Berlin", "p": 0.5}
    update = {"url": "/u", "window_s": 600, "updates": [{"at": _NOW + 600, "p": 0.5}, {"at": "2023-11-15T00:00:00Z"}]}
    minutely = {"url": "/m", "rrule": "FREQ=MINUTELY;INTERVAL=15;UNTIL=20231115T120000Z"}
    schedule = {
        "version": 1,
        "host": "a.test",
        "generated": _NOW - 60,
        "expires": _NOW + 1e7,
        "entries": [rule, update, minutely],
    }
    words = [
        b"<item>", b"</item>", b"<entry>", b"<link>", b"<link href='", b"<guid>", b"<pubDate>", b"<ttl>", b"<hour>", b"]]>", b"<![CDATA[",
        b"<!--", b"<updated>", b"9999-99-99", b"<sy:updateBase>0001-01-01", b"&#1114112;", b'"items": [', b'{"url": "', b"},{", b"[[[[",
    ]  # fmt: skip
    of_rules = [
        b"FREQ=MINUTELY;", b"FREQ=YEARLY;", b"INTERVAL=100000;", b"INTERVAL=0;", b"BYDAY=-1SU;", b"BYMONTH=2;", b"BYMONTHDAY=-31;",
        b"BYHOUR=0,1,2,23;", b"BYMINUTE=59;", b"BYSECOND=60;", b"UNTIL=99991231;", b"UNTIL=00010101T000000;", b"WKST=SU;",
        b"Asia/Kolkata", b"../etc", b"1e308", b"-1", b"1e400", b'"at": ', b'"p": 2, ', b'"window_s": 1e99, ', b"},{", b"0001-01-01",
    ]  # fmt: skip
    return [
        Reader("feeds", _read_feed, [rss, atom, json.dumps(as_json).encode()], words=words, calls=(4_000, 50)),
        Reader("schedules", _read_schedule, [json.dumps(schedule).encode()], words=of_rules, calls=(200_000, 10)),
    ]


def _read_feed(data: bytes) -> None:
    found = read_feed(data, _FOLDER + "feed", _NOW)
    assert len(found.entries) + len(found.rejected_links) <= feed.MOST_ENTRIES
    for url in (*(entry.url for entry in found.entries), *found.rejected_links, *found.hubs, found.self_url):
        _check_url(url or None)
    assert all(not entry.updated > _NOW + HORIZON_S for entry in found.entries)
    points = found.points(_NOW, HORIZON_S)
    assert len(points) <= MOST_POINTS and all(_NOW < at <= _NOW + HORIZON_S for at in points)
    kind_of("", data, _PAGE)


def _read_schedule(data: bytes) -> None:
    found = read_schedule(data, _FOLDER + "schedule.json", _NOW)
    assert sum(map(len, found.points.values())) <= schedule_feed.MOST_POINTS
    for url, points in found.points.items():
        _check_url(url)
        assert all(_NOW < point.at <= _NOW + HORIZON_S and 0.0 < point.p <= 1.0 for point in points)


# ---- content codings


def _codings() -> list[Reader]:
    text = b"<p>Some words of a page, and <a href=/x>a link</a>.</p>\n" * 40
    zeros = bytes(_EXPANDED + 1)
    inflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    raw = inflater.compress(text) + inflater.flush()
    of_coding = {
        b"gzip": [gzip.compress(text, mtime=0), gzip.compress(text, mtime=0) * 3, gzip.compress(zeros, mtime=0)],
        b"deflate": [zlib.compress(text), raw, zlib.compress(zeros)],
        b"br": [brotli.compress(text), brotli.compress(zeros), brotli.compress(text) + b"more"],
        b"zstd": [zstandard.compress(text), zstandard.compress(zeros), zstandard.compress(text) * 2],
    }
    readers = []
    for coding, examples in of_coding.items():
        name = coding.decode()
        readers.append(Reader(name, lambda data, coding=coding: _decode(data, coding), examples, calls=(10_000, 40)))  # type: ignore[misc]
    stacked = [gzip.compress(one, mtime=0) for one in of_coding[b"br"]]
    readers.append(Reader("stacks", lambda data: _decode(data, b"br, gzip"), stacked, calls=(10_000, 40)))
    headers = [b"gzip", b"br, gzip", b"identity, , deflate", b"utf-8", b"x-gzip,zstd,br,deflate,none"]
    body = of_coding[b"gzip"][0]
    readers.append(
        Reader(
            "Content-Encoding",
            lambda value: _decode(body, value),
            headers,
            words=[b"gzip", b",", b" "],
            calls=(10_000, 40),
        )
    )
    return readers


def _decode(data: bytes, coding: bytes) -> None:
    plain, as_far = decoded(data, coding, _EXPANDED), decoded(data, coding, _EXPANDED, cut=True)
    for found in (plain, as_far):
        assert found == ENCODING if isinstance(found, str) else len(found) <= max(_EXPANDED, len(data))
    assert plain == ENCODING or plain == as_far  # in one piece the result is the same


SECTION = Section("Hostile sites", _METHOD, run)
