"""The table of sites of one crawl, kept up to date while somebody looks at it: asks the running crawl for new numbers now and then."""

import asyncio
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from trapline.crawler.files.control_mailbox import EXPORT_SITES, Action, send
from trapline.dashboard.folder_reader import parts_of
from trapline.dashboard.site_index import SiteIndex, SiteReader
from trapline.errors import ConfigError

_EVERY_S = 4.0  # between two exports of a running crawl; an open table is read every 5 s, so it is at most 10 s old
_MOST_SHARE = 200  # an export that holds the crawl up longer is repeated only after this many times its duration
_READ_EVERY_S = 2.0
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
        self._asked_at = -_EVERY_S
        self._one = asyncio.Lock()

    async def index(self, running: bool) -> SiteIndex:
        async with self._one:
            if running:
                await self._ask()
            if self._index is None or (running and time.monotonic() - self._read_at >= _READ_EVERY_S):
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
        if time.monotonic() - self._asked_at < max(_EVERY_S, _MOST_SHARE * took_s):
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
