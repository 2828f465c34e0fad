"""The contents of a crawl's pages, read from its archives: one page at a time, in the order in which they were archived.

A page of which the database says that there is a record, but whose record cannot be read, is yielded without contents, and counted. The
responses are parsed and judged as the crawl did it, by the same functions.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from trapline.crawler.engine.judge import FetchVerdict, judge
from trapline.crawler.files.archive_reader import Damage, Record, read_back
from trapline.crawler.store.archive import RecordPlace
from trapline.export.source import ExportSource
from trapline.fetch.http.http1 import ResponseReader
from trapline.fetch.http.response import Response, response_of

_ROBOTS_PATH = "/robots.txt"
_MOST_OPEN = 16  # archives; a page may refer to a record in another one
_PAGES = """select seq, fetch.page, url, started, links, digest, file, offset, length
from last_body join fetch using (seq) join page on page.id = fetch.page where seq > ? and seq <= ? order by seq"""
_FIRST = "select file, offset, length from first_of_digest join fetch using (seq) where first_of_digest.digest = ?"
_ROBOTS = """select file, offset, length from robots join site on site.id = robots.site
where origin = ? and file is not null order by abs(started - ?) limit 1"""


class ArchivedPage(NamedTuple):
    id: int
    url: str
    started: float
    links: bytes  # pages that its links lead to, as in the table `fetch`
    response: Response | None  # None: its record cannot be read
    verdict: FetchVerdict | None  # None if and only if there is no response


def archived_pages(source: ExportSource, what: str) -> Iterator[ArchivedPage]:
    """Yield each page whose last successful fetch brought contents or a redirect. `what`: the name of the table, for progress."""
    source.need("last_body", "first_of_digest")
    limits, refetches = source.options.limits, source.options.refresh is not None
    with closing(_Archives(source)) as archives:
        for _, page, url, started, links, digest, *place in source.rows(what, _PAGES, source.bounds.fetch):
            response = archives.response(RecordPlace(*place), digest) if place[0] is not None else "its record was lost"
            if isinstance(response, str):
                source.unreadable.add(page, f"{url}: {response}")
                yield ArchivedPage(page, url, started, links, None, None)
            else:
                verdict = judge(response, source.options.robots_token, limits.expanded_bytes, started, False, refetches)
                yield ArchivedPage(page, url, started, links, response, verdict)


class _Archives:
    """The archives of a crawl, a few of them open at a time."""

    def __init__(self, source: ExportSource) -> None:
        self._source = source
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
        response = response_of(record.block, self._source.options.limits.headers)
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
        yield from map(RecordPlace._make, self._source.database.execute(_FIRST, (digest,)))
        url, date = (revisit.headers.get(f"warc-refers-to-{name}", "") for name in ("target-uri", "date"))
        if url.endswith(_ROBOTS_PATH) and date:
            at = datetime.fromisoformat(date).timestamp()
            yield from map(
                RecordPlace._make, self._source.database.execute(_ROBOTS, (url.removesuffix(_ROBOTS_PATH), at))
            )

    def _record(self, place: RecordPlace) -> Record | str:
        path = self._source.archive(place.file)
        try:
            descriptor = self._descriptor(place.file, path)
        except OSError as error:
            return f"{path}: {error.strerror}"
        found = next(read_back(descriptor, place.offset + place.length, {}, place.offset))
        return f"{path} at byte {place.offset:,}: {found.why}" if isinstance(found, Damage) else found

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
        reader = ResponseReader(self._source.options.limits)
        reader.feed(block)
        return reader.next() or reader.eof() or reader.cut("length") or "the record holds no HTTP response"
