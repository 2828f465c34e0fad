"""Bandwidth limits, in total and per site: the throttle pauses reading, and TCP then slows the server down.

Part of step 5 in docs/architecture.md. The throttle knows connections as objects that can be paused, and nothing of their content. A
crawl without bandwidth limits has no throttle. A connection that has read while its site or the whole crawl was ahead of its rate is
paused and waits for a turn. New connections queue behind it; otherwise servers that answer one request per connection would never be
slowed down. A turn is one read: connections with much and with little to read get the same number of turns.
`Throttle` fills the queue; `BandwidthLimit._tick` empties it, with one timer for all.
Law: at any moment, the bytes read are at most rate x time, plus a burst, plus one read per connection.
"""

import asyncio
import heapq
from collections.abc import Callable
from time import monotonic
from typing import Protocol

# The time that a rate may catch up on after a quiet period. It compensates for timers that fire late.
_BURST_S = 0.1
_TICK_S = 0.01
# Expected bytes of the turns in one tick, relative to the bytes of a tick at full rate. Above one, because some connections have
# nothing to read when they get a turn.
_TURNS = 2.0
# For a connection that has not read yet.
_EXPECTED_BYTES = 8192


class Pausable(Protocol):
    """A connection, as the throttle sees it."""

    def pause(self) -> None: ...

    def resume(self) -> bool: ...  # False: the connection has ended


class ByteRate:
    """A rate in bytes per second, and how far reading is ahead of it.

    >>> site = ByteRate(1000.0)
    >>> site.take(500, now=10.0)  # the burst is 100 bytes
    >>> site.free_at
    10.4
    """

    __slots__ = ("bytes_per_s", "free_at")

    def __init__(self, bytes_per_s: float) -> None:
        self.bytes_per_s = bytes_per_s
        self.free_at = 0.0  # when reading is no longer ahead of the rate

    def take(self, length: int, now: float) -> None:
        self.free_at = max(self.free_at, now - _BURST_S) + length / self.bytes_per_s


class BandwidthLimit:
    """Bandwidth of the whole crawl (infinite if only sites are limited), and the queue of connections that wait for it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        bytes_per_s: float = float("inf"),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.rate = ByteRate(bytes_per_s)
        self._loop, self._clock = loop, clock
        self._queue: list[tuple[float, int, int, Pausable]] = []  # ready at, serial, expected bytes, connection
        self._serial = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")

    def wait(self, connection: Pausable, ready_at: float, expected_bytes: int, now: float) -> None:
        connection.pause()
        self._serial += 1
        heapq.heappush(self._queue, (max(ready_at, now), self._serial, expected_bytes, connection))
        self._set_timer(now, now)

    def _set_timer(self, earliest: float, now: float) -> None:
        at = max(earliest, self.rate.free_at, self._queue[0][0])
        if at < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer, self._timer_at = self._loop.call_later(at - now, self._tick), at

    def _tick(self) -> None:
        now = self._clock()
        self._timer, self._timer_at = None, float("inf")
        room = self.rate.bytes_per_s * _TICK_S * _TURNS
        while room > 0 and self.rate.free_at <= now and self._queue and self._queue[0][0] <= now:
            _, _, expected_bytes, connection = heapq.heappop(self._queue)
            if connection.resume():
                room -= expected_bytes
        if self._queue:
            self._set_timer(now + _TICK_S, now)


class Throttle:
    """The two rates that apply to the connections of one site: that of the crawl and that of the site."""

    __slots__ = ("_link", "_site")

    def __init__(self, link: BandwidthLimit, site_bytes_per_s: float = float("inf")) -> None:
        self._link = link
        self._site = ByteRate(site_bytes_per_s)

    def joined(self, connection: Pausable, now: float) -> None:
        self._wait_if_ahead(connection, _EXPECTED_BYTES, now)

    def took(self, connection: Pausable, length: int, now: float) -> None:
        self._site.take(length, now)
        self._link.rate.take(length, now)
        self._wait_if_ahead(connection, length, now)

    def _wait_if_ahead(self, connection: Pausable, expected_bytes: int, now: float) -> None:
        if self._site.free_at > now or self._link.rate.free_at > now:
            self._link.wait(connection, self._site.free_at, expected_bytes, now)
