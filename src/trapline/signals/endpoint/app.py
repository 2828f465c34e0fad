"""The endpoint as an ASGI application: routes requests, checks the token, and limits the size of bodies.

    GET, POST /indexnow       a ping (signals/indexnow/pings.py)
    GET, POST /websub/TOKEN   a hub verifies, or delivers (signals/websub/deliveries.py)
    POST /accesses            accesses to pages (signals/access_log.py); needs the token
    GET /status               counters; needs the token
    GET /                     a description of the endpoint
The module knows no sockets; connections.py limits times, heads and the number of connections.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from trapline.signals.endpoint.intake import (
    LIMITED,
    NOT_FOUND,
    AccessPosts,
    Reply,
    SignalTally,
    as_json,
    said,
    too_many,
)
from trapline.signals.endpoint.rate_limits import HOLD_UP, Buckets, RequestRate, sender_of
from trapline.signals.indexnow.pings import Pings
from trapline.signals.websub.deliveries import Deliveries

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Scope = MutableMapping[str, Any]

BODY_BYTES = 2 * 1024 * 1024
MOST_READING_BYTES = 64 * 1024 * 1024  # all bodies that are being read, together
CALLBACKS = "/websub/"
# The token alone decides, not the address: through a proxy on this machine, strangers come from a local address too.
_FOR_THE_OPERATOR = ("/accesses", "/status")
HELD_UP_S = 1.0
FAULT_COST = 9.0  # additional requests that a sender is charged for a faulty one
_FAULTS = frozenset({400, 403, 404, 405, 413, 422, 429})
ABOUT = said(200, "This is the endpoint of a Trapline crawl. It receives IndexNow pings and deliveries of WebSub hubs.")
TOO_LARGE = Reply(413, b"too large\n", close=True)
BUSY = Reply(503, b"busy\n", retry_s=5.0, close=True)
WRONG = said(500, "internal error")
NEEDS_TOKEN = said(403, "token missing or wrong; send the header Authorization: Bearer TOKEN")


class Endpoint:
    """The ASGI application."""

    def __init__(
        self,
        pings: Pings,
        deliveries: Deliveries | None,
        accesses: AccessPosts | None,
        status: Callable[[], dict[str, Any]],
        tally: SignalTally,
        rate_of_sender: RequestRate,
        token: bytes,
        clock: Callable[[], float],
    ) -> None:
        self._pings, self._deliveries, self._accesses = pings, deliveries, accesses
        self._status, self._tally, self._token, self._clock = status, tally, token, clock
        self._senders: Buckets[str] = Buckets(rate_of_sender)
        self._reading_bytes = 0
        self.defect = ""  # the last internal error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        sender, self._tally.requests = (
            sender_of(scope["client"][0] if scope["client"] else ""),
            self._tally.requests + 1,
        )
        reply = await self._held_up(sender, scope) or await self._safely(scope, receive)
        if reply is not None:
            if reply.status in _FAULTS:
                self._senders.charge(sender, FAULT_COST, self._clock())
            await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers()})
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else reply.body})

    async def _held_up(self, sender: str, scope: Scope) -> Reply | None:
        """Delay and refuse a request if its sender exceeds its rate; without the delay, a flood would be answered at full speed.

        The response is the last on its connection, and until then the connection may be closed in favour of others.
        Otherwise a sender that keeps sending would keep its connection for ever.
        """
        wait_s = self._senders.wait_s(sender, 1.0, self._clock())
        if wait_s == 0.0:
            return None
        self._tally.add("requests", LIMITED)
        if (extension := scope.get("extensions", {}).get(HOLD_UP)) is not None:
            extension["call"]()
        await asyncio.sleep(min(wait_s, HELD_UP_S))
        return too_many(wait_s)._replace(close=True)

    async def _safely(self, scope: Scope, receive: Receive) -> Reply | None:
        """Answer a request. An internal error affects no other request; the status shows it."""
        try:
            return await self._reply(scope, receive)
        except Exception as error:
            self.defect = f"{type(error).__name__}: {error}"
            return WRONG

    async def _reply(self, scope: Scope, receive: Receive) -> Reply | None:
        """Return the reply; None if the sender has disconnected."""
        handler = self._route(scope["path"]).get(scope["method"].replace("HEAD", "GET"))
        if handler is None:
            return said(405, "method not allowed") if self._route(scope["path"]) else NOT_FOUND
        if scope["path"] in _FOR_THE_OPERATOR and not self._has_token(scope):
            return NEEDS_TOKEN._replace(close=True)
        if scope["method"] != "POST":
            return await handler(scope, b"")
        return await self._with_body(scope, receive, handler)

    def _route(self, path: str) -> dict[str, Callable[[Scope, bytes], Awaitable[Reply]]]:
        if path == "/indexnow":
            return {"GET": self._get_ping, "POST": self._post_ping}
        if path.startswith(CALLBACKS) and self._deliveries is not None:
            return {"GET": self._verify, "POST": self._deliver}
        if path == "/accesses" and self._accesses is not None:
            return {"POST": self._post_accesses}
        if path == "/status" and self._token:
            return {"GET": self._show_status}
        return {"GET": self._about} if path == "/" else {}

    # Bodies

    async def _with_body(
        self, scope: Scope, receive: Receive, handler: Callable[[Scope, bytes], Awaitable[Reply]]
    ) -> Reply | None:
        length = _header(scope, b"content-length")
        if length.isdigit() and int(length[:12]) > BODY_BYTES:
            return TOO_LARGE
        body = bytearray()
        try:
            if (failed := await self._read(receive, body)) is not None:
                return failed if failed.status else None
            return await handler(scope, bytes(body))
        finally:
            self._reading_bytes -= len(body)

    async def _read(self, receive: Receive, body: bytearray) -> Reply | None:
        """Read the request's body into `body`. Return None if it is complete, an error reply, or status 0 after a disconnect."""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return Reply(0)
            body += message.get("body", b"")
            self._reading_bytes += len(message.get("body", b""))
            if len(body) > BODY_BYTES:
                return TOO_LARGE
            if self._reading_bytes > MOST_READING_BYTES:
                return BUSY
            more = message.get("more_body", False)
        return None

    # Handlers

    async def _get_ping(self, scope: Scope, _: bytes) -> Reply:
        return await self._pings.get(scope["query_string"])

    async def _post_ping(self, scope: Scope, body: bytes) -> Reply:
        return await self._pings.post(body)

    async def _verify(self, scope: Scope, _: bytes) -> Reply:
        assert self._deliveries is not None
        return await self._deliveries.verify(scope["path"].removeprefix(CALLBACKS), scope["query_string"])

    async def _deliver(self, scope: Scope, body: bytes) -> Reply:
        assert self._deliveries is not None
        signature = _header(scope, b"x-hub-signature")
        # Finish even if the hub disconnects: a delivery that is half done would not be accepted again.
        delivering = self._deliveries.deliver(scope["path"].removeprefix(CALLBACKS), signature, body)
        return await asyncio.shield(delivering)

    async def _post_accesses(self, scope: Scope, body: bytes) -> Reply:
        assert self._accesses is not None
        return await self._accesses.post(body)

    async def _show_status(self, scope: Scope, _: bytes) -> Reply:
        return as_json(self._status())

    async def _about(self, scope: Scope, _: bytes) -> Reply:
        return ABOUT

    def _has_token(self, scope: Scope) -> bool:
        given = _header(scope, b"authorization")
        return bool(self._token) and hmac.compare_digest(given, b"Bearer " + self._token)


def _header(scope: Scope, name: bytes) -> bytes:
    return next((value for key, value in scope["headers"] if key == name), b"")
