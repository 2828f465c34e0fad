"""The shared link is max-min fair at every moment, and every transfer gets its bytes, compared with water-filling from scratch."""

import math
from typing import Any

import numpy as np
import pytest

from tests.effort import slow
from tests.naive.simulator import water_filling
from trapline.compiled import jit
from trapline.compiled.jit import f8, i8, kernel, void
from trapline.simulator import link as links
from trapline.simulator.link import LinkType, SharedLink, new_link

start, stop, first_end, first_slot = links.start, links.stop, links.first_end, links.first_slot
SLOTS = 12


@kernel(void(LinkType, f8, i8, f8, f8, i8))
def start_one(link: SharedLink, now: float, slot: int, size: float, cap: float, serial: int) -> None:
    start(link, now, slot, size, cap, serial)


@kernel(void(LinkType, f8, i8))
def stop_one(link: SharedLink, now: float, slot: int) -> None:
    stop(link, now, slot)


@kernel(f8(LinkType))
def end_of_first(link: SharedLink) -> float:
    return first_end(link)


@kernel(i8(LinkType))
def slot_of_first(link: SharedLink) -> int:
    return first_slot(link)


class Naive:
    """Transfers by slot with their remaining bytes. Rates are computed anew at every change."""

    def __init__(self, bandwidth: float) -> None:
        self.bandwidth, self.now = bandwidth, 0.0
        self.size: dict[int, float] = {}
        self.left: dict[int, float] = {}
        self.cap: dict[int, float] = {}
        self._rates: dict[int, float] = {}

    def rates(self) -> dict[int, float]:
        if self._rates.keys() != self.cap.keys():  # each change concerns one slot
            filled = water_filling(list(self.cap.values()), self.bandwidth)
            self._rates = dict(zip(self.cap, filled, strict=True))
        return self._rates

    def move(self, now: float) -> None:
        for slot, rate in self.rates().items():
            self.left[slot] -= rate * (now - self.now)
        self.now = now

    def start(self, now: float, slot: int, size: float, cap: float) -> None:
        self.move(now)
        self.size[slot], self.left[slot], self.cap[slot] = size, size, cap

    def stop(self, now: float, slot: int) -> float:
        """The remaining bytes, which should be zero."""
        self.move(now)
        del self.cap[slot]
        return self.left.pop(slot)

    def first(self) -> tuple[float, int]:
        rates = self.rates()
        return min(((self.now + self.left[slot] / rates[slot], slot) for slot in rates), default=(math.inf, -1))


def assert_fair(link: SharedLink, naive: Naive) -> None:
    """Each capped transfer runs at its cap and the others are equal. Together they use the link, or all that they can take."""
    run, transfer = link.run[0], link.transfer
    assert run.capped + run.sharing == len(naive.cap)
    rates = {slot: float(transfer[slot].cap if transfer[slot].is_capped else run.level) for slot in naive.cap}
    for slot, rate in naive.rates().items():
        assert math.isclose(rates[slot], rate, rel_tol=1e-9)
        assert rates[slot] <= naive.cap[slot]
    assert math.isclose(sum(rates.values()), min(naive.bandwidth, sum(naive.cap.values())), rel_tol=1e-9)


def drive(random: np.random.Generator, bandwidth: float, caps: list[float], sizes: Any, events: int) -> int:
    """Starts at random moments and stops when due, with the law checked after each. Returns how often enough transfers
    ran to share."""
    link, naive, shared = new_link(bandwidth, SLOTS), Naive(bandwidth), 0
    busy_s = 10.0 / bandwidth  # about as many starts as the link can carry
    next_start = 0.0
    for serial in range(events):
        end, slot = naive.first()
        assert math.isclose(end_of_first(link), end, rel_tol=1e-9)
        free = [slot for slot in range(SLOTS) if slot not in naive.cap]
        if end <= next_start or not free:
            assert slot_of_first(link) == slot
            moment, size = end_of_first(link), naive.size[slot]
            stop_one(link, moment, slot)
            assert abs(naive.stop(moment, slot)) <= 1e-9 * (size + 1.0)
        else:
            slot, size, cap = free[0], float(sizes(random)), float(random.choice(caps))
            start_one(link, next_start, slot, size, cap, serial)
            naive.start(next_start, slot, size, cap)
            next_start += float(random.exponential(busy_s))
        next_start = max(next_start, naive.now)
        assert_fair(link, naive)
        shared += bool(link.run[0].sharing > 1)
    return shared


CAPS = {
    "no caps": [math.inf],
    "all alike": [3.0],
    "few fit": [0.5, 1.0, 3.0, math.inf],
    "wide": [1e-3, 1.0, 1e3, 1e6, 1e9],
    "half": [5.0, 10.0],
}


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    jit.ready()


@pytest.mark.parametrize("caps", CAPS.values(), ids=CAPS)
@pytest.mark.parametrize("number", range(6))
def test_rates_equal_those_of_water_filling_after_every_start_and_stop(caps: list[float], number: int) -> None:
    random = np.random.default_rng(number)
    shared = drive(random, 10.0, caps, lambda r: r.uniform(0.1, 20.0), 600)
    assert shared > 10


@slow
def test_a_long_crowded_run_loses_no_bytes() -> None:
    """`served` only grows while transfers share. After many changes the ends still equal those of water-filling."""
    random, changes = np.random.default_rng(1), 2_000 if jit.DISABLED else 20_000
    assert drive(random, 1e6, [1e5, 3e5, math.inf], lambda r: r.lognormal(3.0, 1.0), changes) > changes / 2


def test_transfers_that_end_together_end_in_order_of_their_serials() -> None:
    """Three transfers of 8 bytes get 2 a second each until the fourth, of 6 bytes and capped at 2, ends at 3. Then each
    gets 8/3."""
    link = new_link(8.0, SLOTS)
    for slot, serial in ((3, 30), (1, 31), (2, 29)):
        start_one(link, 0.0, slot, 8.0, math.inf, serial)
    start_one(link, 0.0, 0, 6.0, 2.0, 28)
    order = []
    while link.run[0].capped + link.run[0].sharing:
        order.append((end_of_first(link), slot_of_first(link)))
        stop_one(link, *order[-1])
    assert order == [(3.0, 0), (3.75, 2), (3.75, 3), (3.75, 1)]


def test_without_transfers_the_next_end_is_never() -> None:
    link = new_link(8.0, SLOTS)
    assert end_of_first(link) == math.inf
    start_one(link, 5.0, 0, 16.0, math.inf, 0)
    assert end_of_first(link) == 7.0
    stop_one(link, 7.0, 0)
    assert end_of_first(link) == math.inf
