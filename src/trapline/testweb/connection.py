"""One connection as the server sees it: requests come in, are logged and answered in order, and at some request it ends.

HTTP/1.0 and 1.1, keep-alive, pipelined or not. It decides when the connection ends; what an answer is, `answer` says, and how
it leaves, `outbox`.
"""

import asyncio
from time import monotonic
from typing import cast

from trapline.testweb.behaviour import Behaviour
from trapline.testweb.message import ROBOTS_FILE, Answer, Ready, Sending, plain, ready
from trapline.testweb.outbox import Outbox, Outgoing
from trapline.testweb.paths import ROBOTS_TXT
from trapline.testweb.request import MOST_HEAD_BYTES, Fields, read_fields
from trapline.testweb.serving import Serving

LINGER_S = 2.0  # for a client to notice that we have closed our half
_NOBODY = Behaviour()
_ENDING = (Sending.THEN_CLOSE, Sending.HALF_THEN_RESET, Sending.NEVER, Sending.ENDLESS_BODY, Sending.ENDLESS_HEAD)


class Connection(asyncio.Protocol):
    def __init__(self, serving: Serving, address: int, living: "set[Connection]") -> None:
        self._serving, self._address, self._living = serving, address, living
        self._sites = serving.web.sites_at[address]
        self._recorder = serving.recorder
        self._number = 0
        self._rest = b""  # of a request that has not arrived whole
        self._taken = 0  # requests
        self._done = False  # no more requests are taken
        self._behaviour = _NOBODY  # of the site last asked

    # ---- what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._outbox = Outbox(self._transport, self._recorder)
        peer = transport.get_extra_info("peername")
        if not (peer and peer[0].startswith("127.")):
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=0)  # so that a pause says: not all is with the kernel
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
        # The client has gone, and with it the requests that were under way. (One that closes only its half and still waits
        # cannot be told from it. No crawler does that.)
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

    # ---- what the server calls

    def expire(self, now: float) -> None:
        """Close it if it has been idle for too long."""
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
        line, _, said = text.partition(b"\r\n")
        fields = read_fields(said)
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
        """What `_answer` does, in the usual case: a page of a site without limits, on a connection that stays."""
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
        self._outbox.add(Outgoing(row, due, answer, message, behaviour.bandwidth, self._done))

    def _refuse(self, answer: Answer, now: float, host: str = "", line: bytes = b"") -> None:
        """What is asked of nobody in particular; the connection ends with it."""
        self._done = True
        row = self._recorder.arrived(now, self._number, self._address, -1, answer.page)
        self._name(row, answer.page, host, line)
        message = answer.message(b"Connection: close\r\n")
        self._outbox.add(Outgoing(row, 0.0, ready(answer), message, self._behaviour.bandwidth, True))

    def _name(self, row: int, page: int, host: str, line: bytes) -> None:
        target = line.decode("latin-1").split(" ")[1:2]
        if page != ROBOTS_FILE or target != [ROBOTS_TXT]:
            self._recorder.named(row, host, target[0] if target else "")

    def _ends(self, line: bytes, fields: Fields, behaviour: Behaviour, answer: Ready) -> bool:
        """Whether this request is the connection's last."""
        return (
            behaviour.http10
            or fields.close
            or fields.body  # which we do not read
            or self._taken == behaviour.requests_per_connection
            or (line.endswith(b"1.0") and not fields.keep_alive)
            or answer.status == 400
            or answer.sending in _ENDING
        )

    def _about(self, line: bytes, fields: Fields, behaviour: Behaviour) -> bytes:
        """What an answer says of its connection."""
        limit = behaviour.requests_per_connection
        if self._done:
            return b"" if limit and not (behaviour.announced or fields.close) else b"Connection: close\r\n"
        if limit and behaviour.announced:
            left = limit - self._taken
            return b"Connection: keep-alive\r\nKeep-Alive: timeout=%d, max=%d\r\n" % (behaviour.keep_alive_s, left)
        return b"Connection: keep-alive\r\n" if line.endswith(b"1.0") else b""
