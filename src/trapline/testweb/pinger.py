"""Sends the pings of a web's sites, each when it is due, from the site's own address; and counts what became of them.

The queue between who knows what is due and who sends: filled by `_tell`, emptied by WORKERS senders; it is never longer than
MOST_WAITING, and what does not fit is dropped and counted, so that a slow endpoint cannot slow the web down. What is due within a
tick goes out together. It knows no HTTP but the status line of an answer.
"""

import asyncio
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING

from trapline.testweb.pings import Endpoint, Ping, PingCounts, pings_of

if TYPE_CHECKING:
    from trapline.testweb.web import Web

WORKERS = 8
MOST_WAITING = 1_000  # requests
TICK_S = 0.05
AT_ONCE = 10_000  # pings that are put into the queue without a look at anything else
PATIENCE_S = 5.0  # with the endpoint


class Pinger:
    """From `start` to `stop`, in an event loop."""

    def __init__(self, web: "Web", to: Endpoint) -> None:
        self._web, self._to = web, to
        self._queue: asyncio.Queue[Ping] = asyncio.Queue(MOST_WAITING)
        self._tasks: list[asyncio.Task[None]] = []
        self.counts = PingCounts()

    def start(self) -> None:
        senders = (self._send() for _ in range(WORKERS))
        self._tasks = [asyncio.create_task(one) for one in (self._tell(), *senders)]

    async def stop(self) -> None:
        """At once; what waits is not sent."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _tell(self) -> None:
        due: dict[int, dict[int, None]] = {}  # the pages of each site, each once
        for number, (at_s, page) in enumerate(self._web.providers.pings() if self._web.providers else ()):
            if at_s > self._now_s() or number % AT_ONCE == 0:
                self._put(due)
                due = {}
                await self._until(at_s)
            due.setdefault(self._web.site[page], {})[page] = None

    async def _until(self, at_s: float) -> None:
        """A tick at least: others want to be served, however late we are."""
        await asyncio.sleep(TICK_S)
        while (wait_s := at_s - self._now_s()) > 0:
            await asyncio.sleep(wait_s)

    def _now_s(self) -> float:
        return time() - self._web.began

    def _put(self, due: dict[int, dict[int, None]]) -> None:
        for site, pages in due.items():
            for ping in pings_of(self._web, site, list(pages), self._to):
                try:
                    self._queue.put_nowait(ping)
                except asyncio.QueueFull:
                    self.counts.dropped += ping.pages

    async def _send(self) -> None:
        while True:
            ping = await self._queue.get()
            try:
                status = await asyncio.wait_for(self._answer(ping), PATIENCE_S)
            except (OSError, ValueError, IndexError, TimeoutError, asyncio.IncompleteReadError):
                self.counts.failed += ping.pages
            else:
                self.counts.answered[status] += ping.pages

    async def _answer(self, ping: Ping) -> int:
        """The status of the endpoint's answer; whatever it says besides is not read."""
        own = self._web.addresses[self._web.address_of[ping.site]]
        reader, writer = await asyncio.open_connection(self._to.host, self._to.port, local_addr=(own, 0))
        try:
            writer.write(ping.message)
            await writer.drain()
            return int((await reader.readuntil(b"\r\n")).split(b" ")[1])
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
