"""A test server for answers that testweb does not give. It sends any bytes to any request, on any loopback addresses, and keeps a log.

The server runs in a thread. `Answers` maps a request to its answer: bytes, or a list of bytes and of seconds to wait between them.
CLOSE ends the connection after the answer, and HANG leaves it open. Without either, the server waits for the next request.
"""

import asyncio
import math
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from tests.fetch.name_server import Name, NameServer

CLOSE, HANG = "close", "hang"
Part = bytes | float | str
Answers = Callable[[str, str], bytes | Sequence[Part]]


def page(*links: str, fields: str = "", status: str = "200 OK") -> bytes:
    """Return an HTML answer with these links."""
    body = "".join(f'<a href="{link}">x</a>' for link in links).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n{fields}\r\n"
    return head.encode() + body


def text(body: str, fields: str = "") -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n{fields}\r\n"
    return head.encode() + body.encode()


NOT_FOUND = page(status="404 Not Found")


def moved(to: str) -> bytes:
    return page(status="301 Moved Permanently", fields=f"Location: {to}\r\n")


class Request(NamedTuple):
    arrival_s: float
    end_s: float  # just before the last bytes were sent
    address: str
    host: str
    target: str
    head: str  # as received

    def header(self, name: str) -> str:
        """Return the value of a header, or "" if the request has none."""
        for line in self.head.split("\r\n")[1:]:
            if line.lower().startswith(f"{name.lower()}: "):
                return line.partition(": ")[2]
        return ""


class SmallServer:
    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.port = 0
        self.connections = 0
        self.log: list[Request] = []

    def targets(self, host: str) -> list[str]:
        return [one.target for one in self.log if one.host == host]

    async def start(self, addresses: Sequence[str], tls: ssl.SSLContext | None) -> None:
        for address in addresses:
            server = await asyncio.start_server(self._serve, address, self.port, ssl=tls)
            self.port = server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(OSError, asyncio.IncompleteReadError):
            while await self._answer(reader, writer):
                pass
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        arrival_s, target = time.monotonic(), head.split(" ")[1]
        host = head.lower().partition("\r\nhost: ")[2].partition("\r\n")[0].partition(":")[0]
        answer = self._answers(host, target)
        at = len(self.log)
        self.log.append(Request(arrival_s, math.inf, writer.get_extra_info("sockname")[0], host, target, head))
        for part in [answer] if isinstance(answer, bytes) else answer:
            if isinstance(part, float):
                await asyncio.sleep(part)
            elif isinstance(part, str):
                await asyncio.sleep(3600.0 if part == HANG else 0.0)
                return False
            else:
                self.log[at] = self.log[at]._replace(end_s=time.monotonic())
                writer.write(part)
                await writer.drain()
        return True


@contextmanager
def loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        asyncio.run_coroutine_threadsafe(_end_tasks(), loop).result(10.0)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10.0)
        loop.close()


async def _end_tasks() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@contextmanager
def small_server(
    answers: Answers, addresses: Sequence[str] = ("127.9.0.1",), tls: ssl.SSLContext | None = None
) -> Iterator[SmallServer]:
    server = SmallServer(answers)
    with loop_in_thread() as loop:
        asyncio.run_coroutine_threadsafe(server.start(addresses, tls), loop).result(10.0)
        yield server


@contextmanager
def name_server(names: Mapping[str, Name]) -> Iterator[str]:
    """Yield the "address:port" on which the name server listens."""
    with loop_in_thread() as loop:
        yield asyncio.run_coroutine_threadsafe(NameServer(names).start(), loop).result(10.0)
