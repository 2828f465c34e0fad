"""Which kind of published file a body is, if any: asked of every page, so that for pages it must cost next to nothing.

By its first bytes, for types are often wrong: feeds come as text/html, sitemaps as anything. What is in the file its reader finds out.
"""

import re
import zlib

from trapline.signals.unpacked import GZIP

SITEMAP, FEED, SCHEDULE, NONE = "sitemap", "feed", "schedule", ""

_LOOKED_AT = 4096
_OF_A_PAGE = 1024  # bytes that are looked at if it is said to be one
_HTML = frozenset(("text/html", "application/xhtml+xml"))
_NEVER = ("image/", "video/", "audio/", "font/", "text/css", "text/javascript", "application/javascript")
_GZIP_WITH_HEADER = 31  # zlib's wbits
_MARKS_AND_SPACE = b"\xef\xbb\xbf\xff\xfe \t\r\n"

_BEGINS_PAGES = (b"<!doctype html", b"<html")
_ROOT = re.compile(rb"<(?:[A-Za-z_][\w.-]{0,40}:)?(urlset|sitemapindex|rss|feed|RDF)[\s>]")
_KINDS = {b"urlset": SITEMAP, b"sitemapindex": SITEMAP, b"rss": FEED, b"feed": FEED}
_RSS_1 = re.compile(rb"purl\.org/rss/|my\.netscape\.com/rdf/")  # else it is some other RDF
_JSON_FEED = re.compile(rb'"version"\s*:\s*"https?:\\?/\\?/jsonfeed\.org')
_VERSION_1, _HOST = re.compile(rb'"version"\s*:\s*1\s*[,}\r\n]'), re.compile(rb'"host"\s*:\s*"')
_URL_LINE = re.compile(rb"^[ \t]*https?://\S", re.IGNORECASE | re.MULTILINE)


def kind_of(mime: str, body: bytes, url: str) -> str:
    """SITEMAP, FEED, SCHEDULE, or NONE.

    >>> kind_of("text/html", b"<!doctype html><p>", "http://a.org/"), kind_of("text/html", b"<?xml version='1.0'?><rss version=", "")
    ('', 'feed')
    """
    if mime in _HTML and _is_page(body[:_OF_A_PAGE]):
        return NONE
    return NONE if mime.startswith(_NEVER) else _of_head(mime, body[:_LOOKED_AT], url)


def _is_page(head: bytes) -> bool:
    """Whether nothing speaks against it."""
    if head[:64].lstrip(_MARKS_AND_SPACE)[:14].lower().startswith(_BEGINS_PAGES) or b"<html" in head:
        return True
    return not _ROOT.search(head)


def _of_head(mime: str, head: bytes, url: str) -> str:
    if head.startswith(GZIP):
        head = _inflated(head)
    if b"\0" in head[:4]:
        head = head.replace(b"\0", b"")  # of UTF-16 and UTF-32 this leaves what is needed here
    first = head.lstrip(_MARKS_AND_SPACE)[:1]
    if first == b"{":
        return _of_json(head)
    if kind := _of_xml(head):
        return kind
    is_list = mime == "text/plain" and "sitemap" in url.rpartition("/")[2].lower() and _URL_LINE.search(head)
    return SITEMAP if is_list else NONE


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
        return zlib.decompressobj(_GZIP_WITH_HEADER).decompress(head, _LOOKED_AT)
    except zlib.error:
        return b""
