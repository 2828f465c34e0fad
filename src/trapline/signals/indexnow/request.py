"""Requests of IndexNow, as the receiver sees them: a request in, a claim with its URLs out, or a refusal.

Pure: the module checks what can be checked without a request. The protocol is indexnow.org/documentation: a ping says that pages
were added, updated or deleted, and names a key. A file on the same host that contains this key proves that the sender may speak
for the host, for all URLs in that file's folder and below. ownership.py fetches the file.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from trapline.fetch.urls import canonical, target
from trapline.signals.endpoint.known_sites import SitesKnown, authority_of

MOST_URLS = 10_000
_KEY = re.compile(r"[A-Za-z0-9-]{8,128}")
_MOST_FIELDS = 20  # parameters of a query


class OwnershipClaim(NamedTuple):
    """The claim of a sender to speak for `authority`, because the file at `location` contains `key`."""

    authority: str
    key: str
    location: str

    @property
    def folder(self) -> str:
        """Folder of the key file; the claim covers the URLs in it and below."""
        return folder_of(self.location)

    def covers(self, url: str) -> bool:
        """Return whether the claim covers this URL.

        >>> claim = OwnershipClaim("a.org", "k" * 8, "https://a.org/shop/k.txt")
        >>> claim.covers("http://a.org/shop/x?y"), claim.covers("http://a.org/"), claim.covers("http://b.org/shop/x")
        (True, False, False)
        """
        return authority_of(url) == self.authority and target(url).startswith(self.folder)


def folder_of(url: str) -> str:
    """Return the path of a canonical URL up to its last slash."""
    path = target(url).partition("?")[0]
    return path[: path.rfind("/") + 1]


class IndexNowPing(NamedTuple):
    authority: str
    key: str
    location: str | None  # canonical
    urls: Sequence[str]  # canonical, each once, all of this authority

    def claim(self, known: SitesKnown) -> OwnershipClaim:
        """Return the claim of this ping, with the default location of the key file if the ping names none."""
        where = self.location or f"{known.scheme(self.authority)}://{self.authority}/{self.key}.txt"
        return OwnershipClaim(self.authority, self.key, where)


class Refusal(NamedTuple):
    status: int
    why: str


def ping_of_query(query: bytes) -> IndexNowPing | Refusal:
    """Parse the query of a GET."""
    fields = fields_of(query)
    if fields is None:
        return Refusal(400, "the query cannot be parsed, or repeats a parameter")
    if "url" not in fields or "key" not in fields:
        return Refusal(400, "the query lacks url or key")
    url = canonical(fields["url"])
    if url is None:
        return Refusal(422, "url is not a URL of http or https")
    return _ping(authority_of(url), fields["key"], fields.get("keyLocation"), [url])


def fields_of(query: bytes) -> dict[str, str] | None:
    """Return the parameters of a query; None if it is not UTF-8, or repeats a parameter. Takes a third of the time of `parse_qs`.

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


def ping_of_body(body: bytes) -> IndexNowPing | Refusal:
    """Parse the body of a POST."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return Refusal(400, "the body is not JSON")
    if not isinstance(fields, dict) or not _has_types(fields):
        return Refusal(400, "the body must be an object: strings host, key, keyLocation, and a list of strings urlList")
    if len(fields["urlList"]) > MOST_URLS:
        return Refusal(400, f"urlList has more than {MOST_URLS:,} URLs")
    host = canonical(f"http://{fields['host']}/")
    if host is None or target(host) != "/" or "@" in fields["host"]:
        return Refusal(400, "host is not a host name")
    pages = (canonical(url) for url in fields["urlList"])  # lazily: the first URL of another host ends it
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


def _ping(authority: str, key: str, location: str | None, urls: Iterable[str | None]) -> IndexNowPing | Refusal:
    """Check key, location and URLs. `urls`: canonical, or None for a text that is not a URL."""
    if not _KEY.fullmatch(key):
        return Refusal(422, "the key must have 8 to 128 letters, digits and dashes")
    where = None if location is None else canonical(location)
    if location is not None and (where is None or authority_of(where) != authority):
        return Refusal(422, "keyLocation is not on the host of the URLs")
    if where is not None and "?" in where:  # many pages echo their query, and so would contain the key
        return Refusal(422, "keyLocation must not have a query")
    pages: dict[str, None] = {}  # in their order, each once
    for url in urls:
        if url is None or authority_of(url) != authority:
            return Refusal(422, "a URL is not on this host")
        pages[url] = None
    return IndexNowPing(authority, key, where, list(pages))
