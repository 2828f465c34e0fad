"""The keeper writes the folder of a crawl: it takes batches and makes them durable. It is the store without the process.

Law: the archive is written first, then the index, then the database. The database records the lengths of the other two.
All bytes that it has recorded are therefore on disk, and bytes beyond the recorded lengths are cut off, at the latest at
the next start.
"""

import heapq
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from sqlite3 import OperationalError

from trapline.crawler.engine.records import Batch
from trapline.crawler.files.layout import ARCHIVES, DATABASE, INDEX, REBUILT_INDEX
from trapline.crawler.store.archive import Archive, uncommitted
from trapline.crawler.store.damaged import answers_after, keep_file, keep_tail
from trapline.crawler.store.database import INDEXES, Database
from trapline.crawler.store.fetch_log import FetchLogWriter
from trapline.crawler.store.filing import Filing, Row
from trapline.crawler.store.frames import Closed
from trapline.crawler.store.settings import StoreSettings
from trapline.crawler.store.tail import Tail, cut_back
from trapline.errors import ConfigError, InvariantError
from trapline.output import sync

# ---- Sorting a file of lines in bounded memory: sorted pieces, then one merge. The order is that of bytes, as pywb requires.
#
# The sorted file has the same lines and hence the same length, and replaces the old file by a rename. If the process is
# killed at any moment, one of the two files is there, and both have the length that the database knows.

PIECE_BYTES = 48_000_000  # of text; as Python objects the lines take a quarter more


def sort_lines(path: Path, piece_bytes: int = PIECE_BYTES) -> None:
    pieces = _sorted_pieces(path, piece_bytes)
    with ExitStack() as stack, _hidden(path, "sorted").open("wb") as file:
        file.writelines(heapq.merge(*(stack.enter_context(piece.open("rb")) for piece in pieces)))
        file.flush()
        os.fsync(file.fileno())
    os.replace(_hidden(path, "sorted"), path)
    sync(path.parent)
    remove_leftovers(path)


def remove_leftovers(path: Path) -> None:
    """Delete the temporary files that a killed sort left behind."""
    for leftover in path.parent.glob(f".{path.name}.*"):
        leftover.unlink()


def _sorted_pieces(path: Path, piece_bytes: int) -> list[Path]:
    pieces: list[Path] = []
    with path.open("rb") as unsorted:
        while lines := unsorted.readlines(piece_bytes):
            lines.sort()
            pieces.append(_hidden(path, f"piece-{len(pieces)}"))
            with pieces[-1].open("wb") as file:
                file.writelines(lines)
    return pieces


def _hidden(path: Path, suffix: str) -> Path:
    return path.with_name(f".{path.name}.{suffix}")


# ---- Reopening a folder, before the first batch: the files are made to match the database.
#
# After a kill or a power cut, the archive and the index may be longer than the committed part, and there may be an
# archive that the database does not know. Both are removed, so that every archive can be read to its end. After an
# ordinary crash these bytes are an interrupted commit, whose pages are fetched again. But if the database was restored
# from an older copy, or lost its write-ahead log (crawl.db-wal), they are the only copy of their pages. The store
# cannot tell the two cases apart, so readable responses are kept (damaged.py).


def reopen(folder: Path, database: Database, prefix: str) -> None:
    (folder / ARCHIVES).mkdir(exist_ok=True)
    _take_rebuilt_index(folder, database)
    remove_leftovers(folder / INDEX)
    _keep_uncommitted(folder, database, prefix)
    cut_to_committed(folder, database, [])
    database.set_meta("closed", None)
    for name in INDEXES:  # an index makes each insert ten times as expensive; they are rebuilt when the crawl closes
        database.connection.execute(f"drop index if exists {name}")


def _take_rebuilt_index(folder: Path, database: Database) -> None:
    """Do the last step of a repair that was killed: take the rebuilt index.

    If the database does not have the length of the rebuilt index, the old index stays.
    """
    rebuilt = folder / REBUILT_INDEX
    if rebuilt.is_file() and rebuilt.stat().st_size == database.index_bytes():
        rebuilt.replace(folder / INDEX)
        sync(folder)


def _keep_uncommitted(folder: Path, database: Database, prefix: str) -> None:
    known = database.archives()
    for _, name, length in known:
        path = folder / ARCHIVES / name
        if path.is_file() and path.stat().st_size > length and any(answers_after(path, length)):
            keep_tail(folder, path, length)
    for path in uncommitted(folder / ARCHIVES, known, prefix):
        if any(answers_after(path, 0)):
            keep_file(folder, path)
        else:
            path.unlink()


def cut_to_committed(folder: Path, database: Database, begun: Iterable[Path]) -> None:
    """Remove the bytes that were written after the last commit. `begun`: the archives that were begun after it."""
    for archive in database.archives():
        cut_back(folder / ARCHIVES / archive.name, archive.bytes)
    for path in begun:
        path.unlink()
    sync(folder / ARCHIVES)
    cut_back(folder / INDEX, database.index_bytes())


# ---- Closing a folder at the end of a crawl or of one run of it: building what is too costly to maintain while crawling.
#
# Everything is committed before. If the process is killed here, only this work is lost, and the next close does it again.


def finish(folder: Path, database: Database, report: Callable[[str], None]) -> Closed:
    began = time.perf_counter()
    for name, statement in INDEXES.items():
        report(f"building the index {name}")
        database.connection.execute(statement)
    report("moving the write-ahead log into the database")
    with suppress(OperationalError):  # a reader holds the log: then the last connection to close moves it
        database.connection.execute("pragma wal_checkpoint(truncate)")
    indexed = time.perf_counter()
    report("sorting the archive's index")
    sort_lines(folder / INDEX)
    database.set_meta("closed", repr(time.time()))
    return _totals(database, indexed - began, time.perf_counter() - indexed)


def _totals(database: Database, index_s: float, sort_s: float) -> Closed:
    archives = database.archives()
    fetches = database.connection.execute("select coalesce(max(seq), 0) from fetch").fetchone()[0]
    warc_bytes = sum(archive.bytes for archive in archives)
    return Closed(database.last_batch(), fetches, len(archives), warc_bytes, index_s, sort_s)


# ---- The keeper.

_IN_TIME = 1  # batches in one commit; with more of them the store is behind, and compresses less to catch up


class Keeper:
    def __init__(self, folder: Path, settings: StoreSettings) -> None:
        self._folder = folder
        self._database = Database(folder / DATABASE)
        reopen(folder, self._database, settings.name)
        self._archive = Archive(folder / ARCHIVES, settings, self._database.archives())
        self._index = Tail(folder / INDEX, self._database.index_bytes())
        sync(folder)  # makes the names of both files durable
        self._filing = Filing(self._archive, self._index, settings, self._database.kept)
        self._fetch_log = FetchLogWriter(folder, settings, self._database.connection)
        self.last_batch = self._database.last_batch()

    def commit(self, batches: Sequence[Batch]) -> None:
        """Make all of these batches durable, or none of them.

        If the archive or the index cannot be written, both are cut back at once. If the database fails, we cannot know
        whether its log has the batches. The next start finds out: it cuts the files to the lengths that SQLite returns
        then.
        """
        try:
            fetches, robots = self._file(batches)
        except BaseException:
            with suppress(OSError, sqlite3.Error, ConfigError):
                cut_to_committed(self._folder, self._database, self._archive.begun)
            raise
        self._database.commit(batches, fetches, robots, self._archive.lengths(), self._index.length)
        self._fetch_log.committed(batches, fetches, self._filing.profiles)
        self._filing.committed()

    def warc_bytes(self) -> int:
        return self._archive.total_bytes()

    def close(self, report: Callable[[str], None]) -> Closed:
        """Finish the folder at the end of a run: build the indexes of the database, and sort the index of the archives."""
        self._archive.close()
        self._index.close()
        closed = finish(self._folder, self._database, report)
        self._database.close()
        return closed

    def leave(self) -> None:
        """Close the files without finishing the folder, because the loop has ended. Only committed batches remain."""
        self._archive.close()
        self._index.close()
        self._database.close()

    def _file(self, batches: Sequence[Batch]) -> tuple[list[Row], list[Row]]:
        """Archive and index these batches durably, and return their rows of `fetch` and of `robots`."""
        for batch in batches:
            if batch.number != self.last_batch + 1:
                raise InvariantError(f"batch {batch.number} came after batch {self.last_batch}")
            self.last_batch = batch.number
        for page, copy in (adopted for batch in batches for adopted in batch.copies):
            self._filing.adopted(page, copy)
        self._filing.hurry(len(batches) > _IN_TIME)
        fetches = [self._filing.page(fetched) for batch in batches for fetched in batch.fetches]
        robots = [self._filing.robots(fetched) for batch in batches for fetched in batch.robots]
        self._archive.flush()
        self._index.flush()
        return fetches, robots
