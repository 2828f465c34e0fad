"""Verification of a crawl folder: checks archives, index, database and snapshots against each other, and repairs them.

Every byte of every archive is read, so a large crawl takes minutes; a resume therefore checks only the database. A
problem carries its own repair. A repair can reveal another problem (for example an index that names a record which was
replaced), so the folder is checked again after each round. This module does not know how the store writes the folder,
nor how resume.py continues the crawl.
"""

import json
import os
import shutil
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trapline.crawl.engine.options import CrawlOptions
from trapline.crawl.engine.status import tally_of
from trapline.crawl.files import checkpoint, lock, resume
from trapline.crawl.files.archive_reader import Damage, Record, read_back
from trapline.crawl.files.archive_repair import ArchivedAnswer, ArchiveRepair
from trapline.crawl.files.layout import ARCHIVES, DATABASE, INDEX, REBUILT_INDEX, SNAPSHOT, check_crawl, connect
from trapline.crawl.files.reading import Reading
from trapline.crawl.store import cdxj, warc
from trapline.crawl.store.archive import Length, RecordPlace, uncommitted
from trapline.crawl.store.damaged import DAMAGED, answers_after, keep_file, keep_tail
from trapline.crawl.store.filing import ROBOTS_MIME
from trapline.crawl.store.keeper import sort_lines
from trapline.crawl.store.tail import cut_back
from trapline.errors import ConfigError, InvariantError, OtherVersionError
from trapline.frontier import FETCHED, Frontier
from trapline.frontier.layout import GONE, REVISITED
from trapline.output import sync
from trapline.units import counted

Tell = Callable[[int, int, str], None]
_MOST_URLS = 5  # the most URLs that a problem names
_ROUNDS = 4  # the most rounds of repairs; a repair can reveal a second problem, whose repair reveals no third one

_HAS_PLACE = "typeof(offset) = 'integer' and typeof(length) = 'integer'"
_ROWS = f"""select file, offset, length, page.url, digest, status, mime, started, fetch.page, fetch.seq
from fetch join page on page.id = fetch.page where file in (select id from warc) and {_HAS_PLACE}
union all select file, offset, length, null, null, status, '{ROBOTS_MIME}', started, null, seq
from robots where file in (select id from warc) and {_HAS_PLACE} order by 1, 2"""
# Violations that no crawl can cause; each query counts the rows that violate one law.
_LAWS = {
    "fetches of a page that does not exist": "select count(*) from fetch where page not in (select id from page)",
    "pages of a site that does not exist": "select count(*) from page where site not in (select id from site)",
    "robots.txt files of a site that does not exist": "select count(*) from robots where site not in (select id from site)",
    "copies of a page that does not exist": "select count(*) from copy where page not in (select id from page)",
    "page ids that are missing": "select coalesce(max(id) + 1, 0) - count(*) from page",
    "site ids that are missing": "select coalesce(max(id) + 1, 0) - count(*) from site",
    "batches that are missing in the log": "select coalesce(max(batch) - min(batch) + 1, 0) - count(*) from journal",
}
# The same for the places of records. A violation hides answers, so the index is not rebuilt from the answers that remain.
_PLACE_LAWS = {
    "archives that are missing": "select coalesce(max(id) + 1, 0) - count(*) from warc",
    "fetches whose record is in no archive": "select count(*) from fetch where file is not null and file not in (select id from warc)",
    "robots.txt files whose record is in no archive": "select count(*) from robots where file is not null"
    " and file not in (select id from warc)",
    "fetches whose record has no place or no length": f"select count(*) from fetch where file is not null and not ({_HAS_PLACE})",
    "robots.txt files whose record has no place or no length": "select count(*) from robots where file is not null"
    f" and not ({_HAS_PLACE})",
}


@dataclass(frozen=True, slots=True)
class Problem:
    place: str  # a file or folder
    what: str
    url: str = ""  # of the page whose record has the problem
    offset: int | None = None  # in an archive
    lost: bool = False  # contents are lost, even after a repair
    repair: Callable[[], object] | None = field(default=None, repr=False)  # None: it cannot be repaired

    def __str__(self) -> str:
        at = "" if self.offset is None else f" at byte {self.offset:,}"
        return f"{self.place}{at}: {self.what}" + (f" ({self.url})" if self.url else "")


@dataclass(slots=True)
class Verified:
    """The result of a verification: how much was checked, and the problems."""

    problems: list[Problem] = field(default_factory=list)  # found in all rounds
    remaining: list[Problem] = field(default_factory=list)  # found in the last round
    archives: int = 0
    records: int = 0
    bytes: int = 0
    snapshots: int = 0

    def add(self, other: "Verified") -> None:
        """Add the results of another folder."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def is_sound(self) -> bool:
        return not self.remaining and not any(problem.lost for problem in self.problems)


def verify(folder: Path, repair: bool = False, tell: Tell = resume.nobody) -> Verified:
    """Check the folder of a crawl that is not running; with `repair`, repair it.

    Raise `ConfigError` if this is not the folder of a crawl, or the crawl is running.
    """
    check_crawl(folder)
    _refuse_merged(folder)
    with held(folder, repair):
        found = _verified(folder, tell)
        problems, known = list(found.problems), set(map(str, found.problems))
        for _ in range(_ROUNDS if repair else 0):
            repairs = list(dict.fromkeys(problem.repair for problem in found.problems if problem.repair))
            if not repairs:
                break
            failed = [problem for action in repairs if (problem := _failure_of(action, found.problems))]
            found = _verified(folder, tell)
            found.problems += failed
            problems += [problem for problem in found.problems if str(problem) not in known]
            known.update(map(str, found.problems))
    found.problems, found.remaining = problems, found.problems
    return found


def _refuse_merged(folder: Path) -> None:
    with closing(connect(folder)) as database:
        if database.execute("select 1 from meta where key = 'merged'").fetchone():
            what = f"its {DATABASE} is that of all partitions of a parallel crawl, but parallel.json is missing"
            raise ConfigError(f"{folder}: {what}: restore that from a copy, or verify each partition by itself")


def _failure_of(repair: Callable[[], object], problems: list[Problem]) -> Problem | None:
    """Run a repair. Return a problem if it fails, so that the other repairs go on; otherwise None."""
    try:
        repair()
    except (OSError, ConfigError, sqlite3.Error) as error:
        place = next(problem.place for problem in problems if problem.repair == repair)
        return Problem(place, f"the repair failed: {error}")
    return None


@contextmanager
def held(folder: Path, repair: bool) -> Iterator[None]:
    """Hold the lock of the folder, so that no crawl starts there during the block."""
    ours = lock.take(folder, "repaired") if repair else lock.share(folder)
    try:
        yield
    finally:
        if ours is not None:
            ours.release()


def _verified(folder: Path, tell: Tell) -> Verified:
    found = Verified()
    with closing(connect(folder)) as database:
        database.execute("begin")
        found.problems += integrity_problems(folder, database)
        found.problems += _type_problems(folder, database)
        if not found.problems:  # otherwise nothing can be checked against the database
            found.problems += _misfits(folder)
            found.problems += _broken_laws(folder, database, _LAWS)
            found.problems += _progress_problems(folder, database)
            misplaced = list(_broken_laws(folder, database, _PLACE_LAWS))
            found.problems += misplaced
            archives = _Archives(folder, database, found, tell)
            archives.check()
            can_rebuild = not misplaced and not archives.has_contradictions
            found.problems += _index_problems(folder, database, archives, can_rebuild)
            found.problems += _snapshot_problems(folder, found, tell)
    return found


# ---- The database by itself.


def integrity_problems(folder: Path, database: sqlite3.Connection) -> list[Problem]:
    """Return the problems that SQLite's own integrity check finds in the file."""
    try:
        wrong = [row for (row,) in database.execute("pragma integrity_check") if row != "ok"]
    except sqlite3.DatabaseError as error:
        wrong = [f"cannot be read: {error}"]
    repair = partial(_write, folder, "reindex") if all(" index " in line for line in wrong) else None
    return [Problem(str(folder / DATABASE), line, repair=repair) for line in wrong]


def _type_problems(folder: Path, database: sqlite3.Connection) -> Iterator[Problem]:
    """Yield columns of numbers that contain text or blobs: SQLite allows that, but no reader expects it."""
    try:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        for table in tables:
            columns = dict(database.execute(f"select name, lower(type) from pragma_table_info('{table}')"))
            numbers = [column for column, declared in columns.items() if declared in ("integer", "real")]
            sums = ", ".join(f"total(typeof({column}) in ('text', 'blob'))" for column in numbers)
            counts = database.execute(f"select {sums} from {table}").fetchone() if numbers else ()
            for column, count in zip(numbers, counts, strict=True):
                if count:
                    what = f"{count:,.0f} values of {table}.{column} are not numbers: restore it from a copy"
                    yield Problem(str(folder / DATABASE), what)
    except sqlite3.DatabaseError:
        return  # `integrity_problems` reports it


def _misfits(folder: Path) -> Iterator[Problem]:
    """Yield files and folders that are where the crawl keeps its own, and that the crawl did not write."""
    for name in (ARCHIVES, SNAPSHOT, DAMAGED):
        path = folder / name
        if path.exists() and not path.is_dir():
            yield Problem(str(path), "is not a folder: move it elsewhere")
    for path in checkpoint.strangers(folder):
        yield Problem(str(path), "the crawl did not write it: move it elsewhere")


def _broken_laws(folder: Path, database: sqlite3.Connection, laws: Mapping[str, str]) -> Iterator[Problem]:
    for what, sql in laws.items():
        (count,) = database.execute(sql).fetchone()
        if count:
            yield Problem(str(folder / DATABASE), f"{count:,} {what}")


def _progress_problems(folder: Path, database: sqlite3.Connection) -> Iterator[Problem]:
    row = database.execute("select rowid, pages, errors, bytes from progress order by rowid desc limit 1").fetchone()
    tally = tally_of(database)
    committed = (tally.fetched, tally.failed, tally.body_bytes)
    if row is not None and tuple(row[1:]) != committed:
        what = f"the last row of progress has {row[1]:,} pages, but {tally.fetched:,} are committed"
        correct = partial(_write, folder, "update progress set pages = ?, errors = ?, bytes = ? where rowid = ?")
        yield Problem(str(folder / DATABASE), what, repair=partial(correct, *committed, row[0]))


def _write(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / DATABASE)) as database, database:
        database.execute(statement, values)


# ---- The archives.


class _Archives:
    """The check of all archives, record by record. It also collects the lines that the index should have."""

    def __init__(self, folder: Path, database: sqlite3.Connection, found: Verified, tell: Tell) -> None:
        self._folder, self._database, self._found, self._tell = folder, database, found, tell
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
        begun = uncommitted(place, self._lengths)
        for path in begun:
            yield self._uncommitted(path, 0, "an archive that was never committed", partial(keep_file, path=path))
        known.update(path.name for path in begun)
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            if path.name not in known:
                yield Problem(str(path), "the crawl did not write it: move it elsewhere")

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
            self._tell(self._found.bytes, self._total, f"bytes of archives, {path.name}")
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
            self._problem(path, row.offset, "no answer begins here, contrary to the database", row)

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
    """Return the line that the index should have for an answer, as filing.py writes it."""
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


def _index_problems(
    folder: Path, database: sqlite3.Connection, archives: _Archives, can_rebuild: bool
) -> Iterator[Problem]:
    path = folder / INDEX
    if path.exists() and not path.is_file():
        yield Problem(str(path), "is not a file: move it elsewhere")
        return
    (committed,) = database.execute("select bytes from cdxj").fetchone()
    size = path.stat().st_size if path.exists() else 0
    if size > committed:
        what = f"{size - committed:,} bytes after the last commit, left by a crash"
        yield Problem(str(path), what, repair=partial(cut_back, path, committed))
    theirs, ours = _summed(path, committed, archives.unread), archives.lines
    if theirs.sum != ours.sum or size < committed:
        what = f"its {theirs.lines:,} lines do not match the {ours.lines:,} answers in the archives"
        yield Problem(str(path), what, repair=partial(_rebuild_index, folder) if can_rebuild else None)


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


def _rebuild_index(folder: Path) -> None:
    """Build the index anew from the archives and the database, sorted as in a closed crawl.

    The database records the new length first, because a resume cuts the index to the recorded length. If the repair is
    killed after that, a resume moves the new index into place (crawl/store/keeper.py).
    """
    fresh, rebuilt = folder / f".{INDEX}.unsorted", folder / REBUILT_INDEX
    with closing(connect(folder)) as database, fresh.open("wb") as file:
        database.execute("begin")
        _Archives(folder, database, Verified(), resume.nobody).check(file.write)  # type: ignore[arg-type]
    sort_lines(fresh)
    fresh.replace(rebuilt)
    sync(folder)
    _write(folder, "update cdxj set bytes = ?", rebuilt.stat().st_size)
    rebuilt.replace(folder / INDEX)
    sync(folder)


# ---- Snapshots and log.


def _snapshot_problems(folder: Path, found: Verified, tell: Tell) -> Iterator[Problem]:
    """Yield the problems of snapshots. Each snapshot with the log since then must give the crawl that the database has."""
    with closing(Reading(folder)) as reading:
        last, numbers = reading.last_batch(), checkpoint.numbers(folder)
        for number in (number for number in numbers if number > last):
            place = folder / SNAPSHOT / str(number)
            what = f"a snapshot after the last commit, batch {last}, left by a crash"
            yield Problem(str(place), what, repair=partial(shutil.rmtree, place))
        reached = [number for number in numbers if number <= last]
        found.snapshots = len(reached)
        wrong = {number: why for number in reached if (why := _replay_problem(reading, number, tell))}
        is_needed = len(wrong) == len(reached)
        beginning = _replay_problem(reading, 0, tell) if is_needed else None
        # Another version of Trapline can read its own snapshots and logs, so nothing is removed if one is of another version.
        can_remove = not beginning and not any(why.is_other_version for why in wrong.values())
        for number, why in wrong.items():
            place = folder / SNAPSHOT / str(number)
            yield Problem(str(place), why.what, repair=partial(shutil.rmtree, place) if can_remove else None)
        if beginning:
            yield Problem(str(folder / DATABASE), f"the crawl cannot go on: {beginning.what}")


class _ReplayProblem(NamedTuple):
    what: str
    is_other_version: bool = False


def _replay_problem(reading: Reading, snapshot: int, tell: Tell) -> _ReplayProblem | None:
    """Return what is wrong with a snapshot or the log since then; None: nothing. Snapshot 0 stands for the log alone."""
    try:
        options = CrawlOptions.from_json(reading.meta()["options"])
        frontier = resume.frontier_from(reading, options, snapshot, tell)
    except (ConfigError, InvariantError) as error:
        return _ReplayProblem(str(error), isinstance(error, OtherVersionError))
    what = _disagreement(reading.connection, frontier)
    return _ReplayProblem(what) if what else None


def _disagreement(database: sqlite3.Connection, frontier: Frontier) -> str:
    """Return how a frontier differs from the database; "": they agree."""
    life, sites = frontier.page_states, frontier.sites
    counts = [database.execute(f"select count(*) from {table}").fetchone()[0] for table in ("page", "site")]
    if [len(life), sites] != counts:
        return f"gives {len(life):,} pages on {sites:,} sites, but the database has {counts[0]:,} on {counts[1]:,}"
    if "size" in dict(database.execute("select key, value from meta")):
        return ""  # pages have moved between partitions, so the two may differ
    committed = np.zeros(len(life), bool)
    rows = database.execute("select distinct page from fetch where result = ? and page < ?", (FETCHED, len(life)))
    committed[np.fromiter((page for (page,) in rows), np.int64)] = True
    fetched = (life == FETCHED) | (life == REVISITED)
    differ = int((fetched & ~committed).sum() + (committed & ~fetched & (life != GONE)).sum())
    return f"differs from the database in whether {differ:,} pages were fetched" if differ else ""
