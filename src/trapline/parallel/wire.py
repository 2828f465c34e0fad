"""How partitions speak: frames over a stream, and proof at its beginning that both sides know the crawl's token.

It knows bytes and kinds of frames, not what is in them. The token is never sent: each side sends a nonce, and answers the
other's with an HMAC. What follows is not encrypted: partitions belong on a network of their own.

    frame: length (4 bytes, of what follows) | kind (1 byte) | body
    hello: JSON {"protocol": 1, "crawl": id, "from": partition, "nonce": hex}, then proof: HMAC-SHA256(token, role | both nonces)
"""

import asyncio
import hashlib
import hmac
import json
import re
import secrets
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum

from trapline.errors import ConfigError

Address = tuple[str, int]
PROTOCOL = 1
MOST_FRAME = 32 << 20
_MOST_HELLO = 4096
_HELLO_S = 10.0
_SILENT_S = 15.0  # after which a line ends on which nothing arrives, not even that the other side has heard us
_MOST_UNPROVEN = 64  # callers at a time that have not proved what they are
_HEAD = struct.Struct("!IB")
_NONCE = re.compile("[0-9a-f]{64}")


class Kind(IntEnum):
    """What a frame is. Numbers are part of the protocol: add, never reuse."""

    HELLO = 1
    PROOF = 2
    REFUSED = 3
    PARCEL = 4
    RECEIVED = 5
    STATUS = 6
    ORDER = 7


_KINDS = frozenset(map(int, Kind))


class SilentError(ConfigError):
    """Whoever is there says nothing that could be understood, in time."""


class Refused(ConfigError):
    """The two do not belong together, and it will not help to try again."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What a partition shows: which crawl it belongs to, and that it knows its token."""

    crawl: str
    token: bytes
    partition: int


@dataclass(slots=True)
class Line:
    """An open stream whose other end has proved what it is."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    partition: int  # of the other end

    async def receive(self) -> tuple[Kind, bytes] | None:
        """The next frame; None: the other side has gone, or sends what is no frame."""
        return await _read(self.reader, MOST_FRAME)

    def send(self, kind: Kind, body: bytes = b"") -> None:
        """Nothing, if the line is closed: whoever reads from it learns that."""
        if not self.writer.is_closing():  # else uvloop raises
            _write(self.writer, kind, body)

    async def drain(self) -> None:
        await self.writer.drain()

    def refuse(self, reason: str) -> None:
        """To say why, and to hear no more."""
        self.send(Kind.REFUSED, reason.encode())
        self.close()

    def close(self) -> None:
        self.writer.close()


async def listen(
    host: str, own: Pass, serve: Callable[[Line], Awaitable[None]], port: int = 0
) -> tuple[asyncio.Server, Address]:
    """Serve whoever calls and proves that it belongs to us. Strangers, however many, hold no more than a few lines for a few seconds, and
    keep nobody out: for the newest caller the oldest goes, and ours prove themselves in a moment."""
    unproven: dict[asyncio.Task[None], None] = {}  # in the order in which they called

    async def called(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(unproven) >= _MOST_UNPROVEN:
            oldest = next(iter(unproven))
            del unproven[oldest]
            oldest.cancel()
        unproven[task] = None
        try:
            line = await greet(reader, writer, own, called=False)
        except (ConfigError, OSError, asyncio.CancelledError):
            writer.close()
            return  # it has been told why, or gave way to newer callers
        finally:
            unproven.pop(task, None)
        with suppress(asyncio.CancelledError):
            await serve(line)

    try:
        server = await asyncio.start_server(called, host, port)
    except OSError as error:
        raise ConfigError(f"cannot listen at {host}: {error.strerror or error}") from None
    name = server.sockets[0].getsockname()
    return server, (name[0], name[1])


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, own: Pass, *, called: bool) -> Line:
    """Prove and have proved who both are. `called`: we opened the connection. `Refused`, or `ConfigError`: it is no partition."""
    _end_if_silent(writer)
    try:
        async with asyncio.timeout(_HELLO_S):
            return await _greet(reader, writer, own, called)
    except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
        writer.close()
        raise SilentError("the other side does not answer as a partition does") from error
    except ConfigError:
        writer.close()
        raise


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, own: Pass, called: bool) -> Line:
    nonce = secrets.token_hex(32)
    hello = {"protocol": PROTOCOL, "crawl": own.crawl, "from": own.partition, "nonce": nonce}
    _write(writer, Kind.HELLO, json.dumps(hello).encode())
    theirs = _hello(await _expected(reader, Kind.HELLO))
    wrong = _difference(own, theirs)
    if wrong:
        _write(writer, Kind.REFUSED, wrong.encode())
        await writer.drain()
        raise Refused(wrong)
    nonces = (nonce + str(theirs["nonce"])) if called else (str(theirs["nonce"]) + nonce)
    _write(writer, Kind.PROOF, _proof(own.token, nonces, called, own.partition))
    proof = await _expected(reader, Kind.PROOF)
    if not hmac.compare_digest(proof, _proof(own.token, nonces, not called, int(theirs["from"]))):
        _write(writer, Kind.REFUSED, b"the tokens of the two partitions differ")
        await writer.drain()
        raise Refused("the tokens of the two partitions differ: give all of a crawl the same one")
    return Line(reader, writer, int(theirs["from"]))


def _end_if_silent(writer: asyncio.StreamWriter) -> None:
    """If the other host is out of reach, the line ends. By itself TCP waits a quarter of an hour for what was sent, and for ever if nothing
    was; and it tries ever more rarely, while whoever opens a new line tries every few seconds. (RFC 5482; tcp(7).)"""
    own, probe_s = writer.get_extra_info("socket"), max(round(_SILENT_S / 3), 1)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, probe_s)
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, probe_s)
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(1_000 * _SILENT_S))


def _difference(own: Pass, theirs: dict[str, str | int]) -> str:
    if theirs["protocol"] != PROTOCOL:
        return f"one side speaks protocol {theirs['protocol']}, the other {PROTOCOL}: let all partitions run the same version"
    if theirs["crawl"] != own.crawl:
        return "the two partitions belong to different crawls"
    return ""


def _hello(body: bytes) -> dict[str, str | int]:
    kinds = {"protocol": int, "crawl": str, "from": int, "nonce": str}
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    if (
        not isinstance(said, dict)
        or any(type(said.get(name)) is not kind for name, kind in kinds.items())
        or not _NONCE.fullmatch(said["nonce"])
    ):
        raise ConfigError("the other side does not greet as a partition does")
    return said


def _proof(token: bytes, nonces: str, caller: bool, partition: int) -> bytes:
    """Bound to the side and its number, so that no answer can be sent back to whom it came from."""
    said = f"{'caller' if caller else 'called'} {partition} {nonces}".encode()
    return hmac.new(token, said, hashlib.sha256).digest()


async def _expected(reader: asyncio.StreamReader, kind: Kind) -> bytes:
    frame = await _read(reader, _MOST_HELLO)
    if frame is None:
        raise ConfigError("the other side hung up before it had proved what it is")
    if frame[0] == Kind.REFUSED:
        raise Refused(f"refused by the other side: {frame[1].decode(errors='replace')[:200]}")
    if frame[0] != kind:
        raise ConfigError("the other side does not greet as a partition does")
    return frame[1]


async def _read(reader: asyncio.StreamReader, most: int) -> tuple[Kind, bytes] | None:
    try:
        length, kind = _HEAD.unpack(await reader.readexactly(_HEAD.size))
        if not 1 <= length <= most or kind not in _KINDS:
            return None
        return Kind(kind), await reader.readexactly(length - 1)
    except (asyncio.IncompleteReadError, OSError):
        return None


def _write(writer: asyncio.StreamWriter, kind: Kind, body: bytes) -> None:
    writer.write(_HEAD.pack(len(body) + 1, kind) + body)
