"""Single small requests to servers that somebody else named: a key file, a topic, a hub. Uses the crawl's fetch layer.

The module trusts nobody. It resolves host names itself and connects to the very address that the guard has allowed. Bytes
and seconds are few, and redirects are followed only within the same host. The caller interprets the response. Nothing
raises: failures are values.
"""

import asyncio
import ssl
from typing import NamedTuple

from trapline import __version__
from trapline.fetch import failure
from trapline.fetch.address import Guard
from trapline.fetch.dns import Resolver
from trapline.fetch.http.connection import Connection, open_connection
from trapline.fetch.http.http1 import Response, request_headers
from trapline.fetch.limits import Limits
from trapline.fetch.urls import canonical, host_port, origin, target
from trapline.signals.endpoint.known_sites import authority_of

WHOLE_S = 5.0
KEY_BYTES = 4 * 1024
_MOST_REDIRECTS = 3
_AGENT = f"trapline/{__version__}"


class SmallResponse(NamedTuple):
    status: int = 0  # 0: no response
    headers: dict[bytes, bytes] = {}  # noqa: RUF012  # never changed
    body: bytes = b""
    whole: bool = False  # the body was not truncated
    url: str = ""  # final URL, after redirects
    failure: str = ""  # a kind from fetch/failure.py


class SmallFetch:
    """Makes small requests, at most `at_once` at a time. The time limit of a waiting request starts when it begins."""

    whole_s = WHOLE_S

    def __init__(self, resolver: Resolver, guard: Guard, tls: ssl.SSLContext, at_once: int = 16) -> None:
        self._resolver, self._guard, self._tls = resolver, guard, tls
        self._turn = asyncio.Semaphore(at_once)

    @property
    def allow_private(self) -> bool:
        return self._guard.allow_private

    async def get(self, url: str, most_bytes: int = KEY_BYTES) -> SmallResponse:
        return await self._within_time(url, most_bytes, "GET", b"")

    async def post(self, url: str, form: bytes, most_bytes: int = KEY_BYTES) -> SmallResponse:
        """Post a form. Follows only redirects 307 and 308, which keep the method, and only within the same host."""
        return await self._within_time(url, most_bytes, "POST", form)

    async def _within_time(self, url: str, most_bytes: int, method: str, body: bytes) -> SmallResponse:
        async with self._turn:
            try:
                async with asyncio.timeout(self.whole_s):
                    return await self._followed(url, most_bytes, method, body)
            except TimeoutError:
                return SmallResponse(url=url, failure=failure.TIMEOUT)

    async def _followed(self, url: str, most_bytes: int, method: str, body: bytes) -> SmallResponse:
        follows = (301, 302, 303, 307, 308) if method == "GET" else (307, 308)
        for _ in range(1 + _MOST_REDIRECTS):
            response = await self._once(url, most_bytes, method, body)
            location = _location(response, url) if response.status in follows else None
            if location is None:
                return response
            url = location
        return SmallResponse(url=url, failure=failure.PROTOCOL)

    async def _once(self, url: str, most_bytes: int, method: str, body: bytes) -> SmallResponse:
        scheme, host, port = host_port(origin(url))
        found = await self._resolver.addresses(f"[{host}]" if ":" in host else host)
        if found.failure:
            return SmallResponse(url=url, failure=failure.DNS)
        allowed = [address for address in found.addresses if not self._guard.check(address)]
        if len(allowed) < len(found.addresses):  # if one address of a name is private, trust none of them
            return SmallResponse(url=url, failure=failure.ADDRESS)
        whole = self.whole_s
        limits = Limits(connect_s=whole, first_byte_s=whole, total_s=whole, body_bytes=most_bytes, header_bytes=16_384)
        exchange = _Exchange(_request(url, method, body))
        tls = self._tls if scheme == "https" else None
        connection = open_connection(asyncio.get_running_loop(), allowed[0], port, exchange, limits, tls, host)
        try:
            return (await exchange.done)._replace(url=url)
        finally:
            connection.abort()


class _Exchange:
    """Owner of a connection for one request and its response."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.done: asyncio.Future[SmallResponse] = asyncio.get_running_loop().create_future()

    def connected(self, connection: Connection, seconds: float) -> None:
        connection.send(self._request)

    def received(self, connection: Connection, response: Response) -> None:
        self._end(SmallResponse(response.status, response.headers, response.body, not response.truncated))

    def lost(self, connection: Connection, kind: str, unanswered: int) -> None:
        self._end(SmallResponse(failure=kind or failure.CLOSED))

    def _end(self, response: SmallResponse) -> None:
        if not self.done.done():
            self.done.set_result(response)


def _request(url: str, method: str, body: bytes) -> bytes:
    headers = {"User-Agent": _AGENT, "Accept": "*/*"}
    if method == "POST":
        headers |= {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(len(body))}
    rest = request_headers(authority_of(url), headers, keep_alive=False)
    return f"{method} {target(url)}".encode() + rest + body


def _location(response: SmallResponse, url: str) -> str | None:
    """Return the target of a redirect, if it is on the same host and does not lead from https to http."""
    location = canonical(response.headers.get(b"location", b"").decode("latin-1"), url)
    if location is None or authority_of(location) != authority_of(url):
        return None
    return None if url.startswith("https:") and not location.startswith("https:") else location
