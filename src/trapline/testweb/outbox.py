"""The answers of one connection on their way out: one after the other, each when it is due, at its site's pace, in its manner.

Who fills it: `connection`, in the order of the requests. Who empties it: the event loop. Invariant: only the first answer is
under way, and its row in the log gets its end when its last bytes go. It reads no request.
"""

import asyncio
import math
import socket
import struct
from collections import deque
from time import monotonic
from typing import NamedTuple

from trapline.testweb.log import Recorder
from trapline.testweb.message import Ready, Sending

PIECE_BYTES = 65_536  # what a socket on loopback takes at once, so that the end of an answer is when it is handed over
TICK_S = 0.05  # between two pieces of a paced answer
DRIBBLE_RATE = 1.0  # bytes per second
ENDLESS_RATE = 50e6  # bytes per second: it must not starve the other connections

_ENDLESS = (Sending.ENDLESS_BODY, Sending.ENDLESS_HEAD)
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER of no seconds


class Outgoing(NamedTuple):
    row: int
    due: float  # monotonic; 0: at once
    answer: Ready
    message: bytes
    rate: float  # bytes per second
    last: bool


class Outbox:
    def __init__(self, transport: asyncio.Transport, recorder: Recorder) -> None:
        self._transport, self._recorder = transport, recorder
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Outgoing] = deque()
        self._left: memoryview | None = None  # of the first answer, once it has begun
        self._sent = 0  # bytes of it
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self.closed = False
        self.quiet_since = monotonic()
        """when bytes last went out"""

    def __bool__(self) -> bool:
        return bool(self._queue)

    def add(self, outgoing: Outgoing) -> None:
        self._queue.append(outgoing)
        if len(self._queue) == 1:
            self._go_on()

    def at_once(self, message: bytes) -> float | None:
        """Sends it now if nothing is in the way, and says when; None: it must be added."""
        if self._queue or self._paused or self.closed or len(message) > PIECE_BYTES:
            return None
        self.quiet_since = now = monotonic()
        self._transport.write(message)
        return now

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._go_on()

    def lost(self) -> None:
        """The client has gone: what was not answered never will be."""
        now = monotonic()
        self.closed = True
        if self._timer:
            self._timer.cancel()
        for outgoing in self._queue:
            self._recorder.ended(outgoing.row, now, outgoing.answer.status if self._sent else 0, self._sent)
            self._sent = 0
        self._queue.clear()

    def _go_on(self) -> None:
        while self._queue and not (self._paused or self._timer or self.closed):
            first = self._queue[0]
            if self._left is None and not self._begin(first):
                return
            self._push(first)

    def _begin(self, first: Outgoing) -> bool:
        """False: not yet, or never."""
        if first.answer.sending is Sending.NEVER:
            return False
        if first.due and (wait_s := first.due - monotonic()) > 0:
            self._wait(wait_s)
            return False
        half = first.answer.sending is Sending.HALF_THEN_RESET
        self._left = memoryview(first.message)[: len(first.message) // 2 if half else None]
        self._sent = 0
        if (rate := _rate(first)) < math.inf:  # a piece has arrived when its time is over, not when it begins
            self._wait(_piece(rate, self._left) / rate)
            return False
        return True

    def _push(self, first: Outgoing) -> None:
        """Hand over one piece; then the next is due, or the answer is out."""
        assert self._left is not None
        rate = _rate(first)
        size = _piece(rate, self._left)
        self.quiet_since = monotonic()
        self._transport.write(self._left[:size])
        self._left, self._sent = self._left[size:], self._sent + size
        if not self._left and first.answer.sending in _ENDLESS:
            self._left = memoryview(first.answer.repeated)
        if not self._left:
            self._finish(first)
        elif rate < math.inf:
            self._wait(_piece(rate, self._left) / rate)

    def _finish(self, first: Outgoing) -> None:
        answer = first.answer
        self._recorder.ended(first.row, self.quiet_since, answer.status, self._sent, answer.version)
        self._queue.popleft()
        self._left, self._sent = None, 0
        if first.answer.sending is Sending.HALF_THEN_RESET:
            self._reset()
        elif first.last:
            self._close()

    def _wait(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._woken)

    def _woken(self) -> None:
        self._timer = None
        self._go_on()

    def _close(self) -> None:
        """Half of it, if that can be: to close all would reset, and a client that is still sending would lose the answer."""
        self.closed = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def _reset(self) -> None:
        self.closed = True
        own = self._transport.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._transport.abort()


def _rate(outgoing: Outgoing) -> float:
    if outgoing.answer.sending is Sending.DRIBBLED:
        return DRIBBLE_RATE
    return min(outgoing.rate, ENDLESS_RATE) if outgoing.answer.sending in _ENDLESS else outgoing.rate


def _piece(rate: float, left: memoryview) -> int:
    return min(len(left), PIECE_BYTES if rate == math.inf else max(1, int(rate * TICK_S)))
