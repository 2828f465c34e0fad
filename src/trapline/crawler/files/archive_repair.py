"""Repair of one archive: fillers replace damaged records, and database rows no longer point at these records.

All damages of an archive are repaired together, in an order that a crash may interrupt anywhere: first the damaged
bytes are copied elsewhere (crawler/store/damaged.py), then one transaction changes the rows, then fillers are written. This module
does not look for damage; archive_check.py does.
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

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files.archive_reader import Damage, filler
from trapline.crawler.files.layout import DATABASE
from trapline.crawler.store.damaged import keep_bytes
from trapline.output import sync

_ROOM_BYTES = 4096  # a filler certainly fits into this
_MOST_BYTES = 1 << 24  # fillers are made in memory, so they have this length; the last one has less than twice that


class ArchivedAnswer(NamedTuple):
    """A response as the database describes it."""

    file: int
    offset: int
    length: int
    url: str | None  # None: a robots.txt, whose URL is only in its record
    digest: bytes | None
    status: int
    mime: str
    started: float
    page: int | None
    seq: int  # of the row in `fetch` or in `robots`


@dataclass(slots=True)
class _DamagedSpan:
    """Consecutive damages, without a readable record between them."""

    offset: int
    end: int
    rows: list[ArchivedAnswer]  # the responses that begin in this span

    @property
    def has_room(self) -> bool:
        """Whether the span is long enough for a filler."""
        return filler(min(self.end - self.offset, _ROOM_BYTES), 0.0) is not None


class ArchiveRepair:
    """Collects the damages of one archive and repairs them. `path`: the archive, which may be missing."""

    def __init__(self, folder: Path, path: Path) -> None:
        self._folder, self._path = folder, path
        self._spans: list[_DamagedSpan] = []  # in order of offset
        self._replaced: list[ArchivedAnswer] = []

    def add_damage(self, damage: Damage, rows: Iterable[ArchivedAnswer]) -> None:
        """Note a damage that comes after all damages noted so far. `rows`: the responses that begin in it."""
        if not (self._spans and self._spans[-1].end == damage.offset):
            self._spans.append(_DamagedSpan(damage.offset, damage.offset, []))
        self._spans[-1].end = damage.offset + damage.length
        self._spans[-1].rows += rows

    def add_replaced(self, rows: Iterable[ArchivedAnswer]) -> None:
        """Note rows of responses that an earlier repair has replaced."""
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
        """Mark in the database that these responses no longer have a record.

        A crawl that refetches pages will fetch these without conditions the next time.
        """
        pages = {row.page for row in rows if row.page is not None}
        with closing(sqlite3.connect(self._folder / DATABASE)) as database, database:
            for table, is_page in (("fetch", True), ("robots", False)):
                statement = f"update {table} set file = null, offset = null, length = null where seq = ?"
                database.executemany(statement, ((row.seq,) for row in rows if (row.page is not None) == is_page))
            kept = dict(database.execute("select key, value from meta"))
            if pages and CrawlOptions.from_json(kept.get("options", "")).refresh is not None:
                whole = json.dumps(sorted(pages | set(json.loads(kept.get("whole", "[]")))))
                database.execute("replace into meta values ('whole', ?)", (whole,))


def _pieces(span: _DamagedSpan) -> Iterator[tuple[int, int]]:
    """Yield offset and length of each filler of a span.

    The last filler includes the remainder, which could be too short for a filler of its own.
    """
    at = span.offset
    while span.end - at >= 2 * _MOST_BYTES:
        yield at, _MOST_BYTES
        at += _MOST_BYTES
    yield at, span.end - at


def _write_at(descriptor: int, data: bytes, offset: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, offset)
        data, offset = data[written:], offset + written
