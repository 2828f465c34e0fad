"""A crawl's folder while it is written: batches in, durable files out. All of the store, apart from its being a process.

The order is the law: archive, then index, then database. The database says how long the other two are; so what it says
is there is there, and what is there beyond that is cut off (recovery.py), at the latest at the next start.
"""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from trapline.crawl.records import Batch
from trapline.crawl.store.archive import Archive
from trapline.crawl.store.closing import Closed, finish
from trapline.crawl.store.database import Database
from trapline.crawl.store.filing import Filing, Row
from trapline.crawl.store.folder import ARCHIVES, DATABASE, INDEX
from trapline.crawl.store.recovery import cut_to_committed, reopen
from trapline.crawl.store.settings import StoreSettings
from trapline.crawl.store.tail import Tail
from trapline.errors import ConfigError, InvariantError
from trapline.output import sync

_IN_TIME = 1  # batches that come together: with more, the store is behind, and compresses less to catch up


class Keeper:
    def __init__(self, folder: Path, settings: StoreSettings) -> None:
        self._folder = folder
        self._database = Database(folder / DATABASE)
        reopen(folder, self._database)
        self._archive = Archive(folder / ARCHIVES, settings, self._database.archives())
        self._index = Tail(folder / INDEX, self._database.index_bytes())
        sync(folder)  # both names
        self._filing = Filing(self._archive, self._index, settings, self._database.kept)
        self.last_batch = self._database.last_batch()

    def commit(self, batches: Sequence[Batch]) -> None:
        """Make all of these batches durable, or none.

        If the archive or the index cannot be written, both are cut back at once. If the database fails, nobody knows whether the
        batches are in its log, and the next start finds out: what SQLite then shows says how long the files are.
        """
        try:
            fetches, robots = self._file(batches)
        except BaseException:
            with suppress(OSError, sqlite3.Error, ConfigError):
                cut_to_committed(self._folder, self._database, self._archive.begun)
            raise
        self._database.commit(batches, fetches, robots, self._archive.lengths(), self._index.length)
        self._filing.committed()

    def warc_bytes(self) -> int:
        return self._archive.total_bytes()

    def close(self, report: Callable[[str], None]) -> Closed:
        """The crawl has ended for now: indexes, and the archive's index in order."""
        self._archive.close()
        self._index.close()
        closed = finish(self._folder, self._database, report)
        self._database.close()
        return closed

    def leave(self) -> None:
        """The loop is gone. What was committed is all there is."""
        self._archive.close()
        self._index.close()
        self._database.close()

    def _file(self, batches: Sequence[Batch]) -> tuple[list[Row], list[Row]]:
        """Archive and index these batches durably; their rows of `fetch` and of `robots`."""
        for batch in batches:
            if batch.number != self.last_batch + 1:
                raise InvariantError(f"batch {batch.number} came after batch {self.last_batch}")
            self.last_batch = batch.number
        for page, copy in (one for batch in batches for one in batch.copies):
            self._filing.adopted(page, copy)
        self._filing.hurry(len(batches) > _IN_TIME)
        fetches = [self._filing.page(fetched) for batch in batches for fetched in batch.fetches]
        robots = [self._filing.robots(fetched) for batch in batches for fetched in batch.robots]
        self._archive.flush()
        self._index.flush()
        return fetches, robots
