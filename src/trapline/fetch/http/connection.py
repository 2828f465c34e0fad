"""One connection to one server: sends requests, and passes complete responses to its owner. Step 5 in docs/architecture.md.

The module resolves no names, checks no addresses, and interprets no bodies. http1.py parses the bytes; the owner, a visit of the crawl,
decides what to request and when to stop.
Laws
- The owner is called only from the event loop, never from within `send`, `close`, `abort` or `sweep`.
- The owner gets `connected` at most once; then `received` once per request, in order, as far as responses arrive; then `lost`, exactly
  once, whatever happened, with the number of requests without a response. After that, nothing.
- There is no task and no timer per request: `sweep`, which is called a few times a second, enforces the limits of time.
- The times of a response count from when its request was sent. With several requests under way these times overlap. What adds up is the
  own time of a response: since the previous response, or since its request if no other was under way. Responses that arrive in one piece
  share this time equally.
"""

import asyncio
import os
import socket
import ssl
from collections import deque
from time import monotonic
from typing import Protocol, cast

from trapline.errors import InvariantError
from trapline.fetch.failure import CLOSED, CONNECT, PROTOCOL, STOPPED, TIMEOUT, TLS
from trapline.fetch.http.headers import MimeFilter
from trapline.fetch.http.http1 import Response, ResponseReader
from trapline.fetch.http.proxy import Proxy, ProxyError, ProxyUnavailableError, tunnel
from trapline.fetch.http.throttle import Throttle
from trapline.fetch.limits import Limits

# ---- TLS settings of the crawler.


def tls_context(insecure: bool = False) -> ssl.SSLContext:
    """Create a TLS context; this takes some milliseconds, so use one for a whole crawl. `insecure`: accept any certificate."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    # Servers that end a body by closing the connection often omit the close_notify of TLS.
    context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


# ---- Connection

# For the close_notify of TLS, which is a courtesy and not needed.
_TLS_SHUTDOWN_S = 1.0


class Owner(Protocol):
    """The user of a connection, which gets its events."""

    def connected(self, connection: "Connection", seconds: float) -> None: ...

    def received(self, connection: "Connection", response: Response) -> None: ...

    def lost(self, connection: "Connection", failure: str, unanswered: int) -> None:
        """The connection has ended. `failure`: a kind of fetch/failure.py, or "" for an orderly end without unanswered requests."""


def open_connection(
    loop: asyncio.AbstractEventLoop,
    address: str,
    port: int,
    owner: Owner,
    limits: Limits,
    tls: ssl.SSLContext | None = None,
    server_name: str = "",
    throttle: Throttle | None = None,
    mimes: MimeFilter | None = None,
    proxy: Proxy | None = None,
) -> "Connection":
    """Begin to connect to exactly this address, which the caller has checked; return at once. `mimes`: media types whose bodies
    are read; None: all. `proxy`: connects for us."""
    if not _is_literal(address):
        raise InvariantError(f"{address!r} is not an IP address; resolve and check the host before connecting")
    connection = Connection(loop, address, owner, limits, throttle, mimes)
    connection.begin(port, tls, server_name, proxy)
    return connection


class Connection(asyncio.Protocol):
    """A connection; `open_connection` creates it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: str,
        owner: Owner,
        limits: Limits,
        throttle: Throttle | None = None,
        mimes: MimeFilter | None = None,
    ) -> None:
        self.address = address
        self.opened_at = monotonic()  # start of connecting
        self.requests_sent = 0
        self.responses_received = 0
        self.bytes_received = 0
        self.why_not_connected = ""  # for people; "": it was connected, or is connecting
        self.is_proxy_lost = False  # the proxy could not be reached, or did not accept us
        self.is_over = False  # no more responses will arrive; `lost` was called, or will be at once
        self.owner = owner  # may change: a connection can outlast the visit that opened it
        self._loop, self._limits, self._throttle = loop, limits, throttle
        self._reader = ResponseReader(limits, None if mimes is None else self._skips)
        self._mimes = mimes
        self._heads = 0  # number of heads that `_skips` has seen
        self._exempt: set[int] = set()  # numbers of requests whose answers are read, whatever their type
        self._connecting: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._idle_s = limits.idle_s
        self._sent_at: deque[float] = deque()  # of requests under way, in order; `send` fills it, responses empty it
        # Start of the current response's own time; without one, start of the idle time.
        self._since = 0.0
        self._first_byte_at = 0.0  # of the current response; 0.0: not arrived
        self._paused_at = 0.0  # when the throttle paused reading; 0.0: not paused
        self._paused_s = 0.0  # total time of pauses since `_since`

    @property
    def unanswered(self) -> int:
        return self.requests_sent - self.responses_received

    @property
    def is_answering(self) -> bool:
        """Whether a part of the next response has arrived."""
        return self._first_byte_at > 0.0

    @property
    def is_throttled(self) -> bool:
        """Whether a bandwidth limit pauses reading."""
        return self._paused_at > 0.0

    def send(self, request: bytes) -> None:
        """Send a request, possibly before earlier responses have arrived. When `is_over`, it only counts as unanswered."""
        if self._transport is None:
            raise InvariantError("request sent while not connected; send only after `connected` and before `lost`")
        now = monotonic()
        if not self._sent_at:
            self._since, self._paused_s = now, 0.0
        self._sent_at.append(now)
        self.requests_sent += 1
        if not self.is_over:
            self._transport.write(request)

    def exempt_next(self) -> None:
        """Read the answer to the next request whatever its media type."""
        if self._mimes is not None:
            self._exempt.add(self.requests_sent)

    def _skips(self, response: Response) -> bool:
        """Return whether the body that follows this head is not wanted. Called once for each head, in their order."""
        number, self._heads = self._heads, self._heads + 1
        if number in self._exempt or not 200 <= response.status < 300:
            return False
        assert self._mimes is not None
        return not self._mimes.wants(response.headers.get(b"content-type", b""))

    def close(self) -> None:
        self._end(STOPPED if self.unanswered or self._transport is None else "")

    def abort(self) -> None:
        self._end(STOPPED)

    def sweep(self, now: float) -> None:
        """End the connection if it exceeds a limit of time. Pauses by our own throttle do not count."""
        if self.is_over or self._paused_at:
            return
        waited = now - self._since - self._paused_s
        if self._transport is None:
            if now - self.opened_at > self._limits.connect_s:
                self.why_not_connected = f"no connection within {self._limits.connect_s:g} s"
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

    def begin(self, port: int, tls: ssl.SSLContext | None, server_name: str, proxy: Proxy | None = None) -> None:
        self._connecting = self._loop.create_task(self._connect(port, tls, server_name, proxy))

    async def _connect(self, port: int, tls: ssl.SSLContext | None, server_name: str, proxy: Proxy | None) -> None:
        try:
            server_name.encode("idna")  # ValueError: TLS cannot send this name, and the loop would leak a socket
            if proxy is not None:
                await self._connect_through(proxy, port, tls, server_name)
            else:
                await self._loop.create_connection(
                    lambda: self,
                    self.address,
                    port,
                    flags=socket.AI_NUMERICHOST,  # never look up a name
                    ssl=tls,
                    server_hostname=None if tls is None else server_name,
                    ssl_shutdown_timeout=None if tls is None else _TLS_SHUTDOWN_S,
                )
            self._connecting = None
        except (OSError, ValueError) as error:
            self._connecting = None
            self.why_not_connected = reason_of(error)
            self.is_proxy_lost = isinstance(error, ProxyUnavailableError)
            self._end(_why_not_connected(error, tls))

    async def _connect_through(self, proxy: Proxy, port: int, tls: ssl.SSLContext | None, server_name: str) -> None:
        end = await tunnel(self._loop, proxy, self.address, port, server_name, tls is not None)
        await self._loop.create_connection(
            lambda: self,
            sock=end,
            ssl=tls,
            server_hostname=None if tls is None else server_name,
            ssl_shutdown_timeout=None if tls is None else _TLS_SHUTDOWN_S,
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.is_over:
            self._transport.abort()
            return
        self._since = monotonic()
        if self._throttle is not None:
            # Not at once: uvloop begins to read after this call, and would ignore a pause.
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
        is_requested = not has_more or len(responses) < self.unanswered  # all that arrived belongs to requests
        if responses:
            self._time(responses, now)
            self._first_byte_at = now if has_more else 0.0
        for response in responses:
            if not self._deliver(response, is_requested or response is not responses[-1]):
                return
        if self._reader.failure or not is_requested:
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

    # Delivery and end

    def _whole_responses(self) -> list[Response]:
        """Return the complete responses, up to the last request and up to the last response of this connection."""
        responses: list[Response] = []
        while len(responses) < self.unanswered and (response := self._reader.next()) is not None:
            responses.append(response)
            if not response.keep_alive:
                break
        return responses

    def _time(self, responses: list[Response], now: float) -> None:
        """Set the times of responses that arrived together, now, and remove their requests from those under way."""
        own_s = (now - self._since) / len(responses)
        for response in responses:
            sent_at = self._sent_at.popleft()
            response.first_byte_s = self._first_byte_at - sent_at
            response.total_s, response.own_s = now - sent_at, own_s
            self._first_byte_at = now
        self._since, self._paused_s = now, 0.0

    def _deliver(self, response: Response, is_requested: bool = True) -> bool:
        """Pass a response to the owner; return False if it was the last one.

        `is_requested`: whether the bytes after it, if any, belong to a request.
        """
        self.responses_received += 1
        if response.allowed_s:
            self._idle_s = min(self._limits.idle_s, response.allowed_s)
        if not response.keep_alive:
            self._end(CLOSED if self.unanswered else "")
        elif not is_requested:
            response.hang_up()  # the next response could not be trusted to belong to its request
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
        """End the connection. The first reason counts; the loop calls the owner."""
        if self.is_over:
            return
        self.is_over = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._transport is not None and failure:
            self._transport.abort()
        elif self._transport is not None:
            self._transport.close()
        self._loop.call_soon(self._report_end, failure, last)

    def _report_end(self, failure: str, last: Response | None) -> None:
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
    """Return the kind of failure. With TLS, a reset during connecting means that the server refuses the handshake."""
    hung_up = isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError)
    if isinstance(error, ProxyError):
        return CONNECT
    if isinstance(error, ssl.SSLError | ValueError) or (tls is not None and hung_up):
        return TLS
    return CONNECT


_NOT_TLS = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "UNKNOWN_PROTOCOL",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
)


def reason_of(error: Exception) -> str:
    """Return why a connection failed, in the words of the system.

    >>> import errno
    >>> reason_of(ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 9)"))
    'connection refused'
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not valid: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        if error.reason in _NOT_TLS:
            return "the server does not speak TLS on this port; try http://"
        return f"no TLS connection: {error.reason or error}"
    number = getattr(error, "errno", None)
    return os.strerror(number).lower() if number else str(error) or type(error).__name__
