"""Connections on the server side, and what they share. A connection logs requests, answers them in order, and ends after some request.

It speaks HTTP/1.0 and 1.1, with keep-alive, pipelined or not. `ServerConnection` decides when the connection ends; `answer`
makes the answers, and `AnswerQueue` sends them.
"""

import asyncio
import math
from time import monotonic
from typing import cast

from trapline.testweb.answers.answer import answer
from trapline.testweb.answers.message import (
    MOST_HEAD_BYTES,
    ROBOTS_FILE,
    Fields,
    Ready,
    Sending,
    ServedAnswer,
    plain,
    read_fields,
    read_line,
    ready,
)
from trapline.testweb.server.answer_queue import AnswerQueue, QueuedAnswer
from trapline.testweb.server.log import Recorder
from trapline.testweb.web.behaviour import Behaviour
from trapline.testweb.web.paths import ROBOTS_TXT
from trapline.testweb.web.served_web import ServedWeb

# ---- State that all connections of a server share: the web, the log, and a cache of answers with a limit in bytes.
#
# It knows no sockets. Answers of a changing web are not cached. The cache is first in, first out, which is enough: a crawler requests
# each page once, and only benchmarks that request the same pages again profit from it.

CACHE_BYTES = 64_000_000
_ENTRY_BYTES = 500  # memory of a cached answer besides its text


class AnswerService:
    """Answers requests from a cache or by `answer`."""

    def __init__(self, web: ServedWeb, cache_bytes: int = CACHE_BYTES) -> None:
        self.web = web
        self.recorder = Recorder()
        self._kept: dict[tuple[int, bytes, bool], Ready] = {}
        self._kept_bytes, self._most_bytes = 0, cache_bytes
        self.at_once = [web.latency_s is None and _at_once(behaviour) for behaviour in web.behaviours]
        """[sites] whether the site has no delays and no limits to announce; most sites, which get a fast path"""
        self._refused: set[tuple[int, bytes, bool]] = set()

    def answer(self, site: int, line: bytes, fields: Fields, now_s: float) -> Ready:
        """Return the answer to a request line with these fields, at the time `now_s` by the log's clock."""
        key = (site, line, fields.gzip)
        return self._kept.get(key) or self._new(key, fields, now_s)

    def _new(self, key: tuple[int, bytes, bool], fields: Fields, now_s: float) -> Ready:
        site, line, gzip = key
        request = read_line(line, gzip)
        if request is None:
            return ready(plain(400))
        if not self.web.constant:
            request = request._replace(none_match=fields.none_match, modified_since=fields.modified_since)
        made = ready(answer(self.web, site, request, key in self._refused, now_s + self.recorder.wall))
        if made.status == 503:
            self._refused.add(key)
        elif made.sending is Sending.WHOLE and self.web.constant:
            self._keep(key, made)
        return made

    def _keep(self, key: tuple[int, bytes, bool], made: Ready) -> None:
        size = len(made.text) + _ENTRY_BYTES
        if size > self._most_bytes:
            return
        self._kept[key] = made
        self._kept_bytes += size
        while self._kept_bytes > self._most_bytes:
            oldest = self._kept.pop(next(iter(self._kept)))
            self._kept_bytes -= len(oldest.text) + _ENTRY_BYTES


def _at_once(behaviour: Behaviour) -> bool:
    times = (behaviour.latency_s, behaviour.connection_s, behaviour.initial_window, behaviour.closing_s)
    waits = any(times) or behaviour.bandwidth < math.inf
    return not (waits or behaviour.http10 or behaviour.requests_per_connection)


# ---- One connection

MOST_ANNOUNCED_S = 86_400.0  # of a server that never closes idle connections
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
        latency_s = self._serving.web.latency(site, answer.page)
        due = now + latency_s if latency_s else 0.0
        if behaviour.connection_s and self._taken == 1:
            due = (due or now) + behaviour.connection_s
        server_s = max(0.0, latency_s - behaviour.connection_s) if behaviour.serial else 0.0
        message = answer.message(self._about(line, fields, behaviour))
        self._outbox.add(QueuedAnswer(row, due, server_s, answer, message, behaviour, self._done))

    def _refuse(self, answer: ServedAnswer, now: float, host: str = "", line: bytes = b"") -> None:
        """Reject a request that belongs to no site, and end the connection."""
        self._done = True
        row = self._recorder.arrived(now, self._number, self._address, -1, answer.page)
        self._name(row, answer.page, host, line)
        message = answer.message(b"Connection: close\r\n")
        self._outbox.add(QueuedAnswer(row, 0.0, 0.0, ready(answer), message, self._behaviour, True))

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
            idle_s = min(behaviour.keep_alive_s, MOST_ANNOUNCED_S)
            return b"Connection: keep-alive\r\nKeep-Alive: timeout=%d, max=%d\r\n" % (idle_s, left)
        return b"Connection: keep-alive\r\n" if line.endswith(b"1.0") else b""
