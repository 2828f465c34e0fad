"""Verification of a crawl folder: checks archives, index, database and snapshots against each other, and repairs them.

Every byte of every archive is read, so a large crawl takes minutes; a resume therefore checks only the database. A repair
can reveal another problem (for example an index that names a record which was replaced), so the folder is checked again
after each round. database_check.py and archive_check.py have the checks of the database, the archives and the index; those
of foreign files and of snapshots are below. This module does not know how the store writes the folder, nor how resume.py
continues the crawl.
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files import checkpoint, lock, resume
from trapline.crawler.files.archive_check import ArchiveCheck, index_problems
from trapline.crawler.files.check_results import Problem, Verified
from trapline.crawler.files.database_check import (
    LAWS,
    PLACE_LAWS,
    broken_laws,
    integrity_problems,
    progress_problems,
    type_problems,
)
from trapline.crawler.files.layout import (
    ARCHIVES,
    DATABASE,
    SNAPSHOT,
    DamagedDatabase,
    check_crawl,
    connect,
    is_disk_failure,
)
from trapline.crawler.files.reading import Reading
from trapline.crawler.store.damaged import DAMAGED
from trapline.errors import ConfigError, InvariantError, OtherVersionError
from trapline.frontier import FETCHED, Frontier
from trapline.frontier.layout import GONE, REVISITED
from trapline.progress import ProgressCallback, no_progress

_ROUNDS = 4  # the most rounds of repairs; a repair can reveal a second problem, whose repair reveals no third one


def verify(folder: Path, repair: bool = False, progress: ProgressCallback = no_progress) -> Verified:
    """Check the folder of a crawl that is not running; with `repair`, repair it.

    Raise `ConfigError` if this is not the folder of a crawl, or the crawl is running.
    """
    try:
        check_crawl(folder)
    except DamagedDatabase:
        damage = Problem(str(folder / DATABASE), "too damaged to be opened: restore it from a copy")
        return Verified([damage], [damage])
    _refuse_merged(folder)
    with held(folder, repair):
        found = _verified(folder, progress)
        problems, known = list(found.problems), set(map(str, found.problems))
        for _ in range(_ROUNDS if repair else 0):
            repairs = list(dict.fromkeys(problem.repair for problem in found.problems if problem.repair))
            if not repairs:
                break
            failed = [problem for action in repairs if (problem := _failure_of(action, found.problems))]
            found = _verified(folder, progress)
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


def _verified(folder: Path, progress: ProgressCallback) -> Verified:
    found = Verified()
    try:
        _check(folder, found, progress)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if isinstance(error, sqlite3.DatabaseError) and is_disk_failure(error):
            raise
        found.problems.append(Problem(str(folder / DATABASE), f"cannot be read: {error}: restore it from a copy"))
    return found


def _check(folder: Path, found: Verified, progress: ProgressCallback) -> None:
    with closing(connect(folder)) as database:
        database.execute("begin")
        found.problems += integrity_problems(folder, database)
        found.problems += type_problems(folder, database)
        found.problems += _option_problems(folder, database)
        if not found.problems:  # otherwise nothing can be checked against the database
            found.problems += _misfits(folder)
            found.problems += broken_laws(folder, database, LAWS)
            found.problems += progress_problems(folder, database)
            misplaced = list(broken_laws(folder, database, PLACE_LAWS))
            found.problems += misplaced
            archives = ArchiveCheck(folder, database, found, progress)
            archives.check()
            can_rebuild = not misplaced and not archives.has_contradictions
            found.problems += index_problems(folder, database, archives, can_rebuild)
            found.problems += _snapshot_problems(folder, found, progress)


def _option_problems(folder: Path, database: sqlite3.Connection) -> Iterator[Problem]:
    try:
        CrawlOptions.from_json(dict(database.execute("select key, value from meta")).get("options", ""))
    except ConfigError as error:
        yield Problem(str(folder / DATABASE), str(error))


# ---- Foreign files.


def _misfits(folder: Path) -> Iterator[Problem]:
    """Yield files and folders that are where the crawl keeps its own, and that the crawl did not write."""
    for name in (ARCHIVES, SNAPSHOT, DAMAGED):
        path = folder / name
        if path.exists() and not path.is_dir():
            yield Problem(str(path), "is not a folder: move it elsewhere")
    for path in checkpoint.strangers(folder):
        yield Problem(str(path), "the crawl did not write it: move it elsewhere")


# ---- Snapshots and log.


def _snapshot_problems(folder: Path, found: Verified, progress: ProgressCallback) -> Iterator[Problem]:
    """Yield the problems of snapshots. Each snapshot with the log since then must give the crawl that the database has."""
    with closing(Reading(folder)) as reading:
        last, numbers = reading.last_batch(), checkpoint.numbers(folder)
        for number in (number for number in numbers if number > last):
            place = folder / SNAPSHOT / str(number)
            what = f"a snapshot after the last commit, batch {last}, left by a crash"
            yield Problem(str(place), what, repair=partial(shutil.rmtree, place))
        reached = [number for number in numbers if number <= last]
        found.snapshots = len(reached)
        wrong = {number: why for number in reached if (why := _replay_problem(reading, number, progress))}
        is_needed = len(wrong) == len(reached)
        beginning = _replay_problem(reading, 0, progress) if is_needed else None
        # Another version of Trapline can read its own snapshots and logs, so nothing is removed if one is of another version.
        can_remove = not beginning and not any(why.is_other_version for why in wrong.values())
        for number, why in wrong.items():
            place = folder / SNAPSHOT / str(number)
            yield Problem(str(place), why.what, repair=partial(shutil.rmtree, place) if can_remove else None)
        if beginning:
            yield Problem(str(folder / DATABASE), f"the crawl cannot continue: {beginning.what}")


class _ReplayProblem(NamedTuple):
    what: str
    is_other_version: bool = False


def _replay_problem(reading: Reading, snapshot: int, progress: ProgressCallback) -> _ReplayProblem | None:
    """Return what is wrong with a snapshot or the log since then; None: nothing. Snapshot 0 stands for the log alone."""
    try:
        options = CrawlOptions.from_json(reading.meta().get("options", ""))
        frontier = resume.frontier_from(reading, options, snapshot, progress)
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
