"""A request as the server reads it: bytes into what an answer depends on. No socket, no web."""

from functools import lru_cache
from typing import NamedTuple

MOST_HEAD_BYTES = 65_536


class Fields(NamedTuple):
    """What the header fields say that matters here."""

    host: str  # without port, in lower case; "": not said
    close: bool
    keep_alive: bool
    gzip: bool
    body: bool  # one follows
    ordinary: bool  # nothing is said of the connection, and no body follows
    none_match: str = ""  # If-None-Match, as it stands
    modified_since: str = ""  # If-Modified-Since, as it stands


class Request(NamedTuple):
    method: str
    target: str  # path and query
    http11: bool
    gzip: bool  # the client takes gzip
    none_match: str = ""
    modified_since: str = ""


def get(target: str) -> Request:
    return Request("GET", target, True, False)


def read_line(line: bytes, gzip: bool) -> Request | None:
    """The request of a request line; None: it is none.

    >>> read_line(b"GET /a?b HTTP/1.0", False)[:4]
    ('GET', '/a?b', False, False)
    """
    parts = line.decode("latin-1").split(" ")
    if len(parts) != 3 or parts[2] not in ("HTTP/1.0", "HTTP/1.1") or not parts[1].startswith("/"):
        return None
    return Request(parts[0], parts[1], parts[2] == "HTTP/1.1", gzip)


@lru_cache(maxsize=10_000)
def read_fields(text: bytes) -> Fields:
    """Cached, for a client says the same with every request to a host."""
    said: dict[str, str] = {}
    for line in text.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        said[name.strip().lower()] = value.strip()
    connection = said.get("connection", "").lower()
    body = said.get("content-length", "0") != "0" or "transfer-encoding" in said
    return Fields(
        host=_without_port(said.get("host", "").lower()),
        close="close" in connection,
        keep_alive="keep-alive" in connection,
        gzip="gzip" in said.get("accept-encoding", "").lower(),
        body=body,
        ordinary=not (body or connection.replace("keep-alive", "")),
        none_match=said.get("if-none-match", ""),
        modified_since=said.get("if-modified-since", ""),
    )


def _without_port(host: str) -> str:
    """
    >>> _without_port("a.org:8080"), _without_port("a.org")
    ('a.org', 'a.org')
    """
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
