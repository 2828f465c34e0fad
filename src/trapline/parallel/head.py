"""The head of a cluster, without which nothing moves there: whether it still answers. It knows a host and a port, and nothing of Ray.

Ray ends whoever has lost the head after a minute, on the spot. Here it is known sooner, while there is time to end in order.
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

_SILENCE_S = 20.0  # of a head that is lost
_ASK_EVERY_S = 1.0
_CONNECT_S = 5.0
_FRAME_HEAD, _SETTINGS = 9, b"\x04"  # bytes, and the fourth of them: RFC 9113
_HTTP2_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)


class HeadLost(Exception):
    """It has not answered for too long."""


class Head:
    """What is known of it, by a thread that asks; use `watched`."""

    def __init__(self, address: Address, answers: Callable[[Address], bool]) -> None:
        self.address, self._answers = address, answers
        self.is_silent = False  # now
        self.is_lost = False  # for good

    def watch(self, closed: threading.Event) -> None:
        since = math.inf
        while not self.is_lost and not closed.wait(_ASK_EVERY_S):
            asked_at = time.monotonic()
            self.is_silent = not self._is_there()
            since = min(since, asked_at) if self.is_silent else math.inf
            self.is_lost = time.monotonic() - since >= _SILENCE_S

    def _is_there(self) -> bool:
        try:
            return self._answers(self.address)
        except OSError:
            return False

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
        return asyncio.run(self.asked(function, *args))


@contextmanager
def watched(address: Address, answers: Callable[[Address], bool]) -> Iterator[Head]:
    """`answers`: whether a head does there; one of those below."""
    head, closed = Head(address, answers), threading.Event()
    threading.Thread(target=head.watch, args=(closed,), daemon=True).start()
    try:
        yield head
    finally:
        closed.set()


def speaks_http2(address: Address) -> bool:
    """Whether who listens there greets as gRPC does, by a frame of settings. `OSError` if nobody listens."""
    with socket.create_connection(address, _CONNECT_S) as line, line.makefile("rb") as heard:
        line.sendall(_HTTP2_GREETING)
        try:
            return heard.read(_FRAME_HEAD)[3:4] == _SETTINGS
        except OSError:  # also if it says nothing
            return False


def listens(address: Address) -> bool:
    """Whether anybody does: of a head that hangs, only its kernel. `OSError` if nobody."""
    socket.create_connection(address, _CONNECT_S).close()
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
