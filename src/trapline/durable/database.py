"""The database of a frontier's folder: URLs, their payloads, sites, addresses, and the log of calls. It decides nothing.

A commit has everything that belongs together: the pages that a call added, and the log of that call. So after a kill at any moment the
log and the tables agree. Commits do not wait for the disk (`synchronous = normal` with a write-ahead log): they survive the end of the
process at once, and a power failure some seconds later. `commit(sync=True)` waits.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trapline.errors import ConfigError, OtherVersionError

FORMAT = 1
DATABASE = "frontier.db"
_SCHEMA = """
create table if not exists meta (key text primary key, value text not null) without rowid;
create table if not exists site (id integer primary key, name text not null);
create table if not exists address (id integer primary key, address text not null);
create table if not exists page (
    id integer primary key,   -- in order of discovery
    site integer not null,
    url text not null,
    key text,                 -- by what the page is known, if not by its URL
    payload blob              -- what the crawler wants back with the URL; null: nothing, or the page is done
);
create table if not exists log (batch integer primary key, calls blob not null);
"""
_MOST_AT_ONCE = 500


class PageRow(NamedTuple):
    id: int
    site: int
    url: str
    key: str | None
    payload: bytes | None


class FrontierDatabase:
    def __init__(self, folder: Path) -> None:
        self._path = folder / DATABASE
        try:
            self.connection = sqlite3.connect(self._path, isolation_level=None)
            self.connection.execute("pragma journal_mode = wal")
            self.connection.execute("pragma synchronous = normal")
            self.connection.executescript(f"begin; {_SCHEMA} commit;")
        except sqlite3.Error as error:
            raise ConfigError(f"{self._path}: cannot be opened: {error}") from error
        # What the next commit writes.
        self.sites: list[tuple[int, str]] = []
        self.addresses: list[tuple[int, str]] = []
        self.pages: dict[int, PageRow] = {}
        self.payloads: dict[int, bytes | None] = {}  # new ones, by page
        self.meta: dict[str, str] = {}

    # ---- writing

    @property
    def has_changes(self) -> bool:
        """Whether something was added since the last commit."""
        return bool(self.sites or self.addresses or self.pages or self.payloads or self.meta)

    def commit(
        self, batch: int, calls: bytes, sync: bool = False, also: Callable[[sqlite3.Connection], None] | None = None
    ) -> None:
        """Write all that was added, the log of calls as this batch, and what `also` writes. If that fails, nothing is written, and a
        later commit can."""
        run = self.connection
        if sync:
            run.execute("pragma synchronous = full")
        run.execute("begin")
        try:
            run.executemany("insert into site values (?, ?)", self.sites)
            run.executemany("insert into address values (?, ?)", self.addresses)
            run.executemany("insert into page values (?, ?, ?, ?, ?)", self.pages.values())
            run.executemany("update page set payload = ?2 where id = ?1 and payload is not ?2", self.payloads.items())
            run.executemany("insert or replace into meta values (?, ?)", self.meta.items())
            run.execute("insert into log values (?, ?)", (batch, calls))
            if also is not None:
                also(run)
            run.execute("commit")
        except BaseException:
            if run.in_transaction:  # after some errors, such as a full disk, SQLite has ended the transaction itself
                run.execute("rollback")
            raise
        finally:
            if sync:
                run.execute("pragma synchronous = normal")
        for written in (self.sites, self.addresses, self.pages, self.payloads, self.meta):
            written.clear()

    def forget_log(self, until: int) -> None:
        """Delete the log up to this batch."""
        self.connection.execute("delete from log where batch <= ?", (until,))

    def close(self) -> None:
        self.connection.close()

    # ---- reading

    def settings(self) -> dict[str, Any] | None:
        """Return the settings with which the frontier was made. None: the database is new."""
        found = dict(self.connection.execute("select key, value from meta").fetchall())
        if not found:
            return None
        if found.get("format") != str(FORMAT):
            raise OtherVersionError(
                f"{self._path}: format {found.get('format')}; this version reads {FORMAT}: use the version that wrote it"
            )
        settings: dict[str, Any] = json.loads(found["settings"])
        return settings

    def last_batch(self) -> int:
        return int(self.connection.execute("select coalesce(max(batch), 0) from log").fetchone()[0])

    def log(self, after: int) -> Iterator[bytes]:
        """Yield the log of the batches after this one. Raise `ConfigError` if one is missing."""
        rows = self.connection.execute("select batch, calls from log where batch > ? order by batch", (after,))
        for expected, (batch, calls) in enumerate(rows, after + 1):
            if batch != expected:
                raise ConfigError(f"{self._path}: batch {expected} of the log is missing; the folder is damaged")
            yield calls

    def site_names(self) -> list[str]:
        return [name for (name,) in self.connection.execute("select name from site order by id")]

    def address_numbers(self) -> dict[str, int]:
        return dict(self.connection.execute("select address, id from address"))

    def keys(self, first: int) -> Iterator[list[tuple[int, str, str | None]]]:
        """Yield, in parts, the site, URL and key of each page from `first` on."""
        found = self.connection.execute("select site, url, key from page where id >= ? order by id", (first,))
        while part := found.fetchmany(4096):
            yield part

    def rows_of(self, pages: Sequence[int]) -> list[PageRow]:
        """Return the rows of these pages, written or not."""
        missing = [page for page in pages if page not in self.pages]
        read: Mapping[int, PageRow] = {}
        for at in range(0, len(missing), _MOST_AT_ONCE):
            some = missing[at : at + _MOST_AT_ONCE]
            sql = f"select id, site, url, key, payload from page where id in ({', '.join('?' * len(some))})"
            read = {**read, **{row[0]: PageRow(*row) for row in self.connection.execute(sql, some)}}
        rows = [self.pages.get(page) or read[page] for page in pages]
        return [row._replace(payload=self.payloads[row.id]) if row.id in self.payloads else row for row in rows]
