"""Responses read back from the archives of a crawl, parsed as the crawl parsed them. A revisit record gets the body that it refers to."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from trapline.crawler.files.archive_reader import Damage, Record, read_back
from trapline.crawler.files.layout import ARCHIVES
from trapline.crawler.store.archive import RecordPlace
from trapline.fetch.http.http1 import ResponseReader
from trapline.fetch.http.response import Response, response_of
from trapline.fetch.limits import Limits

FIRST_OF_DIGEST = """create temp table first_of_digest (digest blob primary key, seq integer not null) without rowid;
insert into first_of_digest select digest, min(seq) from fetch where digest is not null and file is not null and seq <= {last}
group by digest having count(*) > 1"""
"""SQL: makes a table with the first fetch of each digest that several have, up to the fetch {last}."""

_ROBOTS_PATH = "/robots.txt"
_MOST_OPEN = 16  # archives; a page may refer to a record in another one
_FIRST = "select file, offset, length from first_of_digest join fetch using (seq) where first_of_digest.digest = ?"
_ROBOTS = """select file, offset, length from robots join site on site.id = robots.site
where origin = ? and file is not null order by abs(started - ?) limit 1"""


class ArchivedResponses:
    """The archives of a crawl, a few of them open at a time."""

    def __init__(
        self, database: sqlite3.Connection, folder: Path, limits: Limits, need_digests: Callable[[], None]
    ) -> None:
        """`need_digests`: makes the table FIRST_OF_DIGEST in the database, unless it exists."""
        self._database, self._folder, self._limits, self._need_digests = database, folder, limits, need_digests
        self._open: dict[int, int] = {}  # descriptors, the one used last at the end

    def close(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def response(self, place: RecordPlace, digest: bytes | None) -> Response | str:
        """Return the response whose record is at this place, or a text that says why it cannot be read."""
        record = self._record(place)
        if isinstance(record, str) or record.kind != "revisit":
            return record if isinstance(record, str) else self._parsed(record.block)
        response = response_of(record.block, self._limits.headers)
        if isinstance(response, str) or 300 <= response.status < 400:  # a redirect has all that matters in its head
            return response
        original = self._original(record, digest)
        if isinstance(original, str):
            return original
        response.wire, response.body, response.truncated = original.wire, original.body, original.truncated
        return response

    def _original(self, revisit: Record, digest: bytes | None) -> Response | str:
        """Return the response with the body that a revisit record refers to: of the first page with this digest, or of a
        robots.txt with the same body."""
        for place in self._originals(revisit, digest):
            record = self._record(place)
            if not isinstance(record, str) and record.kind == "response":
                return self._parsed(record.block)
        return "the record with its body cannot be read"

    def _originals(self, revisit: Record, digest: bytes | None) -> Iterator[RecordPlace]:
        self._need_digests()
        yield from map(RecordPlace._make, self._database.execute(_FIRST, (digest,)))
        url, date = (revisit.headers.get(f"warc-refers-to-{name}", "") for name in ("target-uri", "date"))
        if url.endswith(_ROBOTS_PATH) and date:
            at = datetime.fromisoformat(date).timestamp()
            yield from map(RecordPlace._make, self._database.execute(_ROBOTS, (url.removesuffix(_ROBOTS_PATH), at)))

    def _record(self, place: RecordPlace) -> Record | str:
        path = self._archive(place.file)
        try:
            descriptor = self._descriptor(place.file, path)
        except OSError as error:
            return f"{path}: {error.strerror}"
        found = next(read_back(descriptor, place.offset + place.length, {}, place.offset))
        return f"{path} at byte {place.offset:,}: {found.why}" if isinstance(found, Damage) else found

    def _archive(self, file: int) -> Path:
        """Return the path of an archive. Names in a merged database begin with the partition's."""
        (name,) = self._database.execute("select name from warc where id = ?", (file,)).fetchone()
        return self._folder / name if "/" in name else self._folder / ARCHIVES / name

    def _descriptor(self, file: int, path: Path) -> int:
        descriptor = self._open.pop(file, None)
        if descriptor is None:
            if len(self._open) == _MOST_OPEN:
                os.close(self._open.pop(next(iter(self._open))))
            descriptor = os.open(path, os.O_RDONLY)
        self._open[file] = descriptor
        return descriptor

    def _parsed(self, block: bytes) -> Response | str:
        """Parse a response as the crawl did. It may end early: at a limit of the crawl, or because the server closed the connection."""
        reader = ResponseReader(self._limits)
        reader.feed(block)
        return reader.next() or reader.eof() or reader.cut("length") or "the record holds no HTTP response"
