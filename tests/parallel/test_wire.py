"""Partitions of one crawl can connect. Others are refused with a reason, and none can pretend to be a partition."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from trapline.errors import ConfigError
from trapline.parallel.transport.wire import MOST_FRAME, PROTOCOL, FrameKind, Pass, SecureStream, greet

OURS = Pass("crawl-1", b"secret", 0)


def framed(body: bytes) -> bytes:
    return (len(body) + 1).to_bytes(4, "big") + bytes([FrameKind.HELLO]) + body


Meeting = tuple[SecureStream | ConfigError, SecureStream | ConfigError]


async def greeted(server: Pass, caller: Callable[[int], Awaitable[SecureStream]]) -> Meeting:
    """Return the result of a greeting on the called side and on the calling side."""
    answered: asyncio.Future[SecureStream | ConfigError] = asyncio.get_running_loop().create_future()

    async def called(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answered.set_result(await greet(reader, writer, server, called=False))
        except ConfigError as error:
            answered.set_result(error)

    listening = await asyncio.start_server(called, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        mine: SecureStream | ConfigError = await caller(port)
    except ConfigError as error:
        mine = error
    theirs = await asyncio.wait_for(answered, 20)
    listening.close()
    return theirs, mine


def as_partition(own: Pass) -> Callable[[int], Awaitable[SecureStream]]:
    async def call(port: int) -> SecureStream:
        return await greet(*await asyncio.open_connection("127.0.0.1", port), own, called=True)

    return call


def test_partitions_of_one_crawl_connect_and_exchange_frames() -> None:
    async def talk() -> None:
        theirs, mine = await greeted(OURS, as_partition(Pass("crawl-1", b"secret", 3)))
        assert isinstance(theirs, SecureStream)
        assert isinstance(mine, SecureStream)
        assert (theirs.partition, mine.partition) == (3, 0)
        mine.send(FrameKind.BATCH, bytes(100_000))
        theirs.send(FrameKind.RECEIVED)
        assert await theirs.receive() == (FrameKind.BATCH, bytes(100_000))
        assert await mine.receive() == (FrameKind.RECEIVED, b"")
        mine.close()
        assert await theirs.receive() is None
        theirs.close()

    asyncio.run(talk())


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (Pass("crawl-2", b"secret", 1), "different crawls"),
        (Pass("crawl-1", b"guess", 1), "tokens of the two partitions differ"),
    ],
)
def test_other_callers_are_refused_with_a_reason(other: Pass, reason: str) -> None:
    theirs, mine = asyncio.run(greeted(OURS, as_partition(other)))
    assert isinstance(theirs, ConfigError)
    assert isinstance(mine, ConfigError)
    assert reason in f"{theirs} {mine}"


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\x05\x01nulla",
        b"\0\0\0\x03\x01{}",
        b"\xff\xff\xff\xff\x01",
        b"\0\0\0\0\x01",
        b"",
        b'\0\0\0\x3b\x01{"protocol":9,"crawl":"crawl-1","from":1,"nonce":"aaaaaaaaaa"}',
        framed(b"[" * 3_000),
        framed(json.dumps({"protocol": PROTOCOL, "crawl": "crawl-1", "from": 1, "nonce": "\ud800"}).encode()),
    ],
)
def test_bytes_that_are_no_greeting_are_refused(said: bytes) -> None:
    async def call(port: int) -> SecureStream:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        writer.write_eof()
        await reader.read()
        writer.close()
        raise ConfigError("nothing to see")

    theirs, _ = asyncio.run(greeted(OURS, call))
    assert isinstance(theirs, ConfigError)


def test_an_answer_cannot_be_reflected_to_its_sender() -> None:
    """A caller without the token repeats everything that the server says."""

    async def call(port: int) -> SecureStream:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while piece := await reader.read(4096):
            writer.write(piece)
        writer.close()
        raise ConfigError("hung up")

    theirs, _ = asyncio.run(greeted(OURS, call))
    assert isinstance(theirs, ConfigError)
    assert "tokens" in str(theirs)


def test_a_frame_that_is_too_long_ends_the_connection() -> None:
    async def talk() -> None:
        theirs, mine = await greeted(OURS, as_partition(Pass("crawl-1", b"secret", 1)))
        assert isinstance(theirs, SecureStream)
        assert isinstance(mine, SecureStream)
        mine.writer.write((MOST_FRAME + 2).to_bytes(4, "big") + bytes([FrameKind.BATCH]))
        assert await theirs.receive() is None
        theirs.close()
        mine.close()

    asyncio.run(talk())
