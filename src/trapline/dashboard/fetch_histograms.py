"""Counts and histograms of a crawl, read from crawl.db: each row of `fetch` once, whatever the number of scrapes.

The loop and the store count nothing for this. What is counted is on disk, so that no count falls when the crawl or the
dashboard is killed and started again.
"""

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawler.engine.records import OUT_OF_BAND, RETURNED
from trapline.crawler.engine.row_kinds import FETCHED, NOT_MODIFIED, REFUSED, RESULTS
from trapline.dashboard.folder_reader import created_of
from trapline.fetch import failure

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
BYTES = (256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 10485760.0)
_ROWS_AT_ONCE = 200_000

_KINDS = """select result, status, error, changed, count(*), total(bytes) from fetch
where seq between ? and ? group by 1, 2, 3, 4"""
# SQLite joins a column into text and numpy parses it in less time than Python takes to make a tuple of every row.
_ANSWERS = """select group_concat(ifnull(first_byte_s, total_s)), group_concat(total_s), group_concat(bytes)
from fetch where status > 0 and seq between ? and ?"""


class Histogram(NamedTuple):
    """`counts`: values up to each bound, not counting those up to the bound before; the last ones are above all bounds."""

    bounds: tuple[float, ...]
    counts: NDArray[np.int64]
    sum: float

    @classmethod
    def empty(cls, bounds: tuple[float, ...]) -> "Histogram":
        return cls(bounds, np.zeros(len(bounds) + 1, np.int64), 0.0)

    def with_values(self, values: NDArray[np.float64]) -> "Histogram":
        places = np.searchsorted(self.bounds, values, side="left")
        added = np.bincount(places, minlength=len(self.bounds) + 1)
        return Histogram(self.bounds, self.counts + added, self.sum + float(values.sum()))


@dataclass(slots=True)
class FetchTotals:
    """What the rows of `fetch` add up to."""

    results: Counter[str] = field(default_factory=Counter)  # rows by name of the result
    codes: Counter[str] = field(default_factory=Counter)  # answers by class of their status: "2xx"
    errors: Counter[str] = field(default_factory=Counter)  # by kind
    refetches: Counter[str] = field(default_factory=Counter)  # "yes" or "no": the page has changed
    too_many_requests: int = 0
    redirects: int = 0
    bytes: int = 0
    first_byte_s: Histogram = field(default_factory=lambda: Histogram.empty(SECONDS))
    response_s: Histogram = field(default_factory=lambda: Histogram.empty(SECONDS))
    size_bytes: Histogram = field(default_factory=lambda: Histogram.empty(BYTES))

    def copy(self) -> "FetchTotals":
        results, codes, errors, refetches = map(Counter, (self.results, self.codes, self.errors, self.refetches))
        return replace(self, results=results, codes=codes, errors=errors, refetches=refetches)

    def add_rows(self, result: int, status: int, error: str, changed: int | None, rows: int, size: float) -> None:
        """Add rows of `fetch` that have these values in common. `size`: of their bodies together."""
        self.results[RESULTS.get(result, "other")] += rows
        self.bytes += int(size)
        if status:
            self.codes[f"{status // 100}xx"] += rows
        if is_error(result, error):
            self.errors[error] += rows
        if changed is not None:
            self.refetches["yes" if changed else "no"] += rows
        self.too_many_requests += rows * (status == 429)
        self.redirects += rows * (result == FETCHED and 300 <= status < 400 and status != NOT_MODIFIED)

    def add_answers(self, first_byte_s: str, response_s: str, sizes: str) -> None:
        """Add answers. Each text has one number per answer, separated by commas."""
        self.first_byte_s = self.first_byte_s.with_values(np.fromstring(first_byte_s, sep=","))
        self.response_s = self.response_s.with_values(np.fromstring(response_s, sep=","))
        self.size_bytes = self.size_bytes.with_values(np.fromstring(sizes, sep=","))


def is_error(result: int, error: str) -> bool:
    """Return whether a row of `fetch` counts as an error, by the rule of crawler/engine/row_kinds.py."""
    is_forbidden = error == failure.ROBOTS and result == REFUSED
    return error not in ("", failure.MIME) and not is_forbidden and result not in (RETURNED, OUT_OF_BAND)


class StoredCounts(NamedTuple):
    """Counts that the other tables of one database have."""

    pages: int
    seconds: float  # of crawling
    committed_at: float  # wall clock
    quality: float
    archived_bytes: int
    robots_fetches: int
    rejected_links: Mapping[str, int]  # by reason
    abandoned_sites: Mapping[str, int]  # by kind
    signals: Mapping[tuple[str, str], int]  # by channel and outcome
    processor: Mapping[tuple[str, str], float]  # seconds by process and mode
    exchanged_urls: int | None  # sent to other partitions; None: there are none


class FetchHistograms:
    """The counts of one crawl. `totals` and `stored` are replaced as a whole, so that other threads may read them at any time."""

    def __init__(self) -> None:
        self.is_complete = False  # whether all rows are counted that there were at the last reading
        self.totals = FetchTotals()
        self.stored: Mapping[str, StoredCounts] = {}  # by the path of the database: one for each partition
        self._last: dict[str, int] = {}  # the last row that is counted, likewise
        self._created: dict[str, str] = {}  # likewise

    def read_new(self, *databases: sqlite3.Connection) -> None:
        """Count what is new in the database of a crawl, or in those of its partitions. The first call takes seconds for millions of
        fetches. Afterwards the counts are complete."""
        found = [(database, _path_of(database)) for database in databases]
        created = {path: created_of(database) for database, path in found}
        if any(
            self._created.get(path, one) != one for path, one in created.items()
        ):  # another crawl has the folder now
            self.totals, self.stored, self._last, self.is_complete = FetchTotals(), {}, {}, False
        self._created |= created
        stored = dict(self.stored)
        for database, path in found:
            stored[path] = _stored(database)
            self._read_fetches(path, database)
        self.stored, self.is_complete = stored, True

    def _read_fetches(self, path: str, database: sqlite3.Connection) -> None:
        (newest,) = database.execute("select ifnull(max(seq), 0) from fetch").fetchone()
        while (last := self._last.get(path, 0)) < newest:
            totals, block = self.totals.copy(), (last + 1, min(last + _ROWS_AT_ONCE, newest))
            for row in database.execute(_KINDS, block):
                totals.add_rows(*row)
            answers = database.execute(_ANSWERS, block).fetchone()
            if answers[0] is not None:
                totals.add_answers(*answers)
            self.totals, self._last[path] = totals, block[1]


def _stored(database: sqlite3.Connection) -> StoredCounts:
    sql = "select pages, seconds, at, quality from progress order by rowid desc limit 1"
    pages, seconds, at, quality = database.execute(sql).fetchone() or (0, 0.0, 0.0, 0.0)
    partitions, urls = database.execute("select count(*), ifnull(sum(urls), 0) from partition").fetchone()
    signals = database.execute("select channel, outcome, sum(signals) from signal_total group by 1, 2")
    return StoredCounts(
        pages,
        seconds,
        at,
        quality,
        archived_bytes=_number(database, "select ifnull(sum(bytes), 0) from warc"),
        robots_fetches=_number(database, "select ifnull(max(seq), 0) from robots"),
        rejected_links=dict(database.execute("select reason, links from rejected_link")),
        abandoned_sites=dict(database.execute("select kind, count(*) from abandoned_site group by 1")),
        signals={(channel, outcome): count for channel, outcome, count in signals},
        processor=_processor(database),
        exchanged_urls=urls if partitions else None,
    )


def _path_of(database: sqlite3.Connection) -> str:
    (path,) = database.execute("select cast(file as blob) from pragma_database_list where name = 'main'").fetchone()
    return os.fsdecode(path)  # it may have bytes that are no UTF-8


def _number(database: sqlite3.Connection, query: str) -> int:
    return int(database.execute(query).fetchone()[0])


def _processor(database: sqlite3.Connection) -> dict[tuple[str, str], float]:
    """Return the processor time of all runs."""
    total: dict[tuple[str, str], float] = {}
    for (text,) in database.execute("select value from meta where key glob 'processor *'"):
        for process, times in json.loads(text).items():
            for mode in ("user", "system"):
                total[process, mode] = total.get((process, mode), 0.0) + (times or {}).get(f"{mode}_s", 0.0)
    return total
