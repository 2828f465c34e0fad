"""One small request to a server that somebody else named: a key file, a topic, a hub. By the crawl's own fetch layer.

It trusts nobody: names are resolved here and the very address that the guard let through is connected to; few bytes, few
seconds, redirects only within the same host. What the answer means is the caller's. Nothing raises: failures are values.
"""

import asyncio
import ssl
from typing import NamedTuple

from trapline import __version__
from trapline.fetch import failure
from trapline.fetch.address import Guard
from trapline.fetch.connection import Connection, open_connection
from trapline.fetch.dns import Resolver
from trapline.fetch.http1 import Response, request_rest
from trapline.fetch.limits import Limits
from trapline.fetch.urls import canonical, host_port, origin, target
from trapline.signals.sites_known import authority_of

WHOLE_S = 5.0
KEY_BYTES = 4 * 1024
_MOST_REDIRECTS = 3
_AGENT = f"trapline/{__version__}"


class Answer(NamedTuple):
    status: int = 0  # 0: none came
    headers: dict[bytes, bytes] = {}  # noqa: RUF012  # never changed
    body: bytes = b""
    whole: bool = False  # the body is all there is of it
    url: str = ""  # where it came from, behind redirects
    failure: str = ""  # a kind of failure.py


class SmallFetch:
    """`at_once` requests are under way at most; the others wait, and their seconds count from their own turn."""

    def __init__(
        self, resolver: Resolver, guard: Guard, tls: ssl.SSLContext, at_once: int = 16, whole_s: float = WHOLE_S
    ) -> None:
        self._resolver, self._guard, self._tls, self._whole_s = resolver, guard, tls, whole_s
        self._turn = asyncio.Semaphore(at_once)

    @property
    def allow_private(self) -> bool:
        return self._guard.allow_private

    async def get(self, url: str, most_bytes: int = KEY_BYTES) -> Answer:
        return await self._within_time(url, most_bytes, "GET", b"")

    async def post(self, url: str, form: bytes, most_bytes: int = KEY_BYTES) -> Answer:
        """A form; followed to another place of the same host by 307 and 308 alone, which keep the method."""
        return await self._within_time(url, most_bytes, "POST", form)

    async def _within_time(self, url: str, most_bytes: int, method: str, body: bytes) -> Answer:
        async with self._turn:
            try:
                async with asyncio.timeout(self._whole_s):
                    return await self._followed(url, most_bytes, method, body)
            except TimeoutError:
                return Answer(url=url, failure=failure.TIMEOUT)

    async def _followed(self, url: str, most_bytes: int, method: str, body: bytes) -> Answer:
        follows = (301, 302, 303, 307, 308) if method == "GET" else (307, 308)
        for _ in range(_MOST_REDIRECTS):
            answer = await self._once(url, most_bytes, method, body)
            where = _location(answer, url) if answer.status in follows else None
            if where is None:
                return answer
            url = where
        return Answer(url=url, failure=failure.PROTOCOL)

    async def _once(self, url: str, most_bytes: int, method: str, body: bytes) -> Answer:
        scheme, host, port = host_port(origin(url))
        found = await self._resolver.addresses(f"[{host}]" if ":" in host else host)
        if found.failure:
            return Answer(url=url, failure=failure.DNS)
        allowed = [address for address in found.addresses if not self._guard.check(address)]
        if len(allowed) < len(found.addresses):  # a name that leads inside at all is not to be trusted with the rest
            return Answer(url=url, failure=failure.ADDRESS)
        whole = self._whole_s
        limits = Limits(connect_s=whole, first_byte_s=whole, total_s=whole, body_bytes=most_bytes, header_bytes=16_384)
        exchange = _Exchange(_request(url, method, body))
        tls = self._tls if scheme == "https" else None
        connection = open_connection(asyncio.get_running_loop(), allowed[0], port, exchange, limits, tls, host)
        try:
            return (await exchange.done)._replace(url=url)
        finally:
            connection.abort()


class _Exchange:
    """The owner of a connection for one request."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def connected(self, connection: Connection, seconds: float) -> None:
        connection.send(self._request)

    def received(self, connection: Connection, response: Response) -> None:
        self._end(Answer(response.status, response.headers, response.body, not response.truncated))

    def lost(self, connection: Connection, kind: str, unanswered: int) -> None:
        self._end(Answer(failure=kind or failure.CLOSED))

    def _end(self, answer: Answer) -> None:
        if not self.done.done():
            self.done.set_result(answer)


def _request(url: str, method: str, body: bytes) -> bytes:
    headers = {"User-Agent": _AGENT, "Accept": "*/*"}
    if method == "POST":
        headers |= {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(len(body))}
    rest = request_rest(authority_of(url), headers, keep_alive=False)
    return f"{method} {target(url)}".encode() + rest + body


def _location(answer: Answer, url: str) -> str | None:
    """Where it has moved to, if that is on the same host, and not from https back to http."""
    where = canonical(answer.headers.get(b"location", b"").decode("latin-1"), url)
    if where is None or authority_of(where) != authority_of(url):
        return None
    return None if url.startswith("https:") and not where.startswith("https:") else where
