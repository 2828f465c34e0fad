"""The repair of one archive: records that take the place of damaged ones, and rows that no longer point at them.

All damages of an archive are repaired together, in an order that a crash may break off anywhere: first the damaged bytes are kept elsewhere
(damaged.py), then one transaction changes the rows, then the places are filled. What is damaged is found by verify.py.
"""

import json
import os
import sqlite3
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from trapline.crawl.options import CrawlOptions
from trapline.crawl.store.damaged import keep_bytes
from trapline.crawl.store.folder import DATABASE
from trapline.crawl.store.members import Damage, filler
from trapline.output import sync

_ROOM_BYTES = 4096  # in which a filler fits for certain
_MOST_BYTES = 1 << 24  # of a filler, and less than as much again: it is made in memory


class ArchivedAnswer(NamedTuple):
    """An answer as the database knows it."""

    file: int
    offset: int
    length: int
    url: str | None  # None: a robots.txt, whose URL its record alone has
    digest: bytes | None
    status: int
    mime: str
    started: float
    page: int | None
    seq: int  # of `fetch`, or of `robots`


@dataclass(slots=True)
class _DamagedSpan:
    """Damages without a readable record between them."""

    offset: int
    end: int
    rows: list[ArchivedAnswer]  # of the answers that begin in it

    @property
    def has_room(self) -> bool:
        """Return whether a filler is as short as this."""
        return filler(min(self.end - self.offset, _ROOM_BYTES), 0.0) is not None


class ArchiveRepair:
    """`path`: the archive, which may be missing."""

    def __init__(self, folder: Path, path: Path) -> None:
        self._folder, self._path = folder, path
        self._spans: list[_DamagedSpan] = []  # in order
        self._replaced: list[ArchivedAnswer] = []

    def add_damage(self, damage: Damage, rows: Iterable[ArchivedAnswer]) -> None:
        """Note a damage that lies behind all others so far. `rows`: of the answers that begin in it."""
        if not (self._spans and self._spans[-1].end == damage.offset):
            self._spans.append(_DamagedSpan(damage.offset, damage.offset, []))
        self._spans[-1].end = damage.offset + damage.length
        self._spans[-1].rows += rows

    def add_replaced(self, rows: Iterable[ArchivedAnswer]) -> None:
        """Note rows of answers that an earlier repair has replaced."""
        self._replaced += rows

    def can_fill(self, damage: Damage) -> bool:
        """Return whether a record fits into the span of this damage. Call it when all damages are noted."""
        return self._spans[bisect_right(self._spans, damage.offset, key=lambda span: span.offset) - 1].has_room

    def apply(self) -> None:
        spans = [span for span in self._spans if span.has_room]
        if self._path.exists():
            for span in spans:
                keep_bytes(self._folder, self._path, span.offset, span.end)
        self._forget([row for span in spans for row in span.rows] + self._replaced)
        if spans:
            self._fill(spans)

    def _fill(self, spans: Iterable[_DamagedSpan]) -> None:
        self._path.parent.mkdir(exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            for offset, length in (piece for span in spans for piece in _pieces(span)):
                fill = filler(length, time.time())
                assert fill is not None, "no piece is too short"
                _write_at(descriptor, fill, offset)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync(self._path.parent)
        sync(self._folder)

    def _forget(self, rows: Sequence[ArchivedAnswer]) -> None:
        """These answers have no record any more. A crawl that fetches pages again asks for them without conditions."""
        pages = {row.page for row in rows if row.page is not None}
        with closing(sqlite3.connect(self._folder / DATABASE)) as database, database:
            for table, is_page in (("fetch", True), ("robots", False)):
                statement = f"update {table} set file = null, offset = null, length = null where seq = ?"
                database.executemany(statement, ((row.seq,) for row in rows if (row.page is not None) == is_page))
            kept = dict(database.execute("select key, value from meta"))
            if pages and CrawlOptions.from_json(kept["options"]).refresh is not None:
                whole = json.dumps(sorted(pages | set(json.loads(kept.get("whole", "[]")))))
                database.execute("replace into meta values ('whole', ?)", (whole,))


def _pieces(span: _DamagedSpan) -> Iterator[tuple[int, int]]:
    """Offset and length of the fillers of a span. The last one has what is left, which could be too short for one of its own."""
    at = span.offset
    while span.end - at >= 2 * _MOST_BYTES:
        yield at, _MOST_BYTES
        at += _MOST_BYTES
    yield at, span.end - at


def _write_at(descriptor: int, data: bytes, offset: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, offset)
        data, offset = data[written:], offset + written
