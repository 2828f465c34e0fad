"""The database signals.db in a crawl's folder: creates it, checks its format, opens it. Its users know what the rows mean.

Several processes write to the database (the endpoint, `refresh accesses`, the crawl), each in short transactions. Writers
wait for each other; readers never wait. With synchronous=FULL, committed data survives a power cut.

Only the owner of the file can read it, whatever the umask: the database holds the secrets of WebSub subscriptions, and
anyone who knows such a secret can forge deliveries of its hub.
"""

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from trapline.errors import ConfigError

DATABASE = "signals.db"
FORMAT = 2

BUSY_S = 30.0
_MODE = 0o600
_SIDE_FILES = ("-wal", "-shm", "-journal")
_SCHEMA = Path(__file__).with_name("schema.sql")


def opened(folder: Path, busy_s: float = BUSY_S) -> sqlite3.Connection:
    """Open the database for reading and writing, and create it if it does not exist.

    Raises `ConfigError` if the file cannot be opened or is not a signals database of this format.
    """
    path = folder / DATABASE
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; name the folder of a crawl")
    try:
        _restrict_access(path)
        connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"{path}: cannot be opened: {getattr(error, 'strerror', None) or error}") from None
    try:
        connection.execute("pragma journal_mode=wal")
        connection.execute("pragma synchronous=full")
        _make_or_check(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise ConfigError(f"{path}: not a signals database, or damaged ({error}); move the file away") from None
    except ConfigError:
        connection.close()
        raise
    return connection


def _restrict_access(path: Path) -> None:
    """Create the file with mode 0600, or restrict a file that an earlier version created with a wider mode.

    SQLite gives the files beside it (-wal, -shm, -journal) the same mode.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE))
    except FileExistsError:  # do not open it here: closing it would release the locks that this process holds on it
        for file in (path, *(path.with_name(path.name + end) for end in _SIDE_FILES)):
            _restrict_file(file)


def _restrict_file(file: Path) -> None:
    """Restrict the file to its owner. Raise `ConfigError` if other users can read it and this user may not change that."""
    with suppress(FileNotFoundError):
        found = file.stat()
        if not found.st_mode & 0o077:
            return
        if os.geteuid() not in (found.st_uid, 0):
            raise ConfigError(
                f"{file}: readable by other users, and owned by another user; let its owner run: chmod 600 {file}"
            )
        with suppress(PermissionError):  # a file system without modes
            file.chmod(_MODE)


def _make_or_check(connection: sqlite3.Connection, path: Path) -> None:
    if _format(connection) is None:
        with Transaction(connection):
            if _format(connection) is None:  # no other process has created the tables since the first check
                _make(connection, path)
    if (found := _format(connection)) != str(FORMAT):
        problem = f"signals database of format {found}, but this version reads format {FORMAT}"
        raise ConfigError(f"{path}: {problem}; use the version that wrote it, or move the file away")


def _format(connection: sqlite3.Connection) -> str | None:
    if not connection.execute("select 1 from sqlite_schema where name = 'meta'").fetchone():
        return None
    found = connection.execute("select value from meta where key = 'format'").fetchone()
    return found[0] if found else "unknown"


def _make(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("select 1 from sqlite_schema").fetchone():
        raise ConfigError(f"{path}: not a signals database; move the file away")
    for statement in _statements(_SCHEMA.read_text(encoding="utf-8")):
        connection.execute(statement)
    meta = {"format": str(FORMAT), "created": repr(time.time())}
    connection.executemany("insert into meta values (?, ?)", meta.items())


def _statements(script: str) -> list[str]:
    """Split the schema into statements, because `executescript` would commit our transaction.

    No statement of the schema contains a semicolon.
    """
    lines = (line.partition("--")[0] for line in script.splitlines())
    return [statement for statement in "\n".join(lines).split(";") if statement.strip()]


def urls_of(site: str) -> tuple[str, str]:
    """Return the bounds of a site's URLs in text order: every URL is at or above the first and below the second.

    >>> urls_of("http://a.org")
    ('http://a.org/', 'http://a.org0')
    """
    return f"{site}/", f"{site}0"  # "0" is the character after "/"


class Transaction:
    """A context manager for one transaction: commits it at the end, or rolls it back after an exception."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("begin immediate")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._connection.execute("commit")
        elif self._connection.in_transaction:  # if the disk is full, SQLite has rolled back already
            self._connection.execute("rollback")
