"""The archives and the index of a crawl folder, compared with the database: record by record, and line by line.

Every byte of every archive is read. archive_reader.py finds records and damage, archive_repair.py replaces damage. The
index must have one line for each answer in the archives; if it does not, it is built anew from them.
"""

import json
import os
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from hashlib import blake2b
from itertools import groupby
from pathlib import Path

from trapline.crawler.files.archive_reader import Damage, Record, read_back
from trapline.crawler.files.archive_repair import ArchivedAnswer, ArchiveRepair
from trapline.crawler.files.check_results import Problem, Verified
from trapline.crawler.files.database_check import HAS_PLACE, write
from trapline.crawler.files.layout import ARCHIVES, DATABASE, INDEX, REBUILT_INDEX, connect
from trapline.crawler.store import cdxj, warc
from trapline.crawler.store.archive import Length, RecordPlace, uncommitted
from trapline.crawler.store.damaged import DAMAGED, answers_after, keep_file, keep_tail
from trapline.crawler.store.filing import ROBOTS_MIME
from trapline.crawler.store.keeper import sort_lines
from trapline.crawler.store.settings import StoreSettings
from trapline.crawler.store.tail import cut_back
from trapline.output import sync
from trapline.progress import ProgressCallback, no_progress
from trapline.units import counted

_MOST_URLS = 5  # the most URLs that a problem names
_ROWS = f"""select file, offset, length, page.url, digest, status, mime, started, fetch.page, fetch.seq
from fetch join page on page.id = fetch.page where file in (select id from warc) and {HAS_PLACE}
union all select file, offset, length, null, null, status, '{ROBOTS_MIME}', started, null, seq
from robots where file in (select id from warc) and {HAS_PLACE} order by 1, 2"""


class ArchiveCheck:
    """The check of all archives, record by record. It also collects the lines that the index should have."""

    def __init__(self, folder: Path, database: sqlite3.Connection, found: Verified, progress: ProgressCallback) -> None:
        self._folder, self._database, self._found, self._progress = folder, database, found, progress
        self._lengths = [Length(*row) for row in database.execute("select id, name, bytes from warc order by id")]
        # If one of these is not a folder, a repair could neither keep nor write anything, so there is none.
        self._can_repair = all(not (folder / name).exists() or (folder / name).is_dir() for name in (ARCHIVES, DAMAGED))
        self._total = sum(length.bytes for length in self._lengths)
        self.lines = LineSum()  # of the lines that the index should have
        self.unread = set[tuple[str, str]]()  # archive and offset of answers that cannot be read
        self.has_contradictions = False  # there are rows without an answer in the archive, or answers without a row

    def check(self, line: Callable[[bytes], None] | None = None) -> None:
        """Check all archives. `line` is called with every line that the index should have; without it, they are summed."""
        self._found.problems += self._strangers()
        groups = groupby(map(ArchivedAnswer._make, self._database.execute(_ROWS)), lambda row: row.file)
        file, rows = next(groups, (-1, iter(())))
        for length in self._lengths:
            self._found.archives += 1
            if file == length.file:
                self._check_file(length, list(rows), line or self.lines.add)
                file, rows = next(groups, (-1, iter(())))
            else:
                self._check_file(length, [], line or self.lines.add)

    def _strangers(self) -> Iterator[Problem]:
        known = {length.name for length in self._lengths}
        place = self._folder / ARCHIVES
        begun = uncommitted(place, self._lengths, self._prefix())
        for path in begun:
            yield self._uncommitted(path, 0, "an archive that was never committed", partial(keep_file, path=path))
        known.update(path.name for path in begun)
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            if path.name not in known:
                yield Problem(str(path), "the crawl did not write it: move it elsewhere")

    def _prefix(self) -> str:
        """Return the prefix of the crawl's archives."""
        row = self._database.execute("select value from meta where key = 'options'").fetchone()
        prefix: str = json.loads(row[0]).get("warc_prefix", StoreSettings.name) if row else StoreSettings.name
        return prefix

    def _uncommitted(self, path: Path, offset: int, what: str, keep: Callable[[Path], None]) -> Problem:
        """Return a problem for bytes that the database does not know.

        Answers in these bytes are lost to the crawl, because it may never fetch their pages again.
        """
        urls, answers = list[str](), 0
        for answers, record in enumerate(answers_after(path, offset), 1):
            if answers <= _MOST_URLS:
                urls.append(record.headers.get("warc-target-uri", ""))
        if not answers:
            what = f"{what}, left by a crash"
        else:
            more = f" and {answers - len(urls):,} more" if answers > len(urls) else ""
            held = f"with {counted(answers, 'answer')} that the database does not know: {', '.join(urls)}{more}"
            what = f"{what}, {held}; a repair moves them to {DAMAGED}/"
        return Problem(
            str(path),
            what,
            offset=offset or None,
            lost=answers > 0,
            repair=self._if_possible(partial(keep, self._folder)),
        )

    def _if_possible(self, repair: Callable[[], None]) -> Callable[[], None] | None:
        return repair if self._can_repair else None

    def _check_file(self, length: Length, rows: list[ArchivedAnswer], line: Callable[[bytes], None]) -> None:
        path = self._folder / ARCHIVES / length.name
        if path.exists() and not path.is_file():
            self._found.problems.append(Problem(str(path), "is not a file: move it elsewhere, and restore the archive"))
            self.unread.update((path.name, str(row.offset)) for row in rows)
            return
        size = path.stat().st_size if path.exists() else 0
        if size > length.bytes:
            what, keep = f"{size - length.bytes:,} bytes after the last commit", partial(keep_tail, archive=path)
            self._found.problems.append(self._uncommitted(path, length.bytes, what, partial(keep, length=length.bytes)))
        descriptor = os.open(path, os.O_RDONLY) if size else os.open(os.devnull, os.O_RDONLY)
        try:
            self._check_records(path, descriptor, length, rows, line)
        finally:
            os.close(descriptor)

    def _check_records(
        self, path: Path, descriptor: int, length: Length, rows: list[ArchivedAnswer], line: Callable[[bytes], None]
    ) -> None:
        expected, url, archive_repair = {row.offset: row for row in rows}, "", ArchiveRepair(self._folder, path)
        damages = list[tuple[Damage, list[ArchivedAnswer], str]]()
        starts = list(expected)  # in order, because the rows are
        repair = self._if_possible(archive_repair.apply)

        def rows_in(part: Damage | Record) -> list[ArchivedAnswer]:
            first, end = (bisect_left(starts, at) for at in (part.offset, part.offset + part.length))
            return [expected.pop(start) for start in starts[first:end]]

        for part in read_back(descriptor, length.bytes, {row.offset: row.length for row in rows}):
            self._progress(self._found.bytes, self._total, f"bytes of archives, {path.name}")
            self._found.bytes += part.length
            if isinstance(part, Damage):
                lost = rows_in(part)
                archive_repair.add_damage(part, lost)
                damages.append((part, lost, url))
                continue
            self._found.records += 1
            url = part.headers.get("warc-target-uri", "")
            if part.is_answer:
                self._answer(path, part, expected.pop(part.offset, None), line)
            elif part.is_filler:
                lost = rows_in(part)
                archive_repair.add_replaced(lost)
                for row in lost:
                    self._problem(path, row.offset, "a repair has replaced this answer", row, lost=True, repair=repair)
        for damage, lost, before in damages:  # only now, because a span may grow until the next record is read
            self._damaged(path, damage, lost, before, repair if archive_repair.can_fill(damage) else None)
        for row in expected.values():
            self.has_contradictions = True
            self._problem(path, row.offset, "no answer begins here, although the database says so", row)

    def _answer(self, path: Path, record: Record, row: ArchivedAnswer | None, line: Callable[[bytes], None]) -> None:
        url = record.headers.get("warc-target-uri", "")
        if row is None:
            self.has_contradictions = True
            self._problem(path, record.offset, f"an answer that the database does not know: {url}")
            return
        for what, ours, theirs in _compared(record, row):
            if ours != theirs:
                self._problem(path, record.offset, f"its {what} is {ours}, but the database has {theirs}", row)
        if not record.has_digest():
            self._problem(path, record.offset, "its body does not match the digest in its header", row)
        line(_line(record, row, url, path.name))

    def _damaged(
        self, path: Path, damage: Damage, rows: list[ArchivedAnswer], before: str, repair: Callable[[], None] | None
    ) -> None:
        """Add the problems of one damage.

        `before`: the URL of the last record before it. If no answer begins in the damage, the request or metadata of that
        record is damaged.
        """
        self.unread.update((path.name, str(row.offset)) for row in rows)
        what = f"{damage.length:,} bytes cannot be read: {damage.why}"
        for row in rows:
            self._problem(path, damage.offset, what, row, lost=True, repair=repair)
        if not rows:
            self._found.problems.append(Problem(str(path), what, before, damage.offset, True, repair))

    def _problem(
        self,
        path: Path,
        offset: int,
        what: str,
        row: ArchivedAnswer | None = None,
        *,
        lost: bool = False,
        repair: Callable[[], object] | None = None,
    ) -> None:
        url = "" if row is None else row.url or "a robots.txt"
        self._found.problems.append(Problem(str(path), what, url, offset, lost, repair))


def _compared(record: Record, row: ArchivedAnswer) -> Iterator[tuple[str, object, object]]:
    """Yield the name of each compared value, its value in the record, and its value in the database."""
    headers = record.headers
    yield "length", record.length, row.length
    yield "date", headers.get("warc-date"), warc.warc_date(row.started)
    yield "status", record.status(), row.status
    if row.url is not None:
        yield "URL", headers.get("warc-target-uri"), row.url
    if row.digest is not None:
        yield "digest", headers.get("warc-payload-digest"), f"sha1:{warc.base32(row.digest)}"


def _line(record: Record, row: ArchivedAnswer, url: str, name: str) -> bytes:
    """Return the line that the index should have for an answer, as crawler/store/filing.py writes it."""
    payload = record.headers.get("warc-payload-digest", "").removeprefix("sha1:")
    mime, status = row.mime, str(row.status)
    if record.kind == "revisit":
        mime = cdxj.REVISIT
        status = cdxj.NO_STATUS if record.headers.get("warc-profile") == warc.NOT_MODIFIED else status
    return cdxj.line(url, row.started, mime, status, payload, RecordPlace(row.file, row.offset, row.length), name)


# ---- The index.


class LineSum:
    """A checksum of lines that does not depend on their order: two files with the same sum have the same lines."""

    def __init__(self) -> None:
        self.lines = self.sum = 0

    def add(self, line: bytes) -> None:
        self.lines += 1
        self.sum = (self.sum + int.from_bytes(blake2b(line, digest_size=16).digest(), "little")) % (1 << 128)


def index_problems(
    folder: Path, database: sqlite3.Connection, archives: ArchiveCheck, can_rebuild: bool
) -> Iterator[Problem]:
    path = folder / INDEX
    if path.exists() and not path.is_file():
        yield Problem(str(path), "is not a file: move it elsewhere")
        return
    row = database.execute("select bytes from cdxj").fetchone()
    if row is None:
        yield Problem(str(folder / DATABASE), "its table cdxj has no row: restore it from a copy")
        return
    (committed,) = row
    size = path.stat().st_size if path.exists() else 0
    if size > committed:
        what = f"{size - committed:,} bytes after the last commit, left by a crash"
        yield Problem(str(path), what, repair=partial(cut_back, path, committed))
    theirs, ours = _summed(path, committed, archives.unread), archives.lines
    if theirs.sum != ours.sum or size < committed:
        what = f"its {theirs.lines:,} lines do not match the {ours.lines:,} answers in the archives"
        yield Problem(str(path), what, repair=partial(rebuild_index, folder) if can_rebuild else None)


def _summed(path: Path, committed: int, unread: set[tuple[str, str]]) -> LineSum:
    """Return the checksum of the committed lines, without the lines of answers that cannot be read."""
    total, done = LineSum(), 0
    if path.exists():
        with path.open("rb") as file:
            while done < committed and (line := file.readline(committed - done)):
                done += len(line)
                if not (unread and _place_of(line) in unread):
                    total.add(line)
    return total


def _place_of(line: bytes) -> tuple[str, str]:
    with suppress(ValueError, KeyError, IndexError, TypeError):
        found = json.loads(line.split(b" ", 2)[2])
        return found["filename"], found["offset"]
    return "", ""


def rebuild_index(folder: Path) -> None:
    """Build the index anew from the archives and the database, sorted as in a closed crawl.

    The database records the new length first, because a resume cuts the index to the recorded length. If the repair is
    killed after that, a resume moves the new index into place (crawler/store/keeper.py).
    """
    fresh, rebuilt = folder / f".{INDEX}.unsorted", folder / REBUILT_INDEX
    with closing(connect(folder)) as database, fresh.open("wb") as file:
        database.execute("begin")
        ArchiveCheck(folder, database, Verified(), no_progress).check(file.write)  # type: ignore[arg-type]
    sort_lines(fresh)
    fresh.replace(rebuilt)
    sync(folder)
    write(folder, "update cdxj set bytes = ?", rebuilt.stat().st_size)
    rebuilt.replace(folder / INDEX)
    sync(folder)
