"""Outgoing answers of one connection, sent one after the other: each when it is due, at its site's bandwidth, as its
`Sending` says.

`ServerConnection` fills the queue, in the order of the requests; the event loop empties it. Invariant: only the first
answer is being sent, and its row in the log gets its end when its last bytes are sent. The queue reads no requests.
All times follow from the time at which an answer was due, not from the time at which a timer fired, so that delays of
timers do not add up.
"""

import asyncio
import math
import socket
import struct
from collections import deque
from collections.abc import Iterator
from time import monotonic
from typing import NamedTuple

from trapline.testweb.answers.message import Ready, Sending
from trapline.testweb.server.log import Recorder
from trapline.testweb.web.behaviour import Behaviour

# ---- When the bytes of an answer arrive: at the bandwidth of the site, in the windows of TCP's slow start.
#
# A pure function of sizes and times, without a clock. It serves what `trapline.servers.slow_start` computes: the last byte arrives
# size / rate + stall_s after the first moment. This module does not import it, because compiled code would slow the start of the server
# process; a test compares the two.

PIECE_BYTES = 65_536  # a loopback socket takes this much at once, so an answer ends when its last piece is handed over
TICK_S = 0.05  # between two pieces of a paced answer


def arrivals(
    size: int, rate: float, round_trip_s: float = 0.0, window: float = 0.0, closing_s: float = 0.0
) -> Iterator[tuple[float, int]]:
    """Yield when the pieces of an answer arrive, in seconds, and their sizes in bytes.

    `window` is the present window of the connection; 0: no slow start. The last byte is held back for `closing_s`: a client
    that knows the length of an answer would not wait for the end of the connection.

    >>> list(arrivals(7_000, rate=10_000.0, round_trip_s=1.0, window=2_000.0))
    [(0.2, 2000), (1.4, 4000), (2.05, 500), (2.1, 500)]
    >>> list(arrivals(100, rate=math.inf, closing_s=0.5))
    [(0.0, 99), (0.5, 1)]
    """
    begins, sent = 0.0, 0
    if window > 0:
        while size - sent > window and window / rate < round_trip_s:
            piece = int(window)
            yield begins + piece / rate, piece
            begins, sent, window = begins + round_trip_s, sent + piece, 2 * window
    step = PIECE_BYTES if rate == math.inf else max(1, int(rate * TICK_S))
    held = 1 if closing_s else 0
    first = sent
    while sent < size - held:
        piece = min(step, size - held - sent)
        sent += piece
        yield begins + (sent - first) / rate, piece
    if sent < size:
        yield begins + (size - first) / rate + closing_s, size - sent


# ---- The queue

DRIBBLE_RATE = 1.0  # bytes per second
ENDLESS_RATE = 50e6  # bytes per second; limited so that endless answers do not starve the other connections

_ENDLESS = (Sending.ENDLESS_BODY, Sending.ENDLESS_HEAD)
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER with 0 seconds
_HEAD_END = b"\r\n\r\n"


class QueuedAnswer(NamedTuple):
    """An answer that waits to be sent."""

    row: int
    due: float  # monotonic; 0: at once
    server_s: float  # least time after the end of the answer before it: the server works on one request at a time
    answer: Ready
    message: bytes
    behaviour: Behaviour
    last: bool


class AnswerQueue:
    """Sends the answers of one connection in order."""

    def __init__(self, transport: asyncio.Transport, recorder: Recorder) -> None:
        self._transport, self._recorder = transport, recorder
        self._loop = asyncio.get_running_loop()
        self._queue: deque[QueuedAnswer] = deque()
        self._left: memoryview | None = None  # unsent rest of the first answer, once it has begun
        self._sent = 0  # bytes of the first answer
        self._began = 0.0  # when the first answer was due
        self._pieces: Iterator[tuple[float, int]] = iter(())  # of the first answer, still to come
        self._due, self._size = 0.0, 0  # of the next piece
        self._ended = -math.inf  # when the last answer ended
        self._bodies = 0  # bytes of all bodies sent on this connection
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self.closed = False
        self.quiet_since = monotonic()
        """when bytes were last sent"""

    def __bool__(self) -> bool:
        return bool(self._queue)

    def add(self, outgoing: QueuedAnswer) -> None:
        self._queue.append(outgoing)
        if len(self._queue) == 1:
            self._go_on()

    def at_once(self, message: bytes) -> float | None:
        """Send the message now if nothing is queued, and return the time; None if it must be added to the queue."""
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
        """Handle the loss of the client: record the end of all queued answers and drop them."""
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
            if not self._is_time(self._due):
                return
            self._push(first)

    def _begin(self, first: QueuedAnswer) -> bool:
        """Prepare the first answer; return False if it must not be sent yet, or never."""
        if first.answer.sending is Sending.NEVER:
            return False
        due = max(first.due, self._ended + first.server_s)
        if not self._is_time(due):
            return False
        half = first.answer.sending is Sending.HALF_THEN_RESET
        self._left = memoryview(first.message)[: len(first.message) // 2 if half else None]
        self._sent, self._began = 0, due if first.due else monotonic()
        self._pieces = _pieces(first, len(self._left), self._bodies)
        self._next_piece()
        return True

    def _next_piece(self) -> None:
        after_s, self._size = next(self._pieces, (0.0, 0))
        self._due = self._began + after_s

    def _push(self, first: QueuedAnswer) -> None:
        """Send one piece; then schedule the next one or finish the answer."""
        assert self._left is not None
        self.quiet_since = monotonic()
        self._transport.write(self._left[: self._size])
        self._left, self._sent = self._left[self._size :], self._sent + self._size
        if not self._left and first.answer.sending in _ENDLESS:
            self._left, self._began = memoryview(first.answer.repeated), self._due
            self._pieces = arrivals(len(self._left), _rate(first))
        if self._left:
            self._next_piece()
        else:
            self._finish(first)

    def _finish(self, first: QueuedAnswer) -> None:
        answer = first.answer
        self._recorder.ended(first.row, self.quiet_since, answer.status, self._sent, answer.version)
        self._queue.popleft()
        self._ended, self._bodies = self._due, self._bodies + self._sent - _head_bytes(first)
        self._left, self._sent = None, 0
        if first.answer.sending is Sending.HALF_THEN_RESET:
            self._reset()
        elif first.last:
            self._close()

    def _is_time(self, due: float) -> bool:
        """Return whether it is time, else wait."""
        wait_s = due - monotonic()
        if wait_s > 0:
            self._timer = self._loop.call_later(wait_s, self._woken)
        return wait_s <= 0

    def _woken(self) -> None:
        self._timer = None
        self._go_on()

    def _close(self) -> None:
        """Close the sending half of the connection, if the transport can.

        Closing both halves would reset the connection, and a client that is still sending would lose the answer.
        """
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


def _pieces(first: QueuedAnswer, size: int, bodies: int) -> Iterator[tuple[float, int]]:
    """Yield the pieces of an answer. The head comes first, at once: the bandwidth is that of bodies, as in the simulator."""
    behaviour, rate, head = first.behaviour, _rate(first), 0
    window = behaviour.initial_window + bodies if behaviour.initial_window else 0.0
    closing_s = behaviour.closing_s if first.last else 0.0
    if rate < math.inf or window or closing_s:
        head = min(_head_bytes(first), size)
        if head:
            yield 0.0, head
    yield from arrivals(size - head, rate, behaviour.connection_s, window, closing_s)


def _head_bytes(first: QueuedAnswer) -> int:
    """Return the length of the head; 0 if the answer is sent as one stream of bytes without a head."""
    if first.answer.sending is Sending.DRIBBLED or not first.answer.cut:
        return 0
    return first.message.index(_HEAD_END) + len(_HEAD_END)


def _rate(outgoing: QueuedAnswer) -> float:
    if outgoing.answer.sending is Sending.DRIBBLED:
        return DRIBBLE_RATE
    bandwidth = outgoing.behaviour.bandwidth
    return min(bandwidth, ENDLESS_RATE) if outgoing.answer.sending in _ENDLESS else bandwidth
