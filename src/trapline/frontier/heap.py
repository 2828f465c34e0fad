"""One heap for everything: pages of a site, sites of a group, groups, resting times, leases.

A heap is a run of entries (key, serial, item) beginning at `base`, with four children a node: largest key first, then
smallest serial. `pos[item]` is where the item stands, so that any item can be moved or removed in O(log n). A heap by
time stores the negated time; a heap with the worst page first stores both negated. The caller owns the number of
entries.
"""

from trapline.frontier.layout import Array, Entries, Positions
from trapline.jit import b1, f8, helper, i8, void


@helper(b1(f8, i8, f8, i8))
def before(key: float, serial: int, other_key: float, other_serial: int) -> bool:
    return key > other_key or (key == other_key and serial < other_serial)


@helper(void(Entries, i8, Positions, i8, f8, i8, i8))
def sift_up(entries: Array, base: int, pos: Array, i: int, key: float, serial: int, item: int) -> None:
    """Put (key, serial, item) at i or above, where it belongs."""
    while i > 0:
        parent = (i - 1) >> 2
        above = entries[base + parent]
        if not before(key, serial, above.key, above.serial):
            break
        entries[base + i] = above
        pos[above.id] = i
        i = parent
    here = entries[base + i]
    here.key = key
    here.serial = serial
    here.id = item
    pos[item] = i


@helper(i8(Entries, i8, i8, i8))
def best_child(entries: Array, base: int, n: int, i: int) -> int:
    """The first of the children of i, or -1."""
    child = 4 * i + 1
    if child >= n:
        return -1
    best = child
    for other in range(child + 1, min(child + 4, n)):
        e = entries[base + other]
        b = entries[base + best]
        if before(e.key, e.serial, b.key, b.serial):
            best = other
    return best


@helper(void(Entries, i8, i8, Positions, i8, f8, i8, i8))
def sift_down(entries: Array, base: int, n: int, pos: Array, i: int, key: float, serial: int, item: int) -> None:
    """Put (key, serial, item) at i or below, where it belongs, in a heap of n."""
    while True:
        child = best_child(entries, base, n, i)
        if child < 0:
            break
        below = entries[base + child]
        if not before(below.key, below.serial, key, serial):
            break
        entries[base + i] = below
        pos[below.id] = i
        i = child
    here = entries[base + i]
    here.key = key
    here.serial = serial
    here.id = item
    pos[item] = i


@helper(void(Entries, i8, i8, Positions, i8, f8, i8, i8))
def replace(entries: Array, base: int, n: int, pos: Array, i: int, key: float, serial: int, item: int) -> None:
    """Let (key, serial, item) take the place i of whatever stands there, and go where it belongs."""
    old = entries[base + i]
    if before(key, serial, old.key, old.serial):
        sift_up(entries, base, pos, i, key, serial, item)
    else:
        sift_down(entries, base, n, pos, i, key, serial, item)


@helper(void(Entries, i8, i8, Positions, i8))
def remove(entries: Array, base: int, n: int, pos: Array, i: int) -> None:
    """Take out what stands at i of a heap of n; n - 1 remain."""
    last = entries[base + n - 1]
    if i < n - 1:
        replace(entries, base, n - 1, pos, i, last.key, last.serial, last.id)
