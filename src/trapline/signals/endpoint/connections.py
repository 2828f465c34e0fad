"""The connections of an HTTP server of ours: its socket, and limits on their number, their number per sender, the time of a request, and
the length of its head.

uvicorn itself limits none of these (docs/decisions/022-endpoint.md): it buffers a head that never ends without a bound, and
likewise the trailers after a body. There is no timer per request; instead, the server calls `sweep` about once a second. This
module does not look at the content of requests.
"""

import asyncio
import contextlib
import errno
import socket
from collections import Counter, OrderedDict
from collections.abc import Iterator
from time import monotonic
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from trapline.errors import ConfigError
from trapline.signals.endpoint.rate_limits import HOLD_UP, sender_of

HEAD_BYTES = 16 * 1024  # also for trailers, and for bytes between two pieces of a body
HEAD_S = 10.0  # from the connection, or from the first byte of a later request, to the end of the head
WHOLE_S = 30.0  # from the same start to the end of our response
MOST_CONNECTIONS = 512
MOST_OF_ONE_SENDER = 32


class Bounds:
    """State shared by the connections of one server. Decides which connection is closed when there are too many.

    Laws: waiting connections never keep a new one out, and no sender loses a connection to a sender that has more of them.
    A connection is waiting as long as its sender has not sent a whole request. A connection that is held up because its
    sender exceeds its rate, or that has several requests pipelined, counts as waiting too. When there are too many, waiting
    connections are closed first; among them one of the sender that has most; among these the one whose last response is
    longest ago, or that never had one. So slow senders, however many, use up only each other's connections, and so do
    senders that exceed their rate.

    `proxy`: an address that stands for many senders; "": none.
    """

    whole_s = WHOLE_S  # the most time of a request and its response

    def __init__(self, proxy: str = "", most_of_one_sender: int = MOST_OF_ONE_SENDER) -> None:
        self._proxy, self._most_of_one_sender = sender_of(proxy), most_of_one_sender
        self._open: OrderedDict[BoundedConnection, None] = OrderedDict()  # in order of opening, or of last response
        self.of_sender: Counter[str] = Counter()  # open connections by sender
        self.refused = 0  # new connections that were refused
        self.gave_way = 0  # connections closed for new ones
        self.cut_off = 0  # connections closed because a request was too slow or too long

    def admits(self, new: "BoundedConnection") -> bool:
        """Return whether a new connection may stay. If there are too many, closes another one for it, where possible."""
        own = self.of_sender[new.sender]
        if own >= self._most_of_one_sender and new.sender != self._proxy:
            gives_way = self._first([one for one in self._open if one.sender == new.sender and one.waits])
        elif len(self._open) >= MOST_CONNECTIONS:
            gives_way = self._first([one for one in self._open if self._may_lose(one, new.sender, own)])
        else:
            return self._add(new)
        if gives_way is None:
            self.refused += 1
            return False
        self.gave_way += 1
        self.left(gives_way)
        gives_way.abort()
        return self._add(new)

    def answered(self, one: "BoundedConnection") -> None:
        if one in self._open:
            self._open.move_to_end(one)

    def left(self, one: "BoundedConnection") -> None:
        """Remove a connection from the count. Does nothing if it was not admitted, or was removed before."""
        if one in self._open:
            del self._open[one]
            self.of_sender[one.sender] -= 1
            if not self.of_sender[one.sender]:
                del self.of_sender[one.sender]

    def _add(self, new: "BoundedConnection") -> bool:
        self._open[new] = None
        self.of_sender[new.sender] += 1
        return True

    def _may_lose(self, one: "BoundedConnection", sender: str, own: int) -> bool:
        theirs = self.of_sender[one.sender]
        if one.waits:
            return theirs > own or one.sender == sender
        return theirs > own + 1

    def _first(self, candidates: list["BoundedConnection"]) -> "BoundedConnection | None":
        return max(candidates, key=lambda one: (one.waits, self.of_sender[one.sender]), default=None)

    def protocol(self) -> type["BoundedConnection"]:
        """Return the class of connections for one server."""
        return type("Connection", (BoundedConnection,), {"bounds": self})


class BoundedConnection(HttpToolsProtocol):
    """A connection of uvicorn with limits on time and on the length of the head."""

    bounds: ClassVar[Bounds]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._since: float | None = None  # start of the current request; None: between requests
        self._in_head = True
        self._bytes_beside_body = 0  # bytes since the end of the last head, piece of a body, or request
        self.sender = ""
        self._is_held_up = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = monotonic()
        self.sender = sender_of(self.client[0] if self.client else "")
        if not self.bounds.admits(self):
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.bounds.left(self)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._since is None:
            self._since = monotonic()
        self._bytes_beside_body += len(data)
        super().data_received(data)
        if self._bytes_beside_body > HEAD_BYTES:
            self.cut()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self.scope["extensions"] = {HOLD_UP: {"call": self.hold_up}}

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # ignore trailers: they are not trustworthy, and their number is unlimited
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._in_head, self._bytes_beside_body = False, 0

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._bytes_beside_body = 0

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._since = monotonic() if self.pipeline else None
        self.bounds.answered(self)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head, self._bytes_beside_body = True, 0

    def sweep(self, now: float) -> None:
        limit_s = HEAD_S if self._in_head and not self.busy else self.bounds.whole_s
        if self._since is not None and now - self._since > limit_s:
            self.cut()

    @property
    def waits(self) -> bool:
        """Whether the connection waits for its sender: no whole request is being answered.

        A connection that takes more than the share of one request counts as waiting too: its sender exceeds its rate, or has
        pipelined requests, which it must expect to lose (RFC 9112, 9.3.2).
        """
        if self._is_held_up or self.pipeline:
            return True
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def hold_up(self) -> None:
        """Mark the connection as held up; the current response will be its last."""
        self._is_held_up = True

    def cut(self) -> None:
        self.bounds.cut_off += 1
        self.abort()

    def abort(self) -> None:
        self.transport.abort()


def sweep(state: ServerState) -> None:
    """Close every connection whose request takes too long."""
    now = monotonic()
    for connection in list(state.connections):
        assert isinstance(connection, BoundedConnection)
        connection.sweep(now)


# ---- The socket of an HTTP server of ours, and the server that listens on it: for the endpoint of providers and for the dashboard


class QuietServer(uvicorn.Server):
    """A server that leaves process signals (SIGINT, SIGTERM) to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def quiet_config(app: Any, bounds: Bounds, **more: Any) -> uvicorn.Config:
    """Return the configuration of a server that prints nothing: a flood of bad requests would be a flood of lines."""
    return uvicorn.Config(
        app,
        http=bounds.protocol(),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        **more,
    )


def listening(host: str, port: int, backlog: int, option: str = "--listen") -> socket.socket:
    """Return a socket that listens on this address. Early connections wait until the server has started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(backlog)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigError(f"{option} {host}:{port}: {_why_not(error)}") from None
    return listener


def _why_not(error: Exception) -> str:
    """Return what is wrong with the address, and what to do about it where we know."""
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EADDRINUSE:
        return "address already in use; give another port, or 0 for any free port"
    if number in (errno.EADDRNOTAVAIL, socket.EAI_NONAME):
        return "not an address of this machine; give one of its addresses, such as 127.0.0.1"
    if number == errno.EACCES:
        return "not permitted for this user; use a port from 1024 on"
    return f"cannot listen on this address: {getattr(error, 'strerror', None) or error}"
