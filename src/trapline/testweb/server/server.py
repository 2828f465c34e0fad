"""Server of a web: listens on one socket for each address of the web, all on one port, all in 127.0.0.0/8.

It opens and closes sockets and knows no HTTP. It must run in an event loop; `serve` runs it in its own process.
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
from trapline.testweb.server.connection import CACHE_BYTES, AnswerService, ServerConnection
from trapline.testweb.server.log import RequestLog
from trapline.testweb.server.pings import Pinger, endpoint_of
from trapline.testweb.web.served_web import ServedWeb

BACKLOG = 1_024
SWEEP_S = 0.5  # between two checks for idle connections
SPARE_FILES = 256  # open files besides the listening sockets
TRIES = 20  # attempts to find a port that is free on all addresses

Certificate = tuple[Path, Path | None]
"""The file of a certificate, in PEM, and the file of its key, if that is another one."""


class Server:
    """Serves from `start` to `stop`."""

    def __init__(
        self,
        web: ServedWeb,
        port: int = 0,
        tls: Certificate | None = None,
        cache_bytes: int = CACHE_BYTES,
        ping: str | None = None,
    ) -> None:
        """Bind the sockets.

        Port 0 means any free port. `ping` is the URL of the endpoint that providers ping; None: they do not ping.
        """
        to = endpoint_of(ping) if ping else None
        self._context = _context(tls) if tls else None
        _raise_file_limit(len(web.addresses))
        self._sockets = _bound(web.addresses, port)
        port = self._sockets[0].getsockname()[1]
        self._serving = AnswerService(web.at(port, tls is not None, began=time()), cache_bytes)
        self._pinger = Pinger(self._serving.web, to) if to else None
        self._living: set[ServerConnection] = set()
        self._servers: list[asyncio.Server] = []
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def web(self) -> ServedWeb:
        """The web, with the port on which it is served and the time at which it was started."""
        return self._serving.web

    @property
    def requests(self) -> int:
        return len(self._serving.recorder)

    @property
    def connections(self) -> int:
        """Number of connections made so far."""
        return self._serving.recorder.connections

    @property
    def bytes(self) -> int:
        """Number of bytes sent so far."""
        return self._serving.recorder.bytes

    def log(self) -> RequestLog:
        """Return the log up to now."""
        counts = deepcopy(self._pinger.counts) if self._pinger else None
        return RequestLog(self.web, self._serving.recorder.columns()._replace(pings=counts))

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        for number, own in enumerate(self._sockets):
            factory = partial(ServerConnection, self._serving, number, self._living)
            server = await loop.create_server(factory, sock=own, backlog=BACKLOG, ssl=self._context)
            self._servers.append(server)
        self._sweep()
        if self._pinger:
            self._pinger.start()

    async def stop(self) -> None:
        """Stop at once. Answers that are being sent are cut off."""
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
    """Return the context of a server with this certificate. The files are looked at first: OpenSSL's errors name no file."""
    certificate, key = tls[0], tls[1] or tls[0]
    if b"-----BEGIN CERTIFICATE-----" not in _read("--tls", certificate):
        raise ConfigError(f"--tls {certificate}: has no certificate in PEM format; give a file with BEGIN CERTIFICATE")
    option = "--tls-key" if tls[1] else "--tls"
    secret = _read(option, key)
    if b"PRIVATE KEY-----" not in secret:
        also = "give a file with BEGIN PRIVATE KEY" if tls[1] else "give the file of the key: --tls-key FILE"
        raise ConfigError(f"{option} {key}: has no private key in PEM format; {also}")
    if b"ENCRYPTED" in secret:  # OpenSSL would ask for the password on the terminal
        raise ConfigError(f"{option} {key}: the key is encrypted; decrypt it with: openssl pkey -in {key} -out FILE")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(
                f"{option} {key}: is not the key of the certificate in {certificate}; give the key that belongs to it"
            ) from None
        raise ConfigError(
            f"--tls {certificate} with the key in {key}: the files are damaged or not supported; make new ones with openssl"
        ) from None
    return context


def _read(option: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{option} {file}: {error.strerror or error}; give a PEM file that can be read") from None


def _raise_file_limit(addresses: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < addresses + SPARE_FILES:
        raise ConfigError(
            f"{addresses:,} addresses need as many listening sockets, but a process may open only {hard:,} files here; "
            "put several sites on one address with --sites-per-address"
        )
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _bound(addresses: list[str], port: int) -> list[socket.socket]:
    """Bind a socket for each address, all on one port."""
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
    raise ConfigError(f"cannot listen on {where}:{port}: {failed.strerror or failed}; {_remedy(failed)}") from None


def _remedy(failed: OSError) -> str:
    match failed.errno:
        case errno.EADDRINUSE:
            return "give another port, or --port 0 for any free one"
        case errno.EACCES:
            return "give a port of 1024 or above, or --port 0 for any free one"
        case errno.EADDRNOTAVAIL:
            return "put all sites on fewer addresses with --sites-per-address, or add the address to the loopback interface"
        case _:
            return "give another port with --port"


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
