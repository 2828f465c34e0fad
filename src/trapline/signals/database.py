"""signals.db in the folder of a crawl: made, recognised, opened. What its rows mean is known to those who use it.

Several processes write it (the endpoint, `refresh accesses`, the crawl), each in short transactions, and wait for each other;
readers never wait. synchronous=FULL: what was committed survives a power cut.

Only its owner can read it, whatever the umask: whoever knows the secret of a subscription can forge what its hub delivers.
"""

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from trapline.errors import ConfigError

DATABASE = "signals.db"
FORMAT = 1

BUSY_S = 30.0
_MODE = 0o600
_BESIDE = ("-wal", "-shm", "-journal")
_SCHEMA = Path(__file__).with_name("schema.sql")


def opened(folder: Path, busy_s: float = BUSY_S) -> sqlite3.Connection:
    """A connection that reads and writes; the file is made if there is none. `ConfigError` if it is not ours."""
    path = folder / DATABASE
    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such folder")
    try:
        _close_to_others(path)
        connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"{path}: cannot be opened: {getattr(error, 'strerror', None) or error}") from None
    try:
        connection.execute("pragma journal_mode=wal")
        connection.execute("pragma synchronous=full")
        _make_or_check(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise ConfigError(f"{path}: not a database of signals, or damaged: {error}") from None
    except ConfigError:
        connection.close()
        raise
    return connection


def _close_to_others(path: Path) -> None:
    """Make the file, or take from others what an earlier version gave them; SQLite gives the files beside it the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE))
    except FileExistsError:  # not opened here: to close it again would give up the locks that this process has on it
        for file in (path, *(path.with_name(path.name + end) for end in _BESIDE)):
            _tighten(file)


def _tighten(file: Path) -> None:
    """`ConfigError` if others can read it, and it is not ours to change that."""
    with suppress(FileNotFoundError):
        found = file.stat()
        if not found.st_mode & 0o077:
            return
        if os.geteuid() not in (found.st_uid, 0):
            raise ConfigError(
                f"{file}: others can read it, and it belongs to another user; let its owner run: chmod 600 {file}"
            )
        with suppress(PermissionError):  # a file system without modes
            file.chmod(_MODE)


def _make_or_check(connection: sqlite3.Connection, path: Path) -> None:
    if _format(connection) is None:
        with Transaction(connection):
            if _format(connection) is None:  # nobody else was faster
                _make(connection, path)
    if (found := _format(connection)) != str(FORMAT):
        was = f"signals of format {found}; this version reads {FORMAT}"
        raise ConfigError(f"{path}: {was}: use the version that wrote it, or move the file away")


def _format(connection: sqlite3.Connection) -> str | None:
    if not connection.execute("select 1 from sqlite_schema where name = 'meta'").fetchone():
        return None
    found = connection.execute("select value from meta where key = 'format'").fetchone()
    return found[0] if found else "unknown"


def _make(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("select 1 from sqlite_schema").fetchone():
        raise ConfigError(f"{path}: not a database of signals; move the file away")
    for statement in _statements(_SCHEMA.read_text(encoding="utf-8")):
        connection.execute(statement)
    meta = {"format": str(FORMAT), "created": repr(time.time())}
    connection.executemany("insert into meta values (?, ?)", meta.items())


def _statements(script: str) -> list[str]:
    """One by one: `executescript` would end our transaction. No statement of the schema holds a semicolon."""
    lines = (line.partition("--")[0] for line in script.splitlines())
    return [statement for statement in "\n".join(lines).split(";") if statement.strip()]


def urls_of(site: str) -> tuple[str, str]:
    """Every URL of a site is at or above the first text, and below the second.

    >>> urls_of("http://a.org")
    ('http://a.org/', 'http://a.org0')
    """
    return f"{site}/", f"{site}0"  # behind a slash comes a zero


class Transaction:
    """All of it or nothing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("begin immediate")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._connection.execute("commit")
        elif self._connection.in_transaction:  # SQLite has ended it by itself if the disk is full
            self._connection.execute("rollback")
