"""Batches for the store, each computed from its number, and a check of a crawl folder by independent readers."""

import math
import random
import sqlite3
from base64 import b32encode
from hashlib import sha1
from io import BytesIO
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import ChunkedDataReader

from trapline.crawler.engine.records import (
    AbandonedSite,
    Batch,
    CrawlProgress,
    Fetched,
    ListedPage,
    RobotsFetched,
    SignalNoted,
)
from trapline.crawler.files.layout import ARCHIVES, DATABASE, INDEX

FETCHED, FAILED, REFUSED = 3, 5, 6
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
NOT_MODIFIED = b'HTTP/1.1 304 Not Modified\r\nETag: "still"\r\n\r\n'
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PAGES_A_BATCH = 7


def fetched(page: int, body: bytes = b"<p>hello", **changes: object) -> Fetched:
    url = f"http://site{page % 5}.example/page{page}"
    whole = Fetched(
        page=page,
        site=page % 5,
        visit=page // 3,
        url=url,
        address="192.0.2.7",
        started=1_700_000_000.25 + page,
        first_byte_s=0.01,
        total_s=0.02,
        result=FETCHED,
        status=200,
        error="",
        request=f"GET /page{page} HTTP/1.1\r\nHost: site{page % 5}.example\r\n\r\n".encode(),
        head=HEAD,
        wire=body,
        body=body,
        truncated="",
        mime="text/html",
        marks=0,
        hrefs=["/a", "/b"],
        links=b"\1\0\0\0\2\0\0\0",
    )
    return whole._replace(**changes)  # type: ignore[arg-type]


def failed(page: int, error: str = "timeout") -> Fetched:
    nothing = {
        "head": b"",
        "wire": b"",
        "body": b"",
        "mime": "",
        "hrefs": [],
        "links": b"",
        "first_byte_s": float("nan"),
    }
    return fetched(page, result=FAILED, status=0, error=error, **nothing)


def robots(site: int, body: bytes = b"User-agent: *\nDisallow: /x\n", **changes: object) -> RobotsFetched:
    url = f"http://site{site}.example/robots.txt"
    whole = RobotsFetched(
        site, 1, url, "192.0.2.7", 1_700_000_000.5, 0.01, 0.02, 200, "", b"GET /robots.txt\r\n\r\n", HEAD, body, body
    )
    return whole._replace(**changes)  # type: ignore[arg-type]


def batch(number: int) -> Batch:
    """Return batch 1, 2, ... It has bodies that compress and that do not, empty, repeated and chunked bodies, failures, and refetched
    pages."""
    chance = random.Random(number)
    first = (number - 1) * PAGES_A_BATCH
    fetches = [_drawn(page, chance) for page in range(first, first + PAGES_A_BATCH)]
    pages = [(f.page, f.site, f.url) for f in fetches]
    fetches += _refetches(number)
    sites = [(site, f"http://site{site}.example") for site in range(5)] if number == 1 else []
    progress = CrawlProgress(1.7e9 + number, float(number), first, 0, 0, first, 0, 5, 1, 0.5)
    # One site twice: the last row counts
    abandoned_sites = [AbandonedSite(number % 5, 1.7e9 + number, "dns", "no such name")]
    rejected_links = [("host", 3 * number), ("trap", number)]
    return Batch(
        number,
        sites,
        [],
        pages,
        fetches,
        [robots(number % 5)],
        b"calls of %d" % number,
        progress,
        abandoned_sites,
        rejected_links,
        b"refresh of %d" % number if number % 2 else b"",
        [SignalNoted(number, -1 if number % 3 else 1, 1.7e9 + number, "indexnow", "changed", "taken")],
        [ListedPage(number % 4, number, 1.7e9 if number % 2 else math.inf)],
        [number],
    )


def _refetches(number: int) -> list[Fetched]:
    """Refetch three pages of two batches ago. The first changed, then it is gone. The second changed twice, then it is unchanged. The
    third is unchanged."""
    first, at = (number - 3) * PAGES_A_BATCH, 1_700_100_000.0 + number
    if number < 3:
        return []
    return [
        refetched(first, 1, at),
        refetched(first + 1, 1, at + 0.1),
        refetched(first + 1, 1, at + 0.2),
        unchanged(first + 2, at + 0.3),
        unchanged(first + 1, at + 0.4),
        fetched(first, b"<p>no such page", result=REFUSED, status=404, error="http", started=at + 0.5),
    ]


def refetched(page: int, changed: int, at: float) -> Fetched:
    body = b"<p>as it is at %.1f" % at
    return fetched(page, body, changed=changed, started=at, fingerprint=b"%8d" % (10 * at % 1e8), etag=b'"%.1f"' % at)


def unchanged(page: int, at: float) -> Fetched:
    still = {"changed": 0, "fingerprint": b"%8d" % page, "etag": b'"still"', "modified": b"Mon"}
    return fetched(page, b"", head=NOT_MODIFIED, status=304, started=at, mime="", links=b"", hrefs=(), **still)


def _drawn(page: int, chance: random.Random) -> Fetched:
    kind = chance.randrange(6)
    if kind == 0:
        return failed(page)
    if kind == 1:
        return fetched(page, chance.randbytes(chance.randrange(20_000)))
    if kind == 2:
        return fetched(page, b"the same everywhere " * 200, fingerprint=b"the same", modified=b"Tue")
    if kind == 3:
        body = chance.randbytes(2000)
        return fetched(page, body, head=CHUNKED, wire=b"7d0\r\n" + body + b"\r\n0\r\n\r\n")
    text = b"<p>text of %d</p>" % page * chance.randrange(500)
    return fetched(page, text, fingerprint=b"%8d" % page, etag=b'"%d"' % page)


def archived(folder: Path) -> list[tuple[str, int, int, object, bytes]]:
    """Yield every record of every archive as warcio reads it, to the end of each file: name, offset, length, headers, block."""
    found = []
    for path in sorted((folder / ARCHIVES).iterdir()):
        end = 0
        with path.open("rb") as file:
            records = ArchiveIterator(file, no_record_parse=True)
            for record in records:
                block = record.raw_stream.read()
                assert records.get_record_offset() == end
                end += records.get_record_length()
                found.append((path.name, records.get_record_offset(), records.get_record_length(), record, block))
        assert end == path.stat().st_size
    return found


def check_digests(folder: Path) -> int:
    """Check the digests as `warcio check` does, and return how many there are. Chunked bodies are joined first, as the standard says."""
    checked = 0
    for name, _, _, record, block in archived(folder):
        digest = record.rec_headers.get_header("WARC-Payload-Digest")
        if record.rec_type != "response" or digest is None:
            continue
        head, _, payload = block.partition(b"\r\n\r\n")
        if b"chunked" in head:
            payload = ChunkedDataReader(BytesIO(payload), raise_exceptions=True).read()
        assert digest == "sha1:" + b32encode(sha1(payload).digest()).decode(), name
        checked += 1
    return checked


def check_crawl(folder: Path) -> int:
    """Check that database, archives and index agree with each other and with `batch`. Return the number of the last batch."""
    database = sqlite3.connect(folder / DATABASE)
    records = {(name, offset, length): (record, block) for name, offset, length, record, block in archived(folder)}
    names = dict(database.execute("select id, name from warc"))
    places = database.execute(
        "select file, offset, length, p.url from fetch f join page p on p.id = f.page where file is not null"
        " union all select file, offset, length, origin || '/robots.txt' from robots join site on id = site"
    ).fetchall()
    for file, offset, length, url in places:
        record, _ = records[names[file], offset, length]
        assert record.rec_headers.get_header("WARC-Target-URI") == url
    kinds = [record.rec_type for record, _ in records.values()]
    assert len(places) == kinds.count("response") + kinds.count("revisit") == kinds.count("request")
    assert kinds.count("warcinfo") == len(names) == len(list((folder / ARCHIVES).iterdir()))
    assert len((folder / INDEX).read_bytes().splitlines()) == len(places)
    last = database.execute("select coalesce(max(batch), 0) from journal").fetchone()[0]
    _check_rows(database, last)
    database.close()
    return last


def _check_rows(database: sqlite3.Connection, last: int) -> None:
    expected = [f for number in range(1, last + 1) for f in batch(number).fetches]
    rows = database.execute("select page, started, status, error, bytes, digest from fetch order by seq").fetchall()
    assert rows == [(f.page, f.started, f.status, f.error, len(f.wire), _digest(f)) for f in expected]
    once = {f.page: (f.page, f.site, f.url) for f in expected}
    assert database.execute("select id, site, url from page").fetchall() == list(once.values())
    _check_history(database, expected, last)
    assert database.execute("select * from journal").fetchall() == [
        (number, batch(number).calls, batch(number).refresh) for number in range(1, last + 1)
    ]
    assert database.execute("select count(*) from robots").fetchone() == (last,)
    assert database.execute("select count(*) from progress").fetchone() == (last,)
    abandoned_sites = {one.site: tuple(one) for number in range(1, last + 1) for one in batch(number).abandoned_sites}
    assert database.execute("select * from abandoned_site").fetchall() == [
        abandoned_sites[site] for site in sorted(abandoned_sites)
    ]
    assert database.execute("select * from rejected_link").fetchall() == (batch(last).rejected_links if last else [])


def _digest(f: Fetched) -> bytes | None:
    return sha1(f.body).digest() if f.head and f.status != 304 else None


def _check_history(database: sqlite3.Connection, expected: list[Fetched], last: int) -> None:
    rows = database.execute("select changed, fingerprint from fetch order by seq").fetchall()
    assert rows == [(None if f.changed < 0 else f.changed, f.fingerprint or None) for f in expected]
    copies: dict[int, tuple[object, ...]] = {}
    for f in expected:
        before = copies.get(f.page)
        if f.status == 304 and before:
            copies[f.page] = (*before[:2], f.started, *before[3:6], f.etag, f.modified)
        elif f.status == 200 and f.fingerprint:
            changed = f.started if f.changed == 1 else before and before[3]
            copies[f.page] = (f.page, f.started, f.started, changed, f.fingerprint, _digest(f), f.etag, f.modified)
    found = database.execute(
        "select page, fetched, checked, last_change, fingerprint, digest, etag, modified from copy"
    ).fetchall()
    assert found == [copies[page] for page in sorted(copies)]
    numbers = range(1, last + 1)
    signals = [batch(number).signals[0] for number in numbers]
    assert database.execute("select * from signal").fetchall() == [
        (one.id, None if one.page < 0 else one.page, *one[2:]) for one in signals
    ]
    assert database.execute("select * from signal_total").fetchall() == [("indexnow", "changed", "taken", last)][:last]
    listed = {listed_page.page: listed_page for number in numbers for listed_page in batch(number).listed_pages}
    assert database.execute("select * from listed_page").fetchall() == [
        (page, by, None if dated == math.inf else dated)
        for page, by, dated in (listed[page] for page in sorted(listed))
    ]
    assert database.execute("select value from meta where key = 'whole'").fetchall() == [(f"[{last}]",)][:last]
