"""crawl.db from the side of the one process that writes it: whole batches, one transaction each time.

WAL mode, so that readers in other processes never wait and are never waited for. synchronous=FULL: a batch that was
acknowledged survives a power cut too, and a snapshot of the frontier is never ahead of the database
(docs/decisions/018-store-process.md says what that costs). No index is kept while the crawl runs.
"""

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from trapline.crawl.records import Batch, Between, Fetched
from trapline.crawl.store.archive import Length
from trapline.crawl.store.filing import Kept, Row, is_not_modified
from trapline.crawl.store.forgetting import Forgetting
from trapline.signals.database import Transaction

_BUSY_S = 30.0  # how long a user's own writing connection may hold us up
_REFUSED = 6  # frontier/layout.py has it, and imports more than this process wants
_CHECKPOINT_PAGES = 4000  # 16 MB of log before it is moved into the database

INDEXES = {
    "page_by_url": "create index page_by_url on page (url)",
    "fetch_by_page": "create index fetch_by_page on fetch (page)",
    "robots_by_site": "create index robots_by_site on robots (site)",
}


# A key for each, so that one is added without reading the others.
SEED = "seed "
_SEED = (
    f"""insert into meta values ('{SEED}' || ?, ?) on conflict (key) do update set value = min(value, excluded.value)"""
)


class Database:
    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
        for pragma in ("journal_mode=wal", "synchronous=full", f"wal_autocheckpoint={_CHECKPOINT_PAGES}"):
            self.connection.execute(f"pragma {pragma}")
        self._forgetting = Forgetting(self.connection)

    def archives(self) -> list[Length]:
        return [Length(*row) for row in self.connection.execute("select id, name, bytes from warc order by id")]

    def index_bytes(self) -> int:
        return self.connection.execute("select bytes from cdxj").fetchone()[0]

    def last_batch(self) -> int:
        return self.connection.execute("select coalesce(max(batch), 0) from journal").fetchone()[0]

    def kept(self, page: int) -> Kept | None:
        """Our copy of a page."""
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

    def set_meta(self, key: str, value: str | None) -> None:
        if value is None:
            self.connection.execute("delete from meta where key = ?", (key,))
        else:
            self.connection.execute("replace into meta values (?, ?)", (key, value))

    def close(self) -> None:
        self.connection.close()

    def _add_batch(self, batch: Batch) -> None:
        self.connection.executemany("insert into site values (?, ?)", batch.sites)
        self.connection.executemany("insert into address values (?, ?)", batch.addresses)
        self.connection.executemany("insert into page values (?, ?, ?)", batch.pages)
        self.connection.execute("insert into journal values (?, ?, ?)", (batch.number, batch.calls, batch.refresh))
        self.connection.executemany("replace into given_up values (?, ?, ?, ?)", batch.given_up)
        self.connection.executemany("replace into left_out values (?, ?)", batch.left_out)
        self.connection.executemany(_ADOPTED, ((page, *copy) for page, copy in batch.copies))
        self.connection.executemany(_SEED, batch.seeds)
        self._add_told(batch)
        self._add_between(batch.between)
        lead = ((fetched.page, fetched.visit, url) for fetched in batch.fetches for url in fetched.elsewhere)
        self.connection.executemany("insert into elsewhere values (?, ?, ?)", lead)
        if batch.progress is not None:
            self.connection.execute(_SUPERSEDED)
            self.connection.execute(_PROGRESS, batch.progress)

    def _add_told(self, batch: Batch) -> None:
        for id, page, *rest in batch.signals:
            self.connection.execute(
                "replace into signal values (?, ?, ?, ?, ?, ?)", (id, page if page >= 0 else None, *rest)
            )
        totals = Counter((one.channel, one.kind, one.outcome) for one in batch.signals)
        self.connection.executemany(_SIGNAL_TOTAL, ((*key, count) for key, count in totals.items()))
        dates = ((page, by, dated if dated < math.inf else None) for page, by, dated in batch.told)
        self.connection.executemany("replace into told values (?, ?, ?)", dates)
        if batch.whole is not None:
            self.set_meta("whole", json.dumps(batch.whole))
        if batch.inbox is not None:
            self.set_meta("inbox", json.dumps(batch.inbox))

    def _add_between(self, between: Between) -> None:
        self.connection.executemany("insert into parcel values (?, ?, ?)", between.made)
        self.connection.executemany(_MADE, ((receiver, number) for receiver, number, _ in between.made))
        self.connection.executemany("delete from parcel where receiver = ? and number <= ?", between.delivered)
        self.connection.executemany(_RECEIVED, between.received)
        self.connection.executemany("replace into assigned values (?, ?)", between.assigned)
        self.connection.executemany("update partition set ended = 1 where id = ?", ((one,) for one in between.ended))
        if between.size:
            self.set_meta("size", str(between.size))

    def _add_copies(self, batches: Iterable[Batch], rows: Sequence[Row]) -> None:
        """What we have of pages now, in the order in which it came; `rows`: of the same fetches."""
        fetches = (fetched for batch in batches for fetched in batch.fetches)
        for fetched, row in zip(fetches, rows, strict=True):
            if is_not_modified(fetched):
                self.connection.execute(_STILL, (fetched.started, fetched.etag, fetched.modified, fetched.page))
            elif fetched.fingerprint:
                self.connection.execute(_COPY, _copy(fetched, row[_DIGEST]))
            elif fetched.result == _REFUSED:
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
# The last row is of the last commit, and the others are half a second apart, however many commits there are.
_SUPERSEDED = """delete from progress where rowid = (select max(rowid) from progress)
and seconds < 0.4 + (select seconds from progress order by rowid desc limit 1 offset 1)"""
_PROGRESS = "insert into progress values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
