"""A crawl's database as of one moment: its options, its scope, and columns of numbers as arrays.

For programs that look at a crawl as a whole: the audit, the summary, `report`, `status`, `explain` and `export`. This module
writes nothing, holds no lock, and may be used while the crawl runs: SQLite shows each transaction one commit. A resume and
the loop read by crawler/files/reading.py, row by row. It does not know how the store writes the folder.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawler.discovery.scope import Scope
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.stop_reasons import DRAINED, MAX_BYTES, MAX_PAGES, MAX_TIME
from trapline.crawler.files.handled import handled_files
from trapline.crawler.files.layout import SUMMARY, connect
from trapline.crawler.handler.unhandled import has_unhandled
from trapline.crawler.handler.user_handler import NO_HANDLER
from trapline.crawler.store.database import SEED

Longs = NDArray[np.int64]
_ROWS_AT_ONCE = 1_000_000


def open_database(folder: Path) -> sqlite3.Connection:
    """Open the database of a crawl read-only, in a transaction, so that all reads see one moment.

    Raise `ConfigError` if there is no database that can be read.
    """
    database = connect(folder)
    database.execute("pragma cache_size = -200000")  # in kB; joins read pages at random, for which 2 MB are too small
    database.execute("begin")
    return database


def meta(database: sqlite3.Connection) -> dict[str, str]:
    return dict(database.execute("select key, value from meta"))


def options(database: sqlite3.Connection) -> CrawlOptions:
    """Return the options of the crawl."""
    return CrawlOptions.from_json(meta(database).get("options", ""))


def scope(database: sqlite3.Connection, accept: Callable[[str], bool] | None = None) -> Scope:
    """Return the scope of the crawl, including the sites that its seeds redirect to. `accept`: rejects URLs that it admits."""
    kept = meta(database)
    found = CrawlOptions.from_json(kept.get("options", "")).scope_of_crawl(accept)
    for key, redirects in kept.items():
        if key.startswith(SEED):
            found.add_seed(key.removeprefix(SEED), int(redirects))
    return found


def columns(
    database: sqlite3.Connection, table: str, expressions: Sequence[str], joins: str = ""
) -> Iterator[list[str]]:
    """Yield blocks of rows. A block has for each expression one text of all its values, separated by commas; no value may be null.

    SQLite joins a column into text and numpy parses it in half the time that Python takes to make a tuple of every row.
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


# ---- Whether a crawl has anything left to do. A resume checks this first, from the folder alone, so that it changes nothing in vain.

_GOALS = {
    MAX_PAGES: ("max_pages", "--max-pages"),
    MAX_TIME: ("max_seconds", "--max-time"),
    MAX_BYTES: ("max_bytes", "--max-bytes"),
}


class Ended(NamedTuple):
    line: str  # for the user
    summary: dict[str, Any]


def ended(folder: Path, finds_more: bool = False, handler: str | None = None, **goals: float) -> Ended | None:
    """Return how the crawl ended, if a resume with these goals would fetch nothing and hand over nothing; otherwise None.

    `finds_more`: the resumed crawl would refetch pages, or its scope may be wider. `handler`: the one that it would get. None:
    its own, if it has one.
    """
    with closing(open_database(folder)) as database:
        kept = meta(database)
    summary = _whole_summary(folder, kept)
    if summary is None or _awaits_handler(folder, handler or CrawlOptions.from_json(kept.get("options", "")).handler):
        return None
    why = kept.get("stopped_by")
    if why == DRAINED and finds_more:
        return None
    if why == DRAINED:
        return Ended(f"the crawl in {folder} has ended: nothing is left to fetch", summary)
    if why not in _GOALS:
        return None
    name, option = _GOALS[why]
    goal = getattr(CrawlOptions.from_json(kept.get("options", "")), name)
    if goals.get(name, goal) > goal:
        return None
    return Ended(
        f"{folder}: the crawl has reached its {option} {goal:,.15g}; to continue, give a higher {option}", summary
    )


def _awaits_handler(folder: Path, handler: str | None) -> bool:
    """Return whether there are pages for the handler, in the folder or in those of its partitions."""
    if handler in (None, NO_HANDLER):
        return False
    return any(has_unhandled(path.parent) for path in handled_files(folder))


def _whole_summary(folder: Path, kept: dict[str, str]) -> dict[str, Any] | None:
    """Return the summary if it is that of the last run; otherwise None: that run was killed, or is still going on."""
    try:
        summary: dict[str, Any] = json.loads((folder / SUMMARY).read_text())
        return summary if summary["runs"] == int(kept["runs"]) and "closed" in kept else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
