"""Snapshots of a crawl: frontier, table of seen URLs and refresher at one batch, so that a resume need not replay from the beginning.

DIR/snapshot/N holds the state after batch N. It may be newer than the database (the store commits later than the loop sends), and a
resume takes the newest that the database has reached. Those that it has not reached are of a future that never was: there will be
another batch N, so a resume removes them.

Of those that the database has reached the last two are kept, so that one may be damaged; the log of batches behind both is not needed
any more (`tidy`). A resume that finds one damaged removes it, or it would be taken for one of the two. When a snapshot is due is not
known here (snapshots.py).
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from trapline.crawl.seen import Seen
from trapline.crawl.store.folder import SNAPSHOT
from trapline.errors import ConfigError, OtherVersionError
from trapline.frontier import Frontier, snapshot
from trapline.output import sync
from trapline.refresh.policy import Policy
from trapline.refresh.refresher import Refresher
from trapline.strategies import Strategy

T = TypeVar("T")
_KEPT = 2
_LAST = "frontier"  # what is written last: a snapshot that has it is whole


class Loaded(NamedTuple, Generic[T]):
    batch: int  # after which it was; 0: there is none, or none that can be read
    state: T | None
    damaged: tuple[str, ...]  # what is wrong with those that were passed over, the newest first


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
    reached = [number for number in numbers(folder) if number <= last_batch]
    kept = [number for number in reached if (folder / SNAPSHOT / str(number) / _LAST).is_dir()][-_KEPT:]
    for number in set(reached) - set(kept):
        shutil.rmtree(folder / SNAPSHOT / str(number), ignore_errors=True)
    return kept[0] if len(kept) == _KEPT else 0


def load(folder: Path, last_batch: int, strategy: Strategy) -> Loaded[tuple[Frontier, Seen]]:
    """The newest state at or before a batch."""
    return _newest(
        folder, last_batch, lambda place: (snapshot.load(place / _LAST, strategy), Seen.load(place / "seen"))
    )


def load_refresher(folder: Path, last_batch: int, policy: Policy) -> Loaded[Refresher]:
    """The newest refresher at or before a batch."""
    return _newest(folder, last_batch, lambda place: Refresher.load(place / "refresh", policy))


def _newest(folder: Path, last_batch: int, read: Callable[[Path], T]) -> Loaded[T]:
    damaged: list[str] = []
    for batch in reversed([number for number in numbers(folder) if number <= last_batch]):
        place = folder / SNAPSHOT / str(batch)
        try:
            return Loaded(batch, read(place), tuple(damaged))
        except OtherVersionError:
            raise
        except ConfigError as error:  # the one before, and the log since, say the same
            if (place / _LAST).is_dir():
                damaged.append(str(error))
    return Loaded(0, None, tuple(damaged))


def newest(folder: Path) -> int:
    """The batch of the newest snapshot; 0: there is none."""
    return max(numbers(folder), default=0)


def forget_after(folder: Path, last_batch: int) -> None:
    """Remove the states after this batch: the database has not reached them and never will, or they are damaged."""
    for number in numbers(folder):
        if number > last_batch:
            shutil.rmtree(folder / SNAPSHOT / str(number))


def numbers(folder: Path) -> list[int]:
    """The batches of all snapshots, from the oldest. What has another name, or is no folder, is not ours (`strangers`)."""
    return sorted(int(entry.name) for entry in _entries(folder) if _is_snapshot(entry))


def strangers(folder: Path) -> list[Path]:
    """What lies among the snapshots and is none."""
    return sorted(entry for entry in _entries(folder) if not _is_snapshot(entry))


def _entries(folder: Path) -> list[Path]:
    place = folder / SNAPSHOT
    return list(place.iterdir()) if place.is_dir() else []


def _is_snapshot(entry: Path) -> bool:
    """Return whether this is the folder of a snapshot: its name is a number as Python writes it."""
    return re.fullmatch("[1-9][0-9]{0,17}", entry.name) is not None and entry.is_dir()
