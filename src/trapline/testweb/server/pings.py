"""Pings of sites by IndexNow (indexnow.org/documentation): a GET for one page, a POST for several.

The first part makes the messages and knows neither sockets nor time; `Pinger` sends them when they are due.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from time import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

from trapline.errors import ConfigError
from trapline.testweb.answers.published import key

if TYPE_CHECKING:
    from trapline.testweb.web.served_web import ServedWeb

MOST_URLS = 10_000  # in one POST


class PingTarget(NamedTuple):
    """The endpoint that receives the pings."""

    host: str
    port: int
    path: str


@dataclass(slots=True)
class PingCounts:
    """Results of pings, counted in pages."""

    dropped: int = 0
    """not sent, because too many were waiting"""
    failed: int = 0
    """sent, but not answered"""
    answered: Counter[int] = field(default_factory=Counter)
    """answered, by status"""

    @property
    def sent(self) -> int:
        return self.failed + sum(self.answered.values())


class SentPing(NamedTuple):
    """One ping request of a site, as bytes, and the number of pages that it announces."""

    site: int
    pages: int
    message: bytes


def endpoint_of(url: str) -> PingTarget:
    """Parse the URL of an endpoint. It must be on this machine: servers elsewhere must not receive pings of a fictitious web.

    >>> endpoint_of("http://127.0.0.1:8010/indexnow"), endpoint_of("http://localhost:81").path
    (PingTarget(host='127.0.0.1', port=8010, path='/indexnow'), '/indexnow')
    """
    try:
        parts = urlsplit(url)
        host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
        local = parts.scheme == "http" and IPv4Address(host).is_loopback
        return PingTarget(host, parts.port or 80, parts.path or "/indexnow") if local else _refuse(url)
    except ValueError:
        return _refuse(url)


def _refuse(url: str) -> PingTarget:
    raise ConfigError(f"ping {url}: not an endpoint on this machine; name one such as http://127.0.0.1:8010/indexnow")


def pings_of(web: "ServedWeb", site: int, pages: Sequence[int], to: PingTarget) -> Iterator[SentPing]:
    """Make the pings for these pages: one page by a GET, several by one or more POSTs of up to MOST_URLS pages each."""
    if len(pages) == 1:
        query = f"url={quote(web.url(pages[0]), safe='')}&key={key(web, site)}"
        yield SentPing(site, 1, _request("GET", f"{to.path}?{query}", to))
        return
    for begin in range(0, len(pages), MOST_URLS):
        part = pages[begin : begin + MOST_URLS]
        yield SentPing(site, len(part), _request("POST", to.path, to, _list(web, site, part)))


def _list(web: "ServedWeb", site: int, pages: Sequence[int]) -> bytes:
    own = key(web, site)
    about = {"host": web.authority(site), "key": own, "keyLocation": f"{web.origins[site]}/{own}.txt"}
    return json.dumps({**about, "urlList": [web.url(page) for page in pages]}).encode()


def _request(method: str, target: str, to: PingTarget, body: bytes = b"") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {to.host}:{to.port}", "Connection: close"]
    if body:
        lines += ["Content-Type: application/json; charset=utf-8", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


# ---- Sending: sends the pings of a web's sites when they are due, from the site's own address, and counts the results.
#
# `_queue_pings` fills a queue, and WORKERS senders empty it. The queue is never longer than MOST_WAITING. Pings that do not fit are dropped
# and counted, so that a slow endpoint cannot slow the web down. Pings that are due within a tick are sent together. Of HTTP, this
# part reads only the status line of an answer.

WORKERS = 8
MOST_WAITING = 1_000  # requests
TICK_S = 0.05
AT_ONCE = 10_000  # pings that are queued before other tasks get a turn
PATIENCE_S = 5.0  # to wait for the endpoint's answer


class Pinger:
    """Sends the pings of a web from `start` to `stop`, in an event loop."""

    def __init__(self, web: "ServedWeb", to: PingTarget) -> None:
        self._web, self._to = web, to
        self._queue: asyncio.Queue[SentPing] = asyncio.Queue(MOST_WAITING)
        self._tasks: list[asyncio.Task[None]] = []
        self.counts = PingCounts()

    def start(self) -> None:
        senders = (self._send() for _ in range(WORKERS))
        self._tasks = [asyncio.create_task(coroutine) for coroutine in (self._queue_pings(), *senders)]

    async def stop(self) -> None:
        """Stop at once; waiting pings are not sent."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _queue_pings(self) -> None:
        due: dict[int, dict[int, None]] = {}  # the pages of each site, without duplicates
        for number, (at_s, page) in enumerate(self._web.providers.pings() if self._web.providers else ()):
            if at_s > self._now_s() or number % AT_ONCE == 0:
                self._put(due)
                due = {}
                await self._until(at_s)
            due.setdefault(self._web.site[page], {})[page] = None

    async def _until(self, at_s: float) -> None:
        """Wait until `at_s`, and for at least a tick, so that the server gets its turn however late we are."""
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

    async def _answer(self, ping: SentPing) -> int:
        """Send the ping and return the status of the answer; the rest of the answer is not read."""
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
