"""The head of a cluster, without which nothing moves there: whether it still answers. It knows a host and a port, and nothing of Ray.

Ray ends whoever has lost the head after a minute, on the spot. Here it is known sooner, while there is time to end in order.
"""

import asyncio
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

_SILENCE_S = 20.0  # of a head that is lost
_ASK_EVERY_S = 1.0
_CONNECT_S = 5.0
_FRAME_HEAD, _SETTINGS = 9, b"\x04"  # bytes, and the fourth of them: RFC 9113
_HTTP2_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)


class HeadLost(Exception):
    """It has not answered for too long."""


class Head:
    """What is known of it, by a thread that asks; use `watched`."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.is_silent = False  # now
        self.is_lost = False  # for good

    def watch(self, closed: threading.Event) -> None:
        since = math.inf
        while not self.is_lost and not closed.wait(_ASK_EVERY_S):
            asked_at = time.monotonic()
            self.is_silent = not _listens(self.address)
            since = min(since, asked_at) if self.is_silent else math.inf
            self.is_lost = time.monotonic() - since >= _SILENCE_S

    async def there(self) -> None:
        """As soon as it answers. `HeadLost`: it never will."""
        while self.is_silent and not self.is_lost:
            await asyncio.sleep(_ASK_EVERY_S)
        if self.is_lost:
            raise HeadLost

    async def loss(self) -> None:
        while not self.is_lost:
            await asyncio.sleep(_ASK_EVERY_S)

    async def asked(self, function: Callable[..., T], *args: object) -> T:
        """What a function answers that cannot do without the head, and may wait for it for ever. `HeadLost`: we do not."""
        await self.there()
        answer = asyncio.wrap_future(_aside(function, *args))
        while not (await asyncio.wait((answer,), timeout=_ASK_EVERY_S))[0]:
            if self.is_lost:
                raise HeadLost
        return answer.result()

    def ask(self, function: Callable[..., T], *args: object) -> T:
        """The same, where no loop runs."""
        answer = _aside(function, *args)
        while not wait((answer,), _ASK_EVERY_S).done:
            if self.is_lost:
                raise HeadLost
        return answer.result()


@contextmanager
def watched(address: tuple[str, int]) -> Iterator[Head]:
    head, closed = Head(address), threading.Event()
    threading.Thread(target=head.watch, args=(closed,), daemon=True).start()
    try:
        yield head
    finally:
        closed.set()


def host_and_port(address: str) -> tuple[str, int]:
    """
    >>> host_and_port("10.0.0.1:6379"), host_and_port("[::1]:6379")
    (('10.0.0.1', 6379), ('::1', 6379))
    """
    host, port = address.rsplit(":", 1)
    return host.strip("[]"), int(port)


def speaks_http2(address: tuple[str, int]) -> bool:
    """Whether who listens there greets as gRPC does, by a frame of settings. `OSError` if nobody listens."""
    with socket.create_connection(address, _CONNECT_S) as line, line.makefile("rb") as heard:
        line.sendall(_HTTP2_GREETING)
        try:
            return heard.read(_FRAME_HEAD)[3:4] == _SETTINGS
        except OSError:  # also if it says nothing
            return False


def _listens(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, _CONNECT_S).close()
    except OSError:
        return False
    return True


def _aside(function: Callable[..., T], *args: object) -> Future[T]:
    """In a thread that does not keep the process from ending, unlike those of an executor."""
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()  # from now on nobody can cancel it

    def work() -> None:
        try:
            answer.set_result(function(*args))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return answer
