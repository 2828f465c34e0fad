"""One crawl that the dashboard watches: reads it at most once a second, however many people look at it, and not at all if nobody does.

The table of sites is older than that: the process that crawls writes it when it is asked to, at most every four seconds.
"""

import asyncio
import sqlite3
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawler.files.control_mailbox import EXPORT_SITES, Action, send
from trapline.crawler.files.status_file import read_status
from trapline.dashboard.folder_reader import RUNNING, FolderReading, parts_of, read_folder, read_manifest, state_of
from trapline.dashboard.overview import CrawlReading, overview, unreadable
from trapline.dashboard.site_index import SiteIndex, SiteReader
from trapline.errors import ConfigError

TICK_S = 1.0
WRONG_VALUES = (ValueError, KeyError, TypeError, AttributeError, RecursionError, ArithmeticError)
_PROCESSOR_S = (
    5.0  # shares of processor time are those of this period, or of a longer one if the store commits less often
)


class CrawlView(NamedTuple):
    """What one tick has found."""

    status: dict[str, Any] | None  # live/status, as the loop wrote it
    overview: dict[str, Any]
    at: float
    serial: int
    reading: CrawlReading | None = None  # None: the crawl cannot be read


class WatchedCrawl:
    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self._view: CrawlView | None = None
        self._next_at = 0.0
        self._reading: asyncio.Task[CrawlView] | None = None
        self._processor = ProcessorShares()
        self._sites = WatchedSites(folder)
        self._preparing: asyncio.Task[None] | None = None

    @property
    def parts(self) -> list[Path]:
        """The folders with a database: the crawl itself, or its partitions."""
        return parts_of(self.folder)

    async def tick(self) -> CrawlView:
        """Return the view of this second."""
        if self._view is not None and time.monotonic() < self._next_at:
            return self._view
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        return await asyncio.shield(self._reading)

    async def _read(self) -> CrawlView:
        try:
            self._next_at = time.monotonic() + TICK_S
            view = await asyncio.to_thread(self._read_now, self._view.serial + 1 if self._view else 1)
            self._view = view
            return view
        finally:
            self._reading = None

    async def sites(self) -> SiteIndex:
        """Return the table of sites. Of a running crawl, it is some seconds old."""
        view = await self.tick()
        return await self._sites.index(view.overview["state"] == RUNNING)

    def prepare_sites(self) -> None:
        """Begin to read the table of sites, which takes a while the first time, because somebody who looks may open it soon."""
        self._preparing = self._preparing or asyncio.create_task(self._sites.prepare())

    def _read_now(self, serial: int) -> CrawlView:
        now = time.time()
        try:
            reading = read_crawl(self.folder, now)
            shares = self._processor.shares(reading.parts)
            try:
                shown = overview(reading, shares)
            except WRONG_VALUES:  # perhaps only those of live/status, which another version may have written
                reading = reading._replace(status=None, part_statuses=[None for _ in reading.parts])
                shown = overview(reading, shares)
                shown["notes"].append(
                    "live/status cannot be read; use the same version for the crawl and the dashboard."
                )
        except ConfigError as error:
            return CrawlView(None, unreadable(self.folder, str(error)), now, serial)
        except OSError as error:
            return CrawlView(
                None,
                unreadable(self.folder, f"{self.folder}: cannot be read: {error.strerror}; let this user read it"),
                now,
                serial,
            )
        except WRONG_VALUES as error:
            why = f"{self.folder}: has values that cannot be read ({type(error).__name__}: {error})"
            check = f"check the folder with: trapline verify {self.folder}"
            return CrawlView(None, unreadable(self.folder, f"{why}; {check}"), now, serial)
        return CrawlView(reading.status, shown, now, serial, reading)


def named_folders(folders: Sequence[str]) -> dict[Path, str]:
    """Return the folders, each once, with names that tell them apart: the name of the folder, or its whole path if several have the
    same name. Bytes that are no UTF-8 are escaped."""
    paths = {Path(folder).resolve(): Path(folder) for folder in reversed(folders)}
    given = {paths[whole]: whole for whole in dict.fromkeys(Path(folder).resolve() for folder in folders)}
    names = Counter(whole.name for whole in given.values())
    shown = {path: whole.name if names[whole.name] == 1 else str(whole) for path, whole in given.items()}
    return {path: name.encode("utf-8", "backslashreplace").decode() for path, name in shown.items()}


def read_crawl(folder: Path, now: float) -> CrawlReading:
    """Read a crawl of one or several processes. Raise `ConfigError` if it cannot be read."""
    manifest, folders = read_manifest(folder), parts_of(folder)
    readings = [(path, found) for path in folders if (found := read_folder(path)) is not None]
    parts = [found for _, found in readings]
    stopped_by = manifest.stopped_by if manifest else parts[0].stopped_by if parts else None
    options = manifest.options if manifest else parts[0].options if parts else {}
    statuses = [read_status(path) for path, _ in readings]
    status = read_status(folder) if manifest else statuses[0] if statuses else None
    state = state_of(folder, bool(parts), stopped_by)
    count = manifest.partitions if manifest else 1
    return CrawlReading(folder, state, stopped_by, options, parts, status, statuses, now, count)


class ProcessorShares:
    """The shares of time in which loop and store were busy, from two readings of the database."""

    def __init__(self) -> None:
        self._marks: deque[dict[str, tuple[float, float]]] = deque()  # busy and all seconds, oldest first

    def shares(self, parts: Sequence[FolderReading]) -> dict[str, float | None]:
        now = _summed(parts)
        if self._marks and any(now[name][1] < self._marks[-1][name][1] for name in now):
            self._marks.clear()  # a new run has begun
        if not self._marks or now != self._marks[-1]:
            self._marks.append(now)
        while len(self._marks) > 2 and _passed(self._marks[1], now) >= _PROCESSOR_S:
            self._marks.popleft()
        first = self._marks[0] if len(self._marks) > 1 else dict.fromkeys(now, (0.0, 0.0))
        return {name: _share(first[name], now[name]) for name in now}


def _summed(parts: Sequence[FolderReading]) -> dict[str, tuple[float, float]]:
    every = [part.processor_times() for part in parts]
    return {
        name: (sum(times.get(name, (0.0, 0.0))[0] for times in every), sum(times.get(name, (0.0, 0.0))[1] for times in every))
        for name in ("loop", "store")
    }  # fmt: skip


def _passed(before: dict[str, tuple[float, float]], now: dict[str, tuple[float, float]]) -> float:
    return now["store"][1] - before["store"][1]


def _share(before: tuple[float, float], now: tuple[float, float]) -> float | None:
    passed = now[1] - before[1]
    return (now[0] - before[0]) / passed if passed > 0.0 else None


# ---- The table of sites, kept up to date while somebody looks at it: a running crawl is asked for new numbers now and then.

_EXPORT_EVERY_S = (
    4.0  # between two exports of a running crawl; an open table is read every 5 s, so it is at most 10 s old
)
_MOST_SHARE = 200  # an export that holds the crawl up longer is repeated only after this many times its duration
_SITES_EVERY_S = 2.0
_OLD_S = 15.0  # a view waits for numbers of now if its own are older, because nobody looked for a while
_FIRST_WITHIN_S = 1.5  # but not longer than this
_ANSWER_WITHIN_S = 5.0


class WatchedSites:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._readers: list[SiteReader] = []
        self._index: SiteIndex | None = None
        self._read_at = 0.0
        self._exporting: asyncio.Task[None] | None = None
        self._asked_at = -_EXPORT_EVERY_S
        self._one = asyncio.Lock()

    async def index(self, running: bool) -> SiteIndex:
        async with self._one:
            if running:
                await self._ask()
            if self._index is None or (running and time.monotonic() - self._read_at >= _SITES_EVERY_S):
                self._index = await asyncio.to_thread(self._read)
                self._read_at = time.monotonic() if running else 0.0
            elif not running and self._read_at:
                self._index, self._read_at = await asyncio.to_thread(self._read), 0.0  # the crawl has ended
            return self._index

    async def prepare(self) -> None:
        """Read the names of all sites, so that the first view reads only what is new."""
        with suppress(ConfigError, sqlite3.Error, OSError):  # a view that needs the table says what is wrong
            async with self._one:
                if self._index is None:
                    self._index = await asyncio.to_thread(self._read)

    async def _ask(self) -> None:
        """Ask the crawl for its numbers, if they are old. Only a view without numbers, or with old ones, waits for them."""
        took_s = self._index.took_s if self._index else 0.0
        if time.monotonic() - self._asked_at < max(_EXPORT_EVERY_S, _MOST_SHARE * took_s):
            return
        if self._exporting is None or self._exporting.done():
            self._asked_at = time.monotonic()
            self._exporting = asyncio.create_task(asyncio.to_thread(self._send))
        if self._index is None or time.time() - self._index.at > max(_OLD_S, 2 * _MOST_SHARE * took_s):
            await asyncio.wait([self._exporting], timeout=_FIRST_WITHIN_S)

    def _send(self) -> None:
        with suppress(ConfigError):  # a crawl that accepts no actions has a snapshot, or no numbers
            send(self._folder, Action(EXPORT_SITES, "dashboard"), _ANSWER_WITHIN_S)

    def _read(self) -> SiteIndex:
        folders = parts_of(self._folder)
        self._readers += [SiteReader(folder) for folder in folders[len(self._readers) :]]
        before = self._index
        for place, reader in enumerate(self._readers):
            if not reader.read():  # the index before keeps the old reader
                before, self._readers[place] = None, SiteReader(reader.folder)
                self._readers[place].read()
        return SiteIndex(self._readers, before)
