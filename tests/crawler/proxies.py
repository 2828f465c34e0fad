"""Proxies on loopback, for tests: HTTP with CONNECT and with whole URLs, and SOCKS5. Each keeps a log of what it was asked for."""

import asyncio
import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from tests.crawler.small_server import loop_in_thread


class TestProxy:
    """`login`: name and password that it demands. `names`: addresses of the names that it knows. `refuses`: status for CONNECT."""

    __test__ = False

    def __init__(self, kind: str, login: tuple[str, str] | None, names: Mapping[str, str], refuses: int = 0) -> None:
        self.kind, self._login, self._names, self._refuses = kind, login, names, refuses
        self.port = 0
        self.log: list[str] = []  # "HOST:PORT" of tunnels, whole URLs of requests

    @property
    def url(self) -> str:
        return f"{self.kind}://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await (self._http(reader, writer) if self.kind == "http" else self._socks(reader, writer))
        writer.close()

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
            if not self._is_authorized(head):
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
            self.log.append(target)
            if method == "CONNECT" and self._refuses:
                writer.write(f"HTTP/1.1 {self._refuses} No\r\nContent-Length: 0\r\n\r\n".encode())
                return
            if method == "CONNECT":
                host, _, port = target.rpartition(":")
                others = await asyncio.open_connection(self._names.get(host, host), int(port))
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                await self._relay(reader, writer, *others)
                return
            writer.write(await self._fetched(target, head))

    def _is_authorized(self, head: bytes) -> bool:
        if self._login is None:
            return True
        expected = base64.b64encode(":".join(self._login).encode())
        return b"\r\nProxy-Authorization: Basic " + expected + b"\r\n" in head

    async def _fetched(self, url: str, head: bytes) -> bytes:
        """Return the answer to a request with a whole URL."""
        authority, _, path = url.removeprefix("http://").partition("/")
        host, _, port = authority.partition(":")
        reader, writer = await asyncio.open_connection(self._names.get(host, host), int(port or 80))
        lines = [line for line in head.split(b"\r\n")[1:] if not line.startswith(b"Proxy-")]
        writer.write(b"\r\n".join([f"GET /{path} HTTP/1.1".encode(), *lines]))
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answer += await reader.readexactly(length)
        writer.close()
        return answer

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        method = 0 if self._login is None else 2
        if method not in methods:
            writer.write(b"\x05\xff")
            return
        writer.write(bytes([5, method]))
        if self._login is not None:
            await reader.readexactly(1)
            given = [(await reader.readexactly((await reader.readexactly(1))[0])).decode() for _ in range(2)]
            writer.write(b"\x01\x00" if tuple(given) == self._login else b"\x01\x01")
            if tuple(given) != self._login:
                return
        *_, kind = await reader.readexactly(4)
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = ".".join(map(str, await reader.readexactly(4)))
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.log.append(f"{host}:{port}")
        try:
            others = await asyncio.open_connection(self._names.get(host, host), port)
        except OSError:
            writer.write(b"\x05\x05\x00\x01" + bytes(6))
            return
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        await self._relay(reader, writer, *others)

    async def _relay(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> None:
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.close()


@contextmanager
def proxy_server(
    kind: str, login: tuple[str, str] | None = None, names: Mapping[str, str] | None = None, refuses: int = 0
) -> Iterator[TestProxy]:
    proxy = TestProxy(kind, login, names or {}, refuses)
    with loop_in_thread() as loop:
        asyncio.run_coroutine_threadsafe(proxy.start(), loop).result(10.0)
        yield proxy
