"""The inbox: every signal that was accepted, in order, on disk. Who fills it: the endpoint, `refresh accesses`, and the crawl for
feeds that it read. Who empties it: the crawl, which remembers up to which id it has taken. Nothing here judges a signal or knows
whether the crawl has heard of its page.

Laws
- What `put` returned from is on disk, all of it; a `put` that failed left nothing.
- `take` gives signals in order of id; an id is never given twice, also after old ones were forgotten.
- A signal that nobody vouched for has little force: an unverified CHANGED carries p <= UNVERIFIED_P.
"""

import math
import re
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from trapline.errors import ConfigError, InvariantError
from trapline.fetch.urls import origin
from trapline.signals.database import BUSY_S, DATABASE, Transaction, opened, urls_of

CHANGED, POINT, ACCESS = "changed", "point", "access"
CHANNELS = ("indexnow", "websub", "sitemap", "feed", "schedule", "cache", "api")  # their place is kept on disk
UNVERIFIED_P = 0.05

MOST_TOPICS = 100_000
MOST_TOPICS_OF_ONE_SITE = 1_000
_NUMBERS = {channel: number for number, channel in enumerate(CHANNELS)}


_File = tuple[int, int] | None


class Signal(NamedTuple):
    """CHANGED: the page changed at `moment` (of a ping: when it came). POINT: it will, with probability p. ACCESS: p accesses then."""

    id: int  # given by `put`; whatever stands here before does not count
    received: float
    channel: str
    url: str
    kind: str
    moment: float
    p: float
    verified: bool


class Inbox:
    """`DIR/signals.db`, made if there is none; `ConfigError` if it is not ours. May be used by one thread at a time."""

    def __init__(self, folder: Path, busy_s: float = BUSY_S) -> None:
        """`busy_s`: how long a write waits for another writer."""
        self._folder, self._busy_s = folder, busy_s
        self._open()

    def _open(self) -> None:
        self._files: list[_File] = []  # of none that is open
        self._connection = _opened(self._folder, self._busy_s)
        self._files = [_file_at(place) for place in self._places]

    @property
    def _places(self) -> list[Path]:
        """The database, and what SQLite writes beside it."""
        return [self._folder / f"{DATABASE}{ending}" for ending in ("", "-wal", "-shm")]

    @property
    def is_gone(self) -> bool:
        """Whether the file was deleted or replaced since it was opened: what others write does not come here."""
        return not self._files or _file_at(self._places[0]) != self._files[0]

    def reopen(self) -> None:
        """The file that is there now; made, or `ConfigError`, as at first. If it fails, it may be tried again."""
        before, self._files = self._files, []
        self._connection.close()
        for place, file in zip(self._places[1:], before[1:], strict=True) if before else ():
            if file is not None and _file_at(place) == file:  # of the old one; it would be written into the new one
                place.unlink()
        self._open()

    def put(self, signals: Iterable[Signal]) -> None:
        """All of them, in one transaction."""
        rows = [_row(signal) for signal in signals]
        with Transaction(self._connection):
            self._connection.executemany(_INSERT, rows)

    def put_batch(self, digest: str, name: str, signals: Iterable[Signal]) -> None:
        """The same, for a batch that must not come in twice by mistake: it is known by this digest from then on."""
        rows = [_row(signal) for signal in signals]
        with Transaction(self._connection):
            self._connection.execute("replace into batch values (?, ?, ?, ?)", (digest, name, time.time(), len(rows)))
            self._connection.executemany(_INSERT, rows)

    def has_batch(self, digest: str) -> bool:
        return self._connection.execute("select 1 from batch where digest = ?", (digest,)).fetchone() is not None

    def add_tally(self, tally: Iterable[tuple[int, str, str, int]]) -> None:
        """(hour, channel, outcome, signals), added to what was counted before."""
        with Transaction(self._connection):
            self._connection.executemany(_TALLY, tally)

    def tally(self) -> list[tuple[int, str, str, int]]:
        """What became of all signals that ever came, by hour, channel and outcome."""
        return self._connection.execute("select * from tally order by hour, channel, outcome").fetchall()

    def take(self, after: int, most: int) -> list[Signal]:
        """Up to `most` signals with ids above `after`, in order; none: there are no more. They stay."""
        while rows := self._connection.execute(_SELECT, (after, most)).fetchall():
            signals = [_signal(row) for row in rows if _is_sound(row)]
            if signals:
                return signals
            after = rows[-1][0]
        return []

    def p_of(self, number: int) -> float:
        """Of the signal with this id; 0: it was forgotten."""
        found = self._connection.execute("select p from signal where id = ?", (number,)).fetchone()
        return found[0] if found else 0.0

    @property
    def last(self) -> int:
        """The highest id ever given; 0: none was."""
        found = self._connection.execute("select seq from sqlite_sequence where name = 'signal'").fetchone()
        return found[0] if found else 0

    @property
    def identity(self) -> str:
        """Another one, if the file was moved away and made anew: its ids begin at 1 again."""
        found = self._connection.execute("select value from meta where key = 'created'").fetchone()
        return found[0] if found else ""

    def forget(self, received_before: float) -> int:
        """How many were older, and are gone."""
        with Transaction(self._connection):
            return self._connection.execute("delete from signal where received < ?", (received_before,)).rowcount

    def topic(self, url: str, hub: str) -> None:
        """The crawl found that `url` has this hub; whoever runs the endpoint is subscribed to it."""
        with Transaction(self._connection):
            limits = (MOST_TOPICS, *urls_of(origin(url)), MOST_TOPICS_OF_ONE_SITE)
            self._connection.execute(_TOPIC, (url, hub, time.time(), *limits))

    def topics(self) -> list[tuple[str, str]]:
        """Topics with their hubs, those found first before the others."""
        return self._connection.execute("select url, hub from topic order by found, url").fetchall()

    def close(self) -> None:
        self._connection.close()


def _opened(folder: Path, busy_s: float) -> sqlite3.Connection:
    connection = opened(folder, busy_s)
    try:
        connection.execute("select 1 from signal limit 0")
    except sqlite3.Error as error:
        connection.close()
        raise ConfigError(f"{folder / DATABASE}: it is damaged ({error}); move the file away") from None
    return connection


def _file_at(place: Path) -> _File:
    """Which file has the name now. As long as it is open, no other gets its number. None: there is none."""
    try:
        found = place.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character: it has no UTF-8


def _is_sound(row: tuple[Any, ...]) -> bool:
    """Whether it is a signal as we write them. A later version may have more channels, and users may have written anything."""
    _, received, channel, url, kind, moment, p, _ = row
    numbers = all(type(number) in (float, int) and math.isfinite(number) for number in (received, moment, p))
    known = type(channel) is int and 0 <= channel < len(CHANNELS) and kind in (CHANGED, POINT, ACCESS)
    return numbers and known and type(url) is str and not _SURROGATE.search(url)


def _signal(row: tuple[Any, ...]) -> Signal:
    return Signal(*row)._replace(channel=CHANNELS[row[2]], verified=bool(row[7]))


def _row(signal: Signal) -> tuple[float, int, str, str, float, float, bool]:
    if signal.kind == CHANGED and not signal.verified and signal.p > UNVERIFIED_P:
        raise InvariantError(f"nobody vouched for a signal of {signal.url}, and it carries p = {signal.p}")
    number = _NUMBERS[signal.channel]
    return signal.received, number, signal.url, signal.kind, signal.moment, signal.p, signal.verified


_INSERT = "insert into signal (received, channel, url, kind, moment, p, verified) values (?, ?, ?, ?, ?, ?, ?)"
_SELECT = "select id, received, channel, url, kind, moment, p, verified from signal where id > ? order by id limit ?"
_TALLY = (
    "insert into tally values (?, ?, ?, ?) "
    "on conflict (hour, channel, outcome) do update set signals = signals + excluded.signals"
)
# A topic that moved to another hub is one topic; beyond the most, new ones are left out.
_TOPIC = (
    "insert into topic select ?1, ?2, ?3 where ((select count(*) from topic) < ?4 "
    "and (select count(*) from topic where url >= ?5 and url < ?6) < ?7) or ?1 in (select url from topic) "
    "on conflict (url) do update set hub = excluded.hub"
)
