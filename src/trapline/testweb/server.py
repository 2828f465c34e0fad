"""Listens for a web: one socket for each of its addresses, all on one port, all in 127.0.0.0/8.

It opens and closes sockets and knows no HTTP. It must run in an event loop; a process of its own is `serve`.
"""

import asyncio
import errno
import resource
import socket
import ssl
from copy import deepcopy
from functools import partial
from pathlib import Path
from time import monotonic, time

from trapline.errors import ConfigError
from trapline.testweb.connection import Connection
from trapline.testweb.log import Log
from trapline.testweb.pinger import Pinger
from trapline.testweb.pings import endpoint_of
from trapline.testweb.serving import CACHE_BYTES, Serving
from trapline.testweb.web import Web

BACKLOG = 1_024
SWEEP_S = 0.5  # between two looks for idle connections
SPARE_FILES = 256  # beside the listening sockets
TRIES = 20  # for a port that is free on all addresses

Certificate = tuple[Path, Path | None]
"""The file of a certificate, in PEM, and that of its key, if it is another."""


class Server:
    """Serves from `start` to `stop`."""

    def __init__(
        self,
        web: Web,
        port: int = 0,
        tls: Certificate | None = None,
        cache_bytes: int = CACHE_BYTES,
        ping: str | None = None,
    ) -> None:
        """port: 0: any that is free. ping: the URL that providers ping, if they do."""
        to = endpoint_of(ping) if ping else None
        self._context = _context(tls) if tls else None
        _raise_file_limit(len(web.addresses))
        self._sockets = _bound(web.addresses, port)
        port = self._sockets[0].getsockname()[1]
        self._serving = Serving(web.at(port, tls is not None, began=time()), cache_bytes)
        self._pinger = Pinger(self._serving.web, to) if to else None
        self._living: set[Connection] = set()
        self._servers: list[asyncio.Server] = []
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def web(self) -> Web:
        """With the port on which it is served, and when it began."""
        return self._serving.web

    @property
    def requests(self) -> int:
        return len(self._serving.recorder)

    @property
    def connections(self) -> int:
        """Made so far."""
        return self._serving.recorder.connections

    @property
    def bytes(self) -> int:
        """Sent so far."""
        return self._serving.recorder.bytes

    def log(self) -> Log:
        """Up to now."""
        counts = deepcopy(self._pinger.counts) if self._pinger else None
        return Log(self.web, self._serving.recorder.columns()._replace(pings=counts))

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        for number, own in enumerate(self._sockets):
            factory = partial(Connection, self._serving, number, self._living)
            server = await loop.create_server(factory, sock=own, backlog=BACKLOG, ssl=self._context)
            self._servers.append(server)
        self._sweep()
        if self._pinger:
            self._pinger.start()

    async def stop(self) -> None:
        """At once: answers under way are cut off."""
        if self._sweeper:
            self._sweeper.cancel()
        if self._pinger:
            await self._pinger.stop()
        for server in self._servers:
            server.close()
        for connection in list(self._living):
            connection.abort()
        await asyncio.sleep(0)

    def _sweep(self) -> None:
        now = monotonic()
        for connection in list(self._living):
            connection.expire(now)
        self._sweeper = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)


def _context(tls: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(*tls)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"certificate {tls[0]} with key {tls[1] or tls[0]}: {error.strerror or error}") from None
    return context


def _raise_file_limit(addresses: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < addresses + SPARE_FILES:
        raise ConfigError(
            f"{addresses:,} addresses need as many listening sockets, and a process may open {hard:,} files here; "
            "put several sites on one address"
        )
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _bound(addresses: list[str], port: int) -> list[socket.socket]:
    """A socket for each address, all on one port."""
    for _ in range(1 if port else TRIES):
        sockets: list[socket.socket] = []
        try:
            for address in addresses:
                sockets.append(_socket(address, port or (sockets[0].getsockname()[1] if sockets else 0)))
            return sockets
        except OSError as error:
            failed, where = error, addresses[len(sockets)]
            for own in sockets:
                own.close()
            if error.errno != errno.EADDRINUSE:
                break
    raise ConfigError(f"cannot listen on {where}:{port}: {failed.strerror or failed}") from None


def _socket(address: str, port: int) -> socket.socket:
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind((address, port))
        own.setblocking(False)
    except OSError:
        own.close()
        raise
    return own
