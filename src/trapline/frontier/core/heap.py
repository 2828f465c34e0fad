"""One heap implementation for all uses: pages of a site, sites of a group, groups, delays, leases.

A heap is a run of entries (key, serial, item) that begins at `base`. Each node has four children. The largest key comes
first, then the smallest serial. `pos[item]` is the item's position, so that any item can be moved or removed in
O(log n). A heap by time stores the negated time; a heap with the worst page first stores key and serial negated. The
caller keeps the number of entries.
"""

from trapline.compiled.jit import b1, f8, helper, i8, void
from trapline.frontier.layout import Array, Entries, Positions


@helper(b1(f8, i8, f8, i8))
def before(key: float, serial: int, other_key: float, other_serial: int) -> bool:
    """Return whether an entry comes before another entry."""
    return key > other_key or (key == other_key and serial < other_serial)


@helper(void(Entries, i8, Positions, i8, f8, i8, i8))
def sift_up(entries: Array, base: int, pos: Array, i: int, key: float, serial: int, item: int) -> None:
    """Put (key, serial, item) at position i or at the ancestor of i where it belongs."""
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
    """Return the position of the best child of i, or -1 if i has no child."""
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
    """Put (key, serial, item) at position i or at the descendant of i where it belongs, in a heap of n entries."""
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
    """Replace the entry at position i by (key, serial, item), and move the new entry to where it belongs."""
    old = entries[base + i]
    if before(key, serial, old.key, old.serial):
        sift_up(entries, base, pos, i, key, serial, item)
    else:
        sift_down(entries, base, n, pos, i, key, serial, item)


@helper(void(Entries, i8, i8, Positions, i8))
def remove(entries: Array, base: int, n: int, pos: Array, i: int) -> None:
    """Remove the entry at position i from a heap of n entries; n - 1 remain."""
    last = entries[base + n - 1]
    if i < n - 1:
        replace(entries, base, n - 1, pos, i, last.key, last.serial, last.id)
