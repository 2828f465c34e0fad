"""One connection to one server: requests go out, whole responses come back, and its end is told once.

No name is resolved here, no address judged, no body understood: http1.py reads the bytes, and the owner (a visit of the crawl)
decides what to ask and when to stop. Step 5 of the way of a URL.
Rules
- The owner is called from the event loop only, never from inside `send`, `close`, `abort` or `sweep`.
- `connected` at most once; then `received` once for each request, in order, as far as answers come; then `lost`, exactly
  once, whatever happened, with the number of requests that have no answer. Nothing after that.
- No task and no timer per request: limits of time are seen to by `sweep`, which somebody calls a few times a second.
- A response's times count from when its request was sent. With several under way they overlap; what adds up is its own time: since
  the answer before it, or since its request if nothing else was under way. Answers that came in one piece share it alike.
"""

import asyncio
import socket
import ssl
from collections import deque
from time import monotonic
from typing import Protocol, cast

from trapline.errors import InvariantError
from trapline.fetch.failure import CLOSED, CONNECT, PROTOCOL, STOPPED, TIMEOUT, TLS
from trapline.fetch.http1 import Response, ResponseReader
from trapline.fetch.limits import Limits
from trapline.fetch.throttle import Throttle

# For TLS's farewell, which is sent for politeness and not needed.
_FAREWELL_S = 1.0


class Owner(Protocol):
    """Who uses a connection."""

    def connected(self, connection: "Connection", seconds: float) -> None: ...

    def received(self, connection: "Connection", response: Response) -> None: ...

    def lost(self, connection: "Connection", failure: str, unanswered: int) -> None:
        """It is over. `failure`: a kind of failure.py, or "" for an orderly end with nothing unanswered."""


def open_connection(
    loop: asyncio.AbstractEventLoop,
    address: str,
    port: int,
    owner: Owner,
    limits: Limits,
    tls: ssl.SSLContext | None = None,
    server_name: str = "",
    throttle: Throttle | None = None,
) -> "Connection":
    """Begins to connect to exactly this address, which somebody has checked; returns at once."""
    if not _is_literal(address):
        raise InvariantError(f"{address!r} is not an address: whoever opens a connection resolves and checks it before")
    connection = Connection(loop, address, owner, limits, throttle)
    connection.begin(port, tls, server_name)
    return connection


class Connection(asyncio.Protocol):
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: str,
        owner: Owner,
        limits: Limits,
        throttle: Throttle | None = None,
    ) -> None:
        self.address = address
        self.opened_at = monotonic()  # it began to connect
        self.requests_sent = 0
        self.responses_received = 0
        self.bytes_received = 0
        self.is_over = False  # no more answers will come; `lost` has been told, or will be at once
        self.owner = owner  # may be another one after a while: a connection can outlast the visit that opened it
        self._loop, self._limits, self._throttle = loop, limits, throttle
        self._reader = ResponseReader(limits)
        self._connecting: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._idle_s = limits.idle_s
        self._sent_at: deque[float] = deque()  # of what is under way; filled by `send`, emptied by answers, in order
        # The own time of the response under way counts from here; if there is none, it is idle from here.
        self._since = 0.0
        self._first_byte_at = 0.0  # of that response; 0.0: it is not in
        self._paused_at = 0.0  # by the throttle; 0.0: it is reading
        self._paused_s = 0.0  # for how long, in all, since `_since`

    @property
    def unanswered(self) -> int:
        return self.requests_sent - self.responses_received

    @property
    def is_answering(self) -> bool:
        """Whether a part of the next answer is in."""
        return self._first_byte_at > 0.0

    def send(self, request: bytes) -> None:
        """May be called before earlier answers are in. What is sent when `is_over` only counts as unanswered."""
        if self._transport is None:
            raise InvariantError("a request is sent from `connected` on, and not after `lost`")
        now = monotonic()
        if not self._sent_at:
            self._since, self._paused_s = now, 0.0
        self._sent_at.append(now)
        self.requests_sent += 1
        if not self.is_over:
            self._transport.write(request)

    def close(self) -> None:
        self._end(STOPPED if self.unanswered or self._transport is None else "")

    def abort(self) -> None:
        self._end(STOPPED)

    def sweep(self, now: float) -> None:
        """Ends what has taken too long. Time in which our own throttle held it up does not count."""
        if self.is_over or self._paused_at:
            return
        waited = now - self._since - self._paused_s
        if self._transport is None:
            if now - self.opened_at > self._limits.connect_s:
                self._end(CONNECT)
        elif self.requests_sent == self.responses_received:
            if waited > self._idle_s:
                self._end("")
        elif waited > self._limits.total_s:
            self._cut_short(now)
        elif waited > self._limits.first_byte_s and not self._first_byte_at:
            self._end(TIMEOUT)

    # For the throttle

    def pause(self) -> None:
        if self._transport is not None and not self._paused_at and not self._transport.is_closing():
            self._paused_at = monotonic()
            self._transport.pause_reading()

    def resume(self) -> bool:
        if self._transport is None or not self._paused_at or self._transport.is_closing():
            return False
        self._paused_s += monotonic() - self._paused_at
        self._paused_at = 0.0
        self._transport.resume_reading()
        return True

    # For the event loop

    def begin(self, port: int, tls: ssl.SSLContext | None, server_name: str) -> None:
        self._connecting = self._loop.create_task(self._connect(port, tls, server_name))

    async def _connect(self, port: int, tls: ssl.SSLContext | None, server_name: str) -> None:
        try:
            server_name.encode("idna")  # ValueError: TLS cannot ask for that name, and the loop would leak a socket
            await self._loop.create_connection(
                lambda: self,
                self.address,
                port,
                flags=socket.AI_NUMERICHOST,  # no name is looked up, whatever the loop takes for one
                ssl=tls,
                server_hostname=None if tls is None else server_name,
                ssl_shutdown_timeout=None if tls is None else _FAREWELL_S,
            )
            self._connecting = None
        except (OSError, ValueError) as error:
            self._connecting = None
            self._end(_why_not_connected(error, tls))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.is_over:
            self._transport.abort()
            return
        self._since = monotonic()
        if self._throttle is not None:
            # Not at once: uvloop begins to read after this call, and forgets that it was told not to.
            self._loop.call_soon(self._throttle.joined, self, self._since)
        self.owner.connected(self, self._since - self.opened_at)

    def data_received(self, data: bytes) -> None:
        if self.is_over:
            return
        now = monotonic()
        self.bytes_received += len(data)
        if self._throttle is not None:
            self._throttle.took(self, len(data), now)
        if self._sent_at and not self._first_byte_at:
            self._first_byte_at = now
        self._reader.feed(data)
        responses = self._whole_responses()
        has_more = self._reader.has_more()
        asked_for = not has_more or len(responses) < self.unanswered  # all that came
        if responses:
            self._time(responses, now)
            self._first_byte_at = now if has_more else 0.0
        for response in responses:
            if not self._deliver(response, asked_for or response is not responses[-1]):
                return
        if self._reader.failure or not asked_for:
            self._end(self._reader.failure or PROTOCOL)

    def eof_received(self) -> None:
        if self.is_over:
            return
        response = self._reader.eof() if self.unanswered else None
        if response is not None:
            self._time([response], monotonic())
            self._deliver(response)
        else:
            self._end(CLOSED if self.unanswered else "")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(CLOSED if self.unanswered else "")

    # What follows from it

    def _whole_responses(self) -> list[Response]:
        """Those that are in, up to the last one asked for and to the last one that this connection will have."""
        responses: list[Response] = []
        while len(responses) < self.unanswered and (response := self._reader.next()) is not None:
            responses.append(response)
            if not response.keep_alive:
                break
        return responses

    def _time(self, responses: list[Response], now: float) -> None:
        """They came together, now. What is sent from here on finds them answered."""
        own_s = (now - self._since) / len(responses)
        for response in responses:
            sent_at = self._sent_at.popleft()
            response.first_byte_s = self._first_byte_at - sent_at
            response.total_s, response.own_s = now - sent_at, own_s
            self._first_byte_at = now
        self._since, self._paused_s = now, 0.0

    def _deliver(self, response: Response, asked_for: bool = True) -> bool:
        """`asked_for`: what came behind it, if anything did. False: it was the last one."""
        self.responses_received += 1
        if response.allowed_s:
            self._idle_s = min(self._limits.idle_s, response.allowed_s)
        if not response.keep_alive:
            self._end(CLOSED if self.unanswered else "")
        elif not asked_for:
            response.hang_up()  # who knows what an answer to the next request would be
            self._end(PROTOCOL)
        self.owner.received(self, response)
        return not self.is_over

    def _cut_short(self, now: float) -> None:
        response = self._reader.cut("time")
        if response is not None:
            self._time([response], now)
            self.responses_received += 1
        self._end(TIMEOUT if response is None else CLOSED if self.unanswered else "", response)

    def _end(self, failure: str, last: Response | None = None) -> None:
        """Whatever the reason: the first one counts, and the owner hears of it from the loop."""
        if self.is_over:
            return
        self.is_over = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._transport is not None and failure:
            self._transport.abort()
        elif self._transport is not None:
            self._transport.close()
        self._loop.call_soon(self._tell, failure, last)

    def _tell(self, failure: str, last: Response | None) -> None:
        if last is not None:
            self.owner.received(self, last)
        self._transport = None
        self.owner.lost(self, failure, self.unanswered)


def _is_literal(address: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    except OSError:
        return False
    return True


def _why_not_connected(error: Exception, tls: ssl.SSLContext | None) -> str:
    """A server that hangs up on a handshake refuses TLS; to be hung up on before it has another name."""
    hung_up = isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError)
    if isinstance(error, ssl.SSLError | ValueError) or (tls is not None and hung_up):
        return TLS
    return CONNECT
