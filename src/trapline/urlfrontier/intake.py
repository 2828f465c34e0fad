"""Takes the URLs of all streams and stores them in groups: one commit, and one wait for the disk, for what came in a few milliseconds.

A stream gets its acknowledgements after the commit. It may have a limited number of URLs that are not acknowledged yet; then its next
message is not read, and gRPC lets the client wait.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from trapline.durable.scheduled import PutPage
from trapline.errors import ConfigError
from trapline.terminal import say
from trapline.urlfrontier.crawls import Crawls
from trapline.urlfrontier.messages import FAIL, OK, SKIPPED

MOST_PENDING = 4_096  # URLs of a stream
_MOST_AT_ONCE = 8_192  # URLs of all streams in one commit
_QUIET_S, _LONGEST_S = 0.001, 0.02  # a group is complete when nothing came for so long, or after this time


class Group(NamedTuple):
    """The URLs of one message."""

    id: str
    pages: Sequence[tuple[str, PutPage] | None]  # with their crawls; None: cannot be stored
    stream: "PutStream"


class PutStream:
    """The state of one stream of a client. `acks` has its acknowledgements, as (ID, statuses)."""

    def __init__(self) -> None:
        self.acks: deque[tuple[str, list[int]]] = deque()
        self.pending = 0  # URLs that were read, and whose acknowledgement was not sent
        self.is_read = False  # the client has ended the stream
        self.changed = asyncio.Event()
        self.has_room = asyncio.Event()
        self.has_room.set()

    def came(self, urls: int) -> None:
        self.pending += urls
        if self.pending >= MOST_PENDING:
            self.has_room.clear()

    def sent(self, urls: int) -> None:
        self.pending -= urls
        if self.pending < MOST_PENDING:
            self.has_room.set()


class Intake:
    def __init__(self, crawls: Crawls) -> None:
        self._crawls = crawls
        self._groups: deque[Group] = deque()
        self._urls = 0
        self._came = asyncio.Event()

    def add(self, group: Group) -> None:
        self._groups.append(group)
        self._urls += len(group.pages)
        self._came.set()

    async def run(self) -> None:
        """Store groups until this task is cancelled."""
        while True:
            await self._came.wait()
            await self._gather()
            self._came.clear()
            groups, self._groups, self._urls = self._groups, deque(), 0
            self._store(groups)

    async def _gather(self) -> None:
        """Wait until no more URLs come, or enough have come."""
        loop = asyncio.get_running_loop()
        end, urls = loop.time() + _LONGEST_S, -1
        while urls != self._urls < _MOST_AT_ONCE and loop.time() < end:
            urls = self._urls
            await asyncio.sleep(_QUIET_S)

    def _store(self, groups: Sequence[Group] | deque[Group]) -> None:
        by_crawl: dict[str, list[PutPage]] = {}
        for group in groups:
            for page in group.pages:
                if page is not None:
                    by_crawl.setdefault(page[0], []).append(page[1])
        statuses = {crawl: iter(self._put(crawl, pages)) for crawl, pages in by_crawl.items()}
        for group in groups:
            found = [SKIPPED if page is None else next(statuses[page[0]]) for page in group.pages]
            group.stream.acks.append((group.id, found))
            group.stream.changed.set()

    def _put(self, crawl: str, pages: list[PutPage]) -> list[int]:
        """Store pages of one crawl, and return the status of each."""
        try:
            frontier = self._crawls.get_or_make(crawl)
        except ConfigError as error:
            say(f"trapline: {error}", err=True)
            return [SKIPPED] * len(pages)
        try:
            stored = frontier.put(pages)
            frontier.commit(sync=True)
        except (sqlite3.Error, OSError) as error:  # a full disk: the next commit that succeeds has these pages too
            say(f"trapline: crawl {crawl}: {len(pages)} URLs are not stored: {error}", err=True)
            return [FAIL] * len(pages)
        return [OK if is_stored else SKIPPED for is_stored in stored]


async def serve_stream(requests: Any, intake: Intake, groups_of: Any, write: Any) -> None:
    """Read the messages of a stream, and write an acknowledgement for each. `groups_of`: returns the ID and the pages of a message."""
    stream = PutStream()
    reader = asyncio.create_task(_read(requests, intake, groups_of, stream))
    try:
        while True:
            await stream.changed.wait()
            stream.changed.clear()
            while stream.acks:
                identifier, statuses = stream.acks.popleft()
                await write(identifier, statuses)
                stream.sent(max(1, len(statuses)))
            if stream.is_read and not stream.pending:
                break
        await reader
    finally:
        reader.cancel()


async def _read(requests: Any, intake: Intake, groups_of: Any, stream: PutStream) -> None:
    try:
        async for message in requests:
            identifier, pages = groups_of(message)
            stream.came(max(1, len(pages)))
            intake.add(Group(identifier, pages, stream))
            await stream.has_room.wait()
    finally:
        stream.is_read = True
        stream.changed.set()
