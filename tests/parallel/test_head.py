"""The loss of Ray's head is noticed, a head that comes back is not lost, and no call waits forever for an answer of the head."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.parallel.processes_world import wait_for
from trapline.parallel.ray import head as module
from trapline.parallel.ray.head import Head, HeadLost, listens, speaks_http2, watched


@pytest.fixture(autouse=True)
def _short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ASK_EVERY_S", 0.02)
    monkeypatch.setattr(module, "_SILENCE_S", 0.5)


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server


def lost() -> Head:
    head = Head(("127.0.0.1", 9), listens)
    head.is_silent = head.is_lost = True
    return head


def test_a_head_that_ends_is_silent_soon_and_lost_later(listening: socket.socket) -> None:
    with watched(listening.getsockname(), listens) as head:
        time.sleep(0.2)
        assert not head.is_silent
        gone_at = time.monotonic()
        listening.close()
        wait_for(lambda: head.is_silent, 5.0)
        wait_for(lambda: head.is_lost, 5.0)
        assert time.monotonic() - gone_at >= 0.5


def test_a_head_that_hangs_is_lost_too(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel still accepts connections for it."""
    monkeypatch.setattr(module, "_CONNECT_S", 0.1)
    with watched(listening.getsockname(), speaks_http2) as head:
        wait_for(lambda: head.is_lost, 5.0)


def test_a_head_that_comes_back_is_not_lost(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SILENCE_S", 60.0)
    address = listening.getsockname()
    with watched(address, listens) as head:
        listening.close()
        wait_for(lambda: head.is_silent, 5.0)
        with closing(socket.create_server(address)):
            asyncio.run(asyncio.wait_for(head.there(), 5.0))
        assert not head.is_lost


def test_an_answer_and_a_failure_are_passed_on(listening: socket.socket) -> None:
    with watched(listening.getsockname(), listens) as head:
        assert head.ask(divmod, 7, 2) == (3, 1)
        assert asyncio.run(head.call(divmod, 7, 2)) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            head.ask(divmod, 7, 0)
        with pytest.raises(ZeroDivisionError):
            asyncio.run(head.call(divmod, 7, 0))


def test_a_call_without_an_answer_ends_when_the_head_is_lost(listening: socket.socket) -> None:
    never = threading.Event()
    with watched(listening.getsockname(), listens) as head:
        threading.Timer(0.1, listening.close).start()
        with pytest.raises(HeadLost):
            head.ask(never.wait)
    never.set()


def test_the_same_holds_within_a_running_event_loop(listening: socket.socket) -> None:
    """The loop continues and ends, and does not wait for the thread of the call."""
    never = threading.Event()

    async def meanwhile(head: Head) -> int:
        asking, turns = asyncio.ensure_future(head.call(never.wait)), 0
        threading.Timer(0.1, listening.close).start()
        while not asking.done():
            await asyncio.sleep(0.01)
            turns += 1
        with pytest.raises(HeadLost):
            await asking
        return turns

    with watched(listening.getsockname(), listens) as head:
        assert asyncio.run(asyncio.wait_for(meanwhile(head), 10.0)) > 10
    never.set()


def test_a_lost_head_is_not_called() -> None:
    calls: list[int] = []
    with pytest.raises(HeadLost):
        asyncio.run(lost().call(calls.append, 1))
    with pytest.raises(HeadLost):
        lost().ask(calls.append, 1)
    asyncio.run(asyncio.wait_for(lost().loss(), 5.0))
    assert calls == []


@pytest.mark.parametrize(
    ("says", "is_one"),
    [(b"\0\0\6\4\0\0\0\0\0\0\5", True), (b"HTTP/1.1 400 Bad Request", False), (b"", False), (None, False)],
)
def test_a_server_without_the_greeting_of_a_head_is_not_a_head(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch, says: bytes | None, is_one: bool
) -> None:
    """The server says something else, closes the connection, or (None) says nothing."""
    monkeypatch.setattr(module, "_CONNECT_S", 0.2)

    def answer() -> None:
        line, _ = listening.accept()
        with line:
            line.recv(100)
            line.sendall(says or b"")
            if says is None:
                line.recv(1)  # until the other end closes the connection

    server = threading.Thread(target=answer)
    server.start()
    assert speaks_http2(listening.getsockname()) == is_one
    server.join()
