"""The endpoint as an ASGI application: which request goes to whom, who may ask for what, and how much of a body is read.

    GET, POST /indexnow       a ping (pings.py)
    GET, POST /websub/TOKEN   a hub verifies, or delivers (deliveries.py)
    POST /accesses            accesses to pages (access_log.py); needs the token
    GET /status               counters; needs the token
    GET /                     what this is
It knows no socket; times, heads and numbers of connections are bounded by bounded.py.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from trapline.signals.access_posts import AccessPosts
from trapline.signals.deliveries import Deliveries
from trapline.signals.limits_of_senders import HOLD_UP, Buckets, Rate, sender_of
from trapline.signals.pings import Pings
from trapline.signals.reply import NOT_FOUND, Reply, as_json, said, too_many
from trapline.signals.tally import LIMITED, Tally

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Scope = MutableMapping[str, Any]

BODY_BYTES = 2 * 1024 * 1024
MOST_READING_BYTES = 64 * 1024 * 1024  # of bodies, all together
CALLBACKS = "/websub/"
# By the token alone, not by the address: a proxy on this machine brings strangers from there, and need not say so.
_FOR_THE_OPERATOR = ("/accesses", "/status")
HELD_UP_S = 1.0
FAULT_COST = 9.0  # requests, that a sender pays for one that was not right
_FAULTS = frozenset({400, 403, 404, 405, 413, 422, 429})
ABOUT = said(200, "This is the endpoint of a Trapline crawl: it takes IndexNow pings, and deliveries of WebSub hubs.")
TOO_LARGE = Reply(413, b"too large\n", close=True)
BUSY = Reply(503, b"busy\n", retry_s=5.0, close=True)
WRONG = said(500, "something is wrong here")
NEEDS_TOKEN = said(403, "a token is needed")


class Endpoint:
    def __init__(
        self,
        pings: Pings,
        deliveries: Deliveries | None,
        accesses: AccessPosts | None,
        status: Callable[[], dict[str, Any]],
        tally: Tally,
        rate_of_sender: Rate,
        token: bytes,
        clock: Callable[[], float],
    ) -> None:
        self._pings, self._deliveries, self._accesses = pings, deliveries, accesses
        self._status, self._tally, self._token, self._clock = status, tally, token, clock
        self._senders: Buckets[str] = Buckets(rate_of_sender)
        self._reading_bytes = 0
        self.defect = ""  # the last

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
        """Whoever asks too much waits a moment for that answer: else a flood would be answered as fast as it comes.

        It is the last on its connection, which meanwhile gives way to others: else whoever sends on would keep it for ever.
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
        """A request that finds a defect of ours ends no other; the defect is shown."""
        try:
            return await self._reply(scope, receive)
        except Exception as error:
            self.defect = f"{type(error).__name__}: {error}"
            return WRONG

    async def _reply(self, scope: Scope, receive: Receive) -> Reply | None:
        """None: whoever asked has gone."""
        handler = self._route(scope["path"]).get(scope["method"].replace("HEAD", "GET"))
        if handler is None:
            return said(405, "not so") if self._route(scope["path"]) else NOT_FOUND
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
        """Into `body`. None: it is whole."""
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

    # Who is asked

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
        # Whole even if the hub hangs up: half of it would be a delivery that is not to come again.
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
