"""Measures the speed of the readers of published lists, in processor time, best of five: python bench/published.py

Prints entries per second of a sitemap of 50,000 URLs, of feeds of 200 entries and of a schedule. Then prints the cost, in
microseconds, of the checks that a crawl makes for every page.
"""

import json
import time
from collections.abc import Callable

from trapline.signals.dates import expiry, last_modified_age
from trapline.signals.published.feed import read_feed
from trapline.signals.published.list_discovery import kind_of, of_response
from trapline.signals.published.schedule import read_schedule
from trapline.signals.published.sitemap import read_sitemap

SITE = "https://example.org/"
NOW = 1_800_000_000.0
WORDS = "<p>Lorem ipsum dolor sit amet</p> " * 20


def best_s(work: Callable[[], object], times: int = 1) -> float:
    """Return the processor time of one call: the best mean over `times` calls in five rounds."""
    rounds = []
    for _ in range(5):
        started = time.process_time()
        for _ in range(times):
            work()
        rounds.append((time.process_time() - started) / times)
    return min(rounds)


def sitemap(entries: int) -> bytes:
    rows = "".join(
        f"<url>\n  <loc>{SITE}section-{at % 97}/page-{at}.html</loc>\n"
        f"  <lastmod>2026-0{1 + at % 6}-1{at % 9}T10:{at % 60:02d}:00+00:00</lastmod>\n"
        "  <changefreq>daily</changefreq>\n  <priority>0.5</priority>\n</url>\n"
        for at in range(entries)
    )
    return (
        f"<?xml version='1.0'?>\n<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>\n{rows}</urlset>".encode()
    )


def rss(entries: int) -> bytes:
    items = "".join(
        f"<item><title>Post {at} &amp; more</title><link>{SITE}post-{at}</link><guid isPermaLink='false'>tag:{at}</guid>"
        f"<pubDate>Sat, {1 + at % 28:02d} May 2026 10:{at % 60:02d}:00 +0000</pubDate>"
        f"<description><![CDATA[{WORDS}]]></description></item>\n"
        for at in range(entries)
    )
    return f"<rss version='2.0'><channel><title>t</title><link>{SITE}</link>{items}</channel></rss>".encode()


def atom(entries: int) -> bytes:
    items = "".join(
        f"<entry><title>Post {at}</title><link href='{SITE}post-{at}'/><updated>2026-05-{1 + at % 28:02d}T10:00:00Z</updated>"
        f"<content type='xhtml'><div>{WORDS}</div></content></entry>\n"
        for at in range(entries)
    )
    return f"<feed xmlns='http://www.w3.org/2005/Atom'><title>t</title>{items}</feed>".encode()


def json_feed(entries: int) -> bytes:
    items = [
        {"url": f"{SITE}{at}", "date_modified": "2026-05-01T10:00:00Z", "content_html": WORDS} for at in range(entries)
    ]
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": items}).encode()


def schedule(entries: int) -> bytes:
    rows = [
        {"url": f"/{at}", "updates": [{"at": NOW + 600 * k, "p": 0.9} for k in range(1, 5)]} for at in range(entries)
    ]
    return json.dumps({"version": 1, "host": "example.org", "expires": NOW + 1e6, "entries": rows}).encode()


def page() -> bytes:
    links = "<link rel=stylesheet href=/a.css>" * 10
    return (
        f"<!DOCTYPE html>\n<html><head><title>x</title>{links}</head><body>{'<p>text <a href=/x>y</a>' * 500}".encode()
    )


def rate(what: str, body: bytes, entries: int, read: Callable[[bytes], object]) -> None:
    seconds = best_s(lambda: read(body))
    print(
        f"{what:38} {len(body) / 1e6:6.2f} MB {seconds * 1e3:8.1f} ms {entries / seconds:10,.0f} entries/s", flush=True
    )


def cost(what: str, work: Callable[[], object]) -> None:
    print(f"{what:38} {best_s(work, 5_000) * 1e6:8.2f} us", flush=True)


def main() -> None:
    rate("sitemap", sitemap(50_000), 50_000, lambda body: read_sitemap(body, SITE + "sitemap.xml", False, NOW))
    for name, made in (("RSS", rss(200)), ("Atom", atom(200)), ("JSON Feed", json_feed(200))):
        rate(name, made, 200, lambda body: read_feed(body, SITE + "feed", NOW))
    rate("schedule feed (points)", schedule(2_000), 8_000, lambda body: read_schedule(body, SITE + "when", NOW))
    html, named = page(), page().replace(b"rel=stylesheet", b"rel=alternate type=application/rss+xml", 1)
    headers = {b"cache-control": b"public, max-age=600", b"last-modified": b"Sat, 02 May 2026 10:00:00 GMT"}
    cost("is the page a published list? (HTML)", lambda: kind_of("text/html", html, SITE))
    cost("does the page name lists? (none)", lambda: of_response({}, SITE, html))
    cost("does the page name lists? (a feed)", lambda: of_response({}, SITE, named))
    cost("expiry", lambda: expiry(headers, NOW))
    cost("age by Last-Modified", lambda: last_modified_age(headers, NOW))


if __name__ == "__main__":
    main()
