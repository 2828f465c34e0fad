"""IndexNow, as its receiver: a request in, a claim with its URLs out, or why not. Pure; what can be judged without asking anybody.

The protocol is indexnow.org/documentation: a ping says that pages were added, updated or deleted, and names a key; a file on
the same host that holds this key proves that whoever pings may speak for the host, for all URLs in that file's folder and
below. Fetching it is ownership.py's.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from trapline.fetch.urls import canonical, target
from trapline.signals.sites_known import SitesKnown, authority_of

MOST_URLS = 10_000
_KEY = re.compile(r"[A-Za-z0-9-]{8,128}")
_MOST_FIELDS = 20  # of a query


class Claim(NamedTuple):
    """Somebody says that they may speak for `authority`, for a file at `location` holds `key`."""

    authority: str
    key: str
    location: str

    @property
    def folder(self) -> str:
        """What lies in it or below is what the file speaks for."""
        return folder_of(self.location)

    def covers(self, url: str) -> bool:
        """
        >>> claim = Claim("a.org", "k" * 8, "https://a.org/shop/k.txt")
        >>> claim.covers("http://a.org/shop/x?y"), claim.covers("http://a.org/"), claim.covers("http://b.org/shop/x")
        (True, False, False)
        """
        return authority_of(url) == self.authority and target(url).startswith(self.folder)


def folder_of(url: str) -> str:
    """Its path up to the last slash."""
    path = target(url).partition("?")[0]
    return path[: path.rfind("/") + 1]


class Ping(NamedTuple):
    authority: str
    key: str
    location: str | None  # canonical
    urls: Sequence[str]  # canonical, each once, all of this authority

    def claim(self, known: SitesKnown) -> Claim:
        """With the usual place of the key file if the ping names none."""
        where = self.location or f"{known.scheme(self.authority)}://{self.authority}/{self.key}.txt"
        return Claim(self.authority, self.key, where)


class Refusal(NamedTuple):
    status: int
    why: str


def ping_of_query(query: bytes) -> Ping | Refusal:
    """A GET."""
    one = fields_of(query)
    if one is None:
        return Refusal(400, "the query cannot be read, or has a parameter twice")
    if "url" not in one or "key" not in one:
        return Refusal(400, "url and key are needed")
    url = canonical(one["url"])
    if url is None:
        return Refusal(422, "url is not one of http or https")
    return _ping(authority_of(url), one["key"], one.get("keyLocation"), [url])


def fields_of(query: bytes) -> dict[str, str] | None:
    """The parameters of a query; None if it cannot be read as UTF-8, or has one of them twice. A third of parse_qs's time.

    >>> fields_of(b"url=http%3A%2F%2Fa.org%2F&key=a+b&empty")
    {'url': 'http://a.org/', 'key': 'a b', 'empty': ''}
    """
    parts = query.split(b"&", _MOST_FIELDS)
    if len(parts) > _MOST_FIELDS:
        return None
    try:
        pairs = [part.decode("ascii").replace("+", " ").partition("=") for part in parts]
        fields = {unquote(name): unquote(value, errors="strict") for name, _, value in pairs}
    except ValueError:
        return None
    return fields if len(fields) == len(parts) else None


def ping_of_body(body: bytes) -> Ping | Refusal:
    """A POST."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return Refusal(400, "the body is not JSON")
    if not isinstance(fields, dict) or not _has_types(fields):
        return Refusal(400, "the body is an object with the texts host, key, keyLocation and the list of texts urlList")
    if len(fields["urlList"]) > MOST_URLS:
        return Refusal(400, f"urlList may have {MOST_URLS:,} URLs")
    host = canonical(f"http://{fields['host']}/")
    if host is None or target(host) != "/" or "@" in fields["host"]:
        return Refusal(400, "host is not the name of a host")
    pages = (canonical(url) for url in fields["urlList"])  # one by one: the first of another host is the last
    return _ping(authority_of(host), fields["key"], fields.get("keyLocation"), pages)


def _has_types(fields: dict[str, Any]) -> bool:
    urls = fields.get("urlList")
    return (
        isinstance(fields.get("host"), str)
        and isinstance(fields.get("key"), str)
        and isinstance(fields.get("keyLocation"), str | None)
        and isinstance(urls, list)
        and bool(urls)
        and all(isinstance(url, str) for url in urls)
    )


def _ping(authority: str, key: str, location: str | None, urls: Iterable[str | None]) -> Ping | Refusal:
    """`urls`: canonical, or None for what is none."""
    if not _KEY.fullmatch(key):
        return Refusal(422, "a key has 8 to 128 letters, digits and dashes")
    where = None if location is None else canonical(location)
    if location is not None and (where is None or authority_of(where) != authority):
        return Refusal(422, "keyLocation is not on the host of the URLs")
    if where is not None and "?" in where:  # many a page shows what it is asked for
        return Refusal(422, "keyLocation is not a file: it has a query")
    pages: dict[str, None] = {}  # in their order, each once
    for url in urls:
        if url is None or authority_of(url) != authority:
            return Refusal(422, "a URL is not of this host")
        pages[url] = None
    return Ping(authority, key, where, list(pages))
