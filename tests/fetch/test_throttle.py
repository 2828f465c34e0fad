"""The bandwidth limit in virtual time. The rate is never exceeded, is nearly used, and is shared equally; no waiting
connection is forgotten."""

import heapq
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.fetch.http.throttle import BandwidthLimit, Throttle

BURST_S = 0.1


class VirtualLoop:
    """A loop whose time passes when `run` says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self._events: list[tuple[float, int, list[Callable[[], None]]]] = []
        self._serial = 0

    def clock(self) -> float:
        return self.now

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Any:
        self._serial += 1
        calls = [callback]
        heapq.heappush(self._events, (self.now + max(0.0, delay_s), self._serial, calls))

        class Handle:
            def cancel(self) -> None:
                calls.clear()

        return Handle()

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            self.now, _, calls = heapq.heappop(self._events)
            for call in calls:
                call()
        self.now = end


class Download:
    """A connection that can always read `read_bytes`, `latency_s` after it may read."""

    def __init__(self, loop: VirtualLoop, throttle: Throttle, read_bytes: int, latency_s: float = 0.0) -> None:
        self.loop, self.throttle, self.read_bytes, self.latency_s = loop, throttle, read_bytes, latency_s
        self.received = 0
        self.is_paused = self.is_over = False
        throttle.joined(self, loop.now)
        self._read_later()

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> bool:
        was_paused, self.is_paused = self.is_paused, False
        if was_paused and not self.is_over:
            self._read_later()
        return not self.is_over

    def _read_later(self) -> None:
        self.loop.call_later(self.latency_s, self._read)

    def _read(self) -> None:
        if self.is_paused or self.is_over:
            return
        self.received += self.read_bytes
        self.throttle.took(self, self.read_bytes, self.loop.now)
        if not self.is_paused:
            self.loop.call_later(max(self.latency_s, 1e-4), self._read)


def new_link(loop: VirtualLoop, bytes_per_s: float = float("inf")) -> BandwidthLimit:
    return BandwidthLimit(loop, bytes_per_s, loop.clock)  # type: ignore[arg-type]


@given(
    st.floats(10_000, 5_000_000),
    st.lists(st.tuples(st.integers(2_000, 262_144), st.floats(0, 0.05)), min_size=1, max_size=30),
)
@settings(max_examples=examples(30))
def test_never_above_the_rate(rate: float, downloads: list[tuple[int, float]]) -> None:
    loop = VirtualLoop()
    link = new_link(loop, rate)
    running = [Download(loop, Throttle(link), read_bytes, latency_s) for read_bytes, latency_s in downloads]
    for _ in range(4):
        loop.run(0.5)
        most = rate * (loop.now - 100.0 + BURST_S) + sum(read_bytes for read_bytes, _ in downloads)
        assert sum(download.received for download in running) <= most


@pytest.mark.parametrize("rate", [200_000.0, 2_000_000.0, 20_000_000.0])
@pytest.mark.parametrize("connections", [1, 10, 200])
@pytest.mark.parametrize("read_bytes", [8_000, 60_000])
def test_nearly_the_full_rate_if_there_is_enough_to_read(rate: float, connections: int, read_bytes: int) -> None:
    loop = VirtualLoop()
    link = new_link(loop, rate)
    running = [Download(loop, Throttle(link), read_bytes) for _ in range(connections)]
    # The first read of each connection is free, and is paid for before any connection gets a second one.
    loop.run(connections * read_bytes / rate + 1.0)
    before = sum(download.received for download in running)
    loop.run(2.0)
    received = sum(download.received for download in running) - before
    assert received == pytest.approx(2.0 * rate, rel=0.05, abs=connections * read_bytes)


def test_a_sites_rate_holds_below_the_rate_of_the_link() -> None:
    loop = VirtualLoop()
    link = new_link(loop, 1_000_000.0)
    slow, fast = Download(loop, Throttle(link, 50_000.0), 10_000), Download(loop, Throttle(link), 10_000)
    loop.run(10.0)
    assert slow.received == pytest.approx(500_000, rel=0.05)
    assert fast.received == pytest.approx(9_500_000, rel=0.05)


def test_a_slow_site_does_not_delay_other_sites() -> None:
    loop = VirtualLoop()
    link = new_link(loop)
    Download(loop, Throttle(link, 1_000.0), 100_000)
    loop.run(1.0)
    other = Download(loop, Throttle(link, 100_000.0), 10_000)
    loop.run(5.0)
    assert other.received == pytest.approx(500_000, rel=0.05)


def test_a_sites_rate_holds_across_its_connections() -> None:
    """With one request per connection, the next connection pays for what the last one read."""
    loop = VirtualLoop()
    throttle = Throttle(new_link(loop), 100_000.0)
    received = 0
    while loop.now < 110.0:
        download = Download(loop, throttle, 8_000)
        while not download.received:
            loop.run(0.001)
        download.is_over = True
        received += download.received
    assert received == pytest.approx(1_000_000, rel=0.05)


def test_connections_take_turns() -> None:
    loop = VirtualLoop()
    link = new_link(loop, 1_000_000.0)
    running = [Download(loop, Throttle(link), 8_000) for _ in range(50)]
    loop.run(20.0)
    assert max(d.received for d in running) <= 1.1 * min(d.received for d in running) + 8_000


def test_every_waiting_connection_is_resumed() -> None:
    loop = VirtualLoop()
    link = new_link(loop, 100_000.0)
    running = [Download(loop, Throttle(link), 50_000) for _ in range(10)]
    for download in running[::2]:
        download.is_over = True
    loop.run(60.0)
    assert all(download.received >= 500_000 for download in running[1::2])


def test_no_connection_waits_without_a_limit() -> None:
    loop = VirtualLoop()
    download = Download(loop, Throttle(new_link(loop)), 1_000_000)
    loop.run(0.1)
    assert not download.is_paused
    assert download.received > 100_000_000
