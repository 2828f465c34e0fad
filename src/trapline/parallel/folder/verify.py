"""Verification of a parallel crawl: each partition by itself, all partitions together, and the database that is merged
from them.

A partition is an ordinary crawl, and crawler/files/verify.py checks it. This module compares the partitions with the
manifest and with each other: none is missing, none belongs to another crawl, and all are from the same time, as a
resume requires too.
"""

from collections.abc import Iterator, Mapping, Set
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from trapline.crawler.engine.records import ExchangeCounts
from trapline.crawler.engine.stop_reasons import INTERRUPTED, TERMINATED
from trapline.crawler.files.check_results import Problem, Verified
from trapline.crawler.files.database_check import integrity_problems
from trapline.crawler.files.layout import DATABASE, connect
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.verify import held
from trapline.crawler.files.verify import verify as verify_one
from trapline.errors import ConfigError
from trapline.parallel.folder import merged
from trapline.parallel.folder.manifest import Manifest, check_mark, is_parallel, read
from trapline.parallel.transport.delivery import are_of_one_moment
from trapline.progress import ProgressCallback, no_progress

# The merged database has every row of these tables of every partition: no row of them is in several partitions.
_COUNTS = {
    "fetches": "select count(*) from fetch",
    "fetches with a record": "select count(file) from fetch",
    "robots.txt files": "select count(*) from robots",
    "robots.txt files with a record": "select count(file) from robots",
    "archives": "select count(*) from warc",
}


def verify_all(folder: Path, repair: bool = False, progress: ProgressCallback = no_progress) -> Verified:
    """Verify a crawl of one or several partitions; with `repair`, repair it. Raises `ConfigError` if the folder is not
    a crawl, or is being crawled."""
    if not is_parallel(folder):
        return verify_one(folder, repair, progress)
    with held(folder, repair):  # the command that runs all partitions holds this lock too
        manifest, total = read(folder), Verified()
        parts = merged.begun(manifest)
        if not parts and not (folder / DATABASE).exists():
            raise ConfigError(f"{folder}: the crawl has not begun")
        each = {part: verify_one(part, repair, progress) for part in parts}
        for found in each.values():
            total.add(found)
        unsound = {part for part, found in each.items() if _has_database_problems(part, found)}
        for problem in _between(manifest, unsound):
            total.problems.append(problem)
            total.remaining.append(problem)
        _check_merged(manifest, total, repair, is_comparable=not unsound)
    return total


def _has_database_problems(part: Path, found: Verified) -> bool:
    """Return whether the database of a partition has problems left. Reading it may raise errors, so it is not compared
    with others."""
    return any(problem.place == str(part / DATABASE) for problem in found.remaining)


# ---- the partitions among each other


class _Exchanged(NamedTuple):
    """The exchange between a partition and the others, as the partition itself recorded it."""

    passed: Mapping[int, ExchangeCounts]
    batch: int  # the last one


_NOTHING = _Exchanged({}, 0)
_NO_BATCHES = ExchangeCounts(0, 0, False)


def _between(manifest: Manifest, unsound: Set[Path]) -> Iterator[Problem]:
    begun = {number: part for number, part in enumerate(manifest.parts) if (part / DATABASE).exists()}
    exchanged = {number: _exchanged(part) for number, part in begun.items() if part not in unsound}
    known = _merged_batches(manifest)
    for number, part in enumerate(manifest.parts):
        batch = exchanged.get(number, _NOTHING).batch
        if number not in begun:
            if _has_begun(manifest, number, exchanged, known):
                yield Problem(str(part), f"this partition has no {DATABASE}: restore its folder from a copy")
        elif part not in unsound:
            yield from _mark_problems(manifest, number)
            if batch < known.get(part.name, 0):
                merged_batch = known[part.name]
                wrong = f"its last batch is {batch}, but the database of all partitions already has its batch {merged_batch}"
                yield Problem(str(part), f"{wrong}: restore all partitions from copies that were taken together")
    yield from _moment_problems({number: begun[number] for number in exchanged}, exchanged)


def _exchanged(part: Path) -> _Exchanged:
    with closing(Reading(part)) as reading:
        return _Exchanged(reading.partitions(), reading.last_batch())


def _merged_batches(manifest: Manifest) -> Mapping[str, int]:
    with suppress(ConfigError):  # `_check_merged` reports what is wrong with it
        return merged.batches(manifest.folder)
    return {}


def _has_begun(manifest: Manifest, number: int, exchanged: Mapping[int, _Exchanged], known: Mapping[str, int]) -> bool:
    """Return whether a partition must have existed. A partition that was killed or stopped right at its start may have
    no database."""
    passed = [other.passed.get(number, _NO_BATCHES) for other in exchanged.values()]
    has_ended = manifest.stopped_by not in ("", INTERRUPTED, TERMINATED)
    return has_ended or known.get(f"partition-{number}", 0) > 0 or any(counts.received for counts in passed)


def _mark_problems(manifest: Manifest, number: int) -> Iterator[Problem]:
    part = manifest.parts[number]
    try:
        check_mark(part, manifest.mark(number), manifest.sizes[-1], manifest.began)
    except ConfigError as error:
        yield Problem(str(part), str(error).removeprefix(f"{part}: "))


def _moment_problems(begun: Mapping[int, Path], exchanged: Mapping[int, _Exchanged]) -> Iterator[Problem]:
    for sender, part in begun.items():
        with closing(Reading(part)) as reading:
            for receiver in begun.keys() - {sender}:
                made = exchanged[sender].passed.get(receiver, _NO_BATCHES).made
                received = exchanged[receiver].passed.get(sender, _NO_BATCHES).received
                waiting = reading.message_batches(receiver, received, 1)
                if not are_of_one_moment(received, made, waiting[0][0] if waiting else None):
                    counts = f"{received:,} message batches arrived there of {made:,} made here"
                    wrong = f"it and {begun[receiver].name} are not from the same time ({counts})"
                    yield Problem(str(part), f"{wrong}: restore all partitions from copies that were taken together")


# ---- the merged database


def _check_merged(manifest: Manifest, found: Verified, repair: bool, is_comparable: bool) -> None:
    """Check the merged database. A repair removes a damaged one; the next command that needs it merges it again."""
    path = manifest.folder / DATABASE
    if not path.exists():
        return
    remove = partial(merged.remove, manifest.folder)
    problems = [Problem(str(path), what, repair=remove) for what in _merged_problems(manifest, is_comparable)]
    found.problems += problems
    if not repair:
        found.remaining += problems
    elif problems:
        remove()


def _merged_problems(manifest: Manifest, is_comparable: bool) -> list[str]:
    try:
        with closing(connect(manifest.folder)) as database:
            wrong = [problem.what for problem in integrity_problems(manifest.folder, database)]
        if not wrong and is_comparable and merged.is_current(manifest):
            wrong += _count_problems(manifest)
    except ConfigError as error:
        wrong = [str(error)]
    return wrong


def _count_problems(manifest: Manifest) -> Iterator[str]:
    ours = _counts(manifest.folder)
    theirs = [_counts(part) for part in merged.begun(manifest)]
    for what, here in ours.items():
        there = sum(counts[what] for counts in theirs)
        if here != there:
            yield f"has {here:,} {what}, and the partitions have {there:,}"


def _counts(folder: Path) -> dict[str, int]:
    with closing(connect(folder)) as database:
        return {what: database.execute(sql).fetchone()[0] for what, sql in _COUNTS.items()}
