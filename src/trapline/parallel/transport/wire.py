"""The wire protocol of partitions: frames over a TCP stream, and a handshake in which both sides prove that they know
the crawl's token.

This module knows bytes and kinds of frames, not the contents of frames. The token is never sent: each side sends a
nonce, and answers the nonce of the other side with an HMAC. The frames that follow are not encrypted: run partitions on
a private network.

    frame: length of the rest (4 bytes) | kind (1 byte) | body
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
_SILENT_S = (
    15.0  # a connection ends after this time without any packet from the other side, not even a TCP acknowledgement
)
_MOST_UNPROVEN = 64  # connections at a time that have not completed the handshake
_HEAD = struct.Struct("!IB")
_NONCE = re.compile("[0-9a-f]{64}")


class FrameKind(IntEnum):
    """The kind of a frame. The numbers are part of the protocol: add new ones, never reuse one."""

    HELLO = 1
    PROOF = 2
    REFUSED = 3
    BATCH = 4
    RECEIVED = 5
    STATUS = 6
    ORDER = 7


_KINDS = frozenset(map(int, FrameKind))


class SilentError(ConfigError):
    """The other side sends nothing intelligible within the time limit."""


class Refused(ConfigError):
    """The two sides do not belong together. Another attempt will fail too."""


@dataclass(frozen=True, slots=True)
class Pass:
    """The identity of a partition in the handshake: its crawl, the crawl's token, and its number."""

    crawl: str
    token: bytes
    partition: int


@dataclass(slots=True)
class SecureStream:
    """An open stream whose other end has completed the handshake."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    partition: int  # of the other end

    async def receive(self) -> tuple[FrameKind, bytes] | None:
        """Return the next frame, or None if the other side closed the stream or sent something that is not a frame."""
        return await _read(self.reader, MOST_FRAME)

    def send(self, kind: FrameKind, body: bytes = b"") -> None:
        """Send a frame. Does nothing if the stream is closed: its reader notices that."""
        if not self.writer.is_closing():  # uvloop raises an error on a closed stream
            _write(self.writer, kind, body)

    async def drain(self) -> None:
        await self.writer.drain()

    def refuse(self, reason: str) -> None:
        """Send the reason of a refusal and close the stream."""
        self.send(FrameKind.REFUSED, reason.encode())
        self.close()

    def close(self) -> None:
        self.writer.close()


async def listen(
    host: str, own: Pass, serve: Callable[[SecureStream], Awaitable[None]], port: int = 0
) -> tuple[asyncio.Server, Address]:
    """Accept connections, and serve those that complete the handshake. Strangers can hold only a few connections for a
    few seconds, and cannot keep partitions out: the newest connection displaces the oldest one that has not completed
    the handshake, and a partition completes it in a moment."""
    unproven: dict[asyncio.Task[None], None] = {}  # in the order in which they connected

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
            return  # the other side was told why, or a newer connection displaced it
        finally:
            unproven.pop(task, None)
        with suppress(asyncio.CancelledError):
            await serve(line)

    try:
        server = await asyncio.start_server(called, host, port)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}: {error.strerror or error}") from None
    name = server.sockets[0].getsockname()
    return server, (name[0], name[1])


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, own: Pass, *, called: bool) -> SecureStream:
    """Do the handshake. `called`: we opened the connection. Raises `Refused` if the two sides do not belong together,
    and `ConfigError` if the other side is not a partition."""
    _end_if_silent(writer)
    try:
        async with asyncio.timeout(_HELLO_S):
            return await _greet(reader, writer, own, called)
    except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
        writer.close()
        raise SilentError("the other side does not answer like a partition") from error
    except ConfigError:
        writer.close()
        raise


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, own: Pass, called: bool) -> SecureStream:
    nonce = secrets.token_hex(32)
    hello = {"protocol": PROTOCOL, "crawl": own.crawl, "from": own.partition, "nonce": nonce}
    _write(writer, FrameKind.HELLO, json.dumps(hello).encode())
    theirs = _hello(await _expected(reader, FrameKind.HELLO))
    reason = _difference(own, theirs)
    if reason:
        _write(writer, FrameKind.REFUSED, reason.encode())
        await writer.drain()
        raise Refused(reason)
    nonces = (nonce + str(theirs["nonce"])) if called else (str(theirs["nonce"]) + nonce)
    _write(writer, FrameKind.PROOF, _proof(own.token, nonces, called, own.partition))
    proof = await _expected(reader, FrameKind.PROOF)
    if not hmac.compare_digest(proof, _proof(own.token, nonces, not called, int(theirs["from"]))):
        _write(writer, FrameKind.REFUSED, b"the tokens of the two partitions differ")
        await writer.drain()
        raise Refused("the tokens of the two partitions differ: give all partitions of a crawl the same token")
    return SecureStream(reader, writer, int(theirs["from"]))


def _end_if_silent(writer: asyncio.StreamWriter) -> None:
    """Let the connection end soon if the other host is out of reach. TCP by itself waits a quarter of an hour for the
    acknowledgement of sent data, and for ever if none was sent; and it retransmits more and more rarely, while a new
    connection is tried every few seconds. (RFC 5482; tcp(7).)"""
    own, probe_s = writer.get_extra_info("socket"), max(round(_SILENT_S / 3), 1)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, probe_s)
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, probe_s)
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(1_000 * _SILENT_S))


def _difference(own: Pass, theirs: dict[str, str | int]) -> str:
    if theirs["protocol"] != PROTOCOL:
        return f"one side speaks protocol {theirs['protocol']}, the other {PROTOCOL}: run the same version in all partitions"
    if theirs["crawl"] != own.crawl:
        return "the two partitions belong to different crawls"
    return ""


def _hello(body: bytes) -> dict[str, str | int]:
    kinds = {"protocol": int, "crawl": str, "from": int, "nonce": str}
    try:
        hello = json.loads(body)
    except (ValueError, RecursionError):
        hello = None
    if (
        not isinstance(hello, dict)
        or any(type(hello.get(name)) is not kind for name, kind in kinds.items())
        or not _NONCE.fullmatch(hello["nonce"])
    ):
        raise ConfigError("the other side does not begin the handshake like a partition")
    return hello


def _proof(token: bytes, nonces: str, caller: bool, partition: int) -> bytes:
    """Return the proof of one side. It depends on the role and number of that side, so that no proof can be reflected
    to its sender."""
    signed = f"{'caller' if caller else 'called'} {partition} {nonces}".encode()
    return hmac.new(token, signed, hashlib.sha256).digest()


async def _expected(reader: asyncio.StreamReader, kind: FrameKind) -> bytes:
    frame = await _read(reader, _MOST_HELLO)
    if frame is None:
        raise ConfigError("the other side closed the connection during the handshake")
    if frame[0] == FrameKind.REFUSED:
        raise Refused(f"refused by the other side: {frame[1].decode(errors='replace')[:200]}")
    if frame[0] != kind:
        raise ConfigError("the other side does not follow the handshake like a partition")
    return frame[1]


async def _read(reader: asyncio.StreamReader, most: int) -> tuple[FrameKind, bytes] | None:
    try:
        length, kind = _HEAD.unpack(await reader.readexactly(_HEAD.size))
        if not 1 <= length <= most or kind not in _KINDS:
            return None
        return FrameKind(kind), await reader.readexactly(length - 1)
    except (asyncio.IncompleteReadError, OSError):
        return None


def _write(writer: asyncio.StreamWriter, kind: FrameKind, body: bytes) -> None:
    writer.write(_HEAD.pack(len(body) + 1, kind) + body)
