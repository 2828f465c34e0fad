"""Whether a crawl in parts is sound: each partition by itself, all of them together, and the database that is made of them.

A partition is an ordinary crawl, which crawl/verify.py checks. Here they are held against the manifest and against each other: none is
missing, none belongs elsewhere, and all are of one moment, as a resume demands too.
"""

from collections.abc import Iterator, Mapping, Set
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from trapline.crawl.ends import INTERRUPTED, TERMINATED
from trapline.crawl.records import Passed
from trapline.crawl.resume import nobody
from trapline.crawl.store.folder import DATABASE, connect
from trapline.crawl.store.reading import Reading
from trapline.crawl.verify import Problem, Tell, Verified, held, integrity_problems
from trapline.crawl.verify import verify as verify_one
from trapline.errors import ConfigError
from trapline.parallel import merged
from trapline.parallel.manifest import Manifest, is_parallel, read
from trapline.parallel.of_one_moment import are_of_one_moment
from trapline.parallel.worker import check_mark

# What the database of all has of each partition, row by row, and without any that several have.
_COUNTS = {
    "fetches": "select count(*) from fetch",
    "fetches with a record": "select count(file) from fetch",
    "robots.txt files": "select count(*) from robots",
    "robots.txt files with a record": "select count(file) from robots",
    "archives": "select count(*) from warc",
}


def verify_all(folder: Path, repair: bool = False, tell: Tell = nobody) -> Verified:
    """Check a crawl of any kind; with `repair`, repair it. `ConfigError` if it is none, or is being crawled."""
    if not is_parallel(folder):
        return verify_one(folder, repair, tell)
    with held(folder, repair):  # whoever crawls with all partitions holds it too
        manifest, total = read(folder), Verified()
        parts = merged.begun(manifest)
        if not parts and not (folder / DATABASE).exists():
            raise ConfigError(f"{folder}: the crawl has not begun")
        each = {part: verify_one(part, repair, tell) for part in parts}
        for found in each.values():
            total.add(found)
        unsound = {part for part, found in each.items() if _has_database_problems(part, found)}
        for problem in _between(manifest, unsound):
            total.problems.append(problem)
            total.remaining.append(problem)
        _check_merged(manifest, total, repair, is_comparable=not unsound)
    return total


def _has_database_problems(part: Path, found: Verified) -> bool:
    """Whether the database of a partition may raise errors where it is read. Then it is not held against others."""
    return any(problem.place == str(part / DATABASE) for problem in found.remaining)


# ---- the partitions among each other


class _Exchanged(NamedTuple):
    """What passed between a partition and the others, as it has it itself."""

    passed: Mapping[int, Passed]
    batch: int  # the last


_NOTHING = _Exchanged({}, 0)
_NO_PARCELS = Passed(0, 0, False)


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
                what = f"its last batch is {batch}, and the database of all partitions has its batch {known[part.name]}"
                yield Problem(str(part), f"{what}: restore all partitions from copies that were taken together")
    yield from _moment_problems({number: begun[number] for number in exchanged}, exchanged)


def _exchanged(part: Path) -> _Exchanged:
    with closing(Reading(part)) as reading:
        return _Exchanged(reading.partitions(), reading.last_batch())


def _merged_batches(manifest: Manifest) -> Mapping[str, int]:
    with suppress(ConfigError):  # `_check_merged` says what is wrong with it
        return merged.batches(manifest.folder)
    return {}


def _has_begun(manifest: Manifest, number: int, exchanged: Mapping[int, _Exchanged], known: Mapping[str, int]) -> bool:
    """Return whether a partition was there once. One may be missing that was killed, or stopped, at its first moment."""
    passed = [other.passed.get(number, _NO_PARCELS) for other in exchanged.values()]
    has_ended = manifest.stopped_by not in ("", INTERRUPTED, TERMINATED)
    return has_ended or known.get(f"partition-{number}", 0) > 0 or any(one.received for one in passed)


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
                made = exchanged[sender].passed.get(receiver, _NO_PARCELS).made
                received = exchanged[receiver].passed.get(sender, _NO_PARCELS).received
                waiting = reading.parcels(receiver, received, 1)
                if not are_of_one_moment(received, made, waiting[0][0] if waiting else None):
                    was = f"{received:,} parcels arrived there of {made:,} that were made here"
                    what = f"it and {begun[receiver].name} are not of one moment ({was})"
                    yield Problem(str(part), f"{what}: restore all partitions from copies that were taken together")


# ---- the database of all


def _check_merged(manifest: Manifest, found: Verified, repair: bool, is_comparable: bool) -> None:
    """If it is damaged, it is removed, and made anew by the next command that needs it."""
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
        there = sum(one[what] for one in theirs)
        if here != there:
            yield f"has {here:,} {what}, and the partitions have {there:,}"


def _counts(folder: Path) -> dict[str, int]:
    with closing(connect(folder)) as database:
        return {what: database.execute(sql).fetchone()[0] for what, sql in _COUNTS.items()}
