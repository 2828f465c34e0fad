"""The pool's block allocator: blocks of 2^j entries, kept in free lists, let a million site queues share one array.

Rules of this file
- `take` hands out a block and `give` returns it to its free list. `grow` moves a heap to a block twice the size.
- Before a page may join a queue, `run.reserve` entries must be free. One joining page takes at most a bigger block for
  the queue, one for its heap by age, one for the group's heap of sites, and one for the next visit. `reserve` follows
  the largest block handed out, so the check is one comparison.
"""

from trapline.compiled.jit import b1, helper, i8, void
from trapline.frontier.layout import FREE_LISTS, MOST_PER_VISIT, MOST_SERIAL, Array, FrontierState, StateType

SMALLEST_LOG2 = 2
FIRST_RESERVE = 8 * (MOST_PER_VISIT + 24)  # enough for a visit's block, a next-visit block, and several small blocks


@helper(b1(StateType))
def has_room(s: FrontierState) -> bool:
    """Return whether a page may join a queue: the pool has enough free entries, and serials and turns are left."""
    run = s.run[0]
    return s.pool.size - run.pool >= run.reserve and max(run.serial, run.turns) < MOST_SERIAL


@helper(i8(StateType, i8))
def take(s: FrontierState, log2: int) -> int:
    """Take a block of 2^log2 entries. The caller must have checked `has_room`."""
    free = s.pool[log2]
    block = free.id
    if block > 0:
        free.id = s.pool[block].id
        return block
    run = s.run[0]
    block = run.pool
    run.pool = block + (1 << log2)
    run.reserve = max(run.reserve, FIRST_RESERVE + (1 << (log2 + 3)))
    return block


@helper(void(StateType, i8, i8))
def give(s: FrontierState, block: int, log2: int) -> None:
    """Return a block of 2^log2 entries to its free list."""
    s.pool[block].id = s.pool[log2].id
    s.pool[log2].id = block


@helper(i8(StateType, i8, i8, i8))
def grow(s: FrontierState, block: int, log2: int, n: int) -> int:
    """Move n entries to a block of twice the size and return it. Positions within the block do not change."""
    if log2 < 0:
        return take(s, SMALLEST_LOG2)
    bigger = take(s, log2 + 1)
    for i in range(n):
        s.pool[bigger + i] = s.pool[block + i]
    give(s, block, log2)
    return bigger


def reset(pool: Array, run: Array) -> None:
    """Make the pool empty: reset the free lists, so that no block is handed out."""
    pool[:FREE_LISTS] = 0
    run[0].pool = FREE_LISTS
    run[0].reserve = FIRST_RESERVE
