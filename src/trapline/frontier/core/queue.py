"""The queue of one site's waiting pages: a fifo list, a heap, or a next-visit queue.

discovery.py (new pages), visits.py (retries, returned pages) and batch.py (chosen pages) add pages. visits.py (leases) and
batch.py remove them. Every change updates the values that site ranks may read.
Invariants
- Pages leave by (key, largest first; serial, smallest first). The kind of queue changes the cost, never the order.
- `waiting`, `best_key`, `best_serial`, `planned` and, in a next-visit queue, `quality_sum` are correct after every
  complete change (join, move, take_best, set_limit).
- So is `oldest_serial`, if the site rank reads it (run.ages: a third heap, by serial alone).
- A next-visit queue has two heaps: the best min(limit, waiting) pages with the worst first, and the rest with the best
  first. No page of the rest comes before a page of the next visit. The sum is exact (fixed point), so that it does not
  depend on the order of changes and returns to 0.
Functions that change a queue return the changed values as READS_* bits, where a caller needs them.
"""

import math

from trapline.compiled.jit import f8, helper, i8, prefetch, void
from trapline.frontier.core import blocks, heap
from trapline.frontier.layout import (
    FIFO,
    NEXT_VISIT,
    READS_BEST,
    READS_OLDEST,
    READS_PLANNED,
    READS_SUM,
    READS_WAITING,
    FrontierState,
    QueueRecord,
    Record,
    StateType,
)

grow_block, take_block, give_block = blocks.grow, blocks.take, blocks.give
sift_up, sift_down, replace, remove, before = heap.sift_up, heap.sift_down, heap.replace, heap.remove, heap.before
FRACTIONS = 2.0**62
WHOLE_FRACTION = 1 << 62

# ---- the exact sum


@helper(void(QueueRecord, f8, i8))
def add_to_sum(q: Record, key: float, sign: int) -> None:
    """Add the key to the exact sum (sign 1) or subtract it (sign -1), cut to a multiple of 2^-62."""
    whole = math.floor(key)
    fraction = int((key - whole) * FRACTIONS)
    q.whole += sign * int(whole)
    total = q.fraction + sign * fraction
    if total >= WHOLE_FRACTION:
        total -= WHOLE_FRACTION
        q.whole += 1
    elif total < 0:
        total += WHOLE_FRACTION
        q.whole -= 1
    q.fraction = total
    q.quality_sum = float(q.whole) + float(total) / FRACTIONS


# ---- values that site ranks read


@helper(i8(QueueRecord, f8, i8))
def offer_best(q: Record, key: float, serial: int) -> int:
    """Update the best page after a page joined or got a larger key. Return READS_BEST if that page is the new best."""
    if q.waiting == 1 or before(key, serial, q.best_key, q.best_serial):
        q.best_key = key
        q.best_serial = serial
        return READS_BEST
    return 0


@helper(i8(QueueRecord, i8))
def count(q: Record, change: int) -> int:
    """Add `change` to the number of waiting pages and update `planned`. Return the changed values."""
    q.waiting += change
    planned = min(q.limit, q.waiting)
    if planned == q.planned:
        return READS_WAITING
    q.planned = planned
    return READS_WAITING | READS_PLANNED


@helper(i8(StateType, QueueRecord))
def find_best(s: FrontierState, q: Record) -> int:
    """Find the best page after the old one left or got a smaller key. In a next-visit queue this reads the whole next visit."""
    if q.waiting == 0:
        return READS_BEST
    kind = s.run[0].queue
    if kind == FIFO:
        q.best_serial = s.page[q.head].serial
        return READS_BEST
    if kind != NEXT_VISIT or q.planned == 0:
        first = s.pool[q.block]
        q.best_key = first.key
        q.best_serial = first.serial
        return READS_BEST
    best = s.pool[q.next_block]
    for i in range(1, q.planned):
        e = s.pool[q.next_block + i]
        if before(-e.key, -e.serial, -best.key, -best.serial):
            best = e
    q.best_key = -best.key
    q.best_serial = -best.serial
    return READS_BEST


# ---- the two heaps of a next-visit queue (a heap queue has one, which is called the rest here)


@helper(void(StateType, QueueRecord, i8, f8, i8, i8))
def push_rest(s: FrontierState, q: Record, n: int, key: float, serial: int, page: int) -> None:
    """Add a page to the rest, which has n pages."""
    if n >= (1 << q.log2 if q.log2 >= 0 else 0):
        q.block = grow_block(s, q.block, q.log2, n)
        q.log2 = max(q.log2 + 1, blocks.SMALLEST_LOG2)
    sift_up(s.pool, q.block, s.page["pos"], n, key, serial, page)


@helper(void(StateType, QueueRecord, i8, f8, i8, i8))
def push_next(s: FrontierState, q: Record, n: int, key: float, serial: int, page: int) -> None:
    """Add a page to the next visit, which has n pages, and to the exact sum."""
    if n >= (1 << q.next_log2 if q.next_log2 >= 0 else 0):
        q.next_block = grow_block(s, q.next_block, q.next_log2, n)
        q.next_log2 = max(q.next_log2 + 1, blocks.SMALLEST_LOG2)
    sift_up(s.pool, q.next_block, s.page["pos"], n, -key, -serial, page)
    add_to_sum(q, key, 1)


@helper(i8(StateType, QueueRecord, i8))
def in_next(s: FrontierState, q: Record, page: int) -> int:
    """Return 1 if the page is in the next visit, else 0. The position of a page is valid in only one of the two heaps."""
    i = s.page[page].pos
    return 1 if i < q.planned and s.pool[q.next_block + i].id == page else 0


@helper(void(StateType, QueueRecord))
def free_blocks(s: FrontierState, q: Record) -> None:
    """Return the blocks of an empty queue to the pool: in a long crawl the queues of most sites are empty."""
    if q.log2 >= 0:
        give_block(s, q.block, q.log2)
        q.log2 = -1
    if q.next_log2 >= 0:
        give_block(s, q.next_block, q.next_log2)
        q.next_log2 = -1
    if q.age_log2 >= 0:
        give_block(s, q.age_block, q.age_log2)
        q.age_log2 = -1


@helper(i8(QueueRecord, i8, f8, f8, i8))
def as_seen(q: Record, changed: int, old_sum: float, old_key: float, old_serial: int) -> int:
    """Return the bits of `changed` whose values differ from before: the next visit may have exchanged two pages of the same key."""
    if q.quality_sum == old_sum:
        changed &= ~READS_SUM
    if q.best_key == old_key and q.best_serial == old_serial:
        changed &= ~READS_BEST
    return changed


# ---- the heap by age


@helper(i8(StateType, QueueRecord, i8, i8))
def join_ages(s: FrontierState, q: Record, page: int, serial: int) -> int:
    """Add a page to the heap by age, before it is counted in `waiting`. Return READS_OLDEST if it is the oldest."""
    n = q.waiting
    if n >= (1 << q.age_log2 if q.age_log2 >= 0 else 0):
        q.age_block = grow_block(s, q.age_block, q.age_log2, n)
        q.age_log2 = max(q.age_log2 + 1, blocks.SMALLEST_LOG2)
    sift_up(s.pool, q.age_block, s.age, n, 0.0, serial, page)
    if n > 0 and serial > q.oldest_serial:
        return 0
    q.oldest_serial = serial
    return READS_OLDEST


@helper(void(StateType, QueueRecord, i8, i8))
def leave_ages(s: FrontierState, q: Record, n: int, block: int) -> None:
    """Remove from the heap by age the n pages in the pool's entries at `block`, after they are no longer counted in `waiting`."""
    for i in range(n):
        remove(s.pool, q.age_block, q.waiting + n - i, s.age, s.age[s.pool[block + i].id])
    if q.waiting > 0:
        q.oldest_serial = s.pool[q.age_block].serial


# ---- joining


@helper(i8(StateType, QueueRecord, i8, f8, i8))
def displace(s: FrontierState, q: Record, page: int, key: float, serial: int) -> int:
    """Add a page when the next visit is full: it joins the rest, or replaces the worst page of the next visit, which joins the rest."""
    rest = q.waiting - q.planned
    if q.planned > 0:
        worst = s.pool[q.next_block]
        worst_key, worst_serial, worst_page = -worst.key, -worst.serial, worst.id
        if before(key, serial, worst_key, worst_serial):
            add_to_sum(q, worst_key, -1)
            add_to_sum(q, key, 1)
            sift_down(s.pool, q.next_block, q.planned, s.page["pos"], 0, -key, -serial, page)
            push_rest(s, q, rest, worst_key, worst_serial, worst_page)
            return READS_SUM
    push_rest(s, q, rest, key, serial, page)
    return 0


@helper(i8(StateType, QueueRecord, i8, f8, i8))
def join_next_visit(s: FrontierState, q: Record, page: int, key: float, serial: int) -> int:
    """Add a page to a next-visit queue. Return the changed values."""
    planned = q.planned
    old_sum, old_key, old_serial = q.quality_sum, q.best_key, q.best_serial
    if planned < q.limit:
        push_next(s, q, planned, key, serial, page)
        changed = READS_SUM
    else:
        changed = displace(s, q, page, key, serial)
    changed |= count(q, 1)
    changed |= offer_best(q, key, serial)
    return as_seen(q, changed, old_sum, old_key, old_serial)


@helper(i8(StateType, QueueRecord, i8, f8, i8))
def join(s: FrontierState, q: Record, page: int, key: float, serial: int) -> int:
    """Add a page to the queue and return the changed values. In a fifo queue it must be the youngest page (otherwise: `rejoin_fifo`)."""
    kind = s.run[0].queue
    if kind == FIFO:
        if q.waiting == 0:
            q.head = page
        else:
            s.page[q.tail].pos = page
        q.tail = page
        changed = count(q, 1)
        return changed | offer_best(q, key, serial)
    aged = join_ages(s, q, page, serial) if s.run[0].ages else 0
    if kind == NEXT_VISIT:
        return aged | join_next_visit(s, q, page, key, serial)
    push_rest(s, q, q.waiting, key, serial, page)
    changed = aged | count(q, 1)
    return changed | offer_best(q, key, serial)


@helper(i8(StateType, QueueRecord, i8))
def rejoin_fifo(s: FrontierState, q: Record, page: int) -> int:
    """Add a page that was leased and not requested at the head of a fifo queue: it is the oldest waiting page of its site again."""
    s.page[page].pos = q.head
    if q.waiting == 0:
        q.tail = page
    q.head = page
    changed = count(q, 1)
    q.best_serial = s.page[page].serial
    return changed | READS_BEST


# ---- moving


@helper(i8(StateType, QueueRecord, i8, i8, f8, i8))
def move_in_rest(s: FrontierState, q: Record, page: int, i: int, key: float, serial: int) -> int:
    """Give a new key to the page at position i of the rest; the page may enter the next visit. Return the changed values."""
    rest = q.waiting - q.planned
    if q.planned > 0:
        worst = s.pool[q.next_block]
        worst_key, worst_serial, worst_page = -worst.key, -worst.serial, worst.id
        if before(key, serial, worst_key, worst_serial):
            add_to_sum(q, worst_key, -1)
            add_to_sum(q, key, 1)
            replace(s.pool, q.block, rest, s.page["pos"], i, worst_key, worst_serial, worst_page)
            sift_down(s.pool, q.next_block, q.planned, s.page["pos"], 0, -key, -serial, page)
            return READS_SUM | offer_best(q, key, serial)
        replace(s.pool, q.block, rest, s.page["pos"], i, key, serial, page)
        return 0
    replace(s.pool, q.block, rest, s.page["pos"], i, key, serial, page)
    return find_best(s, q)


@helper(i8(StateType, QueueRecord, i8, i8, f8, i8))
def move_in_next(s: FrontierState, q: Record, page: int, i: int, key: float, serial: int) -> int:
    """Give a new key to the page at position i of the next visit; the page may drop to the rest. Return the changed values."""
    old = -s.pool[q.next_block + i].key
    if old == key:
        return 0
    add_to_sum(q, old, -1)
    rest = q.waiting - q.planned
    if rest > 0:
        first = s.pool[q.block]
        first_key, first_serial, first_page = first.key, first.serial, first.id
        if before(first_key, first_serial, key, serial):
            # The page drops out of the next visit, and the best page of the rest replaces it.
            add_to_sum(q, first_key, 1)
            sift_down(s.pool, q.block, rest, s.page["pos"], 0, key, serial, page)
            replace(s.pool, q.next_block, q.planned, s.page["pos"], i, -first_key, -first_serial, first_page)
            return READS_SUM | find_best(s, q)
    add_to_sum(q, key, 1)
    replace(s.pool, q.next_block, q.planned, s.page["pos"], i, -key, -serial, page)
    if key > old:
        return READS_SUM | offer_best(q, key, serial)
    if q.best_serial == serial:
        return READS_SUM | find_best(s, q)
    return READS_SUM


@helper(i8(StateType, QueueRecord, i8, f8))
def move(s: FrontierState, q: Record, page: int, key: float) -> int:
    """Give a waiting page a new key. Return the changed values."""
    serial = s.page[page].serial
    i = s.page[page].pos
    if s.run[0].queue == NEXT_VISIT:
        old_sum, old_key, old_serial = q.quality_sum, q.best_key, q.best_serial
        inside = in_next(s, q, page)
        changed = move_in_next(s, q, page, i, key, serial) if inside else move_in_rest(s, q, page, i, key, serial)
        return as_seen(q, changed, old_sum, old_key, old_serial)
    old = s.pool[q.block + i].key
    if old == key:
        return 0
    replace(s.pool, q.block, q.waiting, s.page["pos"], i, key, serial, page)
    first = s.pool[q.block]
    if first.serial == q.best_serial and first.key == q.best_key:
        return 0
    q.best_key = first.key
    q.best_serial = first.serial
    return READS_BEST


# ---- leaving


@helper(void(StateType, QueueRecord))
def refill(s: FrontierState, q: Record) -> None:
    """Move the best pages of the rest into the next visit until it is full."""
    while q.planned < q.limit and q.planned < q.waiting:
        rest = q.waiting - q.planned
        first = s.pool[q.block]
        key, serial, page = first.key, first.serial, first.id
        remove(s.pool, q.block, rest, s.page["pos"], 0)
        push_next(s, q, q.planned, key, serial, page)
        q.planned += 1


@helper(void(StateType, QueueRecord, i8, i8))
def take_fifo(s: FrontierState, q: Record, n: int, block: int) -> None:
    """Move the n oldest pages of a fifo queue into the pool's entries at `block`."""
    for i in range(n):
        e = s.pool[block + i]
        e.key = 0.0
        e.id = q.head
        e.serial = s.page[q.head].serial
        q.head = s.page[q.head].pos
    if q.waiting > n + 1:
        prefetch(s.page, s.page[q.head].pos)  # the head after the next visit, whose serial that visit will read
    count(q, -n)


@helper(void(StateType, QueueRecord, i8))
def take_next_visit(s: FrontierState, q: Record, block: int) -> None:
    """Move the whole next visit, best first, into the pool's entries at `block`, and plan the visit after it."""
    n = q.planned
    for i in range(n - 1, -1, -1):  # the heap gives the worst page first
        worst = s.pool[q.next_block]
        e = s.pool[block + i]
        e.key = -worst.key
        e.serial = -worst.serial
        e.id = worst.id
        remove(s.pool, q.next_block, i + 1, s.page["pos"], 0)
    q.whole = 0
    q.fraction = 0
    q.quality_sum = 0.0
    q.waiting -= n
    q.planned = 0
    refill(s, q)


@helper(void(StateType, QueueRecord, i8, i8))
def take_best(s: FrontierState, q: Record, n: int, block: int) -> None:
    """Move the n best pages, best first, into the pool's entries at `block`. In a next-visit queue n must be `planned`."""
    kind = s.run[0].queue
    if kind == FIFO:
        take_fifo(s, q, n, block)
    elif kind == NEXT_VISIT:
        take_next_visit(s, q, block)
    else:
        for i in range(n):
            s.pool[block + i] = s.pool[q.block]
            remove(s.pool, q.block, q.waiting - i, s.page["pos"], 0)
        count(q, -n)
    if s.run[0].ages:
        leave_ages(s, q, n, block)
    find_best(s, q)
    if q.waiting == 0:
        free_blocks(s, q)


@helper(i8(StateType, QueueRecord, i8))
def set_limit(s: FrontierState, q: Record, limit: int) -> int:
    """Set P, which moves pages between the next visit and the rest. Return the changed values."""
    limit = max(limit, 0)
    if limit == q.limit:
        return 0
    q.limit = limit
    if s.run[0].queue != NEXT_VISIT:
        return count(q, 0) & READS_PLANNED
    before_planned = q.planned
    while q.planned > limit:
        rest = q.waiting - q.planned
        worst = s.pool[q.next_block]
        key, serial, page = -worst.key, -worst.serial, worst.id
        remove(s.pool, q.next_block, q.planned, s.page["pos"], 0)
        add_to_sum(q, key, -1)
        q.planned -= 1
        push_rest(s, q, rest, key, serial, page)
    refill(s, q)
    return 0 if q.planned == before_planned else READS_PLANNED | READS_SUM
