"""Small webs for the tests, and clients that show every byte."""

import socket
from collections.abc import Sequence

import numpy as np

from trapline.graph import Graph
from trapline.graph.sites import recorded_graph
from trapline.graph.strings import StoredStrings
from trapline.testweb import ServedWeb

SIZE = 2_000


def numbered(sites: int = 3, pages_per_site: int = 4, links: Sequence[Sequence[int]] | None = None) -> Graph:
    """A graph without URLs. By default each page links to the next two."""
    pages = sites * pages_per_site
    rows = links if links is not None else [[(page + 1) % pages, (page + 2) % pages] for page in range(pages)]
    return Graph(
        offsets=np.cumsum([0, *map(len, rows)]).astype(np.int64),
        targets=np.array([target for row in rows for target in row], np.int32),
        site=np.repeat(np.arange(sites, dtype=np.int32), pages_per_site),
        home=np.arange(0, pages, pages_per_site, dtype=np.int32),
        dynamic=(np.arange(pages) % 3 == 2).astype(np.uint8),
        ips=np.arange(sites, dtype=np.int32),
        sizes=np.full(pages, SIZE),
    )


def recorded(urls: Sequence[str], size: int = SIZE) -> Graph:
    """A graph with these URLs, in which each page links to all."""
    pages = len(urls)
    return recorded_graph(
        StoredStrings.of(urls),
        urls_file=None,  # type: ignore[arg-type]
        offsets=np.arange(0, pages * pages + 1, pages, dtype=np.int64),
        targets=np.tile(np.arange(pages, dtype=np.int32), pages),
        format_name="test",
        sizes=np.full(pages, size),
    )


def request(web: ServedWeb, page: int, *fields: str, version: str = "1.1") -> bytes:
    host = web.names[web.site[page]]
    lines = [f"GET {web.paths[page]} HTTP/{version}", f"Host: {host}:{web.port}", *fields, "", ""]
    return "\r\n".join(lines).encode()


def connect(web: ServedWeb, site: int) -> socket.socket:
    return socket.create_connection((web.hosts[web.names[site]], web.port), timeout=10)


def until_end(own: socket.socket) -> bytes:
    """Everything up to the end of the connection, which may be a reset."""
    parts = []
    try:
        while part := own.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        parts.append(b"(reset)")
    return b"".join(parts)


def response_to(web: ServedWeb, page: int, *fields: str, version: str = "1.1") -> bytes:
    """Everything that comes back on a new connection."""
    with connect(web, web.site[page]) as own:
        own.sendall(request(web, page, *fields, version=version))
        return until_end(own)


def one_answer(own: socket.socket, received: bytes = b"") -> tuple[bytes, bytes, bytes]:
    """Head and body of the next answer, which states its length, and the bytes behind it."""
    while b"\r\n\r\n" not in received:
        received += _more(own)
    head, _, received = received.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(received) < length:
        received += _more(own)
    return head, received[:length], received[length:]


def _more(own: socket.socket) -> bytes:
    part = own.recv(65_536)
    assert part, "the connection ended"
    return part
