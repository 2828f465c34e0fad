"""Private headers: what is sent with the requests of a site, and never recorded. Part of step 5 in docs/architecture.md.

A request is built and recorded without its secrets. `PrivateHeaders.sent` adds them to the bytes on their way to the connection, so
that no log, database or archive ever has them. Cookies that a server sets in its answer are secrets too: `received` removes their
values from the head before it is recorded.
"""

import re
from dataclasses import replace
from pathlib import Path

from trapline.fetch.http.cookies import CookieJar, read_cookies
from trapline.fetch.http.credentials import Credentials, read_credentials
from trapline.fetch.http.proxy import Proxy
from trapline.fetch.http.response import Response
from trapline.fetch.urls import host_port

# Up to the end of its line, which a CR alone is not, and of lines that continue it (response.py).
_SET_COOKIE = re.compile(
    rb"^(set-cookie2?(?:[ \t]|\r?\n[ \t])*+:)(?:[^\r\n]++|\r(?!\n)|\r?\n[ \t])*+", re.IGNORECASE | re.MULTILINE
)
_EMPTY_LINE = len(b"\r\n")
_NOT_RECORDED = rb"\1 (not recorded)"


class PrivateHeaders:
    """The private headers of one site."""

    __slots__ = ("_hides_cookies", "_host", "_is_secure", "_jar", "_keeps", "_lines", "_prefix")

    def __init__(
        self, origin: str, lines: bytes, jar: CookieJar | None, keeps: bool, to_proxy: tuple[bytes, bytes] = (b"", b"")
    ) -> None:
        """`lines`: header lines of every request. `keeps`: whether the jar takes the cookies that the site sets. `to_proxy`: for
        a proxy that gets whole URLs, what comes before the target, and header lines for the proxy."""
        self._hides_cookies = bool(lines) or jar is not None
        self._prefix, for_proxy = to_proxy
        lines += for_proxy
        scheme, self._host, _ = host_port(origin)
        self._is_secure, self._lines, self._jar, self._keeps = scheme == "https", lines, jar, keeps

    def sent(self, request: bytes, target: str, now: float) -> bytes:
        """Return the bytes to send for a request."""
        lines = self._lines
        if self._jar is not None:
            lines += self._jar.line(self._host, target, self._is_secure, now)
        whole = request[:-2] + lines + b"\r\n" if lines else request
        return b"GET " + self._prefix + whole[4:] if self._prefix else whole

    def received(self, target: str, response: Response, now: float) -> None:
        """Take the cookies of an answer, and remove their values from its head and trailers."""
        if not self._hides_cookies:
            return
        if b"set-cookie" in response.headers or b"set-cookie2" in response.headers:
            if self._keeps and self._jar is not None:
                self._jar.keep(self._host, target, self._is_secure, response.head, now)
            response.head = _SET_COOKIE.sub(_NOT_RECORDED, response.head)
        if response.trailers > _EMPTY_LINE:
            at = len(response.wire) - response.trailers
            trailers = _SET_COOKIE.sub(_NOT_RECORDED, response.wire[at:])
            response.wire, response.trailers = response.wire[:at] + trailers, len(trailers)


class Secrets:
    """The credentials and cookies of a crawl."""

    def __init__(
        self, credentials: Credentials | None, jar: CookieJar | None, keeps_cookies: bool, proxy: Proxy | None = None
    ) -> None:
        """`proxy`: the proxy of the crawl, which gets its credentials from the same file."""
        self.proxy = replace(proxy, login=credentials.proxy) if proxy and credentials and credentials.proxy else proxy
        self.credentials, self._jar = credentials, jar or (CookieJar() if keeps_cookies else None)
        self._keeps = keeps_cookies

    def of_site(self, origin: str) -> PrivateHeaders | None:
        """Return the private headers of a site, or None if it has none."""
        lines = self.credentials.lines(origin) if self.credentials is not None else b""
        jar = self._jar
        if jar is not None and not self._keeps and not jar.has(host_port(origin)[1]):
            jar = None
        to_proxy = (b"", b"")
        if self.proxy is not None and self.proxy.sees_requests(origin.startswith("https:")):
            to_proxy = (origin.encode(), self.proxy.authorization)
        is_needed = lines or to_proxy[0] or jar is not None
        return PrivateHeaders(origin, lines, jar, self._keeps, to_proxy) if is_needed else None


def read_secrets(credentials: str, cookies: str, keeps_cookies: bool, proxy: Proxy | None = None) -> Secrets | None:
    """Read the files with secrets, whose names may be empty. Return None if there are none, no cookies are kept, and there is
    no proxy."""
    if not (credentials or cookies or keeps_cookies or proxy):
        return None
    return Secrets(
        read_credentials(Path(credentials)) if credentials else None,
        read_cookies(Path(cookies)) if cookies else None,
        keeps_cookies,
        proxy,
    )
