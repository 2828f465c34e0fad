"""The progress of a crawl over time, as curves of at most some hundred points."""

import math
import sqlite3
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.files.layout import DATABASE
from trapline.dashboard.folder_reader import finite, reading

NAMES = ("seconds", "pages", "errors", "bytes", "known", "waiting", "active", "quality")
_AT = NAMES.index("seconds")
MOST_POINTS = 2_000

Row = tuple[float, ...]


def history(parts: Sequence[Path], points: int, live: CrawlProgress | None) -> dict[str, list[Any]]:
    """Return the curves by name. `live`: the progress after the last commit, if the loop reports it."""
    every = [_rows(part, points) for part in parts if (part / DATABASE).exists()]
    rows = every[0] if len(every) == 1 else _together([rows for rows in every if rows], points)
    if live is not None and (not rows or live.seconds > rows[-1][_AT]):
        rows = [*rows, tuple(float(getattr(live, name)) for name in NAMES)]
    columns = list(zip(*_from_the_beginning(rows), strict=True))
    return {name: finite(list(column)) for name, column in zip(NAMES, columns, strict=True)}


def _from_the_beginning(rows: list[Row]) -> list[Row]:
    """Add a first moment at 0, when nothing was fetched. Its pages known and waiting and its visits are those of the first row."""
    first = dict(zip(NAMES, rows[0] if rows else [0.0] * len(NAMES), strict=True))
    kept = ("known", "waiting", "active")
    return [tuple(first[name] if name in kept else 0.0 for name in NAMES), *rows]


def _rows(part: Path, points: int) -> list[Row]:
    with reading(part) as database:
        return _spaced(database, points)


def _spaced(database: sqlite3.Connection, points: int) -> list[Row]:
    (last,) = database.execute("select max(rowid) from progress").fetchone()
    step = max(1, math.ceil((last or 0) / points))
    sql = f"select {', '.join(NAMES)} from progress where rowid % ? = 0 or rowid = ? order by rowid"
    return database.execute(sql, (step, last)).fetchall()


def _together(every: list[list[Row]], points: int) -> list[Row]:
    """Return the sums of several partitions at common moments. A partition stands at its last row before each moment."""
    if not every:
        return []
    end = max(rows[-1][_AT] for rows in every)
    moments = [end * number / points for number in range(1, points + 1)]
    return [(moment, *_sums(every, moment)) for moment in moments]


def _sums(every: list[list[Row]], moment: float) -> list[float]:
    stands = [rows[at - 1] for rows in every if (at := bisect_right(rows, moment, key=lambda row: row[_AT]))]
    return [sum(row[column] for row in stands) for column in range(1, len(NAMES))]
