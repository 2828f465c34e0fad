"""The shared link: the transfers in progress and their speeds, max-min fair.

A transfer gets min(cap, level) bytes per second. The cap is the speed of its server. The level is the same for all
transfers, and such that all of them together use the link's bandwidth. Transfers at their cap are *capped*, the others
are *sharing*. `start` adds a transfer, `stop` removes one; both compute a new level.

Invariants:
- the cap of every capped transfer is at most the level, the cap of every sharing transfer is above it;
- a capped transfer has a time at which it ends. A sharing transfer ends when `served`, the bytes that each sharing
  transfer has got since counting began, reaches its mark. So a new level moves no transfer in its heap: a change costs
  O(log transfers), and a transfer changes sides only when the level passes its cap.
The counting of `served` is the virtual time of fair queueing (Demers, Keshav, Shenker 1989).
"""

from typing import NamedTuple

import numpy as np

from trapline.compiled.jit import f8, helper, i8, type_of, void
from trapline.frontier.core import heap
from trapline.frontier.layout import ENTRY, Array, record

sift_up, remove = heap.sift_up, heap.remove
INFINITY = float("inf")

LINK = record(
    [
        ("bandwidth", "f8"),
        ("level", "f8"),
        ("served", "f8"),
        ("counted_at", "f8"),  # the time up to which `served` is counted
        ("capped_sum", "f8"),  # sum of the caps of the capped transfers
        ("capped", "i8"),
        ("sharing", "i8"),
    ]
)

TRANSFER = record(
    [
        ("cap", "f8"),
        ("mark", "f8"),  # capped: the time of its end; sharing: the value of `served` at its end
        ("serial", "i4"),
        ("end_pos", "i4"),
        ("cap_pos", "i4"),
        ("is_capped", "i4"),
    ]
)

# Rows of SharedLink.heap: ordered by end, and by cap.
CAPPED_END, SHARING_END, CAPPED_CAP, SHARING_CAP = range(4)


class SharedLink(NamedTuple):
    run: Array  # LINK[1]
    transfer: Array  # TRANSFER[slots]
    heap: Array  # ENTRY[4, slots]


def new_link(bandwidth: float, slots: int) -> SharedLink:
    link = SharedLink(np.zeros(1, LINK), np.zeros(slots, TRANSFER), np.zeros((4, slots), ENTRY))
    link.run["bandwidth"] = bandwidth
    link.run["level"] = bandwidth
    return link


LinkType = type_of(new_link(1.0, 2))


@helper(void(LinkType, f8))
def count_served(link: SharedLink, now: float) -> None:
    run = link.run[0]
    if run.sharing > 0:
        run.served += run.level * (now - run.counted_at)
    else:
        run.served = 0.0  # no transfer depends on it now, and small numbers have smaller rounding errors
    run.counted_at = now


@helper(void(LinkType, i8, f8))
def join_capped(link: SharedLink, slot: int, mark: float) -> None:
    run = link.run[0]
    t = link.transfer[slot]
    t.mark = mark
    t.is_capped = 1
    n = run.capped
    sift_up(link.heap[CAPPED_END], 0, link.transfer["end_pos"], n, -mark, t.serial, slot)
    sift_up(link.heap[CAPPED_CAP], 0, link.transfer["cap_pos"], n, t.cap, t.serial, slot)
    run.capped = n + 1
    run.capped_sum += t.cap


@helper(void(LinkType, i8, f8))
def join_sharing(link: SharedLink, slot: int, mark: float) -> None:
    run = link.run[0]
    t = link.transfer[slot]
    t.mark = mark
    t.is_capped = 0
    n = run.sharing
    sift_up(link.heap[SHARING_END], 0, link.transfer["end_pos"], n, -mark, t.serial, slot)
    sift_up(link.heap[SHARING_CAP], 0, link.transfer["cap_pos"], n, -t.cap, t.serial, slot)
    run.sharing = n + 1


@helper(void(LinkType, i8))
def take_out(link: SharedLink, slot: int) -> None:
    run = link.run[0]
    t = link.transfer[slot]
    if t.is_capped:
        n = run.capped
        remove(link.heap[CAPPED_END], 0, n, link.transfer["end_pos"], t.end_pos)
        remove(link.heap[CAPPED_CAP], 0, n, link.transfer["cap_pos"], t.cap_pos)
        run.capped = n - 1
        run.capped_sum = run.capped_sum - t.cap if n > 1 else 0.0
    else:
        n = run.sharing
        remove(link.heap[SHARING_END], 0, n, link.transfer["end_pos"], t.end_pos)
        remove(link.heap[SHARING_CAP], 0, n, link.transfer["cap_pos"], t.cap_pos)
        run.sharing = n - 1


@helper(f8(LinkType))
def fair_level(link: SharedLink) -> float:
    """Return the bytes per second of each sharing transfer; without sharing transfers, the unused bandwidth."""
    run = link.run[0]
    return (run.bandwidth - run.capped_sum) / max(run.sharing, 1)


@helper(void(LinkType))
def settle_link(link: SharedLink) -> None:
    """Let transfers change sides until caps and level agree. Each change raises the level, so the loops end."""
    run = link.run[0]
    while run.capped > 0 and (run.sharing > 0 or run.capped_sum > run.bandwidth):
        slot = link.heap[CAPPED_CAP, 0].id
        t = link.transfer[slot]
        if run.sharing > 0 and t.cap <= fair_level(link):
            break
        left = (t.mark - run.counted_at) * t.cap
        take_out(link, slot)
        join_sharing(link, slot, run.served + left)
    while run.sharing > 0:
        slot = link.heap[SHARING_CAP, 0].id
        t = link.transfer[slot]
        if t.cap > fair_level(link):
            break
        left = t.mark - run.served
        take_out(link, slot)
        join_capped(link, slot, run.counted_at + left / t.cap)
    run.level = fair_level(link)


@helper(void(LinkType, f8, i8, f8, f8, i8))
def start(link: SharedLink, now: float, slot: int, size: float, cap: float, serial: int) -> None:
    """Begin a transfer of `size` bytes (> 0)."""
    count_served(link, now)
    t = link.transfer[slot]
    t.cap = cap
    t.serial = serial
    if cap <= fair_level(link):
        join_capped(link, slot, now + size / cap)
    else:
        join_sharing(link, slot, link.run[0].served + size)
    settle_link(link)


@helper(void(LinkType, f8, i8))
def stop(link: SharedLink, now: float, slot: int) -> None:
    """End a transfer."""
    count_served(link, now)
    take_out(link, slot)
    settle_link(link)


@helper(f8(LinkType))
def first_shared_end(link: SharedLink) -> float:
    run = link.run[0]
    if run.sharing == 0:
        return INFINITY
    # Because of rounding, `served` may be a little above the mark; time must not run backwards then.
    left = max(-link.heap[SHARING_END, 0].key - run.served, 0.0)
    return run.counted_at + left / run.level


@helper(f8(LinkType))
def first_end(link: SharedLink) -> float:
    """Return when the first transfer will end if nothing changes; infinity if there is no transfer."""
    if link.run[0].capped == 0:
        return first_shared_end(link)
    return min(-link.heap[CAPPED_END, 0].key, first_shared_end(link))


@helper(i8(LinkType))
def first_slot(link: SharedLink) -> int:
    """Return the slot of the transfer that ends first, at a tie the older one. There must be a transfer."""
    run = link.run[0]
    if run.capped == 0:
        return link.heap[SHARING_END, 0].id
    capped_end, shared_end = -link.heap[CAPPED_END, 0].key, first_shared_end(link)
    older = run.sharing == 0 or link.heap[CAPPED_END, 0].serial < link.heap[SHARING_END, 0].serial
    if capped_end < shared_end or (capped_end == shared_end and older):
        return link.heap[CAPPED_END, 0].id
    return link.heap[SHARING_END, 0].id
