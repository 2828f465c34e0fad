"""The pool's blocks: 2^j entries each, from free lists, so that a million site queues share one array.

Rules of this file
- A block is handed out by `take` and comes back by `give`; `grow` moves one heap to a block twice the size.
- Before a page may join, `run.reserve` entries must be free: the most that one joining can take is a bigger block for
  the queue, one for its heap by age, one for the group's heap of sites, and one for the next visit. `reserve` follows
  the largest block handed out, so the check is one comparison.
"""

from trapline.frontier.layout import FREE_LISTS, MOST_PER_VISIT, MOST_SERIAL, Array, State, StateType
from trapline.jit import b1, helper, i8, void

SMALLEST_LOG2 = 2
FIRST_RESERVE = 8 * (MOST_PER_VISIT + 24)  # a visit's block, a next-visit block, and small growths beside them


@helper(b1(StateType))
def has_room(s: State) -> bool:
    """Whether a page may join: there are entries for it, and numbers."""
    run = s.run[0]
    return s.pool.size - run.pool >= run.reserve and max(run.serial, run.turns) < MOST_SERIAL


@helper(i8(StateType, i8))
def take(s: State, log2: int) -> int:
    """A block of 2^log2 entries; the caller has made sure of room."""
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
def give(s: State, block: int, log2: int) -> None:
    s.pool[block].id = s.pool[log2].id
    s.pool[log2].id = block


@helper(i8(StateType, i8, i8, i8))
def grow(s: State, block: int, log2: int, n: int) -> int:
    """Move n entries to a block of twice the size. Positions within a block do not change."""
    if log2 < 0:
        return take(s, SMALLEST_LOG2)
    bigger = take(s, log2 + 1)
    for i in range(n):
        s.pool[bigger + i] = s.pool[block + i]
    give(s, block, log2)
    return bigger


def reset(pool: Array, run: Array) -> None:
    """An empty pool: the free lists, and nothing handed out."""
    pool[:FREE_LISTS] = 0
    run[0].pool = FREE_LISTS
    run[0].reserve = FIRST_RESERVE
