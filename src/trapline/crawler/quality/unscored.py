"""Pages of earlier runs that have no score: the crawl was killed, or stopped a second time, before the scorer came to them.

The pages are read from the archives, a few at a time and in another thread, and judged as the crawl did it, by the same functions.
A page whose record cannot be read keeps no score.
"""

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.page_stream import PageDetails, StreamedFetch
from trapline.crawler.engine.records import Fetched
from trapline.crawler.engine.row_kinds import IS_PAGE, NOT_MODIFIED
from trapline.crawler.files.archived_responses import FIRST_OF_DIGEST, ArchivedResponses
from trapline.crawler.files.layout import connect, read_only
from trapline.crawler.store.archive import RecordPlace
from trapline.crawler.visits.judge import judge
from trapline.frontier import FETCHED

_AT_ONCE = 32
# The first fetch of each page, as in the run that fetched it.
_NUMBERS = f"""select min(seq) from fetch where {IS_PAGE} and status != {NOT_MODIFIED} and file is not null
and page not in (select page from page_quality) group by page order by 1"""
_ROW = """select seq, fetch.page, page.site, visit, url, address, started, total_s, status, truncated, mime, marks, links, digest, file,
offset, length from fetch join page on page.id = fetch.page where seq = ?"""


def unscored_in(folder: Path, options: CrawlOptions) -> "UnscoredPages | None":
    """Return the pages without a score; None: there are none."""
    with closing(connect(folder)) as database:
        numbers = [number for (number,) in database.execute(_NUMBERS)]
    return UnscoredPages(folder, options, numbers) if numbers else None


class UnscoredPages:
    def __init__(self, folder: Path, options: CrawlOptions, numbers: Sequence[int]) -> None:
        """`numbers`: of the fetches, in order."""
        self._options, self._numbers, self._taken = options, numbers, 0
        # The thread that reads is not always the same; only one reads at a time.
        self._database = sqlite3.connect(read_only(folder), uri=True, check_same_thread=False)
        self._has_digests = False
        self._responses = ArchivedResponses(self._database, folder, options.limits, self._need_digests)

    def take(self) -> Sequence[StreamedFetch]:
        """Return the next few pages; none if all were returned."""
        found: list[StreamedFetch] = []
        while not found and self._taken < len(self._numbers):
            numbers = self._numbers[self._taken : self._taken + _AT_ONCE]
            self._taken += len(numbers)
            fetches = (self._fetch(*self._database.execute(_ROW, (number,)).fetchone()) for number in numbers)
            found = [fetch for fetch in fetches if fetch is not None]
        return found

    def close(self) -> None:
        self._responses.close()
        self._database.close()

    def _need_digests(self) -> None:
        if not self._has_digests:
            self._has_digests = True
            for statement in FIRST_OF_DIGEST.format(last=self._numbers[-1]).split(";"):
                self._database.execute(statement)

    def _fetch(self, number: int, *row: Any) -> StreamedFetch | None:
        page, site, visit, url, address, started, total_s, status, truncated, mime, marks, links, digest, *place = row
        response = self._responses.response(RecordPlace(*place), digest)
        if isinstance(response, str):
            return None
        record = Fetched(
            page, site, visit, url, address, started, math.nan, total_s, FETCHED, status, "", b"", response.head,
            response.wire, response.body, truncated, mime, marks, links=links,
        )  # fmt: skip
        verdict = judge(response, self._options.robots_token, self._options.limits.expanded_bytes, started)
        return StreamedFetch(record, PageDetails(verdict.links, verdict.base, math.nan), 0, "", url, number)
