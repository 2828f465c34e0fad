"""Results of earlier runs that are in the folder of a crawl and were not handled, for example because the crawl was killed.

The thread that handles pages reads them, a few at a time, so that the memory stays flat however many there are. A page is
read from its archive and judged as the crawl did it, by the same functions.
"""

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.page_stream import PageDetails, PageOrigins, PageStream, StreamedFetch
from trapline.crawler.engine.records import NOT_KNOWN, Fetched
from trapline.crawler.engine.referrers import NO_PAGE
from trapline.crawler.engine.row_kinds import IS_HANDED_OVER
from trapline.crawler.files.archived_responses import FIRST_OF_DIGEST, ArchivedResponses
from trapline.crawler.files.handled import handled_in
from trapline.crawler.files.layout import connect, read_only
from trapline.crawler.files.reading import Reading
from trapline.crawler.store.archive import RecordPlace
from trapline.crawler.visits.judge import judge
from trapline.fetch.http.response import Response
from trapline.frontier import FAILED, FETCHED
from trapline.frontier.layout import Array

UNREADABLE = "archive"  # the error of a page whose record cannot be read
_AT_ONCE = 16
_NUMBERS = f"select seq, page from fetch where seq > ? and {IS_HANDED_OVER} order by seq"
_ROWS = f"""select seq, fetch.page, page.site, visit, url, address, started, ifnull(first_byte_s, 'nan'), total_s, result, status, error,
truncated, mime, marks, links, ifnull(changed, {NOT_KNOWN}), digest, file, offset, length
from fetch join page on page.id = fetch.page where seq > ? and seq <= ? and {IS_HANDED_OVER} order by seq limit {_AT_ONCE}"""


def has_unhandled(folder: Path) -> bool:
    """Return whether the folder of a crawl has results that were to be handled and were not."""
    handled = handled_in(folder)
    if handled is None:
        return False
    with closing(connect(folder)) as database:
        return database.execute(f"{_NUMBERS} limit 1", (handled.fetch,)).fetchone() is not None


def restore_stream(stream: PageStream, folder: Path, options: CrawlOptions, depths: Array) -> int:
    """Let the stream go on where it ended in earlier runs. Return the number of the last fetch in the database. `depths`: of
    all pages."""
    reading = Reading(folder)
    last = reading.last_fetch()
    handled = stream.keep_mark(folder, last)
    rows = np.fromiter(reading.connection.execute(_NUMBERS, (handled,)), [("number", np.int64), ("page", np.int64)])
    origins = stream.restore(reading.fetches_with_links(), rows["number"], rows["page"])
    reading.close()
    if len(rows):
        stream.hand_over_first(UnhandledFetches(folder, options, handled, last, depths[rows["page"]], origins))
    return last


class UnhandledFetches:
    def __init__(
        self, folder: Path, options: CrawlOptions, after: int, last: int, depths: Array, origins: PageOrigins
    ) -> None:
        """`after`, `last`: numbers of fetches. `depths`, `origins`: of the pages to hand over, in order."""
        self._folder, self._options, self._after, self._last = folder, options, after, last
        self._depths, self._origins = depths, origins
        self._taken = 0
        self._database: sqlite3.Connection | None = None

    def take(self) -> Sequence[StreamedFetch]:
        """Return the next few results; none if all were returned."""
        if self._database is None:
            self._open()
        assert self._database is not None
        rows = self._database.execute(_ROWS, (self._after, self._last)).fetchall()
        found = [self._fetch(at, row) for at, row in enumerate(rows, self._taken)]
        self._taken += len(rows)
        self._after = rows[-1][0] if rows else self._last
        return found

    def close(self) -> None:
        if self._database is not None:
            self._responses.close()
            self._database.close()
            self._database = None
            self._after = self._last

    def _open(self) -> None:
        # A program may take pages in one thread and close the stream in another.
        self._database = sqlite3.connect(read_only(self._folder), uri=True, check_same_thread=False)
        self._has_digests = False
        self._responses = ArchivedResponses(self._database, self._folder, self._options.limits, self._need_digests)

    def _need_digests(self) -> None:
        if not self._has_digests:
            assert self._database is not None
            self._has_digests = True
            for statement in FIRST_OF_DIGEST.format(last=self._last).split(";"):
                self._database.execute(statement)

    def _fetch(self, at: int, row: tuple[Any, ...]) -> StreamedFetch:
        number, page, site, visit, url, address, started, first_byte_s, *times, digest, file, offset, length = row
        total_s, result, status, error, truncated, mime, marks, links, changed = times
        record = Fetched(
            page, site, visit, url, address, started, float(first_byte_s), total_s, result, status, error, b"",
            truncated=truncated, mime=mime, marks=marks, links=links, changed=changed,
        )  # fmt: skip
        details = PageDetails()
        if result == FETCHED:
            response = self._response(file, offset, length, digest)
            if isinstance(response, str):
                record = record._replace(result=FAILED, error=UNREADABLE)
            else:
                record = record._replace(head=response.head, wire=response.wire, body=response.body)
                details = self._details(response, started)
        depth, referrer, requested = self._origin(at, page)
        return StreamedFetch(record, details, depth, referrer, requested or url, number)

    def _response(self, file: int | None, offset: int, length: int, digest: bytes | None) -> Response | str:
        if file is None:
            return "its record was lost"
        return self._responses.response(RecordPlace(file, offset, length), digest)

    def _details(self, response: Response, started: float) -> PageDetails:
        verdict = judge(response, self._options.robots_token, self._options.limits.expanded_bytes, started)
        return PageDetails(verdict.links, verdict.base, math.nan)

    def _origin(self, at: int, page: int) -> tuple[int, str, str]:
        """Return depth, referrer and requested URL of a page; "": it has none, or its own."""
        depth = int(self._depths[at])
        referrer, requested = int(self._origins.referrers[at]), int(self._origins.requested[at])
        return (
            depth,
            self._url(referrer) if depth and referrer not in (NO_PAGE, page) else "",
            self._url(requested) if requested != page else "",
        )

    def _url(self, page: int) -> str:
        assert self._database is not None
        (url,) = self._database.execute("select url from page where id = ?", (page,)).fetchone()
        return str(url)
