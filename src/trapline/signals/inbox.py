"""The inbox: all accepted signals, in order, on disk.

The endpoint, `refresh accesses` and the crawl (for the feeds that it read) write to the inbox. The crawl reads it, and
remembers the id up to which it has read. This module does not judge signals, and does not know whether the crawl knows
their pages.

Laws
- When `put` has returned, all of its signals are on disk; a `put` that failed has written nothing.
- `take` returns signals in order of id; no id is ever assigned twice, even after old signals were deleted.
- A signal that nobody vouched for has little weight: an unverified CHANGED signal has p <= UNVERIFIED_P.
"""

import asyncio
import math
import re
import sqlite3
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from trapline.errors import ConfigError, InvariantError
from trapline.fetch.urls import origin
from trapline.signals.database import BUSY_S, DATABASE, Transaction, opened, urls_of

CHANGED, POINT, ACCESS = "changed", "point", "access"
# The database stores the index in this tuple.
CHANNELS = ("indexnow", "websub", "sitemap", "feed", "schedule", "cache", "api")
UNVERIFIED_P = 0.05

MOST_TOPICS = 100_000
MOST_TOPICS_OF_ONE_SITE = 1_000
_NUMBERS = {channel: number for number, channel in enumerate(CHANNELS)}


_File = tuple[int, int] | None


class Signal(NamedTuple):
    """A statement about one page.

    CHANGED: the page changed at `moment` (for a ping: when the ping arrived). POINT: the page will change at `moment` with
    probability p. ACCESS: the page had p accesses in the hour that began at `moment`.
    """

    id: int  # assigned by the database; `put` ignores the value
    received: float
    channel: str
    url: str
    kind: str
    moment: float
    p: float
    verified: bool


class Inbox:
    """The inbox in `DIR/signals.db`, for use by one thread at a time.

    Creates the file if it does not exist. Raises `ConfigError` if the file is not a signals database.
    """

    def __init__(self, folder: Path, busy_s: float = BUSY_S) -> None:
        """`busy_s`: how many seconds a write waits for another writer."""
        self._folder, self._busy_s = folder, busy_s
        self._open()

    def _open(self) -> None:
        self._files: list[_File] = []  # empty while no database is open
        self._connection = _opened(self._folder, self._busy_s)
        self._files = [_file_at(place) for place in self._places]

    @property
    def _places(self) -> list[Path]:
        """Paths of the database and of the files that SQLite writes beside it."""
        return [self._folder / f"{DATABASE}{ending}" for ending in ("", "-wal", "-shm")]

    @property
    def is_gone(self) -> bool:
        """Whether the file was deleted or replaced since it was opened, so that this inbox misses what others write."""
        return not self._files or _file_at(self._places[0]) != self._files[0]

    def reopen(self) -> None:
        """Open the file that has the name now, or create it. Raises `ConfigError` as `__init__` does; may be retried."""
        before, self._files = self._files, []
        self._connection.close()
        for place, file in zip(self._places[1:], before[1:], strict=True) if before else ():
            # A file of the old database: SQLite would apply it to the new one.
            if file is not None and _file_at(place) == file:
                place.unlink()
        self._open()

    def put(self, signals: Iterable[Signal]) -> None:
        """Append all signals in one transaction."""
        rows = [_row(signal) for signal in signals]
        with Transaction(self._connection):
            self._connection.executemany(_INSERT, rows)

    def put_batch(self, digest: str, name: str, signals: Iterable[Signal]) -> None:
        """Append all signals in one transaction, and record the batch's digest, so that `has_batch` recognises a repetition."""
        rows = [_row(signal) for signal in signals]
        with Transaction(self._connection):
            self._connection.execute("replace into batch values (?, ?, ?, ?)", (digest, name, time.time(), len(rows)))
            self._connection.executemany(_INSERT, rows)

    def has_batch(self, digest: str) -> bool:
        return self._connection.execute("select 1 from batch where digest = ?", (digest,)).fetchone() is not None

    def add_tally(self, tally: Iterable[tuple[int, str, str, int]]) -> None:
        """Add rows (hour, channel, outcome, signals) to the counts on disk."""
        with Transaction(self._connection):
            self._connection.executemany(_TALLY, tally)

    def tally(self) -> list[tuple[int, str, str, int]]:
        """Return the number of all signals ever received, as rows (hour, channel, outcome, signals)."""
        return self._connection.execute("select * from tally order by hour, channel, outcome").fetchall()

    def take(self, after: int, most: int) -> list[Signal]:
        """Return up to `most` signals with ids above `after`, in order; none if there are no more. Does not delete them."""
        while rows := self._connection.execute(_SELECT, (after, most)).fetchall():
            signals = [_signal(row) for row in rows if _is_sound(row)]
            if signals:
                return signals
            after = rows[-1][0]
        return []

    def p_of(self, number: int) -> float:
        """Return the p of the signal with this id; 0 if the signal was deleted."""
        found = self._connection.execute("select p from signal where id = ?", (number,)).fetchone()
        return found[0] if found else 0.0

    @property
    def last(self) -> int:
        """Highest id ever assigned; 0 if none was."""
        found = self._connection.execute("select seq from sqlite_sequence where name = 'signal'").fetchone()
        return found[0] if found else 0

    @property
    def identity(self) -> str:
        """Text that identifies this database. A database that replaces it has another one, and its ids begin at 1 again."""
        found = self._connection.execute("select value from meta where key = 'created'").fetchone()
        return found[0] if found else ""

    def forget(self, received_before: float) -> int:
        """Delete signals received before this time, and return how many there were."""
        with Transaction(self._connection):
            return self._connection.execute("delete from signal where received < ?", (received_before,)).rowcount

    def topic(self, url: str, hub: str) -> None:
        """Record that the page `url` names this hub; a running endpoint then subscribes to it."""
        with Transaction(self._connection):
            limits = (MOST_TOPICS, *urls_of(origin(url)), MOST_TOPICS_OF_ONE_SITE)
            self._connection.execute(_TOPIC, (url, hub, time.time(), *limits))

    def topics(self) -> list[tuple[str, str]]:
        """Return all topics with their hubs, in the order in which they were found."""
        return self._connection.execute("select url, hub from topic order by found, url").fetchall()

    def close(self) -> None:
        self._connection.close()


def _opened(folder: Path, busy_s: float) -> sqlite3.Connection:
    connection = opened(folder, busy_s)
    try:
        connection.execute("select 1 from signal limit 0")
    except sqlite3.Error as error:
        connection.close()
        raise ConfigError(f"{folder / DATABASE}: damaged ({error}); move the file away") from None
    return connection


def _file_at(place: Path) -> _File:
    """Return device and inode of the file with this name; None if there is no such file.

    As long as a file is open, no other file gets its inode.
    """
    try:
        found = place.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


_SURROGATE = re.compile("[\ud800-\udfff]")  # a lone surrogate cannot be encoded in UTF-8


def _is_sound(row: tuple[Any, ...]) -> bool:
    """Return whether a row is a signal as `put` writes them.

    A later version may have more channels, and users may have written anything into the table.
    """
    _, received, channel, url, kind, moment, p, _ = row
    numbers = all(type(number) in (float, int) and math.isfinite(number) for number in (received, moment, p))
    known = type(channel) is int and 0 <= channel < len(CHANNELS) and kind in (CHANGED, POINT, ACCESS)
    return numbers and known and type(url) is str and not _SURROGATE.search(url)


def _signal(row: tuple[Any, ...]) -> Signal:
    return Signal(*row)._replace(channel=CHANNELS[row[2]], verified=bool(row[7]))


def _row(signal: Signal) -> tuple[float, int, str, str, float, float, bool]:
    if signal.kind == CHANGED and not signal.verified and signal.p > UNVERIFIED_P:
        raise InvariantError(f"unverified signal for {signal.url} has p = {signal.p}, more than {UNVERIFIED_P}")
    number = _NUMBERS[signal.channel]
    return signal.received, number, signal.url, signal.kind, signal.moment, signal.p, signal.verified


_INSERT = "insert into signal (received, channel, url, kind, moment, p, verified) values (?, ?, ?, ?, ?, ?, ?)"
_SELECT = "select id, received, channel, url, kind, moment, p, verified from signal where id > ? order by id limit ?"
_TALLY = (
    "insert into tally values (?, ?, ?, ?) "
    "on conflict (hour, channel, outcome) do update set signals = signals + excluded.signals"
)
# A topic that moved to another hub stays one topic. Beyond the limits, new topics are rejected.
_TOPIC = (
    "insert into topic select ?1, ?2, ?3 where ((select count(*) from topic) < ?4 "
    "and (select count(*) from topic where url >= ?5 and url < ?6) < ?7) or ?1 in (select url from topic) "
    "on conflict (url) do update set hub = excluded.hub"
)


# ---- Grouped writes to the inbox: one transaction for all signals that arrive within `every_s`, instead of one per request.
#
# The endpoint's handlers fill the queue. A separate thread empties it, one group at a time, so that the disk never blocks the
# event loop. A handler that must know whether its signals are on disk awaits the future that `put` returns.

EVERY_S = 0.05
MOST_QUEUED_BYTES = 64 * 1024 * 1024
_SIGNAL_BYTES = 400  # memory of a queued signal, without its URL


class InboxWriter:
    """Writes signals to the inbox in groups, from an event loop."""

    def __init__(self, inbox: Inbox, every_s: float = EVERY_S) -> None:
        self._inbox, self._every_s = inbox, every_s
        self._thread = ThreadPoolExecutor(1, "inbox")
        self._queue: list[Signal] = []
        self._queue_bytes = 0
        self._written: asyncio.Future[bool] | None = None  # resolved when the queued group is written
        self._writing: asyncio.Future[bool] | None = None  # the same for the group that is being written
        self._last_at = 0.0
        self.failed = ""  # why the last group could not be written; "" if it was written

    @property
    def has_room(self) -> bool:
        """Whether the queue accepts more. If not, callers must refuse senders; one more request's signals still fit."""
        return self._queue_bytes < MOST_QUEUED_BYTES

    def put(self, signals: Sequence[Signal]) -> "asyncio.Future[bool]":
        """Queue signals. The future resolves to whether they are on disk.

        Callers must not cancel the future (use `asyncio.shield`), because other callers await it too.
        """
        loop = asyncio.get_running_loop()
        self._queue += signals
        self._queue_bytes += sum(len(signal.url) + _SIGNAL_BYTES for signal in signals)
        if self._written is None:
            self._written = loop.create_future()
            if self._writing is None:
                self._begin_soon(loop)
        return self._written

    async def settled(self) -> bool:
        """Wait until all signals put before are written; return False if some of them could not be written."""
        under_way = [future for future in (self._writing, self._written) if future is not None]
        return all([await asyncio.shield(future) for future in under_way])

    async def close(self) -> None:
        """Write the remaining signals, and end the thread."""
        while self._written is not None or self._writing is not None:
            await self.settled()
        self._thread.shutdown()

    def _begin_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_at(self._last_at + self._every_s, self._begin)

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        group, written = self._queue, self._written
        assert written is not None
        self._queue, self._queue_bytes, self._written = [], 0, None
        self._writing, self._last_at = written, loop.time()
        writing = loop.run_in_executor(self._thread, self._inbox.put, group)
        writing.add_done_callback(lambda done: self._end(written, done.exception()))

    def _end(self, written: "asyncio.Future[bool]", error: BaseException | None) -> None:
        self._writing = None
        self.failed = "" if error is None else f"signals could not be written: {error}"
        if error is None or isinstance(error, sqlite3.Error):  # a full disk: senders get an error, and may retry
            written.set_result(error is None)
        else:
            written.set_exception(error)
        if self._written is not None:
            self._begin_soon(asyncio.get_running_loop())
