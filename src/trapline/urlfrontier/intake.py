"""Takes the URLs of all streams and stores them together: one commit, and one wait for the disk, for what came in a few milliseconds.

A stream gets its acknowledgements after the commit. It may have a limited number of URLs that are not acknowledged yet; then its next
message is not read, and gRPC lets the client wait. So do all streams while too many bytes of them together are not stored.
"""

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from trapline.durable.pages import PutPage
from trapline.errors import ConfigError, RankError
from trapline.terminal import say
from trapline.urlfrontier.crawls import Crawls
from trapline.urlfrontier.messages import FAIL, OK, SKIPPED

# Of a stream: URLs, and bytes of the messages that they came in.
MOST_PENDING, MOST_PENDING_BYTES = 4_096, 8 << 20
_MOST_WAITING_BYTES = (
    64 << 20
)  # of the messages of all streams that are not stored yet; each stream may exceed it by one message
_MOST_AT_ONCE = 8_192  # URLs of all streams in one commit, and the rest of a message
_QUIET_S, _LONGEST_S = 0.001, 0.02  # a commit begins when nothing came for so long, or after this time
_SAID_EVERY_S = 10.0


class PutMessage(NamedTuple):
    """The URLs of one message."""

    id: str
    pages: Sequence[tuple[str, PutPage] | None]  # with their crawls; None: cannot be stored
    size: int  # bytes of the message
    stream: "PutStream"


class PutAck(NamedTuple):
    id: str
    statuses: list[int]
    size: int  # bytes of the message that it is for


class PutStream:
    """The state of one stream of a client. `acks` has the acknowledgements to send."""

    def __init__(self) -> None:
        self.acks: deque[PutAck] = deque()
        # Of messages that were read, and whose acknowledgement was not sent.
        self.pending = self._urls = self._bytes = 0
        self.is_read = False  # the client has ended the stream
        self.changed = asyncio.Event()
        self.has_room = asyncio.Event()
        self.has_room.set()

    def came(self, message: PutMessage) -> None:
        self._count(1, len(message.pages), message.size)

    def sent(self, ack: PutAck) -> None:
        self._count(-1, -len(ack.statuses), -ack.size)

    def _count(self, messages: int, urls: int, size: int) -> None:
        self.pending += messages
        self._urls += urls
        self._bytes += size
        _set(self.has_room, self._urls < MOST_PENDING and self._bytes < MOST_PENDING_BYTES)


class PutIntake:
    def __init__(self, crawls: Crawls) -> None:
        self._crawls = crawls
        self._messages: deque[PutMessage] = deque()
        self._urls = self._bytes = 0  # of these
        self._came = asyncio.Event()
        self.has_room = asyncio.Event()
        self.has_room.set()
        self._said_at = -_SAID_EVERY_S

    def add(self, message: PutMessage) -> None:
        self._messages.append(message)
        self._count(len(message.pages), message.size)

    def _count(self, urls: int, size: int) -> None:
        self._urls += urls
        self._bytes += size
        _set(self.has_room, self._bytes < _MOST_WAITING_BYTES)
        _set(self._came, bool(self._messages))

    async def run(self) -> None:
        """Store messages until this task is cancelled."""
        while True:
            await self._came.wait()
            await self._gather()
            self._store(self._taken())
            await asyncio.sleep(0)  # other calls are served in between

    def _taken(self) -> list[PutMessage]:
        """Take messages until they have enough URLs for a commit."""
        taken, urls = list[PutMessage](), 0
        while self._messages and urls < _MOST_AT_ONCE:
            taken.append(self._messages.popleft())
            urls += len(taken[-1].pages)
        self._count(-urls, -sum(message.size for message in taken))
        return taken

    async def _gather(self) -> None:
        """Wait until no more URLs come, or enough have come."""
        loop = asyncio.get_running_loop()
        end, urls = loop.time() + _LONGEST_S, -1
        while urls != self._urls < _MOST_AT_ONCE and loop.time() < end:
            urls = self._urls
            await asyncio.sleep(_QUIET_S)

    def _store(self, messages: Sequence[PutMessage]) -> None:
        by_crawl: dict[str, list[PutPage]] = {}
        for message in messages:
            for page in message.pages:
                if page is not None:
                    by_crawl.setdefault(page[0], []).append(page[1])
        statuses = {crawl: iter(self._put(crawl, pages)) for crawl, pages in by_crawl.items()}
        for message in messages:
            found = [SKIPPED if page is None else next(statuses[page[0]]) for page in message.pages]
            message.stream.acks.append(PutAck(message.id, found, message.size))
            message.stream.changed.set()

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


def _set(event: asyncio.Event, is_set: bool) -> None:
    if is_set:
        event.set()
    else:
        event.clear()


async def serve_stream(requests: Any, intake: PutIntake, pages_of: Any, write: Any) -> None:
    """Read the messages of a stream, and write an acknowledgement for each. `pages_of`: returns the ID and the pages of a message."""
    stream = PutStream()
    reader = asyncio.create_task(_read(requests, intake, pages_of, stream))
    try:
        while True:
            await stream.changed.wait()
            stream.changed.clear()
            while stream.acks:
                ack = stream.acks.popleft()
                await write(ack.id, ack.statuses)
                stream.sent(ack)
            if stream.is_read and not stream.pending:
                break
        await reader
    finally:
        reader.cancel()


async def _read(requests: Any, intake: PutIntake, pages_of: Any, stream: PutStream) -> None:
    try:
        async for message in requests:
            identifier, pages = pages_of(message)
            came = PutMessage(identifier, pages, message.ByteSize(), stream)
            stream.came(came)
            intake.add(came)
            await stream.has_room.wait()
            await intake.has_room.wait()
    finally:
        stream.is_read = True
        stream.changed.set()
