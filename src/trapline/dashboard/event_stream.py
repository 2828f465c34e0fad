"""News of one crawl for all browsers that show it, as server-sent events: its overview once a second, and new lines of its log.

One task reads the crawl and encodes each event once. A browser that is slow misses overviews, never lines of the log unless they are
very many: for each browser the latest overview waits, and the lines since the last sending.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from trapline.dashboard.watched_crawl import TICK_S, WatchedCrawl

_HEARTBEAT_S = 15.0  # so that proxies and browsers notice a connection that is gone
_MOST_WAITING = 200  # frames besides the overview that wait for one browser
MOST_BROWSERS = 64

NewLines = Callable[[], list[dict[str, Any]]]


class _Browser:
    def __init__(self) -> None:
        self.overview = b""
        self.others: list[bytes] = []
        self.news = asyncio.Event()

    def take(self) -> bytes:
        """Return the frames that wait; a comment if there are none."""
        frames = b"".join((self.overview, *self.others)) or b": alive\n\n"
        self.overview, self.others = b"", []
        self.news.clear()
        return frames


class EventStream:
    def __init__(self, crawl: WatchedCrawl, new_lines: NewLines, closing: asyncio.Event) -> None:
        """`new_lines`: returns the events of the crawl's log since the last call. `closing`: set when the server ends."""
        self._crawl, self._new_lines, self._closing = crawl, new_lines, closing
        self._browsers: set[_Browser] = set()
        self._producing: asyncio.Task[None] | None = None
        self._serial, self._state = 0, ""

    @property
    def is_full(self) -> bool:
        return len(self._browsers) >= MOST_BROWSERS

    async def subscribe(self) -> AsyncIterator[bytes]:
        """Yield whole frames, the first one at once. End when the server ends."""
        browser = _Browser()
        self._browsers.add(browser)
        try:
            browser.overview = await self._overview_frame()
            if self._producing is None or self._producing.done():
                self._producing = asyncio.create_task(self._produce())
            while not self._closing.is_set():
                yield browser.take()
                await _either(browser.news, self._closing, _HEARTBEAT_S)
        finally:
            self._browsers.discard(browser)

    async def _produce(self) -> None:
        """Send news until nobody listens."""
        await asyncio.to_thread(self._new_lines)  # what was written before is shown by the view of events
        while self._browsers and not self._closing.is_set():
            await _either(self._closing, self._closing, TICK_S)
            await self._send_news()

    async def _send_news(self) -> None:
        view, lines = await self._crawl.tick(), await asyncio.to_thread(self._new_lines)
        others = [_frame("log", lines, view.serial)] if lines else []
        if self._state and view.overview["state"] != self._state:
            others.append(_frame("crawl", {"state": view.overview["state"]}, view.serial))
        self._state = view.overview["state"]
        overview = _frame("status", view.overview, view.serial) if view.serial != self._serial else b""
        self._serial = view.serial
        for browser in self._browsers:
            browser.overview = overview or browser.overview
            browser.others = [*browser.others, *others][-_MOST_WAITING:]
            browser.news.set()

    async def _overview_frame(self) -> bytes:
        view = await self._crawl.tick()
        return _frame("status", view.overview, view.serial)


def _frame(event: str, value: Any, serial: int) -> bytes:
    return f"event: {event}\nid: {serial}\ndata: {json.dumps(value, allow_nan=False)}\n\n".encode("ascii")


async def _either(first: asyncio.Event, second: asyncio.Event, within_s: float) -> None:
    """Wait until one of the events is set, or the time has passed."""
    waiting = [asyncio.ensure_future(event.wait()) for event in {first, second}]
    try:
        await asyncio.wait(waiting, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
