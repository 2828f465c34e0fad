"""Snapshots of a crawl: frontier, table of seen URLs and refresher at one batch, so that a resume need not replay from the beginning.

DIR/snapshot/N holds the state after batch N. It may be newer than the database (the store commits later than the loop sends), and a
resume takes the newest that the database has reached. Those that it has not reached are of a future that never was: there will be
another batch N, so a resume removes them.

Of those that the database has reached the last two are kept, so that one may be damaged; the log of batches behind both is not needed
any more (`tidy`). When a snapshot is due is not known here (snapshots.py).
"""

import shutil
from pathlib import Path

from trapline.crawl.seen import Seen
from trapline.crawl.store.folder import SNAPSHOT
from trapline.errors import ConfigError, OtherVersionError
from trapline.frontier import Frontier, snapshot
from trapline.output import sync
from trapline.refresh.policy import Policy
from trapline.refresh.refresher import Refresher
from trapline.strategies import Strategy

_KEPT = 2
_LAST = "frontier"  # what is written last: a snapshot that has it is whole


def save(folder: Path, batch: int, frontier: Frontier, seen: Seen, refresher: Refresher | None = None) -> None:
    """Write the state after `batch`."""
    place = folder / SNAPSHOT / str(batch)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    seen.save(place / "seen")
    if refresher is not None:
        refresher.save(place / "refresh")
    snapshot.save(frontier, place / _LAST)
    sync(folder / SNAPSHOT)
    sync(folder)


def tidy(folder: Path, last_batch: int) -> int:
    """Remove the states that nobody will ask for, now that the database has reached this batch; up to which batch its log is not needed
    any more, 0: all of it is."""
    reached = [number for number in _numbers(folder) if number <= last_batch]
    kept = [number for number in reached if (folder / SNAPSHOT / str(number) / _LAST).is_dir()][-_KEPT:]
    for number in set(reached) - set(kept):
        shutil.rmtree(folder / SNAPSHOT / str(number), ignore_errors=True)
    return kept[0] if len(kept) == _KEPT else 0


def load(folder: Path, last_batch: int, strategy: Strategy) -> tuple[int, Frontier, Seen] | None:
    """The newest state at or before a batch; None: there is none, or none that can be read."""
    for batch in reversed([number for number in _numbers(folder) if number <= last_batch]):
        place = folder / SNAPSHOT / str(batch)
        try:
            return batch, snapshot.load(place / _LAST, strategy), Seen.load(place / "seen")
        except OtherVersionError:
            raise
        except ConfigError:
            continue  # the one before, and the log since, say the same
    return None


def load_refresher(folder: Path, last_batch: int, policy: Policy) -> tuple[int, Refresher] | None:
    """The newest refresher at or before a batch; None: there is none, or none that can be read."""
    for batch in reversed([number for number in _numbers(folder) if number <= last_batch]):
        try:
            return batch, Refresher.load(folder / SNAPSHOT / str(batch) / "refresh", policy)
        except OtherVersionError:
            raise
        except ConfigError:
            continue  # the one before, and the log since, say the same
    return None


def forget_after(folder: Path, last_batch: int) -> None:
    """Remove the states that the database has not reached, and never will."""
    for number in _numbers(folder):
        if number > last_batch:
            shutil.rmtree(folder / SNAPSHOT / str(number))


def _numbers(folder: Path) -> list[int]:
    place = folder / SNAPSHOT
    return sorted(int(entry.name) for entry in place.iterdir() if entry.name.isdigit()) if place.is_dir() else []
