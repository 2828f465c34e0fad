"""Snapshots of a crawl: frontier, table of seen URLs and refresher after one batch.

With a snapshot, a resume need not replay the log from its beginning.

DIR/snapshot/N holds the state after batch N. A snapshot may be newer than the database, because the store commits later
than the loop sends. A resume takes the newest snapshot that the database has reached. It removes the snapshots that the
database has not reached: their batches were never committed, and the resumed crawl will write another batch N.

The last two snapshots that the database has reached are kept, so that one of them may be damaged. The log up to the
older of the two is no longer needed (`tidy`). A resume removes a damaged snapshot; otherwise it would count as one of
the two. crawler/engine/snapshots.py takes the snapshots of a running crawl.
"""

import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from trapline.crawler.discovery.seen import SeenTable
from trapline.crawler.files.layout import SNAPSHOT
from trapline.errors import ConfigError, OtherVersionError
from trapline.frontier import Frontier, snapshot
from trapline.output import sync
from trapline.refresh.live.refresher import Refresher
from trapline.refresh.policy import Policy
from trapline.strategies import Strategy

T = TypeVar("T")
_KEPT = 2
_LAST = "frontier"  # the part that is written last: a snapshot with it is complete


class Loaded(NamedTuple, Generic[T]):
    batch: int  # the state is that after this batch; 0: there is no snapshot that can be read
    state: T | None
    damaged: tuple[str, ...]  # what is wrong with the snapshots that were skipped, the newest first


def save(folder: Path, batch: int, frontier: Frontier, seen: SeenTable, refresher: Refresher | None = None) -> None:
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
    """Remove the snapshots that are no longer needed, now that the database has reached this batch.

    Return the batch up to which the log is no longer needed; 0: all of the log is needed.
    """
    reached = [number for number in numbers(folder) if number <= last_batch]
    kept = [number for number in reached if (folder / SNAPSHOT / str(number) / _LAST).is_dir()][-_KEPT:]
    for number in set(reached) - set(kept):
        shutil.rmtree(folder / SNAPSHOT / str(number), ignore_errors=True)
    return kept[0] if len(kept) == _KEPT else 0


def load(
    folder: Path, last_batch: int, strategy: Strategy | Callable[[int], Strategy]
) -> Loaded[tuple[Frontier, SeenTable]]:
    """Load the newest readable frontier and table of seen URLs at or before a batch. `strategy`: that of the crawl, or a function
    that returns it by its number (frontier/snapshot.py)."""
    return _newest(
        folder, last_batch, lambda place: (snapshot.load(place / _LAST, strategy), SeenTable.load(place / "seen"))
    )


def load_refresher(folder: Path, last_batch: int, policy: Policy) -> Loaded[Refresher]:
    """Load the newest readable refresher at or before a batch."""
    return _newest(folder, last_batch, lambda place: Refresher.load(place / "refresh", policy))


def _newest(folder: Path, last_batch: int, read: Callable[[Path], T]) -> Loaded[T]:
    damaged: list[str] = []
    for batch in reversed([number for number in numbers(folder) if number <= last_batch]):
        place = folder / SNAPSHOT / str(batch)
        try:
            return Loaded(batch, read(place), tuple(damaged))
        except OtherVersionError:
            raise
        except ConfigError as error:  # the previous snapshot and the log since then give the same state
            if (place / _LAST).is_dir():
                damaged.append(str(error))
    return Loaded(0, None, tuple(damaged))


def newest(folder: Path, last_batch: float = math.inf) -> int:
    """Return the batch of the newest snapshot up to this batch; 0: there is none."""
    return max((number for number in numbers(folder) if number <= last_batch), default=0)


def forget_after(folder: Path, last_batch: int) -> None:
    """Remove the snapshots after this batch: the database has not reached them and never will, or they are damaged."""
    for number in numbers(folder):
        if number > last_batch:
            shutil.rmtree(folder / SNAPSHOT / str(number))


def numbers(folder: Path) -> list[int]:
    """Return the batches of all snapshots, the oldest first. Other files and folders are not snapshots (`strangers`)."""
    return sorted(int(entry.name) for entry in _entries(folder) if _is_snapshot(entry))


def strangers(folder: Path) -> list[Path]:
    """Return the files and folders among the snapshots that are not snapshots."""
    return sorted(entry for entry in _entries(folder) if not _is_snapshot(entry))


def _entries(folder: Path) -> list[Path]:
    place = folder / SNAPSHOT
    return list(place.iterdir()) if place.is_dir() else []


def _is_snapshot(entry: Path) -> bool:
    """Return whether this is the folder of a snapshot: its name is a positive integer as Python writes it."""
    return re.fullmatch("[1-9][0-9]{0,17}", entry.name) is not None and entry.is_dir()


# ---- When a snapshot is due.

# The time of a snapshot grows with the number of known pages, about 80 bytes each. So in a large crawl the next one is due only after as
# many fetches, or bytes of log, as are in proportion to it. All snapshots together then take time in proportion to the crawl.
_KNOWN_PER_FETCH = 4
_LOG_BYTES_PER_KNOWN = 100


def is_due(fetches: int, log_bytes: int, known: int, most_fetches: int, most_log_bytes: int) -> bool:
    """Return whether a snapshot is due, so many fetches and bytes of log after the last one. `known`: pages. The last two arguments are
    the limits of a crawl that knows few pages."""
    return fetches >= max(most_fetches, known // _KNOWN_PER_FETCH) or log_bytes >= max(
        most_log_bytes, known * _LOG_BYTES_PER_KNOWN
    )
