"""What a crawl has done so far, in numbers; and what is a page, an error, a byte. The one place that says so: docs/crawl-summary.md.

The loop counts each record that it sends to the store, `Tally.note`; whoever has the database alone counts the rows that became of
them, `tally_of`, by the same rules in SQL. It neither shows nor keeps what it counts.
"""

import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from trapline.crawl.records import ERRAND, RETURNED, Fetched
from trapline.fetch import failure
from trapline.frontier import FETCHED, REFUSED

FORBIDDEN = "forbidden"  # by robots.txt: nobody was asked, and nobody failed
KIND = f"case when error = '{failure.ROBOTS}' and result = {REFUSED} then '{FORBIDDEN}' else error end"
"""SQL: what was wrong with a row of `fetch`; '': nothing."""
IS_ERROR = f"({KIND} not in ('', '{FORBIDDEN}') and result not in ({RETURNED}, {ERRAND}))"
"""SQL: whether a row of `fetch` is one of the errors."""
IS_PAGE = f"result = {FETCHED}"
"""SQL: whether a row of `fetch` brought a page. It may be an error too: one that is there and cannot be decoded."""
PAGES = f"count(distinct case when {IS_PAGE} and fetch.changed is null then fetch.page end)"
"""SQL: how many pages rows of `fetch` brought, each once, however often it was fetched again. Of a page that was not had before nobody
knows whether it changed; so one that another partition had before the crawl grew counts there, and not here."""


class Heard(NamedTuple):
    """What was told of pages, since the crawl began. Accesses are no signals: nobody says that a page changed."""

    signals: int
    access_counts: int  # one for each page and hour, however many accesses these had


@dataclass(slots=True)
class Tally:
    fetched: int = 0  # pages, each once
    refetched: int = 0  # times that one of these was had again
    changed: int = 0  # times that it was another then
    in_flight: int = 0  # pages requested and not answered
    body_bytes: int = 0  # of pages, as received
    errors: Counter[str] = field(default_factory=Counter)  # by kind
    given_up: Counter[str] = field(default_factory=Counter)  # sites, by kind
    left_out: Counter[str] = field(default_factory=Counter)  # links that are not to be crawled, by reason
    quality: float = 0.0  # of the pages fetched, each as it was when it was taken
    recent: Counter[int] = field(default_factory=Counter)  # pages by site, since somebody last looked
    seconds_before: float = 0.0  # of crawling, in earlier runs

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    def note(self, record: Fetched, again: bool = False) -> None:
        """`again`: the page was had before."""
        self.body_bytes += len(record.wire)
        if record.result == FETCHED:
            self.fetched += not again
            self.refetched += again
            self.changed += record.changed == 1
            self.recent[record.site] += 1
        if record.error and record.result not in (RETURNED, ERRAND) and not _is_forbidden(record):
            self.errors[record.error] += 1


def _is_forbidden(record: Fetched) -> bool:
    return record.error == failure.ROBOTS and record.result == REFUSED


def tally_of(database: sqlite3.Connection) -> Tally:
    """Pages, bytes and errors, counted from the rows of `fetch`; the kinds of errors most frequent first."""
    pages, had, changed, received = database.execute(
        f"select {PAGES}, total({IS_PAGE}), total(changed), total(bytes) from fetch"
    ).fetchone()
    kinds = database.execute(
        f"select {KIND} as kind, count(*) from fetch where {IS_ERROR} group by kind order by 2 desc, 1"
    )
    return Tally(pages, int(had) - pages, int(changed), body_bytes=int(received), errors=Counter(dict(kinds)))


def heard_of(database: sqlite3.Connection) -> Heard:
    sql = "select total(signals * (kind != 'access')), total(signals * (kind = 'access')) from signal_total"
    return Heard(*map(int, database.execute(sql).fetchone()))
