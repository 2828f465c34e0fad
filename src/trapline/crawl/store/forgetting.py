"""What a crawl of weeks does not keep for ever: logs behind its snapshots, signals of long ago, most of the progress of long ago.

It runs inside the transaction of a commit and takes a bounded number of rows each time, so that no commit is long. What it frees in
the database is used again: the file does not grow by it, and does not shrink either.

Laws
- The log of every batch after the older of the last two snapshots is there, and so is that of the last batch.
- The newest signal of the inbox stays, and the newest that the crawl read itself: by their ids a resume knows what it has heard.
"""

import sqlite3
from collections.abc import Sequence

from trapline.crawl.records import Batch

SIGNALS_KEPT_S = 30 * 86_400.0
DENSE_S = 3_600.0  # progress that is older has one row a minute
_MINUTE_S = 60.0
_MOST_BATCHES = 1_000  # whose logs are deleted in one commit
_MOST_SIGNALS = 20_000  # looked at once a minute

# Ids of the inbox rise with time, the crawl's own fall.
_SIGNALS = """delete from signal where at < ?1 and id < (select max(id) from signal)
and id in (select id from signal where id > 0 order by id limit ?2)"""
_OWN_SIGNALS = """delete from signal where at < ?1 and id > (select min(id) from signal)
and id in (select id from signal where id < 0 order by id desc limit ?2)"""
_PROGRESS = """delete from progress where at < ?
and rowid not in (select min(rowid) from progress group by cast(at / 60 as integer))"""
_LOGS = "delete from journal where batch <= ?1 and batch < (select max(batch) from journal) and batch < ?2"


class Forgetting:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._forget = 0  # logs up to this batch
        self._signals_at = self._progress_at = 0.0  # when these were last looked through

    def after(self, batches: Sequence[Batch]) -> None:
        """These are in the database, and what they make superfluous may go."""
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
            self._connection.execute(_PROGRESS, (now - DENSE_S,))
