"""Turns messages into pages of the frontier, and pages into messages. Checks what clients send; decides nothing else.

The payload of a page is the metadata of its URLInfo in the wire format, so that it can be sent back as it is: fields of a message may be
concatenated.
"""

from functools import lru_cache
from typing import Any

from ada_url import URL

from trapline.durable.pages import PutPage, ScheduledPage
from trapline.durable.schedule import DONE, NEW
from trapline.fetch.urls import MOST_URL
from trapline.urlfrontier.crawls import DEFAULT, MOST_ID_BYTES
from trapline.urlfrontier.messages import URLItem

MOST_KEY = 1_024  # characters
MOST_METADATA = 64 << 10  # bytes of a URL


def crawl_of(crawl_id: str) -> str:
    return crawl_id or DEFAULT


def page_of(info: Any, date: int | None, quality_key: str = "") -> tuple[str, PutPage] | None:
    """Return the crawl and the page of a URLInfo; None: it cannot be stored. Takes the URLInfo apart. `date`: of a known URL.
    `quality_key`: of the metadata whose first value is the quality of the page."""
    url, key = info.url, info.key
    if not 0 < len(url) <= MOST_URL or len(key) > MOST_KEY or len(info.crawlID.encode()) > MOST_ID_BYTES:
        return None
    key = key or host_of(url)
    if not key or key[0] < " ":
        return None
    crawl = crawl_of(info.crawlID)
    for field in ("url", "key", "crawlID"):
        info.ClearField(field)  # what is left is the payload
    payload = info.SerializeToString()
    if len(payload) > MOST_METADATA:
        return None
    quality = _quality(info.metadata, quality_key) if quality_key else 0.0
    return crawl, PutPage(url, key, payload, date, quality)


def host_of(url: str) -> str:
    """Return the host name of a URL; "": it has none.

    >>> host_of("https://WWW.Example.org:8080/a/b"), host_of("/a"), host_of("mailto:me@example.org")
    ('www.example.org', '', '')
    """
    end = url.find("/", url.find("://") + 3)
    return _host(url if end < 0 else url[:end])


@lru_cache(maxsize=65_536)
def _host(start: str) -> str:
    try:
        return str(URL(start).hostname)
    except ValueError:
        return ""


def _quality(metadata: Any, name: str) -> float:
    values = metadata[name].values if name in metadata else ()
    try:
        quality = float(values[0]) if values else 0.0
    except ValueError:
        return 0.0
    return quality if abs(quality) < 2.0**42 else 0.0  # a rank must be a number below that


def info_of(page: ScheduledPage, crawl: bytes) -> bytes:
    """Return the URLInfo of a page in the wire format. `crawl`: its crawl id."""
    url, key = page.url.encode(), page.site.encode()
    return b"".join(
        (b"\x0a", _length(url), url, b"\x12", _length(key), key, page.payload, b"\x22", _length(crawl), crawl)
    )


def _length(data: bytes) -> bytes:
    """Return the length as a varint."""
    n, out = len(data), b""
    while n > 127:
        out += bytes((n & 127 | 128,))
        n >>= 7
    return out + bytes((n,))


def item_of(page: ScheduledPage, crawl: str) -> Any:
    """Return the URLItem of a page. The date of a URL that was never given is when it was put."""
    item = URLItem(creation_date=page.dates.created // 1000)
    item.known.info.ParseFromString(info_of(page, crawl.encode()))
    date = page.dates.created if page.dates.date == NEW else page.dates.date
    item.known.refetchable_from_date = 0 if date == DONE else max(1, date // 1000)
    return item
