"""A head that goes is noticed, one that comes back is not lost, and nobody waits for ever for what only it can answer."""

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
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_one_that_goes_is_silent_soon_and_lost_in_time(listening: socket.socket) -> None:
    with watched(listening.getsockname(), listens) as head:
        time.sleep(0.2)
        assert not head.is_silent
        gone_at = time.monotonic()
        listening.close()
        wait_for(lambda: head.is_silent, 5.0)
        wait_for(lambda: head.is_lost, 5.0)
        assert time.monotonic() - gone_at >= 0.5


def test_one_that_hangs_goes_too(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernel still answers for it."""
    monkeypatch.setattr(module, "_CONNECT_S", 0.1)
    with watched(listening.getsockname(), speaks_http2) as head:
        wait_for(lambda: head.is_lost, 5.0)


def test_one_that_comes_back_is_not_lost(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SILENCE_S", 60.0)
    address = listening.getsockname()
    with watched(address, listens) as head:
        listening.close()
        wait_for(lambda: head.is_silent, 5.0)
        with closing(socket.create_server(address)):
            asyncio.run(asyncio.wait_for(head.there(), 5.0))
        assert not head.is_lost


def test_an_answer_and_a_failure_come_through(listening: socket.socket) -> None:
    with watched(listening.getsockname(), listens) as head:
        assert head.ask(divmod, 7, 2) == (3, 1)
        assert asyncio.run(head.asked(divmod, 7, 2)) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            head.ask(divmod, 7, 0)
        with pytest.raises(ZeroDivisionError):
            asyncio.run(head.asked(divmod, 7, 0))


def test_what_never_answers_is_given_up_with_the_head(listening: socket.socket) -> None:
    never = threading.Event()
    with watched(listening.getsockname(), listens) as head:
        threading.Timer(0.1, listening.close).start()
        with pytest.raises(HeadLost):
            head.ask(never.wait)
    never.set()


def test_the_same_where_a_loop_runs(listening: socket.socket) -> None:
    """And the loop runs on, and ends: no thread of its own is waited for."""
    never = threading.Event()

    async def meanwhile(head: Head) -> int:
        asking, turns = asyncio.ensure_future(head.asked(never.wait)), 0
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


def test_a_lost_one_is_not_asked() -> None:
    asked: list[int] = []
    with pytest.raises(HeadLost):
        asyncio.run(lost().asked(asked.append, 1))
    with pytest.raises(HeadLost):
        lost().ask(asked.append, 1)
    asyncio.run(asyncio.wait_for(lost().loss(), 5.0))
    assert asked == []


@pytest.mark.parametrize(
    ("says", "is_one"),
    [(b"\0\0\6\4\0\0\0\0\0\0\5", True), (b"HTTP/1.1 400 Bad Request", False), (b"", False), (None, False)],
)
def test_who_does_not_greet_as_a_head_does_is_none(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch, says: bytes | None, is_one: bool
) -> None:
    """It says something else, hangs up, or (None) says nothing."""
    monkeypatch.setattr(module, "_CONNECT_S", 0.2)

    def answer() -> None:
        line, _ = listening.accept()
        with line:
            line.recv(100)
            line.sendall(says or b"")
            if says is None:
                line.recv(1)  # until the other end hangs up

    server = threading.Thread(target=answer)
    server.start()
    assert speaks_http2(listening.getsockname()) == is_one
    server.join()
