"""Discovery of a site's hubs, feeds, sitemaps and schedules, from Link headers, the head of a page, and robots.txt.

Bytes in, facts out: the module returns what a crawl should fetch or subscribe to, and fetches nothing itself. It accepts any bytes
without an error, and returns only a few URLs of each kind. A page speaks for its own host: feeds and sitemaps on other hosts are
rejected, and so are schedules on other sites. A hub may be anywhere, and so may a sitemap that a robots.txt cites (sitemaps.org,
"Sitemaps & Cross Submits").
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from trapline.fetch.html.kernels import BASE, LINK
from trapline.fetch.html.markup import ThreadRows, text, values
from trapline.fetch.http.headers import links
from trapline.fetch.robots.parser import parse, whole_lines
from trapline.fetch.urls import canonical, origin
from trapline.signals.published.files import GZIP, host_of

# ---- Recognises which kind of published file a body is, if any. Runs for every page, so for HTML pages it must cost almost nothing.
#
# Goes by the first bytes, because media types are often wrong: feeds come as text/html, sitemaps as anything. The parser of each kind
# reads the rest of the file.

SITEMAP, FEED, SCHEDULE, NONE = "sitemap", "feed", "schedule", ""

_SNIFFED_BYTES = 4096
_SNIFFED_HTML_BYTES = 1024  # of a body whose media type is HTML
_HTML = frozenset(("text/html", "application/xhtml+xml"))
_NEVER = ("image/", "video/", "audio/", "font/", "text/css", "text/javascript", "application/javascript")
_GZIP_WITH_HEADER = 31  # zlib's wbits
_MARKS_AND_SPACE = b"\xef\xbb\xbf\xff\xfe \t\r\n"

_USUAL_BEGINNINGS = (b"<!DOCTYPE html", b"<!doctype html")  # of pages: these spare `_is_page`
_BEGINS_PAGES = (b"<!doctype html", b"<html")
_ROOT = re.compile(rb"<(?:[A-Za-z_][\w.-]{0,40}:)?(urlset|sitemapindex|rss|feed|RDF)[\s>]")
_KINDS = {b"urlset": SITEMAP, b"sitemapindex": SITEMAP, b"rss": FEED, b"feed": FEED}
_RSS_1 = re.compile(rb"purl\.org/rss/|my\.netscape\.com/rdf/")  # without these, the file is some other RDF
_JSON_FEED = re.compile(rb'"version"\s*:\s*"https?:\\?/\\?/jsonfeed\.org')
_VERSION_1, _HOST = re.compile(rb'"version"\s*:\s*1\s*[,}\r\n]'), re.compile(rb'"host"\s*:\s*"')
_URL_LINE = re.compile(rb"^[ \t]*https?://\S", re.IGNORECASE | re.MULTILINE)


def kind_of(mime: str, body: bytes, url: str, is_named: bool = False) -> str:
    """Return SITEMAP, FEED, SCHEDULE, or NONE. `is_named`: something names this URL as a list. Otherwise a plain text is one only if its
    file name says so.

    >>> kind_of("text/html", b"<!doctype html><p>", "http://a.org/"), kind_of("text/html", b"<?xml version='1.0'?><rss version=", "")
    ('', 'feed')
    """
    if mime in _HTML and (body.startswith(_USUAL_BEGINNINGS) or _is_page(body[:_SNIFFED_HTML_BYTES])):
        return NONE
    return (
        NONE
        if mime.startswith(_NEVER)
        else _kind_of_head(mime, body[:_SNIFFED_BYTES], is_named or "sitemap" in url.rpartition("/")[2].lower())
    )


def _is_page(head: bytes) -> bool:
    """Return whether a body of type HTML begins like HTML, or at least has no root element of a feed or sitemap."""
    if head[:64].lstrip(_MARKS_AND_SPACE)[:14].lower().startswith(_BEGINS_PAGES) or b"<html" in head:
        return True
    return not _ROOT.search(head)


def _kind_of_head(mime: str, head: bytes, may_be_text: bool) -> str:
    if head.startswith(GZIP):
        head = _inflated(head)
    if b"\0" in head[:4]:
        head = head.replace(b"\0", b"")  # turns ASCII text in UTF-16 or UTF-32 into plain ASCII
    first = head.lstrip(_MARKS_AND_SPACE)[:1]
    if first == b"{":
        return _of_json(head)
    if kind := _of_xml(head):
        return kind
    return SITEMAP if may_be_text and mime == "text/plain" and _URL_LINE.search(head) else NONE


def _of_xml(head: bytes) -> str:
    root = _ROOT.search(head)
    if not root:
        return NONE
    return _KINDS.get(root[1]) or (FEED if _RSS_1.search(head) else NONE)


def _of_json(head: bytes) -> str:
    if _JSON_FEED.search(head):
        return FEED
    return SCHEDULE if _VERSION_1.search(head) and _HOST.search(head) else NONE


def _inflated(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(_GZIP_WITH_HEADER).decompress(head, _SNIFFED_BYTES)
    except zlib.error:
        return b""


# ---- Link relations and lines of robots.txt

MOST_OF_A_KIND = 8
MOST_SITEMAPS = 1_000  # of a robots.txt
HUB, SELF, SCHEDULE_LINK, SITEMAP_LINK, FEED_LINK = "hub", "self", "crawl-schedule", "sitemap", "feed"

_ALTERNATE = "alternate"
# Without application/json: it is more often the API of a content management system than a feed.
_FEED_TYPES = frozenset(
    (
        "application/rss+xml",
        "application/atom+xml",
        "application/rdf+xml",
        "application/feed+json",
        "application/xml",
        "text/xml",
    )
)
_HEAD_BYTES = 128 * 1024
_HEAD_ENDS = re.compile(rb"<(?:/[hH][eE][aA][dD]|[bB][oO][dD][yY])[\s>]")
_MOST_SITEMAP_LINES = 4 * MOST_SITEMAPS  # some sitemaps are cited more than once
# Lines that `parse` may read as a sitemap: with or without a colon.
_SITEMAP_LINE = re.compile(rb"(?:\A|(?<=[\r\n]))[ \t\v\f]*+site-?map[^\r\n]*+", re.IGNORECASE)
_SCHEDULE_LINE = re.compile(rb"^[ \t]*+crawl-schedule[ \t]*+:[ \t]*+([^\r\n#]*+)", re.IGNORECASE | re.MULTILINE)

_rows = ThreadRows(64, 0)


class Relations(NamedTuple):
    """URLs that a page or a robots.txt names; all canonical, in order of appearance, each once."""

    hubs: tuple[str, ...] = ()
    self_url: str = ""
    schedules: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ()


NOTHING = Relations()


def of_response(headers: Mapping[bytes, bytes], url: str, html: bytes = b"") -> Relations:
    """Return the relations of a response: first those of its Link header, then those in the head of its HTML.

    WebSub, section 4, demands this order.

    >>> of_response({b"link": b'<https://hub.example/>; rel="hub", </f>; rel=self'}, "http://a.org/f").hubs
    ('https://hub.example/',)
    """
    links = _of_header(headers[b"link"]) if b"link" in headers else iter(())
    found = [(rel, where) for rel, target in links if (where := canonical(target, url))]
    if html:
        found += _of_head(html[:_HEAD_BYTES], url)
    return _relations(found, url) if found else NOTHING


def of_robots(body: bytes, url: str) -> Relations:
    """Return what a robots.txt names in its `Sitemap` and `Crawl-schedule` lines. The latter is our own; other crawlers ignore it.

    >>> of_robots(b"Crawl-schedule: /when.json\\nSitemap: http://b.org/a.xml", "http://a.org/robots.txt")[2:4]
    (('http://a.org/when.json',), ('http://b.org/a.xml',))
    """
    body = whole_lines(body)
    lines = (found[1].strip() for found in _SCHEDULE_LINE.finditer(body))
    schedules = [canonical(line.decode("utf-8", "replace"), url) for line in islice(lines, MOST_OF_A_KIND)]
    sitemaps = [_cited(value, url) for value in parse(_sitemap_lines(body), "").sitemaps[:MOST_SITEMAPS]]
    own = [schedule for schedule in schedules if schedule and origin(schedule) == origin(canonical(url) or "")]
    return Relations(schedules=_each_once(own), sitemaps=_each_once((url for url in sitemaps if url), MOST_SITEMAPS))


def _sitemap_lines(body: bytes) -> bytes:
    """Return the lines of a robots.txt that may cite a sitemap, so that `parse` builds no rules from the other lines."""
    return b"\n".join(found[0] for found in islice(_SITEMAP_LINE.finditer(body), _MOST_SITEMAP_LINES))


def _cited(value: str, url: str) -> str | None:
    """Return a sitemap's URL as canonical. fetch/robots/parser.py decodes lines as Latin-1; here they are read as UTF-8."""
    return canonical(value.encode("latin-1", "replace").decode("utf-8", "replace"), url)


def _of_header(value: bytes) -> Iterator[tuple[str, str]]:
    """Yield relation and target of each link, except links with an anchor, which belong to another page."""
    for target, parameters in links(value):
        if "anchor" not in parameters:
            for rel in _rels(parameters):
                yield rel, target


def _of_head(html: bytes, url: str) -> list[tuple[str, str]]:
    """Return relation and canonical target of each link element in a page's head."""
    end = _HEAD_ENDS.search(html)
    head = html[: end.start()] if end else html
    if not _may_matter(head):
        return []
    base, found = url, list[tuple[str, str]]()
    for kind, start, stop, *_ in _rows.own.tags(head, b"", 1).rows():
        markup = head[start:stop]
        if kind == BASE and base == url:
            base = canonical(text(_attributes(markup).get("href", "")), url) or url
        elif kind == LINK and _may_matter(markup):
            attributes = _attributes(markup)
            found += [(rel, text(attributes.get("href", ""))) for rel in _rels(attributes)]
    return [(rel, where) for rel, target in found if (where := canonical(target, base))]


def _may_matter(markup: bytes) -> bool:
    """Return whether the markup contains the name of a relation.

    Five searches for one word each take a tenth of the time of one regular expression for all.
    """
    small = markup.lower()
    return (
        b"alternate" in small
        or b"hub" in small
        or b"crawl-schedule" in small
        or b"sitemap" in small
        or b"self" in small
    )


def _attributes(markup: bytes) -> dict[str, str]:
    return values(markup.decode("utf-8", "replace"))


def _rels(attributes: Mapping[str, str]) -> Iterator[str]:
    """Yield the relations of a link that this module knows. An alternate counts as FEED_LINK if its type is that of a feed."""
    for rel in text(attributes.get("rel", "")).lower().split():
        if rel in (HUB, SELF, SCHEDULE_LINK, SITEMAP_LINK):
            yield rel
        elif rel == _ALTERNATE and text(attributes.get("type", "")).lower().partition(";")[0].strip() in _FEED_TYPES:
            yield FEED_LINK


def _relations(found: list[tuple[str, str]], url: str) -> Relations:
    page = canonical(url) or ""
    own = [(rel, where) for rel, where in found if host_of(where) == host_of(page)]
    return Relations(
        _each_once(where for rel, where in found if rel == HUB),
        next((where for rel, where in found if rel == SELF), ""),
        _each_once(where for rel, where in own if rel == SCHEDULE_LINK and origin(where) == origin(page)),
        _each_once(where for rel, where in own if rel == SITEMAP_LINK),
        _each_once(where for rel, where in own if rel == FEED_LINK),
    )


def _each_once(urls: Iterable[str], most: int = MOST_OF_A_KIND) -> tuple[str, ...]:
    return tuple(islice(dict.fromkeys(urls), most))
