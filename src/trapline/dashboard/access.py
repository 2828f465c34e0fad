"""Who may use the dashboard: checks every request before the application sees it, and adds the security headers to every answer.

A browser runs pages of strangers too. They can send requests to this server, but not choose the headers that are checked here:
- Host. A page whose name was pointed at this machine (DNS rebinding) sends its own name.
- Sec-Fetch-Site and Origin. They name the site of the page that sends the request.
- The token, if there is one. A stranger does not know it, and the browser sends the cookie only for our own pages.
"""

import asyncio
import hmac
import json
import re
import secrets
import time
from collections import deque
from ipaddress import ip_address
from typing import NamedTuple

from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY_BYTES = 1_000_000
_BODY_WITHIN_S = 30.0
_WRONG_TOKENS, _WRONG_WITHIN_S = 10, 10.0  # after this many wrong tokens in this time, a client must wait
_MOST_CLIENTS = 1_000  # whose wrong tokens are counted
_LOGIN = "/api/login"
_WITH_PORT = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]]*))(?::[0-9]*)?")
_LOOPBACK_NAMES = frozenset({"localhost"})
_FOREIGN = ("cross-site", "same-site")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    # Not no-referrer: browsers would then send the origin "null".
    (b"referrer-policy", b"same-origin"),
)


def is_loopback(host: str) -> bool:
    """Return whether only programs of this machine reach a server that listens on this host.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in _LOOPBACK_NAMES


class _Refusal(NamedTuple):
    status: int
    error: str


class Access:
    """ASGI middleware. `hosts`: names by which browsers may reach the server, besides localhost and IP addresses; a name that
    is reached through a proxy at another port has that port. `token`: "" if none is needed."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], port: int, token: str, read_only: bool) -> None:
        self._app, self._token, self._read_only = app, token.encode(), read_only
        self._hosts = frozenset(name.lower() for name in hosts)
        # Browsers send a cookie to all ports of a host. It is therefore not the token, and ends with this process.
        self._cookie, self._session = f"trapline-{port}", secrets.token_urlsafe(32)
        self._wrong: dict[str, deque[float]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = _headers_of(scope)
        send = _with_headers(send)
        refusal = self._refused(scope, headers)
        if refusal is None and scope["method"] == "POST":
            body = await _read_body(receive, headers)
            refusal = body if isinstance(body, _Refusal) else None
            if not isinstance(body, _Refusal):
                receive = _again(body, receive)
                if scope["path"] == _LOGIN:
                    await self._login(scope, body)(scope, receive, send)
                    return
        if refusal is not None:
            await JSONResponse({"error": refusal.error}, refusal.status)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> _Refusal | None:
        method = scope["method"]
        if method not in ("GET", "HEAD", "POST"):
            return _Refusal(405, "this method is not allowed")
        if not self._is_our_host(headers.get("host", "")):
            return _Refusal(403, "this Host is not allowed; start the dashboard with --allow-host NAME to allow it")
        if headers.get("sec-fetch-site", "") in _FOREIGN and not _is_navigation(scope, headers):
            return _Refusal(403, "the request comes from a page of another site")
        if method == "POST" and (refusal := self._refused_post(headers)) is not None:
            return refusal
        if method == "POST" and self._read_only and scope["path"] != _LOGIN:
            return _Refusal(403, "the dashboard was started with --read-only")
        return None if self._is_open(scope["path"]) else self._refused_token(scope, headers)

    def _is_our_host(self, host: str) -> bool:
        """Return whether a page may reach us by this name. An IP address or localhost is never the name of a stranger's page."""
        host = host.lower()
        name = _without_port(host)
        if host in self._hosts or name in self._hosts or name in _LOOPBACK_NAMES:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True

    def _refused_post(self, headers: dict[str, str]) -> _Refusal | None:
        host, origin = headers["host"], headers.get("origin")
        # Through a proxy the page may have come by https; a name that was allowed says that there is one.
        by_https = f"https://{host}" if _without_port(host) in self._hosts or host in self._hosts else None
        if origin is None or origin not in (f"http://{host}", by_https):
            return _Refusal(403, "the request does not come from a page of this dashboard")
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            return _Refusal(415, "the body must be JSON; send Content-Type: application/json")
        return None

    def _is_open(self, path: str) -> bool:
        """Return whether this path needs no token: files without data, and the login."""
        return not self._token or path == "/" or path.startswith("/static/") or path == _LOGIN

    def _refused_token(self, scope: Scope, headers: dict[str, str]) -> _Refusal | None:
        if _is_same(cookie_parser(headers.get("cookie", "")).get(self._cookie, ""), self._session.encode()):
            return None
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not given:
            return _Refusal(401, "this dashboard needs a token; open the URL that was printed when it started")
        return self._judged(scope, given)

    def _judged(self, scope: Scope, given: str) -> _Refusal | None:
        """Compare a token, unless this client has sent too many wrong ones."""
        client = scope["client"][0] if scope.get("client") else ""
        wrong, now = self._wrong.get(client, deque()), time.monotonic()
        while wrong and wrong[0] < now - _WRONG_WITHIN_S:
            wrong.popleft()
        if len(wrong) >= _WRONG_TOKENS:
            return _Refusal(429, "too many wrong tokens; wait some seconds")
        if _is_same(given.strip(), self._token):
            return None
        if client not in self._wrong and len(self._wrong) >= _MOST_CLIENTS:
            self._wrong.clear()
        self._wrong[client] = wrong
        wrong.append(now)
        return _Refusal(401, "the token is wrong")

    def _login(self, scope: Scope, body: bytes) -> Response:
        try:
            token = json.loads(body)["token"]
        except (ValueError, TypeError, KeyError, RecursionError):
            token = None
        if not isinstance(token, str):
            return JSONResponse({"error": 'the body must be {"token": "..."}'}, 400)
        refusal = self._judged(scope, token) if self._token else None
        if refusal is not None:
            return JSONResponse({"error": refusal.error}, refusal.status)
        answer = Response(status_code=204)
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
        return answer


def _headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers by lower-case name. Of a header that is sent twice, all values count, so that none of them passes unseen."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]},{text}" if key in found else text
    return found


def _without_port(host: str) -> str:
    """Return the name of a Host header.

    >>> _without_port("[::1]:8000"), _without_port("example.org:80"), _without_port("::1"), _without_port("[::1]evil.example")
    ('::1', 'example.org', '::1', '[::1]evil.example')
    """
    found = _WITH_PORT.fullmatch(host)
    return (found[1] or found[2]) if found is not None else host


def _is_navigation(scope: Scope, headers: dict[str, str]) -> bool:
    """Return whether the user follows a link to the dashboard, which other sites may have."""
    return (
        scope["method"] == "GET"
        and scope["path"] == "/"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _is_same(given: str, expected: bytes) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected)


async def _read_body(receive: Receive, headers: dict[str, str]) -> bytes | _Refusal:
    length = headers.get("content-length", "")
    if length.isdigit() and int(length[:12]) > MOST_BODY_BYTES:
        return _Refusal(413, "the body is too large")
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_WITHIN_S):
            while True:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > MOST_BODY_BYTES:
                    return _Refusal(413, "the body is too large")
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        return _Refusal(408, "the body did not arrive in time")


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a function that hands out a body that was read, and then what comes after it."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return pending.pop() if pending else await receive()

    return next_message


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), *_HEADERS]
            if not any(name == b"cache-control" for name, _ in headers):
                headers.append((b"cache-control", b"no-store"))
            message = {**message, "headers": headers}
        await send(message)

    return sent
