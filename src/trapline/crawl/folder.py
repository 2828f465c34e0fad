"""A crawl's folder, to be looked at: its database opened read-only, what its options say, and whole columns of numbers.

Whoever reads a crawl begins here: the audit, the summary, `report`, `status` and `explain`. It writes nothing, holds no lock
and may be used while the crawl runs: SQLite shows each reader the last commit. How the folder is written is the store's business.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trapline.crawl.options import CrawlOptions
from trapline.crawl.scope import Scope
from trapline.crawl.store.database import SEED
from trapline.crawl.store.folder import connect

Longs = NDArray[np.int64]
_ROWS_AT_ONCE = 1_000_000


def opened(folder: Path) -> sqlite3.Connection:
    """The crawl's database as it is at one moment, read-only; `ConfigError` if there is none that we can read."""
    database = connect(folder)
    database.execute("pragma cache_size = -200000")  # kB: a join looks pages up at random, and 2 MB are soon read again
    database.execute("begin")
    return database


def meta(database: sqlite3.Connection) -> dict[str, str]:
    return dict(database.execute("select key, value from meta"))


def options(database: sqlite3.Connection) -> CrawlOptions:
    """What the crawl was told."""
    return CrawlOptions.from_json(meta(database)["options"])


def scope(database: sqlite3.Connection) -> Scope:
    """What belongs to the crawl, with what its seeds redirect to."""
    kept = meta(database)
    found = CrawlOptions.from_json(kept["options"]).scope_of_crawl()
    for key, redirects in kept.items():
        if key.startswith(SEED):
            found.add_seed(key.removeprefix(SEED), int(redirects))
    return found


def columns(
    database: sqlite3.Connection, table: str, expressions: Sequence[str], joins: str = ""
) -> Iterator[list[str]]:
    """For a stretch of the table's rows at a time, each expression's values as one text, commas between them; none may be null.

    SQLite joins a column into text, and numpy reads it, in half the time that Python takes to make a tuple of every row.
    """
    joined = ", ".join(f"group_concat({expression})" for expression in expressions)
    query = f"select {joined} from {table} {joins} where {table}.rowid between ? and ?"
    (last,) = database.execute(f"select max(rowid) from {table}").fetchone()
    for first in range(0, (last or -1) + 1, _ROWS_AT_ONCE):
        texts = database.execute(query, (first, first + _ROWS_AT_ONCE - 1)).fetchone()
        if texts[0] is not None:
            yield list(texts)


def numbers(text: str) -> Longs:
    return np.fromstring(text, np.int64, sep=",")
