"""The end of a crawl, or of a stretch of it: what is costly to keep in order while crawling is put in order now.

All is committed before; whoever is killed here loses nothing but this work, which the next close does again.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from sqlite3 import OperationalError
from typing import NamedTuple

from trapline.crawl.store.database import INDEXES, Database
from trapline.crawl.store.folder import INDEX
from trapline.crawl.store.sorting import sort_lines


class Closed(NamedTuple):
    """Totals, over the whole life of the crawl."""

    batches: int
    fetches: int  # rows, of whatever result
    archives: int
    warc_bytes: int
    index_s: float  # to make the database's indexes
    sort_s: float  # to sort index.cdxj


def finish(folder: Path, database: Database, report: Callable[[str], None]) -> Closed:
    began = time.perf_counter()
    for name, statement in INDEXES.items():
        report(f"making the index {name}")
        database.connection.execute(statement)
    report("moving the log into the database")
    with suppress(OperationalError):  # a reader holds it: then whoever closes last does it
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
