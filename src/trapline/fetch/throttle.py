"""Bandwidth, in all and per site, by not reading for a while: TCP then slows the server down. Part of step 5 of the way of a URL.

Knows connections as things that can be paused; not what they carry. A crawl without such limits has no throttle at all.
A connection that has read while its site or the link was ahead of its rate is paused and waits for a turn. New ones wait
behind it, else servers that answer one request per connection would never be slowed. A turn is one read: whoever has much
to read and whoever has little get the same number of them.
Who fills the queue: `Throttle`. Who empties it: `Link._tick`, by one timer for all.
Invariant: the bytes read are at no moment more than rate x time, a burst, and one read for each connection.
"""

import asyncio
import heapq
from collections.abc import Callable
from time import monotonic
from typing import Protocol

# What a rate may catch up on after a quiet time. It makes good for timers that fire late.
_BURST_S = 0.1
_TICK_S = 0.01
# Turns given in a tick, in terms of the bytes that a tick has room for: above one, for some that get a turn have nothing to
# read just then.
_TURNS = 2.0
# Of a connection that has not read yet.
_EXPECTED_BYTES = 8192


class Pausable(Protocol):
    """A connection, as it is seen from here."""

    def pause(self) -> None: ...

    def resume(self) -> bool: ...  # False: it is over


class Rate:
    """Bytes per second, and how far ahead of them we are.

    >>> site = Rate(1000.0)
    >>> site.take(500, now=10.0)  # the burst is 100 bytes
    >>> site.free_at
    10.4
    """

    __slots__ = ("bytes_per_s", "free_at")

    def __init__(self, bytes_per_s: float) -> None:
        self.bytes_per_s = bytes_per_s
        self.free_at = 0.0  # when all that was taken is paid for

    def take(self, length: int, now: float) -> None:
        self.free_at = max(self.free_at, now - _BURST_S) + length / self.bytes_per_s


class Link:
    """The bandwidth of the whole crawl (infinite if only sites are limited), and the connections that wait for it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        bytes_per_s: float = float("inf"),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.rate = Rate(bytes_per_s)
        self._loop, self._clock = loop, clock
        self._queue: list[tuple[float, int, int, Pausable]] = []  # ready at, serial, expected bytes, who
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
    """The two rates that hold for the connections to one site."""

    __slots__ = ("_link", "_site")

    def __init__(self, link: Link, site_bytes_per_s: float = float("inf")) -> None:
        self._link = link
        self._site = Rate(site_bytes_per_s)

    def joined(self, connection: Pausable, now: float) -> None:
        self._wait_if_ahead(connection, _EXPECTED_BYTES, now)

    def took(self, connection: Pausable, length: int, now: float) -> None:
        self._site.take(length, now)
        self._link.rate.take(length, now)
        self._wait_if_ahead(connection, length, now)

    def _wait_if_ahead(self, connection: Pausable, expected_bytes: int, now: float) -> None:
        if self._site.free_at > now or self._link.rate.free_at > now:
            self._link.wait(connection, self._site.free_at, expected_bytes, now)
