"""The endpoint put together and run: the parts, one server, the work that recurs, and an end that loses nothing it has promised.

One process, one loop, beside the crawl and not in it: a flood here takes processor time from the crawl, and nothing else.
"""

import asyncio
import contextlib
import errno
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from trapline.errors import ConfigError
from trapline.fetch.address import Guard
from trapline.fetch.dns import Resolver
from trapline.fetch.tls import tls_context
from trapline.signals.access_posts import AccessPosts
from trapline.signals.bounded import MOST_CONNECTIONS, Bounds, sweep
from trapline.signals.deliveries import Deliveries, ReadFeed
from trapline.signals.endpoint import Endpoint
from trapline.signals.inbox import Inbox
from trapline.signals.intake import Intake, Rates
from trapline.signals.pings import Pings
from trapline.signals.sites_known import SitesAfter, SitesKnown
from trapline.signals.small_fetch import SmallFetch
from trapline.signals.subscriber import Subscriber
from trapline.signals.subscriptions import Subscriptions
from trapline.signals.tally import Row, Tally
from trapline.signals.writer import InboxWriter

EVERY_S = 1.0
KEEP_ALIVE_S = 5


@dataclass(frozen=True)
class Settings:
    folder: Path
    host: str = "127.0.0.1"
    port: int = 8642
    public_url: str = ""  # "": no WebSub, for no hub could reach us
    allow_private: bool = False
    insecure: bool = False
    token: str = ""
    proxy: str = ""  # whose X-Forwarded-For is believed
    rates: Rates = field(default_factory=Rates)
    keep_s: float = float("inf")  # signals older than that are forgotten
    hosts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    nameservers: tuple[str, ...] = ()


class Service:
    """All parts of a running endpoint. To be made and used in one loop."""

    def __init__(self, settings: Settings, sites_after: SitesAfter, read_feed: ReadFeed) -> None:
        clock = time.time
        self._settings = settings
        self._tidying: asyncio.Future[str] | None = None
        self.trouble = ""  # with the disk, in the last second
        self.tally, self.bounds = Tally(clock), Bounds(settings.proxy)
        self.inbox, self._side_inbox = Inbox(settings.folder), Inbox(settings.folder)
        self.known = SitesKnown(sites_after)
        self.writer = InboxWriter(self.inbox)
        intake = self._intake = Intake(self.writer, self.tally, settings.rates, clock)
        self._resolver = Resolver(settings.hosts, settings.nameservers)
        fetch = SmallFetch(self._resolver, Guard(settings.allow_private), tls_context(settings.insecure))
        self.pings = Pings(self.known, intake, fetch, self.tally, clock)
        self.subscriptions = Subscriptions(settings.folder)
        self._deliveries = Deliveries(self.subscriptions, intake, self.tally, read_feed, clock)
        self._subscriber = Subscriber(
            self.subscriptions, self._deliveries, fetch, self.known, settings.public_url.rstrip("/"), clock
        )
        accesses = AccessPosts(self.known, intake, self.tally, clock) if settings.token else None
        websub = self._deliveries if settings.public_url else None
        token = settings.token.encode()
        self.app = Endpoint(self.pings, websub, accesses, self.status, self.tally, settings.rates.sender, token, clock)

    def status(self) -> dict[str, Any]:
        """For people and machines: where it stands."""
        return {
            "requests": self.tally.requests,
            "signals": self.tally.by_channel(),
            "sites_known": len(self.known),
            "keys": {
                "known": len(self.pings.ownership),
                "pending": self.pings.ownership.pending,
                "urls_held": self.pings.ownership.held,
                "fetches": self.pings.ownership.key_fetches,
            },
            "connections": {
                "refused": self.bounds.refused,
                "gave_way": self.bounds.gave_way,
                "cut_off": self.bounds.cut_off,
            },
            "trouble": self.trouble or self.writer.failed or self.app.defect or self._subscriber.no_room,
        }

    async def run(self, stop: asyncio.Event, started: Callable[[int], None]) -> None:
        """Until `stop` is set. `started` is told the port."""
        listener = _listener(self._settings.host, self._settings.port)
        server = _Server(_config(self.app, self._settings, self.bounds))
        serving = asyncio.create_task(server.serve([listener]))
        beside = [asyncio.create_task(self._recur(server))]
        if self._settings.public_url:
            beside.append(asyncio.create_task(self._subscriber.run()))
        try:
            started(listener.getsockname()[1])
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait([stopping, serving, *beside], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
        finally:
            server.should_exit = True
            await serving
            await _end(beside)
            await self._close()

    async def _recur(self, server: uvicorn.Server) -> None:
        """Once a second: slow senders, repeated signals, new sites, counters, old signals. The disk is left to a thread."""
        while True:
            await asyncio.sleep(EVERY_S)
            sweep(server.server_state)
            await self._intake.late()
            with contextlib.suppress(sqlite3.Error):  # the crawl's database is busy: a second later, then
                self.known.read()
            rows = self.tally.taken()
            self._tidying = asyncio.get_running_loop().run_in_executor(None, self._tidy, rows)
            self.trouble = await asyncio.shield(self._tidying)
            if self.trouble:
                self.tally.put_back(rows)

    def _tidy(self, rows: list[Row]) -> str:
        """Why it could not be done; "": it was. A full disk is no reason to end: it may have room again."""
        try:
            self._side_inbox.add_tally(rows)
            if self._settings.keep_s < float("inf"):
                self._side_inbox.forget(time.time() - self._settings.keep_s)
        except sqlite3.Error as error:
            return f"signals.db: {error}"
        return ""

    async def _close(self) -> None:
        if self._tidying is not None:
            await asyncio.wait([self._tidying])
        await self.pings.close()
        await self.writer.close()
        self._deliveries.close()
        await self._resolver.close()
        self._tidy(self.tally.taken())
        for one in (self.subscriptions, self.inbox, self._side_inbox):
            one.close()


class _Server(uvicorn.Server):
    """Signals are for whoever runs us."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(app: Endpoint, settings: Settings, bounds: Bounds) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=bounds.protocol(),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # a line for each bad request would be a flood of lines; ours are in `status`
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.proxy),
        forwarded_allow_ips=settings.proxy or "",
        timeout_keep_alive=KEEP_ALIVE_S,
        backlog=MOST_CONNECTIONS,
        timeout_graceful_shutdown=5,
    )


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(MOST_CONNECTIONS)  # whoever comes before the server has begun is answered then
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigError(f"--listen {host}:{port}: {_why_not(error)}") from None
    return listener


def _why_not(error: Exception) -> str:
    """What to do about it, where we know."""
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EADDRINUSE:
        return "somebody listens there already; give another port, or 0 for any that is free"
    if number in (errno.EADDRNOTAVAIL, socket.EAI_NONAME):
        return "not an address of this machine"
    if number == errno.EACCES:
        return "not allowed to this user; ports from 1024 on are"
    return f"cannot be listened on: {getattr(error, 'strerror', None) or error}"


async def _end(tasks: list["asyncio.Task[None]"]) -> None:
    """An error in one of them is ours, and is not hidden."""
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended
