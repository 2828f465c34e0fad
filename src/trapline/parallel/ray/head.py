"""The head of a Ray cluster: whether it still answers. Without the head nothing works there.

This module knows a host and a port, and not Ray. Ray kills a process one minute after it lost the head, without an orderly end. Here
the loss is noticed sooner, while there is still time for one.
"""

import asyncio
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
Address = tuple[str, int]

_SILENCE_S = 20.0  # a head that does not answer for this long is lost
_ASK_EVERY_S = 1.0
_CONNECT_S = 5.0
# Length of an HTTP/2 frame header in bytes; frame type SETTINGS, its fourth byte (RFC 9113)
_FRAME_HEAD, _SETTINGS = 9, b"\x04"
_HTTP2_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)


class HeadLost(Exception):
    """The head of the cluster has not answered for too long."""


class Head:
    """The state of the head, as a thread that polls it sees it. Use `watched`."""

    def __init__(self, address: Address, answers: Callable[[Address], bool]) -> None:
        self.address, self._answers = address, answers
        self.is_silent = False  # it does not answer at the moment
        self.is_lost = False  # it did not answer for too long, and is not waited for any more

    def watch(self, closed: threading.Event) -> None:
        since = math.inf
        while not self.is_lost and not closed.wait(_ASK_EVERY_S):
            requested_at = time.monotonic()
            self.is_silent = not self._is_there()
            since = min(since, requested_at) if self.is_silent else math.inf
            self.is_lost = time.monotonic() - since >= _SILENCE_S

    def _is_there(self) -> bool:
        try:
            return self._answers(self.address)
        except OSError:
            return False

    async def there(self) -> None:
        """Wait until the head answers. Raises `HeadLost` if it is lost."""
        while self.is_silent and not self.is_lost:
            await asyncio.sleep(_ASK_EVERY_S)
        if self.is_lost:
            raise HeadLost

    async def loss(self) -> None:
        while not self.is_lost:
            await asyncio.sleep(_ASK_EVERY_S)

    async def call(self, function: Callable[..., T], *args: object) -> T:
        """Return the result of a function that needs the head, and might wait for it for ever. Raises `HeadLost` if the
        head is lost meanwhile."""
        await self.there()
        answer = asyncio.wrap_future(_offload(function, *args))
        while not (await asyncio.wait((answer,), timeout=_ASK_EVERY_S))[0]:
            if self.is_lost:
                raise HeadLost
        return answer.result()

    def ask(self, function: Callable[..., T], *args: object) -> T:
        """Do the same as `call`, where no event loop runs."""
        return asyncio.run(self.call(function, *args))


@contextmanager
def watched(address: Address, answers: Callable[[Address], bool]) -> Iterator[Head]:
    """Watch a head from a thread. `answers`: returns whether a head answers at an address; one of the functions below."""
    head, closed = Head(address, answers), threading.Event()
    threading.Thread(target=head.watch, args=(closed,), daemon=True).start()
    try:
        yield head
    finally:
        closed.set()


def speaks_http2(address: Address) -> bool:
    """Return whether the server there begins like gRPC, with an HTTP/2 SETTINGS frame. Raises `OSError` if nothing
    listens there."""
    with socket.create_connection(address, _CONNECT_S) as connection, connection.makefile("rb") as received:
        connection.sendall(_HTTP2_GREETING)
        try:
            return received.read(_FRAME_HEAD)[3:4] == _SETTINGS
        except OSError:  # includes the timeout of a server that sends nothing
            return False


def listens(address: Address) -> bool:
    """Return True if something listens there. Raises `OSError` if not. For a head that hangs, its kernel still accepts
    connections."""
    socket.create_connection(address, _CONNECT_S).close()
    return True


def _offload(function: Callable[..., T], *args: object) -> Future[T]:
    """Run a function in a daemon thread, which does not keep the process from ending, unlike the threads of an executor."""
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()  # so that nobody can cancel it from now on

    def work() -> None:
        try:
            answer.set_result(function(*args))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return answer
