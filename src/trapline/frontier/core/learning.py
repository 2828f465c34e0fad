"""Page ranks that learn: what a fetched page teaches changes the ranks of other pages, which wait and are not told.

A page rank that declares `learns` is also called when a page is fetched, and at links to fetched pages. It keeps what it
learns in state columns (add-a-strategy.md), so that the keys of waiting pages become out of date. Before a visit, the best page
of the best site is ranked again, until it stays the best or MOST_CHECKS pages were checked: a key that is too large is found when
it matters. A key that is too small waits for the next link to its page. Other page ranks cost one comparison. Laws:
docs/frontier.md, Y1 to Y4.
"""

from trapline.compiled.jit import helper, i8, void
from trapline.frontier.core.discovery import change_key
from trapline.frontier.layout import FRONT, NEXT_VISIT, READY, FrontierState, StateType
from trapline.frontier.ranking import rank_page

MOST_CHECKS = 8  # pages ranked again before a visit


@helper(i8(StateType, i8))
def best_page(s: FrontierState, x: int) -> int:
    """Return the best page of the site's front queue, which is not empty and not a fifo list."""
    q = s.queue[x, FRONT]
    if s.run[0].queue == NEXT_VISIT:
        for i in range(q.planned):
            e = s.pool[q.next_block + i]
            if -e.serial == q.best_serial:
                return e.id
    return s.pool[q.block].id


@helper(void(StateType))
def check_best(s: FrontierState) -> None:
    """Rank the best page of the best ready site again, until it stays the best or MOST_CHECKS pages were checked."""
    for _ in range(MOST_CHECKS):
        x = s.pool[s.group[s.heap[READY, 0].id].block].id
        key = s.queue[x, FRONT].best_key
        page = best_page(s, x)
        now = rank_page(s, page, -1, 0, False)
        if now >= key:
            return
        change_key(s, page, now)


@helper(void(StateType, i8))
def learn_page(s: FrontierState, page: int) -> None:
    """Tell the page rank that the page was fetched."""
    rank_page(s, page, page, 0, False)
