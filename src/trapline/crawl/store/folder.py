"""The folder of a crawl: what lies in it by what name, and who may write into it. It reads and writes no page.

A crawl is claimed before anything else is done with it, new or old; the claim is what the store is started with.
"""

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from trapline.crawl.store.lock import LOCK, Lock, take
from trapline.errors import ConfigError
from trapline.output import check_writable, sync

FORMAT = 7
DATABASE = "crawl.db"
ARCHIVES = "warc"
INDEX = "index.cdxj"
REBUILT_INDEX = f".{INDEX}.rebuilt"  # whole; takes the place of INDEX once the database knows its length
SNAPSHOT = "snapshot"
SUMMARY = "summary.json"

_UNBORN = "crawl.db.new"
# SQLite's own files are there if the process was killed while it made the database.
_UNBORN_FILES = tuple(f"{_UNBORN}{end}" for end in ("", "-journal", "-wal", "-shm"))
_SCHEMA = Path(__file__).with_name("schema.sql")


class Claim(NamedTuple):
    """A crawl's folder that is ours to write, until it is released and the store has ended."""

    path: Path
    lock: Lock

    def release(self) -> None:
        self.lock.release()


def check_free(path: Path) -> None:
    """Raise `ConfigError` unless a new crawl could have this folder. Leaves nothing behind."""
    if not path.is_dir():
        if path.exists():
            raise ConfigError(f"{path}: exists and is not a folder")
        check_writable(path)
        return
    if (path / DATABASE).exists():
        _refuse_begun(path)
    else:
        _refuse_strangers(path)
    check_writable(path / DATABASE)


def claim_new(path: Path, options: Mapping[str, object], began: float | None = None) -> Claim:
    """Make the folder of a new crawl. A folder that holds anything but a crawl that never began is refused. `began`: when it did, if it is
    a part of one that was there before."""
    _make_folder(path)
    if not (path / DATABASE).exists():
        _refuse_strangers(path)
    claim = Claim(path, take(path))
    try:
        if (path / DATABASE).exists():
            _refuse_begun(path)
            _remove_unbegun(path)
        _create_database(path, options, time.time() if began is None else began)
    except BaseException:
        claim.release()
        raise
    return claim


def claim_existing(path: Path) -> Claim:
    """Take the folder of a crawl that is to go on."""
    check_crawl(path)
    return Claim(path, take(path))


def note_begin(claim: Claim, options: Mapping[str, object]) -> None:
    """Another run begins, by these options: its goals may be others. To be called while no store runs: it alone writes then."""
    _note(claim, "update meta set value = ? where key = 'options'", json.dumps(options))
    _note(claim, "insert into meta values ('runs', '1') on conflict (key) do update set value = value + 1")
    _note(claim, "delete from meta where key = 'stopped_by'")


def note_end(claim: Claim, stopped_by: str) -> None:
    """A run has ended, and why. To be called when the store has ended."""
    _note(claim, "insert or replace into meta values ('stopped_by', ?)", stopped_by)


def note_partition(claim: Claim, partition: str) -> None:
    """The crawl is this part of a larger one. To be called while no store runs."""
    _note(claim, "insert or replace into meta values ('partition', ?)", partition)


def _note(claim: Claim, statement: str, *values: str) -> None:
    try:
        with closing(sqlite3.connect(claim.path / DATABASE)) as connection, connection:
            connection.execute(statement, values)
    except sqlite3.Error as error:
        raise ConfigError(f"{claim.path}: cannot be written: {error}") from None


def check_crawl(path: Path) -> None:
    """Raise `ConfigError` unless this is a crawl's folder in a format that we know."""
    connect(path).close()


def connect(path: Path) -> sqlite3.Connection:
    """A connection that reads the crawl, finished or under way, from any process."""
    if not (path / DATABASE).is_file():
        raise ConfigError(f"{path}: there is no crawl: it has no {DATABASE}")
    try:
        connection = sqlite3.connect(read_only(path), uri=True, isolation_level=None)
        found = connection.execute("select value from meta where key = 'format'").fetchone()
    except sqlite3.Error as error:
        raise ConfigError(f"{path / DATABASE}: not the database of a crawl: {error}") from None
    if found is None or found[0] != str(FORMAT):
        connection.close()
        was = f"a crawl of format {found and found[0]}; this version reads {FORMAT}"
        raise ConfigError(f"{path}: {was}: use the version that wrote it, or crawl anew into another folder")
    return connection


def read_only(path: Path) -> str:
    """The address under which SQLite opens a crawl's database to read it."""
    # SQLite makes a file for its readers to share. Where it cannot, and there is no log, nobody writes and none is needed.
    still = not os.access(path, os.W_OK) and not (path / f"{DATABASE}-wal").exists()
    mode = "mode=ro&immutable=1" if still else "mode=ro"
    return f"{(path / DATABASE).resolve().as_uri()}?{mode}"


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except FileNotFoundError:
        raise ConfigError(f"cannot write {path}: there is no folder {path.parent}") from None
    except FileExistsError:
        raise ConfigError(f"{path}: exists and is not a folder") from None
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None


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
        "select exists (select 1 from journal) or exists (select 1 from meta where key = 'merged')"  # one of several
    ).fetchone()[0]
    connection.close()
    if begun:
        raise ConfigError(f"{path}: exists and holds a crawl; go on with --resume {path}, or name another folder")


def _remove_unbegun(path: Path) -> None:
    for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
        (path / name).unlink(missing_ok=True)
    shutil.rmtree(path / SNAPSHOT, ignore_errors=True)


def _create_database(path: Path, options: Mapping[str, object], began: float) -> None:
    with new_database(path) as connection:
        meta = {"format": str(FORMAT), "created": repr(began), "options": json.dumps(options)}
        connection.executemany("insert into meta values (?, ?)", meta.items())


@contextmanager
def new_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A crawl.db with empty tables, to be filled in one transaction. Under another name first: a crawl.db that is there is whole."""
    unborn = path / _UNBORN
    try:
        for name in _UNBORN_FILES:
            (path / name).unlink(missing_ok=True)
        with closing(sqlite3.connect(unborn, uri=True, isolation_level=None)) as connection:
            connection.executescript(f"begin;\n{_SCHEMA.read_text()}")
            yield connection
            connection.execute("commit")
            # From the beginning: a write that is broken off otherwise leaves a journal that no reader may roll back.
            connection.execute("pragma journal_mode = wal")
        unborn.rename(path / DATABASE)
        sync(path)
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"{path}: cannot be written: {error}") from None
