"""Connections to the endpoint, bounded: how many there are, how many of one sender, how long a request may take, how long its head is.

uvicorn bounds none of these by itself (docs/decisions/022-endpoint.md): a head that never ends is collected for ever. No
timer per request: somebody calls `sweep` about once a second. What a request says is not looked at here.
"""

import asyncio
from collections import Counter
from time import monotonic
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from trapline.signals.limits_of_senders import sender_of

HEAD_BYTES = 16 * 1024
HEAD_S = 10.0  # from the first byte of a request, or from the connection, to the end of its head
WHOLE_S = 30.0  # and to the end of our answer
MOST_CONNECTIONS = 512
MOST_OF_ONE_SENDER = 32


class Bounds:
    """What the connections of one server share. `proxy`: an address that stands for many senders, "": none."""

    def __init__(self, proxy: str = "") -> None:
        self._proxy = proxy
        self.of_sender: Counter[str] = Counter()  # open connections
        self.refused = 0
        self.cut_off = 0

    def admits(self, sender: str, connections: int) -> bool:
        few = self.of_sender[sender] < MOST_OF_ONE_SENDER or sender == self._proxy
        admitted = few and connections <= MOST_CONNECTIONS
        self.of_sender[sender] += admitted
        self.refused += not admitted
        return admitted

    def left(self, sender: str) -> None:
        self.of_sender[sender] -= 1
        if not self.of_sender[sender]:
            del self.of_sender[sender]

    def protocol(self) -> type["BoundedConnection"]:
        """The class of connections for one server."""
        return type("Connection", (BoundedConnection,), {"bounds": self})


class BoundedConnection(HttpToolsProtocol):
    bounds: ClassVar[Bounds]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._since: float | None = None  # when the request under way began; None: between requests
        self._in_head = True
        self._head_bytes = 0
        self._sender: str | None = None  # None: it was refused, and does not count

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = monotonic()
        sender = sender_of(self.client[0] if self.client else "")
        if self.bounds.admits(sender, len(self.connections)):
            self._sender = sender
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._sender is not None:
            self.bounds.left(self._sender)
            self._sender = None

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._since is None:
            self._since = monotonic()
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES:
            self.cut()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._in_head, self._head_bytes = False, 0

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._since = monotonic() if self.pipeline else None

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = True

    def sweep(self, now: float) -> None:
        if self._since is not None and now - self._since > (HEAD_S if self._in_head and not self.busy else WHOLE_S):
            self.cut()

    @property
    def busy(self) -> bool:
        """A request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def cut(self) -> None:
        self.bounds.cut_off += 1
        self.transport.abort()


def sweep(state: ServerState) -> None:
    """Every connection that has taken too long ends."""
    now = monotonic()
    for connection in list(state.connections):
        assert isinstance(connection, BoundedConnection)
        connection.sweep(now)
