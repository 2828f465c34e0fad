"""crawl.db as the store process writes it: complete batches, one transaction for each commit.

No other process writes the database. In WAL mode the readers in other processes never wait for the writer, nor the writer
for them. With synchronous=FULL an acknowledged batch also survives a power cut, so a snapshot of the frontier is never
ahead of the database (docs/decisions/018-store-process.md has the cost). There are no indexes while the crawl runs.
"""

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from trapline.crawler.engine.records import NOT_ABANDONED, Batch, Fetched, PartitionTraffic
from trapline.crawler.engine.row_kinds import REFUSED
from trapline.crawler.files.layout import LATER_TABLES
from trapline.crawler.store.archive import Length
from trapline.crawler.store.filing import Kept, Row, is_not_modified
from trapline.processor import CrawlProcessor, ProcessorTime, processor_clock
from trapline.signals.database import Transaction

# ---- Deletion of old rows in long crawls: logs older than the snapshots, old signals, most of the old progress.
#
# Deletion runs inside the transaction of a commit and takes a bounded number of rows each time, so that no commit is
# long. SQLite reuses the freed space: the file does not grow because of deletions, and does not shrink either.
#
# Laws
# - The log of every batch after the older of the last two snapshots is kept, and so is the log of the last batch.
# - The newest signal from the inbox is kept, and the newest signal that the crawl read itself: from their ids a resume
#   knows which signals the crawl has taken in.

SIGNALS_KEPT_S = 30 * 86_400.0
DENSE_S = 3_600.0  # older progress is thinned to one row per minute
_MINUTE_S = 60.0
_MOST_BATCHES = 1_000  # logs deleted in one commit
_MOST_SIGNALS = 20_000  # rows examined, once a minute

# The ids of signals from the inbox increase with time; the ids of signals that the crawl read itself decrease.
_SIGNALS = """delete from signal where at < ?1 and id < (select max(id) from signal)
and id in (select id from signal where id > 0 order by id limit ?2)"""
_OWN_SIGNALS = """delete from signal where at < ?1 and id > (select min(id) from signal)
and id in (select id from signal where id < 0 order by id desc limit ?2)"""
_OLD_PROGRESS = """delete from progress where at < ?
and rowid not in (select min(rowid) from progress group by cast(at / 60 as integer))"""
_LOGS = "delete from journal where batch <= ?1 and batch < (select max(batch) from journal) and batch < ?2"


class Forgetting:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._forget = 0  # the logs up to this batch may be deleted
        self._signals_at = self._progress_at = 0.0  # when old rows were last looked for

    def after(self, batches: Sequence[Batch]) -> None:
        """Delete rows that are no longer needed, now that these batches are in the database."""
        self._forget = max(self._forget, *(batch.forget for batch in batches))
        if self._forget:
            self._forget_logs()
        for batch in batches:
            if batch.progress is not None:
                self._forget_old(batch.progress.at)

    def _forget_logs(self) -> None:
        (first,) = self._connection.execute("select min(batch) from journal").fetchone()
        if first <= self._forget:
            self._connection.execute(_LOGS, (self._forget, first + _MOST_BATCHES))

    def _forget_old(self, now: float) -> None:
        if now - self._signals_at >= _MINUTE_S:
            self._signals_at = now
            for statement in (_SIGNALS, _OWN_SIGNALS):
                self._connection.execute(statement, (now - SIGNALS_KEPT_S, _MOST_SIGNALS))
        if now - self._progress_at >= DENSE_S:
            self._progress_at = now
            self._connection.execute(_OLD_PROGRESS, (now - DENSE_S,))


# ---- The database.

_BUSY_S = 30.0  # how long the store waits for a lock of a connection with which the user writes
_CHECKPOINT_PAGES = 4000  # 16 MB of write-ahead log, after which SQLite moves it into the database

INDEXES = {
    "page_by_url": "create index page_by_url on page (url)",
    "fetch_by_page": "create index fetch_by_page on fetch (page)",
    "robots_by_site": "create index robots_by_site on robots (site)",
}


# Each seed has its own key in `meta`, so that one can be added without reading the others.
SEED = "seed "
PROCESSOR = "processor "  # a key for each run, with the processor time of the run
_SEED = (
    f"""insert into meta values ('{SEED}' || ?, ?) on conflict (key) do update set value = min(value, excluded.value)"""
)


class Database:
    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
        for pragma in ("journal_mode=wal", "synchronous=full", f"wal_autocheckpoint={_CHECKPOINT_PAGES}"):
            self.connection.execute(f"pragma {pragma}")
        for table in LATER_TABLES.values():  # a folder of an earlier version does not have them
            self.connection.execute(table)
        self._forgetting = Forgetting(self.connection)
        (runs,) = self.connection.execute(f"select count(*) from meta where key glob '{PROCESSOR}*'").fetchone()
        self._processor, self._processor_key = processor_clock(), f"{PROCESSOR}{runs + 1}"

    def archives(self) -> list[Length]:
        return [Length(*row) for row in self.connection.execute("select id, name, bytes from warc order by id")]

    def index_bytes(self) -> int:
        return self.connection.execute("select bytes from cdxj").fetchone()[0]

    def last_batch(self) -> int:
        return self.connection.execute("select coalesce(max(batch), 0) from journal").fetchone()[0]

    def kept(self, page: int) -> Kept | None:
        """Return our copy of a page, if there is one."""
        row = self.connection.execute("select fetched, digest from copy where page = ?", (page,)).fetchone()
        return None if row is None else Kept(*row)

    def commit(
        self,
        batches: Sequence[Batch],
        fetches: Sequence[Row],
        robots: Sequence[Row],
        archives: Iterable[Length],
        index_bytes: int,
    ) -> None:
        with Transaction(self.connection):
            for batch in batches:
                self._add_batch(batch)
            self._add("fetch", _FETCH_COLUMNS, fetches)
            self._add_copies(batches, fetches)
            self._add("robots", _ROBOTS_COLUMNS, robots)
            self.connection.executemany("replace into warc values (?, ?, ?)", archives)
            self.connection.execute("update cdxj set bytes = ?", (index_bytes,))
            self._forgetting.after(batches)
            self._set_processor(batches[-1].processor)

    def set_meta(self, key: str, value: str | None) -> None:
        if value is None:
            self.connection.execute("delete from meta where key = ?", (key,))
        else:
            self.connection.execute("replace into meta values (?, ?)", (key, value))

    def _set_processor(self, loop: ProcessorTime | None) -> None:
        """Keep the processor time of both processes in this run, up to this commit."""
        if loop is not None:
            times = CrawlProcessor(loop, self._processor())
            self.set_meta(self._processor_key, json.dumps(asdict(times)))

    def close(self) -> None:
        self.connection.close()

    def _add_batch(self, batch: Batch) -> None:
        self.connection.executemany("insert into site values (?, ?)", batch.sites)
        self.connection.executemany("insert into address values (?, ?)", batch.addresses)
        self.connection.executemany("insert into page values (?, ?, ?)", batch.pages)
        self.connection.execute("insert into journal values (?, ?, ?)", (batch.number, batch.calls, batch.refresh))
        self.connection.executemany("replace into abandoned_site values (?, ?, ?, ?)", batch.abandoned_sites)
        if any(one.kind == NOT_ABANDONED for one in batch.abandoned_sites):
            self.connection.execute("delete from abandoned_site where kind = ?", (NOT_ABANDONED,))
        self.connection.executemany("replace into rejected_link values (?, ?)", batch.rejected_links)
        self.connection.executemany(_ADOPTED, ((page, *copy) for page, copy in batch.copies))
        self.connection.executemany(_SEED, batch.seeds)
        for key, value in batch.meta.items():
            self.set_meta(key, value)
        self.connection.executemany("replace into page_quality values (?, ?, ?)", batch.qualities)
        self._add_signals(batch)
        self._add_traffic(batch.traffic)
        foreign = ((fetched.page, fetched.visit, url) for fetched in batch.fetches for url in fetched.elsewhere)
        self.connection.executemany("insert into foreign_link values (?, ?, ?)", foreign)
        further = ((fetched.page, fetched.visit, fetched.further) for fetched in batch.fetches if fetched.further)
        self.connection.executemany("insert into further_link values (?, ?, ?)", further)
        if batch.progress is not None:
            self.connection.execute(_SUPERSEDED)
            self.connection.execute(_PROGRESS, batch.progress)

    def _add_signals(self, batch: Batch) -> None:
        for id, page, *rest in batch.signals:
            self.connection.execute(
                "replace into signal values (?, ?, ?, ?, ?, ?)", (id, page if page >= 0 else None, *rest)
            )
        totals = Counter((signal.channel, signal.kind, signal.outcome) for signal in batch.signals)
        self.connection.executemany(_SIGNAL_TOTAL, ((*key, count) for key, count in totals.items()))
        dates = ((page, by, dated if dated < math.inf else None) for page, by, dated in batch.listed_pages)
        self.connection.executemany("replace into listed_page values (?, ?, ?)", dates)
        lists = ((*one[:-1], json.dumps(one.rejected)) for one in batch.published_lists)
        self.connection.executemany("replace into published_list values (?, ?, ?, ?, ?, ?, ?, ?, ?)", lists)
        self.connection.executemany(_REQUISITE, batch.requisites)
        if batch.whole is not None:
            self.set_meta("whole", json.dumps(batch.whole))
        if batch.inbox is not None:
            self.set_meta("inbox", json.dumps(batch.inbox))

    def _add_traffic(self, traffic: PartitionTraffic) -> None:
        self.connection.executemany("insert into message_batch values (?, ?, ?)", traffic.made)
        self.connection.executemany(_MADE, ((receiver, number) for receiver, number, _ in traffic.made))
        self.connection.executemany("update partition set urls = urls + ?2 where id = ?1", traffic.urls)
        self.connection.executemany("delete from pending_link where url = ?", ((url,) for url in traffic.not_pending))
        self.connection.executemany(_PENDING, traffic.pending)
        self.connection.executemany("replace into unplaced_url values (?, ?)", traffic.unplaced)
        self.connection.executemany("delete from message_batch where receiver = ? and number <= ?", traffic.delivered)
        self.connection.executemany(_RECEIVED, traffic.received)
        self.connection.executemany("replace into assigned values (?, ?)", traffic.assigned)
        self.connection.executemany("update partition set ended = 1 where id = ?", ((id,) for id in traffic.ended))
        if traffic.size:
            self.set_meta("size", str(traffic.size))

    def _add_copies(self, batches: Iterable[Batch], rows: Sequence[Row]) -> None:
        """Update the table `copy` in the order of the fetches. `rows`: the rows of the same fetches in the table `fetch`."""
        fetches = (fetched for batch in batches for fetched in batch.fetches)
        for fetched, row in zip(fetches, rows, strict=True):
            if is_not_modified(fetched):
                self.connection.execute(_STILL, (fetched.started, fetched.etag, fetched.modified, fetched.page))
            elif fetched.fingerprint:
                self.connection.execute(_COPY, _copy(fetched, row[_DIGEST]))
            elif fetched.result == REFUSED:
                self.connection.execute("update copy set refused = ? where page = ?", (fetched.error, fetched.page))

    def _add(self, table: str, columns: str, rows: Sequence[Row]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self.connection.executemany(f"insert into {table} ({columns}) values ({marks})", rows)


def _copy(f: Fetched, digest: bytes) -> Row:
    last_change = f.started if f.changed == 1 else None
    return f.page, f.started, f.started, last_change, f.fingerprint, digest, f.etag, f.modified


_FETCH_COLUMNS = (
    "page, visit, address, started, first_byte_s, total_s, result, status, error, "
    "bytes, mime, digest, marks, found, truncated, file, offset, length, links, changed, fingerprint"
)
_DIGEST = _FETCH_COLUMNS.split(", ").index("digest")
_ROBOTS_COLUMNS = (
    "site, visit, address, started, first_byte_s, total_s, status, error, bytes, body, file, offset, length"
)
_COPY = """insert into copy (page, fetched, checked, last_change, fingerprint, digest, etag, modified, refused)
values (?, ?, ?, ?, ?, ?, ?, ?, '') on conflict (page) do update set fetched = excluded.fetched, checked = excluded.checked,
last_change = ifnull(excluded.last_change, last_change), fingerprint = excluded.fingerprint, digest = excluded.digest,
etag = excluded.etag, modified = excluded.modified, refused = ''"""
_ADOPTED = "replace into copy values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_STILL = "update copy set checked = ?, etag = ?, modified = ?, refused = '' where page = ?"
_SIGNAL_TOTAL = (
    "insert into signal_total values (?, ?, ?, ?) "
    "on conflict (channel, kind, outcome) do update set signals = signals + excluded.signals"
)
_MADE = "insert into partition (id, made) values (?, ?) on conflict (id) do update set made = excluded.made"
_RECEIVED = (
    "insert into partition (id, received) values (?, ?) on conflict (id) do update set received = excluded.received"
)
_PENDING = """insert into pending_link (url, links, depth, share) values (?, ?, ?, ?)
on conflict (url) do update set links = links + excluded.links, depth = min(depth, excluded.depth), share = share + excluded.share"""
# The last row belongs to the last commit. The other rows are about half a second apart, however many commits there are.
_SUPERSEDED = """delete from progress where rowid = (select max(rowid) from progress)
and seconds < 0.4 + (select seconds from progress order by rowid desc limit 1 offset 1)"""
# What named a requisite, and as what, stays as it was first.
_REQUISITE = """insert into requisite values (?, ?, ?, ?, ?, ?) on conflict (page) do update set
requests = max(requests, excluded.requests), state = excluded.state"""
_PROGRESS = "insert into progress values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
