"""The numbers of a crawl, and the definitions of a page, an error and a byte (docs/crawl-summary.md).

The loop counts each record that it sends to the store (`CrawlTally.note`). A reader that has only the database counts
the rows of these records by the same rules in SQL (`tally_of`). This module neither shows nor stores what it counts.
"""

import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from trapline.crawler.engine.records import OUT_OF_BAND, RETURNED, ROBOTS_FILE, Fetched
from trapline.crawler.engine.row_kinds import IS_ERROR, IS_PAGE, KIND, PAGES, REDIRECTS
from trapline.crawler.engine.row_kinds import NOT_MODIFIED as _NOT_MODIFIED
from trapline.fetch import failure
from trapline.frontier import FETCHED, REFUSED


class SignalCounts(NamedTuple):
    """What was received about pages since the crawl began. Access counts are no signals: they do not say that a page changed."""

    signals: int
    access_counts: int  # one for each page and hour, whatever its number of accesses


@dataclass(slots=True)
class CrawlTally:
    fetched: int = 0  # pages, each once
    refetched: int = 0  # fetches of pages that were fetched before
    changed: int = 0  # refetches that found a change
    redirects: int = 0  # URLs whose first answer was a redirect
    in_flight: int = 0  # pages requested and not answered
    body_bytes: int = 0  # of pages, as received
    errors: Counter[str] = field(default_factory=Counter)  # by kind
    abandoned_sites: Counter[str] = field(default_factory=Counter)  # number of sites, by kind
    rejected_links: Counter[str] = field(default_factory=Counter)  # number of links, by reason
    quality: float = 0.0  # sum over the fetched pages, each with its quality at the time of its fetch
    recent: Counter[int] = field(default_factory=Counter)  # pages by site, since the last status
    seconds_before: float = 0.0  # of crawling, in earlier runs

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    def note(self, record: Fetched, is_refetch: bool = False, quality: float = 0.0) -> None:
        """Count a record. `is_refetch`: the page was fetched before. `quality`: of a new page."""
        self.body_bytes += len(record.wire)
        if is_page(record):
            self.fetched += not is_refetch
            self.refetched += is_refetch
            self.changed += record.changed == 1
            self.recent[record.site] += 1
            self.quality += quality
        elif is_redirect(record.result, record.status):
            self.redirects += not is_refetch
        if record.error and record.result not in (RETURNED, OUT_OF_BAND) and not _is_unwanted(record):
            self.errors[record.error] += 1


def is_redirect(result: int, status: int) -> bool:
    """Return whether a fetch brought a redirect, which is no page. 304 is none: it confirms our copy of a page."""
    return result == FETCHED and 300 <= status < 400 and status != _NOT_MODIFIED


def is_page(record: Fetched) -> bool:
    """Return whether the record brought a page: neither a redirect nor the robots.txt of another site."""
    if record.result != FETCHED or record.marks & ROBOTS_FILE:
        return False
    return not is_redirect(FETCHED, record.status)


def is_handed_over(record: Fetched) -> bool:
    """Return whether handlers and programs receive the record: it brought a page with contents, or it is a failure."""
    if record.result == FETCHED:
        return is_page(record) and record.status != _NOT_MODIFIED
    return record.result not in (RETURNED, OUT_OF_BAND)


def _is_unwanted(record: Fetched) -> bool:
    """Return whether nothing failed: robots.txt forbids the page, or its media type is not wanted."""
    return record.error == failure.MIME or (record.error == failure.ROBOTS and record.result == REFUSED)


def tally_of(database: sqlite3.Connection) -> CrawlTally:
    """Count pages, bytes and errors from the rows of `fetch`. The most frequent kinds of errors come first."""
    pages, fetches, changed, redirects, received = database.execute(
        f"select {PAGES}, total({IS_PAGE}), total(changed and {IS_PAGE}), {REDIRECTS}, total(bytes) from fetch"
    ).fetchone()
    kinds = database.execute(
        f"select {KIND} as kind, count(*) from fetch where {IS_ERROR} group by kind order by 2 desc, 1"
    )
    found = CrawlTally(pages, int(fetches) - pages, int(changed), redirects)
    found.body_bytes, found.errors = int(received), Counter(dict(kinds))
    return found


def signal_counts_of(database: sqlite3.Connection) -> SignalCounts:
    sql = "select total(signals * (kind != 'access')), total(signals * (kind = 'access')) from signal_total"
    return SignalCounts(*map(int, database.execute(sql).fetchone()))
