"""The folder of a crawl: the names of its files, and who may write into it. This module reads and writes no page.

A process claims the folder of a crawl, new or old, before it does anything else with it. The store is started with that
claim.
"""

import errno
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from trapline.crawler.files.lock import LOCK, Lock, take
from trapline.errors import ConfigError
from trapline.output import check_writable, sync

FORMAT = 10
DATABASE = "crawl.db"
ARCHIVES = "warc"
INDEX = "index.cdxj"
REBUILT_INDEX = f".{INDEX}.rebuilt"  # complete; it replaces INDEX as soon as the database has recorded its length
SNAPSHOT = "snapshot"
SUMMARY = "summary.json"
STRATEGY_FILES = "strategy"  # every version of the user's strategy files that the crawl has had (run_options.py)
SCORER_FAILURES = "scorer_failures"  # key in the table `meta`: number of pages on which the scorer failed
HANDLED = "handled.json"  # how far the pages are handled (handled.py)

REQUISITES = """create table if not exists requisite (  -- files that pages need, in crawls with --requisites
    page integer primary key,      -- the page with its URL
    role text not null,            -- stylesheet, image, script, icon, media or file
    level integer not null,        -- number of stylesheets and redirects that lead from a page to it
    needed_by integer not null,    -- the page with the URL that named it first; -1: another partition has that
    requests integer not null,     -- requests, the most in one run
    state text not null            -- waiting, fetched, with links, page, missing, failed, forbidden, moved
)"""
PAGE_QUALITY = """create table if not exists page_quality (  -- scores of pages, in crawls with --quality content:NAME
    page integer primary key,
    run integer not null,          -- the run that scored the page: 1, 2, ...
    quality real not null
)"""
FURTHER_LINK = """create table if not exists further_link (  -- more links like those of foreign_link: their targets were sent before
    page integer not null, visit integer not null,
    fingerprints blob not null     -- of the URLs: int64, little-endian
)"""
UNPLACED_URL = """create table if not exists unplaced_url (  -- URLs that other partitions sent, and that are no pages of ours
    fingerprint integer primary key,
    url text not null
)"""
LATER_TABLES = {
    "requisite": REQUISITES,
    "page_quality": PAGE_QUALITY,
    "further_link": FURTHER_LINK,
    "unplaced_url": UNPLACED_URL,
}
"""The tables that folders of earlier versions do not have. The store adds them when such a crawl is resumed."""

_NOT_READ = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)  # the disk failed, or access to it
_DAMAGED = sqlite3.SQLITE_CORRUPT
_UNBORN = "crawl.db.new"
# SQLite's own files are there if the process was killed while it created the database.
_UNBORN_FILES = tuple(f"{_UNBORN}{end}" for end in ("", "-journal", "-wal", "-shm"))
_SCHEMA = Path(__file__).with_name("schema.sql")


class FolderClaim(NamedTuple):
    """A folder that this process may write, until the claim is released and the store has ended."""

    path: Path
    lock: Lock

    def release(self) -> None:
        self.lock.release()


def check_free(path: Path) -> None:
    """Raise `ConfigError` unless a new crawl could use this folder. No file is left there."""
    if not path.is_dir():
        if path.exists():
            raise ConfigError(f"{path}: exists and is not a folder; name another folder")
        check_writable(path)
        return
    if (path / DATABASE).exists():
        _refuse_begun(path)
    else:
        _refuse_strangers(path)
    check_writable(path / DATABASE)


def claim_new(path: Path, options: Mapping[str, object], began: float | None = None) -> FolderClaim:
    """Create and claim the folder of a new crawl.

    A folder with other contents is refused, unless they are a crawl that never began. `began`: the time at which the
    crawl began, if this folder is a new part of an existing crawl.
    """
    _make_folder(path)
    if not (path / DATABASE).exists():
        _refuse_strangers(path)
    claim = FolderClaim(path, take(path))
    try:
        if (path / DATABASE).exists():
            _refuse_begun(path)
            _remove_unbegun(path)
        _create_database(path, options, time.time() if began is None else began)
    except BaseException:
        claim.release()
        raise
    return claim


def claim_existing(path: Path) -> FolderClaim:
    """Claim the folder of a crawl that is to be resumed."""
    check_crawl(path)
    return FolderClaim(path, take(path))


def note_begin(claim: FolderClaim, keys: Mapping[str, str]) -> None:
    """Record that another run begins, and set these keys of `meta`: its options, which may differ from those of earlier runs.

    Call it while no store runs, because otherwise only the store may write the database.
    """
    statements = [_key(key, value) for key, value in keys.items()]
    runs = "insert into meta values ('runs', '1') on conflict (key) do update set value = value + 1"
    _note(claim, *statements, (runs, ()), ("delete from meta where key in ('stopped_by', 'pace')", ()))


def note_end(claim: FolderClaim, stopped_by: str) -> None:
    """Record that a run has ended, and why. Call it when the store has ended."""
    _note(claim, _key("stopped_by", stopped_by))


def note_partition(claim: FolderClaim, partition: str) -> None:
    """Record which partition of a larger crawl this crawl is. Call it while no store runs."""
    _note(claim, _key("partition", partition))


def _key(key: str, value: str) -> tuple[str, tuple[str, ...]]:
    return "insert or replace into meta values (?, ?)", (key, value)


def _note(claim: FolderClaim, *statements: tuple[str, tuple[str, ...]]) -> None:
    """Execute the statements in one transaction."""
    try:
        with closing(sqlite3.connect(claim.path / DATABASE)) as connection, connection:
            for statement, values in statements:
                connection.execute(statement, values)
    except sqlite3.Error as error:
        problem = f"cannot be written: {error}; fix that and continue with --resume {claim.path}"
        raise ConfigError(f"{claim.path}: {problem}") from None


class DamagedDatabase(ConfigError):
    """So much of the database of a crawl is damaged that it cannot be opened."""


def check_crawl(path: Path) -> None:
    """Raise `ConfigError` unless this is the folder of a crawl in the format of this version."""
    connect(path).close()


def _why_no_crawl(path: Path) -> str:
    if path.is_dir():
        return f"not a crawl (no {DATABASE} in it)"
    return "not a folder" if path.exists() else "no such folder"


def connect(path: Path) -> sqlite3.Connection:
    """Open a read-only connection to the database of a crawl, running or not, from any process."""
    if not (path / DATABASE).is_file():
        raise ConfigError(f"{path}: {_why_no_crawl(path)}; name the folder of a crawl")
    try:
        connection = sqlite3.connect(read_only(path), uri=True, isolation_level=None)
        found = connection.execute("select value from meta where key = 'format'").fetchone()
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if is_disk_failure(error):
            raise ConfigError(f"{path / DATABASE}: cannot be read: {error}; fix that and try again") from None
        if code == _DAMAGED or (path / ARCHIVES).is_dir():  # archives say that this was a crawl
            raise DamagedDatabase(f"{path / DATABASE}: {error}; restore it from a copy") from None
        raise ConfigError(
            f"{path / DATABASE}: not the database of a crawl: {error}; restore it from a copy, or name another folder"
        ) from None
    if found is None or found[0] != str(FORMAT):
        connection.close()
        problem = f"the crawl has format {found and found[0]}; this version reads {FORMAT}"
        raise ConfigError(f"{path}: {problem}: use the version that wrote it, or crawl anew into another folder")
    for name, table in LATER_TABLES.items():
        if not connection.execute("select 1 from sqlite_master where name = ?", (name,)).fetchone():
            connection.execute(table.replace("create table", "create temp table", 1))  # empty, for all readers
    return connection


def is_disk_failure(error: sqlite3.Error) -> bool:
    """Return whether the disk failed, or access to it, so that the database itself may be sound."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_READ


def read_only(path: Path) -> str:
    """Return the URI with which SQLite opens the database of a crawl read-only."""
    # SQLite creates a file (-shm) that its readers share. If it may not, and there is no write-ahead log, then no process
    # writes the database, and the file is not needed.
    immutable = not os.access(path, os.W_OK) and not (path / f"{DATABASE}-wal").exists()
    mode = "mode=ro&immutable=1" if immutable else "mode=ro"
    return f"{(path / DATABASE).resolve().as_uri()}?{mode}"


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except FileNotFoundError:
        raise ConfigError(
            f"cannot write {path}: there is no folder {path.parent}; create it first, or name another folder"
        ) from None
    except FileExistsError:
        raise ConfigError(f"{path}: exists and is not a folder; name another folder") from None
    except OSError as error:
        is_refused = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
        cure = "name a folder in which you may write" if is_refused else "name another folder"
        raise ConfigError(f"cannot write {path}: {error.strerror}; {cure}") from None


def _refuse_strangers(path: Path) -> None:
    try:
        strangers = sorted(entry.name for entry in path.iterdir() if entry.name not in (LOCK, *_UNBORN_FILES))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if strangers:
        raise ConfigError(f"{path}: exists and holds other files ({strangers[0]}); name a new or an empty folder")


def _refuse_begun(path: Path) -> None:
    connection = connect(path)
    begun = connection.execute(
        # 'merged': the database of all partitions of a parallel crawl.
        "select exists (select 1 from journal) or exists (select 1 from meta where key = 'merged')"
    ).fetchone()[0]
    connection.close()
    if begun:
        raise ConfigError(f"{path}: exists and holds a crawl; continue with --resume {path}, or name another folder")


def _remove_unbegun(path: Path) -> None:
    for name in (HANDLED, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
        (path / name).unlink(missing_ok=True)
    shutil.rmtree(path / SNAPSHOT, ignore_errors=True)


def _create_database(path: Path, options: Mapping[str, object], began: float) -> None:
    with new_database(path) as connection:
        meta = {"format": str(FORMAT), "created": repr(began), "options": json.dumps(options)}
        connection.executemany("insert into meta values (?, ?)", meta.items())


@contextmanager
def new_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Create a crawl.db with empty tables; the `with` block may fill them, in one transaction.

    The file has another name until it is complete, so that a crawl.db is never incomplete.
    """
    unborn = path / _UNBORN
    try:
        for name in _UNBORN_FILES:
            (path / name).unlink(missing_ok=True)
        with closing(sqlite3.connect(unborn, uri=True, isolation_level=None)) as connection:
            connection.executescript(f"begin;\n{_SCHEMA.read_text()}\n{';'.join(LATER_TABLES.values())};")
            yield connection
            connection.execute("commit")
            # WAL mode from the beginning: otherwise an interrupted write leaves a journal that no reader may roll back.
            connection.execute("pragma journal_mode = wal")
        unborn.rename(path / DATABASE)
        sync(path)
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"{path}: cannot be written: {error}") from None
