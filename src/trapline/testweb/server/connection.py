"""A connection on the server side: logs requests, answers them in order, and ends the connection after some request.

It speaks HTTP/1.0 and 1.1, with keep-alive, pipelined or not. `ServerConnection` decides when the connection ends; `answer`
makes the answers, and `AnswerQueue` sends them.
"""

import asyncio
import math
import socket
import struct
from collections import deque
from time import monotonic
from typing import NamedTuple, cast

from trapline.testweb.answers.message import (
    MOST_HEAD_BYTES,
    ROBOTS_FILE,
    Fields,
    Ready,
    Sending,
    ServedAnswer,
    plain,
    read_fields,
    ready,
)
from trapline.testweb.server.answer_service import AnswerService
from trapline.testweb.server.log import Recorder
from trapline.testweb.web.behaviour import Behaviour
from trapline.testweb.web.paths import ROBOTS_TXT

# ---- Outgoing answers of one connection, sent one after the other: each when it is due, at its site's bandwidth, as its `Sending` says.
#
# `ServerConnection` fills the queue, in the order of the requests; the event loop empties it. Invariant: only the first answer is
# being sent, and its row in the log gets its end when its last bytes are sent. The queue reads no requests.

PIECE_BYTES = 65_536  # a loopback socket takes this much at once, so an answer ends when its last piece is handed over
TICK_S = 0.05  # between two pieces of a paced answer
DRIBBLE_RATE = 1.0  # bytes per second
ENDLESS_RATE = 50e6  # bytes per second; limited so that endless answers do not starve the other connections

_ENDLESS = (Sending.ENDLESS_BODY, Sending.ENDLESS_HEAD)
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER with 0 seconds


class QueuedAnswer(NamedTuple):
    """An answer that waits to be sent."""

    row: int
    due: float  # monotonic; 0: at once
    answer: Ready
    message: bytes
    rate: float  # bytes per second
    last: bool


class AnswerQueue:
    """Sends the answers of one connection in order."""

    def __init__(self, transport: asyncio.Transport, recorder: Recorder) -> None:
        self._transport, self._recorder = transport, recorder
        self._loop = asyncio.get_running_loop()
        self._queue: deque[QueuedAnswer] = deque()
        self._left: memoryview | None = None  # unsent rest of the first answer, once it has begun
        self._sent = 0  # bytes of the first answer
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
            self._push(first)

    def _begin(self, first: QueuedAnswer) -> bool:
        """Prepare the first answer; return False if it must not be sent yet, or never."""
        if first.answer.sending is Sending.NEVER:
            return False
        if first.due and (wait_s := first.due - monotonic()) > 0:
            self._wait(wait_s)
            return False
        half = first.answer.sending is Sending.HALF_THEN_RESET
        self._left = memoryview(first.message)[: len(first.message) // 2 if half else None]
        self._sent = 0
        if (rate := _rate(first)) < math.inf:  # a piece arrives at the end of its transfer time, not at the beginning
            self._wait(_piece(rate, self._left) / rate)
            return False
        return True

    def _push(self, first: QueuedAnswer) -> None:
        """Send one piece; then schedule the next one or finish the answer."""
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

    def _finish(self, first: QueuedAnswer) -> None:
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


def _rate(outgoing: QueuedAnswer) -> float:
    if outgoing.answer.sending is Sending.DRIBBLED:
        return DRIBBLE_RATE
    return min(outgoing.rate, ENDLESS_RATE) if outgoing.answer.sending in _ENDLESS else outgoing.rate


def _piece(rate: float, left: memoryview) -> int:
    return min(len(left), PIECE_BYTES if rate == math.inf else max(1, int(rate * TICK_S)))


# ---- connection

LINGER_S = 2.0  # time for a client to notice that we have closed our half
_NOBODY = Behaviour()
_ENDING = (Sending.THEN_CLOSE, Sending.HALF_THEN_RESET, Sending.NEVER, Sending.ENDLESS_BODY, Sending.ENDLESS_HEAD)


class ServerConnection(asyncio.Protocol):
    """Reads the requests of one connection, logs them and queues their answers."""

    def __init__(self, serving: AnswerService, address: int, living: "set[ServerConnection]") -> None:
        self._serving, self._address, self._living = serving, address, living
        self._sites = serving.web.sites_at[address]
        self._recorder = serving.recorder
        self._number = 0
        self._rest = b""  # of a request that has not arrived completely
        self._taken = 0  # requests accepted so far
        self._done = False  # whether no more requests are accepted
        self._behaviour = _NOBODY  # of the site that the last request was for

    # ---- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._outbox = AnswerQueue(self._transport, self._recorder)
        peer = transport.get_extra_info("peername")
        if not (peer and peer[0].startswith("127.")):
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=0)  # so that a pause means: the kernel has not taken everything
        self._number = self._recorder.connected()
        self._living.add(self)

    def data_received(self, data: bytes) -> None:
        now, start = monotonic(), 0
        data = self._rest + data if self._rest else data
        while not self._done and (end := data.find(b"\r\n\r\n", start)) >= 0:
            self._take(data[start:end], now)
            start = end + 4
        self._rest = b"" if self._done else data[start:]
        if len(self._rest) > MOST_HEAD_BYTES:
            self._refuse(plain(431), now)

    def eof_received(self) -> None:
        # The client has left, so its requests in flight need no answer. (A client that closes only its half and still waits
        # looks the same. No crawler does that.)
        self._done = True
        self._outbox.lost()

    def pause_writing(self) -> None:
        self._outbox.pause()

    def resume_writing(self) -> None:
        self._outbox.resume()

    def connection_lost(self, error: Exception | None) -> None:
        self._done = True
        self._outbox.lost()
        self._living.discard(self)

    # ---- called by the server

    def expire(self, now: float) -> None:
        """Close the connection if it has been idle for too long."""
        idle_s = now - self._outbox.quiet_since
        if self._outbox.closed or (self._done and not self._outbox):
            if idle_s > LINGER_S:
                self._transport.abort()
        elif not self._outbox and not self._rest and idle_s > self._behaviour.keep_alive_s:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    # ---- requests

    def _take(self, text: bytes, now: float) -> None:
        line, _, header = text.partition(b"\r\n")
        fields = read_fields(header)
        site = self._sites.get(fields.host, -1)
        if site < 0 and not fields.host and len(self._sites) == 1:
            site = next(iter(self._sites.values()))
        if site < 0:
            self._refuse(plain(421), now, fields.host, line)
            return
        self._taken += 1
        self._behaviour = self._serving.web.behaviours[site]
        answer = self._serving.answer(site, line, fields, now)
        if not (fields.ordinary and self._serving.at_once[site] and self._answered_at_once(answer, line, site, now)):
            self._answer(answer, line, fields, site, now)

    def _answered_at_once(self, answer: Ready, line: bytes, site: int, now: float) -> bool:
        """Fast path of `_answer` for the usual case: a page of a site without limits, on a connection that stays open."""
        if answer.page < 0 or answer.sending is not Sending.WHOLE or not line.endswith(b"1.1"):
            return False
        end = self._outbox.at_once(answer.text)
        if end is None:
            return False
        status, text, _, _, page, version, _ = answer
        self._recorder.answered(now, end, len(text), self._number, self._address, site, page, status, version)
        return True

    def _answer(self, answer: Ready, line: bytes, fields: Fields, site: int, now: float) -> None:
        behaviour = self._behaviour
        row = self._recorder.arrived(now, self._number, self._address, site, answer.page)
        if answer.page < 0:
            self._name(row, answer.page, fields.host, line)
        self._done = self._ends(line, fields, behaviour, answer)
        due = now + behaviour.latency_s if behaviour.latency_s else 0.0
        if behaviour.connection_s and self._taken == 1:
            due = (due or now) + behaviour.connection_s
        message = answer.message(self._about(line, fields, behaviour))
        self._outbox.add(QueuedAnswer(row, due, answer, message, behaviour.bandwidth, self._done))

    def _refuse(self, answer: ServedAnswer, now: float, host: str = "", line: bytes = b"") -> None:
        """Reject a request that belongs to no site, and end the connection."""
        self._done = True
        row = self._recorder.arrived(now, self._number, self._address, -1, answer.page)
        self._name(row, answer.page, host, line)
        message = answer.message(b"Connection: close\r\n")
        self._outbox.add(QueuedAnswer(row, 0.0, ready(answer), message, self._behaviour.bandwidth, True))

    def _name(self, row: int, page: int, host: str, line: bytes) -> None:
        target = line.decode("latin-1").split(" ")[1:2]
        if page != ROBOTS_FILE or target != [ROBOTS_TXT]:
            self._recorder.named(row, host, target[0] if target else "")

    def _ends(self, line: bytes, fields: Fields, behaviour: Behaviour, answer: Ready) -> bool:
        """Return whether this request is the connection's last."""
        return (
            behaviour.http10
            or fields.close
            or fields.body  # request bodies are not read
            or self._taken == behaviour.requests_per_connection
            or (line.endswith(b"1.0") and not fields.keep_alive)
            or answer.status == 400
            or answer.sending in _ENDING
        )

    def _about(self, line: bytes, fields: Fields, behaviour: Behaviour) -> bytes:
        """Return the header fields of an answer that concern the connection."""
        limit = behaviour.requests_per_connection
        if self._done:
            return b"" if limit and not (behaviour.announced or fields.close) else b"Connection: close\r\n"
        if limit and behaviour.announced:
            left = limit - self._taken
            return b"Connection: keep-alive\r\nKeep-Alive: timeout=%d, max=%d\r\n" % (behaviour.keep_alive_s, left)
        return b"Connection: keep-alive\r\n" if line.endswith(b"1.0") else b""
