"""Batches: the strategy chooses K pages, the crawl fetches them, then the strategy chooses the next K (castillo04 VI,
castillo-thesis 4.4).

Every site has two queues. Discovery fills its backlog. Its front queue holds the chosen pages, and only pages of the front
queue can be visited. BACKLOGS is the heap of the sites whose backlog is open, ordered by the site rank of the backlog. Only
this module adds sites to BACKLOGS and removes them.
"""

from trapline.compiled.jit import b1, helper, i8, void
from trapline.frontier.core import blocks, heap, queue
from trapline.frontier.core.ready_sites import queue_changed
from trapline.frontier.layout import (
    BACKLOG,
    BACKLOGS,
    CHOSEN,
    COMPETES,
    FRONT,
    NEXT_VISIT,
    OUT,
    UNRESOLVED,
    FrontierState,
    StateType,
)
from trapline.frontier.ranking import rank_site
from trapline.frontier.rules import visit_limit

sift_up, replace, remove = heap.sift_up, heap.replace, heap.remove
has_room, take_block, give_block = blocks.has_room, blocks.take, blocks.give
join, take_best, set_limit = queue.join, queue.take_best, queue.set_limit


@helper(void(StateType, i8, i8))
def count_chosen(s: FrontierState, x: int, change: int) -> None:
    """Add `change` to the number of chosen pages. Pages of a site without budget do not count: the batch would wait for them for ever."""
    if s.run[0].batch > 0 and s.queue[x, FRONT].limit > 0:
        s.run[0].chosen += change


@helper(void(StateType, i8))
def limit_front(s: FrontierState, x: int) -> None:
    """Recompute P of the site's front queue. The caller must then place the site again."""
    q = s.queue[x, FRONT]
    count_chosen(s, x, -q.waiting)
    set_limit(s, q, visit_limit(s, x, FRONT))
    count_chosen(s, x, q.waiting)


@helper(void(StateType, i8))
def close_backlog(s: FrontierState, x: int) -> None:
    """Remove the site from BACKLOGS, or from the count of unresolved sites."""
    run = s.run[0]
    site = s.site[x]
    if site.backlog == COMPETES:
        remove(s.heap[BACKLOGS], 0, run.open_backlogs, s.site["backlog_pos"], site.backlog_pos)
        run.open_backlogs -= 1
    elif site.backlog == UNRESOLVED:
        run.unresolved -= 1
    site.backlog = OUT


@helper(void(StateType, i8))
def place_backlog(s: FrontierState, x: int) -> None:
    """Open or close the backlog, and evaluate its rank again if it is open."""
    run = s.run[0]
    site = s.site[x]
    close_backlog(s, x)
    q = s.queue[x, BACKLOG]
    if q.planned < 1:
        return
    if site.group < 0:
        site.backlog = UNRESOLVED
        run.unresolved += 1
        return
    site.backlog = COMPETES
    n = run.open_backlogs
    run.open_backlogs = n + 1
    sift_up(s.heap[BACKLOGS], 0, s.site["backlog_pos"], n, rank_site(s, x, BACKLOG), q.best_serial, x)


@helper(void(StateType, i8, i8))
def backlog_changed(s: FrontierState, x: int, changed: int) -> None:
    """Update the backlog after a change of its pages (`changed`: READS_* bits) or of the site's remaining budget."""
    run = s.run[0]
    site = s.site[x]
    q = s.queue[x, BACKLOG]
    changed |= set_limit(s, q, visit_limit(s, x, BACKLOG))
    if (q.planned > 0) != (site.backlog != OUT):
        place_backlog(s, x)
    elif site.backlog == COMPETES:
        entry = s.heap[BACKLOGS, site.backlog_pos]
        rank = rank_site(s, x, BACKLOG) if changed & run.reads else entry.key
        replace(s.heap[BACKLOGS], 0, run.open_backlogs, s.site["backlog_pos"], site.backlog_pos, rank, q.best_serial, x)


@helper(void(StateType, i8))
def choose_from(s: FrontierState, x: int) -> None:
    """Choose pages from the site's backlog: its best page or, in a next-visit queue, its next visit as far as K allows."""
    run = s.run[0]
    backlog = s.queue[x, BACKLOG]
    n = 1
    if run.queue == NEXT_VISIT:
        n = min(backlog.planned, run.batch - run.chosen)
        set_limit(s, backlog, n)
    log2 = blocks.SMALLEST_LOG2
    while (1 << log2) < n:
        log2 += 1
    block = take_block(s, log2)
    take_best(s, backlog, n, block)
    for i in range(n):
        e = s.pool[block + i]
        s.page[e.id].marks |= CHOSEN
        changed = join(s, s.queue[x, FRONT], e.id, e.key, e.serial)
        count_chosen(s, x, 1)
        queue_changed(s, x, changed)
    give_block(s, block, log2)
    set_limit(s, backlog, visit_limit(s, x, BACKLOG))
    place_backlog(s, x)


@helper(b1(StateType))
def choose(s: FrontierState) -> bool:
    """Fill the batch up to K pages. Return False if the pool must grow first; the next call then continues (`run.resume`), even though
    some pages are already chosen."""
    run = s.run[0]
    run.resume = 1
    while run.chosen < run.batch and run.open_backlogs > 0:
        if not has_room(s):
            return False
        choose_from(s, s.heap[BACKLOGS, 0].id)
    run.resume = 0
    return True
