"""A server with any number of sites that all look the same: each page has LINKS links to other pages of its site.

    python -m tests.proof.link_server LINKS ADDRESS...

It prints its port, and ends when its standard input ends. testweb would keep every page in memory; here a web of 10^7 pages takes none.
"""

import asyncio
import sys

ROBOTS = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def page(links: int) -> bytes:
    """Return the page that answers every URL. Its links start at the root of the site, so that each site has LINKS + 1 pages."""
    items = "".join(
        f'<li><a href="/articles/some-words-in-a-path/{number:05}.html">{number}</a>' for number in range(links)
    )
    body = f"<!DOCTYPE html><title>A page</title><ul>{items}</ul>".encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body


class Site(asyncio.Protocol):
    def __init__(self, body: bytes) -> None:
        self._body, self._head = body, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.WriteTransport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        *requests, self._head = (self._head + data).split(b"\r\n\r\n")
        for request in requests:
            self._transport.write(ROBOTS if request.startswith(b"GET /robots.txt ") else self._body)


async def serve(links: int, addresses: list[str]) -> None:
    loop, body, port = asyncio.get_running_loop(), page(links), 0
    for address in addresses:
        server = await loop.create_server(lambda: Site(body), address, port, backlog=1024)
        port = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    import uvloop

    uvloop.run(serve(int(sys.argv[1]), sys.argv[2:]))
