"""Connections to the endpoint, bounded: how many there are, how many of one sender, how long a request may take, how long its head is.

uvicorn bounds none of these by itself (docs/decisions/022-endpoint.md): a head that never ends is collected for ever, and so are
the trailers behind a body. No timer per request: somebody calls `sweep` about once a second. What a request says is not looked at here.
"""

import asyncio
from collections import Counter, OrderedDict
from time import monotonic
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from trapline.signals.limits_of_senders import HOLD_UP, sender_of

HEAD_BYTES = 16 * 1024  # or of trailers, or between two pieces of a body
HEAD_S = 10.0  # from the first byte of a request, or from the connection, to the end of its head
WHOLE_S = 30.0  # and to the end of our answer
MOST_CONNECTIONS = 512
MOST_OF_ONE_SENDER = 32


class Bounds:
    """What the connections of one server share, and who gives way when there are too many.

    Law: whoever comes anew is kept out by nobody who waits, and nobody loses a connection to a sender that has more of them. A
    connection waits as long as its sender has not sent a whole request; one that is held up because its sender asks too much, or that
    has several requests in it, counts as waiting too. One of those goes first, of the sender that has most, the one that was answered
    longest ago, or never. So slow senders, however many, use up each other's connections alone, and so do those that ask too much.

    `proxy`: an address that stands for many senders, "": none.
    """

    def __init__(self, proxy: str = "") -> None:
        self._proxy = sender_of(proxy)
        self._open: OrderedDict[BoundedConnection, None] = OrderedDict()  # by when they were made, or last answered
        self.of_sender: Counter[str] = Counter()  # open connections
        self.refused = 0  # newcomers
        self.gave_way = 0  # to newcomers
        self.cut_off = 0  # too slow, or too long

    def admits(self, new: "BoundedConnection") -> bool:
        """Whether it may stay; if there are too many, another has gone for it."""
        own = self.of_sender[new.sender]
        if own >= MOST_OF_ONE_SENDER and new.sender != self._proxy:
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
        """It no longer counts, whether it ever did or not."""
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

    def _first(self, several: list["BoundedConnection"]) -> "BoundedConnection | None":
        return max(several, key=lambda one: (one.waits, self.of_sender[one.sender]), default=None)

    def protocol(self) -> type["BoundedConnection"]:
        """The class of connections for one server."""
        return type("Connection", (BoundedConnection,), {"bounds": self})


class BoundedConnection(HttpToolsProtocol):
    bounds: ClassVar[Bounds]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._since: float | None = None  # when the request under way began; None: between requests
        self._in_head = True
        self._bytes_beside_body = 0  # since the last head, piece of a body or request was whole
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
        if self._in_head:  # a trailer says nothing that anybody may believe, and there is no end to them
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
        if self._since is not None and now - self._since > (HEAD_S if self._in_head and not self.busy else WHOLE_S):
            self.cut()

    @property
    def waits(self) -> bool:
        """For its sender: no whole request of it is being answered. Or it takes more than one request's share: its sender asks too
        much, or has sent the next requests before the first was answered, and has to expect that those are lost (RFC 9112, 9.3.2)."""
        if self._is_held_up or self.pipeline:
            return True
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    @property
    def busy(self) -> bool:
        """A request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def hold_up(self) -> None:
        """From here on it is held up; the answer will be its last."""
        self._is_held_up = True

    def cut(self) -> None:
        self.bounds.cut_off += 1
        self.abort()

    def abort(self) -> None:
        self.transport.abort()


def sweep(state: ServerState) -> None:
    """Every connection that has taken too long ends."""
    now = monotonic()
    for connection in list(state.connections):
        assert isinstance(connection, BoundedConnection)
        connection.sweep(now)
