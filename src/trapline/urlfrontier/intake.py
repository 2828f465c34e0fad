"""Takes the URLs of all streams and stores them in groups: one commit, and one wait for the disk, for what came in a few milliseconds.

A stream gets its acknowledgements after the commit. It may have a limited number of URLs that are not acknowledged yet; then its next
message is not read, and gRPC lets the client wait.
"""

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from trapline.durable.scheduled import PutPage
from trapline.errors import ConfigError, RankError
from trapline.terminal import say
from trapline.urlfrontier.crawls import Crawls
from trapline.urlfrontier.messages import FAIL, OK, SKIPPED

# Of a stream: URLs, and bytes of the messages that they came in.
MOST_PENDING, MOST_PENDING_BYTES = 4_096, 8 << 20
_MOST_AT_ONCE = 8_192  # URLs of all streams in one commit
_QUIET_S, _LONGEST_S = 0.001, 0.02  # a group is complete when nothing came for so long, or after this time
_SAID_EVERY_S = 10.0


class Group(NamedTuple):
    """The URLs of one message."""

    id: str
    pages: Sequence[tuple[str, PutPage] | None]  # with their crawls; None: cannot be stored
    size: int  # bytes of the message
    stream: "PutStream"


class PutStream:
    """The state of one stream of a client. `acks` has its acknowledgements, with the groups that they are for."""

    def __init__(self) -> None:
        self.acks: deque[tuple[Group, list[int]]] = deque()
        # Of groups that were read, and whose acknowledgement was not sent.
        self.pending = self._urls = self._bytes = 0
        self.is_read = False  # the client has ended the stream
        self.changed = asyncio.Event()
        self.has_room = asyncio.Event()
        self.has_room.set()

    def came(self, group: Group) -> None:
        self._count(group, 1)

    def sent(self, group: Group) -> None:
        self._count(group, -1)

    def _count(self, group: Group, sign: int) -> None:
        self.pending += sign
        self._urls += sign * len(group.pages)
        self._bytes += sign * group.size
        if self._urls < MOST_PENDING and self._bytes < MOST_PENDING_BYTES:
            self.has_room.set()
        else:
            self.has_room.clear()


class Intake:
    def __init__(self, crawls: Crawls) -> None:
        self._crawls = crawls
        self._groups: deque[Group] = deque()
        self._urls = 0
        self._came = asyncio.Event()
        self._said_at = -_SAID_EVERY_S

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
            group.stream.acks.append((group, found))
            group.stream.changed.set()

    def _put(self, crawl: str, pages: list[PutPage]) -> list[int]:
        """Store pages of one crawl, and return the status of each."""
        try:
            frontier = self._crawls.get_or_make(crawl)
            frontier.catch_up()
            stored = frontier.put(pages)
            frontier.commit(sync=True)
        except RankError:  # of the user's strategy: what it left half done must not be kept, and no URL can be ranked
            self._crawls.discard()
            raise
        except ConfigError as error:  # the crawl cannot be made: it would be one too many
            self._say(f"trapline: {error}")
            return [FAIL] * len(pages)
        except (sqlite3.Error, OSError) as error:  # a full disk: the next commit that succeeds has these pages too
            self._say(f"trapline: crawl {crawl}: {len(pages)} URLs are not stored: {error}")
            return [FAIL] * len(pages)
        return [OK if is_stored else SKIPPED for is_stored in stored]

    def _say(self, line: str) -> None:
        """Print an error, unless one was printed a moment ago: clients send the same again and again."""
        now = time.monotonic()
        if now - self._said_at >= _SAID_EVERY_S:
            self._said_at = now
            say(line, err=True)


async def serve_stream(requests: Any, intake: Intake, groups_of: Any, write: Any) -> None:
    """Read the messages of a stream, and write an acknowledgement for each. `groups_of`: returns the ID and the pages of a message."""
    stream = PutStream()
    reader = asyncio.create_task(_read(requests, intake, groups_of, stream))
    try:
        while True:
            await stream.changed.wait()
            stream.changed.clear()
            while stream.acks:
                group, statuses = stream.acks.popleft()
                await write(group.id, statuses)
                stream.sent(group)
            if stream.is_read and not stream.pending:
                break
        await reader
    finally:
        reader.cancel()


async def _read(requests: Any, intake: Intake, groups_of: Any, stream: PutStream) -> None:
    try:
        async for message in requests:
            identifier, pages = groups_of(message)
            group = Group(identifier, pages, message.ByteSize(), stream)
            stream.came(group)
            intake.add(group)
            await stream.has_room.wait()
    finally:
        stream.is_read = True
        stream.changed.set()
