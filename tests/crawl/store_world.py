"""Batches to feed to the store, each a function of its number, and a check of a whole crawl's folder by other readers."""

import random
import sqlite3
from base64 import b32encode
from hashlib import sha1
from io import BytesIO
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import ChunkedDataReader

from trapline.crawl.records import Batch, Fetched, GivenUp, Progress, RobotsFetched
from trapline.crawl.store.folder import ARCHIVES, DATABASE, INDEX

FETCHED, FAILED, REFUSED = 3, 5, 6
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
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
    """Batch 1, 2, ...: bodies that do and do not compress, empty ones, repeated ones, chunked ones, failures."""
    chance = random.Random(number)
    first = (number - 1) * PAGES_A_BATCH
    fetches = [_drawn(page, chance) for page in range(first, first + PAGES_A_BATCH)]
    pages = [(f.page, f.site, f.url) for f in fetches]
    sites = [(site, f"http://site{site}.example") for site in range(5)] if number == 1 else []
    progress = Progress(1.7e9 + number, float(number), first, 0, 0, first, 0, 5, 1, 0.5)
    given_up = [
        GivenUp(number % 5, 1.7e9 + number, "dns", "no such name")
    ]  # one site more than once: the last row stands
    left_out = [("host", 3 * number), ("trap", number)]
    return Batch(
        number, sites, [], pages, fetches, [robots(number % 5)], b"calls of %d" % number, progress, given_up, left_out
    )


def _drawn(page: int, chance: random.Random) -> Fetched:
    kind = chance.randrange(6)
    if kind == 0:
        return failed(page)
    if kind == 1:
        return fetched(page, chance.randbytes(chance.randrange(20_000)))
    if kind == 2:
        return fetched(page, b"the same everywhere " * 200)
    if kind == 3:
        body = chance.randbytes(2000)
        return fetched(page, body, head=CHUNKED, wire=b"7d0\r\n" + body + b"\r\n0\r\n\r\n")
    return fetched(page, b"<p>text of %d</p>" % page * chance.randrange(500))


def archived(folder: Path) -> list[tuple[str, int, int, object, bytes]]:
    """Every record of every archive, read by warcio to the files' ends: name, offset, length, headers, block."""
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
    """As `warcio check` does; what is chunked is read without its chunks first, as the standard has it. How many."""
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
    """Database, archives and index agree with each other and with `batch`; the last batch."""
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
    assert rows == [
        (f.page, f.started, f.status, f.error, len(f.wire), sha1(f.body).digest() if f.head else None) for f in expected
    ]
    assert database.execute("select id, site, url from page").fetchall() == [(f.page, f.site, f.url) for f in expected]
    assert database.execute("select batch, calls from journal").fetchall() == [
        (number, batch(number).calls) for number in range(1, last + 1)
    ]
    assert database.execute("select count(*) from robots").fetchone() == (last,)
    assert database.execute("select count(*) from progress").fetchone() == (last,)
    given_up = {one.site: tuple(one) for number in range(1, last + 1) for one in batch(number).given_up}
    assert database.execute("select * from given_up").fetchall() == [given_up[site] for site in sorted(given_up)]
    assert database.execute("select * from left_out").fetchall() == (batch(last).left_out if last else [])
