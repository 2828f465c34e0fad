"""The files of a crawl as the dashboard reads them: its database, its manifest, its lock. One short read for each tick.

Nothing here imports compiled code, writes, or keeps a transaction open: a long one would keep SQLite from moving the write-ahead log
into the database.
"""

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.files.layout import DATABASE, connect
from trapline.crawler.files.lock import holder
from trapline.crawler.store.database import PROCESSOR
from trapline.errors import ConfigError

# parallel/folder/manifest.py has these names and the format; it imports compiled code.
MANIFEST = "parallel.json"
NEW, RUNNING, ENDED, BROKEN_OFF, UNREADABLE = "new", "running", "ended", "broken off", "unreadable"
LATELY_S = 10.0  # the period of current rates, if the crawl does not report them itself
NOTHING = CrawlProgress(0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0.0)


class FolderReading(NamedTuple):
    """What the database of one crawl, or of one partition, says at one moment."""

    meta: Mapping[str, str]
    progress: CrawlProgress
    before: CrawlProgress  # some seconds of crawling earlier
    abandoned: dict[str, int]  # sites by kind
    rejected: dict[str, int]  # links by reason
    database_bytes: int
    warc_bytes: int

    @property
    def options(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.meta["options"])
        return found

    @property
    def stopped_by(self) -> str | None:
        return self.meta.get("stopped_by")

    @property
    def pace(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = json.loads(self.meta["pace"]) if "pace" in self.meta else None
        return found

    def processor_times(self) -> dict[str, tuple[float, float]]:
        """Return the busy seconds and all seconds of loop and store in the last run."""
        runs = [key for key in self.meta if key.startswith(PROCESSOR)]
        if not runs:
            return {}
        found = json.loads(self.meta[max(runs, key=lambda key: int(key.removeprefix(PROCESSOR)))])
        return {
            name: (times["user_s"] + times["system_s"], times["user_s"] + times["system_s"] + times["idle_s"])
            for name, times in found.items()
            if times is not None
        }


class ManifestReading(NamedTuple):
    """The manifest of a crawl of several partitions, as far as the dashboard needs it."""

    partitions: int
    stopped_by: str | None
    options: dict[str, Any]
    mode: str


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the database of a crawl for reading. Raise `ConfigError` for what is wrong with it."""
    try:
        with closing(connect(folder)) as database:
            yield database
    except sqlite3.Error as error:
        raise ConfigError(
            f"{folder / DATABASE}: cannot be read: {error}; check the folder with: trapline verify {folder}"
        ) from None


def read_folder(folder: Path) -> FolderReading | None:
    """Return the numbers of a crawl. None: it has not begun."""
    if not (folder / DATABASE).exists():
        return None
    with reading(folder) as database:
        database.execute("begin")
        last, before = _progress(database, folder)
        return FolderReading(
            meta=dict(database.execute("select key, value from meta where key not glob 'seed *'")),
            progress=last,
            before=before,
            abandoned=dict(database.execute("select kind, count(*) from abandoned_site group by kind order by 2 desc")),
            rejected=dict(database.execute("select reason, links from rejected_link order by 2 desc, 1")),
            database_bytes=_size(folder / DATABASE) + _size(folder / f"{DATABASE}-wal"),
            warc_bytes=int(database.execute("select total(bytes) from warc").fetchone()[0]),
        )


def created_of(database: sqlite3.Connection) -> str:
    """Return when the crawl was made. It tells a crawl from another one that had the same folder."""
    found = database.execute("select value from meta where key = 'created'").fetchone()
    return str(found[0]) if found else ""


def _progress(database: sqlite3.Connection, folder: Path) -> tuple[CrawlProgress, CrawlProgress]:
    rows = database.execute("select * from progress order by rowid desc limit 100").fetchall()
    if not all(isinstance(value, int | float) for row in rows for value in row):
        problem = "its table progress has values that are not numbers"
        raise ConfigError(f"{folder / DATABASE}: {problem}; check the folder with: trapline verify {folder}")
    last, *others = [*map(CrawlProgress._make, rows), NOTHING]
    lately = [progress for progress in others if progress.seconds >= last.seconds - LATELY_S]
    return last, (lately or others or [last])[-1 if lately else 0]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def read_manifest(folder: Path) -> ManifestReading | None:
    """Return the manifest of a crawl of several partitions; None: the crawl has one process."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text())
        sizes, options = found["sizes"], found["options"]
        mode = str(found["policy"].get("mode", ""))
        return ManifestReading(int(sizes[-1]), found["stopped_by"] or None, options, mode)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); restore it from a copy") from None


def parts_of(folder: Path) -> list[Path]:
    """Return the folders with a database: the crawl itself, or its partitions."""
    manifest = read_manifest(folder)
    return [folder] if manifest is None else [folder / f"partition-{number}" for number in range(manifest.partitions)]


def state_of(folder: Path, has_begun: bool, stopped_by: str | None) -> str:
    if holder(folder) is not None:
        return RUNNING
    return NEW if not has_begun else ENDED if stopped_by else BROKEN_OFF


def finite(value: Any) -> Any:
    """Return the value with null in place of infinities and NaN, which JSON does not have.

    >>> finite({"a": [1.5, math.inf], "b": math.nan})
    {'a': [1.5, None], 'b': None}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list | tuple) else value
