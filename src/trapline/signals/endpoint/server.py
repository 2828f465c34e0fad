"""The endpoint as a service: builds its parts, runs one server and the recurring work, and shuts down without losing accepted signals.

It runs in one process with one event loop, separate from the crawl: a flood of requests costs the crawl processor time, and nothing
else.
"""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from trapline.fetch.address import Guard
from trapline.fetch.dns import Resolver
from trapline.fetch.http.connection import tls_context
from trapline.signals.endpoint.app import Endpoint
from trapline.signals.endpoint.connections import MOST_CONNECTIONS, Bounds, QuietServer, listening, quiet_config, sweep
from trapline.signals.endpoint.intake import AccessPosts, Intake, Row, SenderRates, SignalTally
from trapline.signals.endpoint.known_sites import SitesAfter, SitesKnown
from trapline.signals.inbox import Inbox, InboxWriter
from trapline.signals.indexnow.pings import Pings
from trapline.signals.small_fetch import SmallFetch
from trapline.signals.websub.deliveries import Deliveries, ReadFeed
from trapline.signals.websub.subscriber import Subscriber
from trapline.signals.websub.subscriptions import Subscriptions

EVERY_S = 1.0
KEEP_ALIVE_S = 5


@dataclass(frozen=True)
class Settings:
    folder: Path
    host: str = "127.0.0.1"
    port: int = 8642
    public_url: str = ""  # "": no WebSub, because no hub could reach the endpoint
    allow_private: bool = False
    insecure: bool = False
    token: str = ""
    proxy: str = ""  # address of a proxy whose X-Forwarded-For is trusted
    rates: SenderRates = field(default_factory=SenderRates)
    keep_s: float = float("inf")  # older signals are deleted
    hosts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    nameservers: tuple[str, ...] = ()


class Service:
    """All parts of a running endpoint. Must be created and used in one event loop."""

    def __init__(self, settings: Settings, sites_after: SitesAfter, read_feed: ReadFeed) -> None:
        clock = time.time
        self._settings = settings
        self._tidying: asyncio.Future[str] | None = None
        self.trouble = ""  # problem with the disk in the last second
        self.tally, self.bounds = SignalTally(clock), Bounds(settings.proxy)
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
        """Return the counters of the endpoint, for people and for machines."""
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
        """Run until `stop` is set. Calls `started` with the port."""
        listener = listening(self._settings.host, self._settings.port, MOST_CONNECTIONS)
        server = QuietServer(_config(self.app, self._settings, self.bounds))
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
        """Once a second: close slow connections, send on repeated signals, read new sites, store counters, delete old signals.

        A thread does the work on the disk.
        """
        while True:
            await asyncio.sleep(EVERY_S)
            sweep(server.server_state)
            await self._intake.late()
            with contextlib.suppress(sqlite3.Error):  # the crawl's database is busy: retry in a second
                self.known.read()
            rows = self.tally.taken()
            self._tidying = asyncio.get_running_loop().run_in_executor(None, self._tidy, rows)
            self.trouble = await asyncio.shield(self._tidying)
            if self.trouble:
                self.tally.put_back(rows)

    def _tidy(self, rows: list[Row]) -> str:
        """Store counters and delete old signals. Return why that failed, or "".

        A full disk does not end the endpoint, because it may have room again later.
        """
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
        for database in (self.subscriptions, self.inbox, self._side_inbox):
            database.close()


def _config(app: Endpoint, settings: Settings, bounds: Bounds) -> uvicorn.Config:
    return quiet_config(
        app,
        bounds,
        proxy_headers=bool(settings.proxy),
        forwarded_allow_ips=settings.proxy or "",
        timeout_keep_alive=KEEP_ALIVE_S,
        backlog=MOST_CONNECTIONS,
        timeout_graceful_shutdown=5,
    )


async def _end(tasks: list["asyncio.Task[None]"]) -> None:
    """Cancel the tasks, and raise the first exception of one of them: it is a defect of ours, and must not be hidden."""
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended
