"""The shared link: transfers under way and how fast each is, max-min fair.

A transfer gets min(cap, level) bytes per second: cap is its server's, level the same for all, such that everything
together is the link's bandwidth. Those at their cap are *capped*, the others *sharing*.
Who fills it: `start`. Who empties it: `stop`. Both settle the level anew.
Invariants
- every cap of a capped transfer is at most the level, every cap of a sharing one above it;
- a capped transfer has a moment at which it ends; a sharing one ends when `served`, what each sharing transfer has got
  since the counting began, reaches its mark. So a new level moves no transfer in its heap: O(log transfers) a change, and
  a transfer changes sides only when the level passes its cap.
Source of the counting: virtual time of fair queueing (Demers, Keshav, Shenker 1989).
"""

from typing import NamedTuple

import numpy as np

from trapline.frontier import heap
from trapline.frontier.layout import ENTRY, Array, record
from trapline.jit import f8, helper, i8, type_of, void

sift_up, remove = heap.sift_up, heap.remove
INFINITY = float("inf")

LINK = record(
    [
        ("bandwidth", "f8"),
        ("level", "f8"),
        ("served", "f8"),
        ("counted_at", "f8"),  # the moment up to which `served` is true
        ("capped_sum", "f8"),  # of the caps of the capped transfers
        ("capped", "i8"),
        ("sharing", "i8"),
    ]
)

TRANSFER = record(
    [
        ("cap", "f8"),
        ("mark", "f8"),  # capped: the moment of its end; sharing: `served` at its end
        ("serial", "i4"),
        ("end_pos", "i4"),
        ("cap_pos", "i4"),
        ("is_capped", "i4"),
    ]
)

# Rows of Link.heap: by end, and by cap.
CAPPED_END, SHARING_END, CAPPED_CAP, SHARING_CAP = range(4)


class Link(NamedTuple):
    run: Array  # LINK[1]
    transfer: Array  # TRANSFER[slots]
    heap: Array  # ENTRY[4, slots]


def new_link(bandwidth: float, slots: int) -> Link:
    link = Link(np.zeros(1, LINK), np.zeros(slots, TRANSFER), np.zeros((4, slots), ENTRY))
    link.run["bandwidth"] = bandwidth
    link.run["level"] = bandwidth
    return link


LinkType = type_of(new_link(1.0, 2))


@helper(void(LinkType, f8))
def count_served(link: Link, now: float) -> None:
    run = link.run[0]
    if run.sharing > 0:
        run.served += run.level * (now - run.counted_at)
    else:
        run.served = 0.0  # nobody counts on it, and small numbers are exact
    run.counted_at = now


@helper(void(LinkType, i8, f8))
def join_capped(link: Link, slot: int, mark: float) -> None:
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
def join_sharing(link: Link, slot: int, mark: float) -> None:
    run = link.run[0]
    t = link.transfer[slot]
    t.mark = mark
    t.is_capped = 0
    n = run.sharing
    sift_up(link.heap[SHARING_END], 0, link.transfer["end_pos"], n, -mark, t.serial, slot)
    sift_up(link.heap[SHARING_CAP], 0, link.transfer["cap_pos"], n, -t.cap, t.serial, slot)
    run.sharing = n + 1


@helper(void(LinkType, i8))
def take_out(link: Link, slot: int) -> None:
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
def fair_level(link: Link) -> float:
    """What each sharing transfer gets; what there is left, if nobody shares."""
    run = link.run[0]
    return (run.bandwidth - run.capped_sum) / max(run.sharing, 1)


@helper(void(LinkType))
def settle_link(link: Link) -> None:
    """Let transfers change sides until caps and level agree. Each change raises the level, so it ends."""
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
def start(link: Link, now: float, slot: int, size: float, cap: float, serial: int) -> None:
    """A transfer of `size` bytes (> 0) begins."""
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
def stop(link: Link, now: float, slot: int) -> None:
    """The transfer is over."""
    count_served(link, now)
    take_out(link, slot)
    settle_link(link)


@helper(f8(LinkType))
def first_shared_end(link: Link) -> float:
    run = link.run[0]
    if run.sharing == 0:
        return INFINITY
    # Rounding may have served a little more than the mark: time does not run backwards for that.
    left = max(-link.heap[SHARING_END, 0].key - run.served, 0.0)
    return run.counted_at + left / run.level


@helper(f8(LinkType))
def first_end(link: Link) -> float:
    """When the first transfer will be over if nothing changes; infinity: there is none."""
    if link.run[0].capped == 0:
        return first_shared_end(link)
    return min(-link.heap[CAPPED_END, 0].key, first_shared_end(link))


@helper(i8(LinkType))
def first_slot(link: Link) -> int:
    """Whose transfer ends first, the older one at a tie. There is one."""
    run = link.run[0]
    if run.capped == 0:
        return link.heap[SHARING_END, 0].id
    capped_end, shared_end = -link.heap[CAPPED_END, 0].key, first_shared_end(link)
    older = run.sharing == 0 or link.heap[CAPPED_END, 0].serial < link.heap[SHARING_END, 0].serial
    if capped_end < shared_end or (capped_end == shared_end and older):
        return link.heap[CAPPED_END, 0].id
    return link.heap[SHARING_END, 0].id
