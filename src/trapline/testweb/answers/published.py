"""Files that sites publish about their own changes: a sitemap, a feed, a schedule, and the key that authenticates their pings.

A liar's sitemap and feed say that all pages have just changed. `providers` decides which site publishes what. Every file
depends on the time and is made anew for each request. The limits are those of the readers: 50,000 URLs (sitemaps.org),
10,000 points of a schedule. This module makes text and opens no socket.
"""

import json
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from xxhash import xxh3_128_hexdigest

from trapline.testweb.answers.message import ServedAnswer, head
from trapline.testweb.answers.noise import stamp
from trapline.testweb.web.paths import FEED, SCHEDULE, SITEMAP
from trapline.testweb.web.providers import PINGING, PUBLISHING, SCHEDULING

if TYPE_CHECKING:
    from trapline.testweb.web.served_web import ServedWeb

MOST_URLS, MOST_POINTS, MOST_ENTRIES = 50_000, 10_000, 20
WINDOW_S = 1  # seconds: the window that is published with a scheduled time


def key(web: "ServedWeb", site: int) -> str:
    """Return the key that a site pings with and that its key file, /KEY.txt, holds."""
    return xxh3_128_hexdigest(f"{web.seed} key {site}".encode())


def published(web: "ServedWeb", site: int, target: str, now: float) -> ServedAnswer | None:
    """Return the answer for a published file; None if this site has no such file."""
    level = web.level(site)
    if level in PINGING and target == f"/{key(web, site)}.txt":
        return _file(web, site, "text/plain; charset=utf-8", key(web, site))
    if level in PUBLISHING and target == SITEMAP:
        return _file(web, site, "application/xml", _sitemap(web, site, now))
    if level in PUBLISHING and target == FEED:
        return _file(web, site, "application/atom+xml", _feed(web, site, now))
    if level in SCHEDULING and target == SCHEDULE:
        return _file(web, site, "application/json", _schedule(web, site, now))
    return None


def robots_lines(web: "ServedWeb", site: int) -> list[str]:
    """Return the lines of robots.txt that name these files."""
    level, origin = web.level(site), web.origins[site]
    return [
        *([f"Sitemap: {origin}{SITEMAP}"] if level in PUBLISHING else ()),
        *([f"Crawl-schedule: {origin}{SCHEDULE}"] if level in SCHEDULING else ()),
    ]


def fields(web: "ServedWeb", page: int) -> list[str]:
    """Return the header fields that name the schedule."""
    return [f'Link: <{SCHEDULE}>; rel="crawl-schedule"'] if web.level(web.site[page]) in SCHEDULING else []


def markup(web: "ServedWeb", page: int) -> str:
    """Return the HTML by which a home page names the feed."""
    site = web.site[page]
    if page != web.home[site] or web.level(site) not in PUBLISHING:
        return ""
    return f'<link rel="alternate" type="application/atom+xml" href="{FEED}">\n'


def _file(web: "ServedWeb", site: int, kind: str, text: str) -> ServedAnswer:
    body = text.encode()
    about = (f"Content-Type: {kind}", f"Content-Length: {len(body)}")
    return ServedAnswer(200, head(200, *about, http10=web.behaviours[site].http10), body)


def _pages(web: "ServedWeb", site: int, now: float) -> list[int]:
    return [page for page in web.pages_of(site) if web.exists(page, now)]


def _said(web: "ServedWeb", page: int, now: float) -> float:
    """Return when the page changed according to its site."""
    return now if web.level(web.site[page]) == "liar" else web.updated(page, now)


def _sitemap(web: "ServedWeb", site: int, now: float) -> str:
    urls = "".join(
        f"<url><loc>{escape(web.url(page))}</loc><lastmod>{stamp(_said(web, page, now))}</lastmod></url>\n"
        for page in _pages(web, site, now)[:MOST_URLS]
    )
    return f'{_XML}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n'


def _feed(web: "ServedWeb", site: int, now: float) -> str:
    """Return an Atom feed (RFC 4287) of the pages that changed last."""
    newest = sorted(_pages(web, site, now), key=lambda page: -_said(web, page, now))[:MOST_ENTRIES]
    entries = "".join(_entry(web, page, now) for page in newest)
    updated = stamp(_said(web, newest[0], now)) if newest else stamp(web.began)
    about = f"<id>{web.origins[site]}/</id><title>{web.names[site]}</title><updated>{updated}</updated>"
    author = f"<author><name>{web.names[site]}</name></author>"
    return f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom">\n{about}{author}\n{entries}</feed>\n'


def _entry(web: "ServedWeb", page: int, now: float) -> str:
    url = escape(web.url(page))
    about = f'<id>{url}</id><title>Page {page}</title><link href="{url}"/>'
    return f"<entry>{about}<updated>{stamp(_said(web, page, now))}</updated></entry>\n"


def _schedule(web: "ServedWeb", site: int, now: float) -> str:
    """Return the schedule of the earliest points, in our own format (docs/testweb.md shows an example)."""
    assert web.providers is not None
    begin_s, ahead_s = now - web.began, web.providers.ahead_s
    points = sorted(
        (at_s, page)
        for page in _pages(web, site, now)
        for at_s in islice(web.providers.schedule.between(page, begin_s, begin_s + ahead_s), MOST_POINTS)
    )[:MOST_POINTS]
    by_page: dict[int, list[float]] = {}
    for at_s, page in points:
        by_page.setdefault(page, []).append(web.began + at_s)
    feed = {
        "version": 1,
        "host": web.authority(site),
        "generated": stamp(now),
        "expires": stamp(now + ahead_s),
        "entries": [{"url": web.url(page), "updates": _updates(moments)} for page, moments in by_page.items()],
    }
    return json.dumps(feed)


def _updates(moments: Sequence[float]) -> list[dict[str, object]]:
    return [{"at": stamp(at), "window_s": WINDOW_S, "p": 1.0} for at in moments]


_XML = '<?xml version="1.0" encoding="utf-8"?>\n'
