"""A site's pings as bytes: IndexNow (indexnow.org/documentation), a GET for one page and a POST for several. No socket, no time."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

from trapline.errors import ConfigError
from trapline.testweb.published import key

if TYPE_CHECKING:
    from trapline.testweb.web import Web

MOST_URLS = 10_000  # of a POST


class Endpoint(NamedTuple):
    """Who is pinged."""

    host: str
    port: int
    path: str


@dataclass(slots=True)
class PingCounts:
    """In pages."""

    dropped: int = 0
    failed: int = 0
    """no answer"""
    answered: Counter[int] = field(default_factory=Counter)
    """by status"""

    @property
    def sent(self) -> int:
        return self.failed + sum(self.answered.values())


class Ping(NamedTuple):
    site: int
    pages: int
    message: bytes


def endpoint_of(url: str) -> Endpoint:
    """It must be on this machine: whoever listens elsewhere did not ask for the pings of a web that does not exist.

    >>> endpoint_of("http://127.0.0.1:8010/indexnow"), endpoint_of("http://localhost:81").path
    (Endpoint(host='127.0.0.1', port=8010, path='/indexnow'), '/indexnow')
    """
    try:
        parts = urlsplit(url)
        host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
        near = parts.scheme == "http" and IPv4Address(host).is_loopback
        return Endpoint(host, parts.port or 80, parts.path or "/indexnow") if near else _refuse(url)
    except ValueError:
        return _refuse(url)


def _refuse(url: str) -> Endpoint:
    raise ConfigError(
        f"ping {url}: pings go to an endpoint on this machine only, such as http://127.0.0.1:8010/indexnow"
    )


def pings_of(web: "Web", site: int, pages: Sequence[int], to: Endpoint) -> Iterator[Ping]:
    """One page is told by a GET; several by a POST, or by as many as they need."""
    if len(pages) == 1:
        query = f"url={quote(web.url(pages[0]), safe='')}&key={key(web, site)}"
        yield Ping(site, 1, _request("GET", f"{to.path}?{query}", to))
        return
    for begin in range(0, len(pages), MOST_URLS):
        part = pages[begin : begin + MOST_URLS]
        yield Ping(site, len(part), _request("POST", to.path, to, _list(web, site, part)))


def _list(web: "Web", site: int, pages: Sequence[int]) -> bytes:
    own = key(web, site)
    about = {"host": web.authority(site), "key": own, "keyLocation": f"{web.origins[site]}/{own}.txt"}
    return json.dumps({**about, "urlList": [web.url(page) for page in pages]}).encode()


def _request(method: str, target: str, to: Endpoint, body: bytes = b"") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {to.host}:{to.port}", "Connection: close"]
    if body:
        lines += ["Content-Type: application/json; charset=utf-8", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body
