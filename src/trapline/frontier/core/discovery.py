"""Discovery: seeds and links bring pages into the site queues.

Step 3 of "The way of a URL" (docs/architecture.md). The URLs have become page numbers before, in steps 1 and 2.
"""

from trapline.compiled.jit import b1, f8, helper, i8, prefetch, void
from trapline.frontier.core import blocks, queue
from trapline.frontier.core.batch import backlog_changed, count_chosen
from trapline.frontier.core.ready_sites import queue_changed
from trapline.frontier.layout import (
    BACKLOG,
    CHOSEN,
    DEEPEST,
    DYNAMIC,
    ELSEWHERE,
    FETCHED,
    FIFO,
    FRONT,
    LEASED,
    REVISITED,
    UNKNOWN,
    WAITING,
    Array,
    FrontierState,
    Pages,
    StateType,
)
from trapline.frontier.ranking import rank_page

has_room, join, move = blocks.has_room, queue.join, queue.move
# Prefetch distances, in links: FAR ahead gives memory time to answer, NEAR ahead is still in the cache when it is used.
FAR, NEAR = 12, 4


@helper(b1(StateType, i8, i8))
def too_deep(s: FrontierState, page: int, depth: int) -> bool:
    """Return whether the rules forbid the page at this depth."""
    run = s.run[0]
    limit = run.depth_dynamic if s.page[page].marks & DYNAMIC else run.depth_static
    return limit > 0 and depth > limit


@helper(void(StateType, i8, f8, i8))
def add_waiting(s: FrontierState, page: int, key: float, serial: int) -> None:
    """Queue a page: in the front queue of its site or, in batch mode, in the backlog unless the page was chosen already."""
    x = s.page[page].site
    s.state[page] = WAITING
    if s.run[0].batch > 0 and not s.page[page].marks & CHOSEN:
        backlog_changed(s, x, join(s, s.queue[x, BACKLOG], page, key, serial))
    else:
        changed = join(s, s.queue[x, FRONT], page, key, serial)
        count_chosen(s, x, 1)
        queue_changed(s, x, changed)


@helper(void(StateType, i8, i8, i8))
def enqueue_new(s: FrontierState, page: int, source: int, links: int) -> None:
    """Rank and queue a page that is discovered for the first time, unless it is too deep."""
    run = s.run[0]
    p = s.page[page]
    depth = min(int(s.page[source].depth), DEEPEST - 1) + 1 if source >= 0 else 0
    if too_deep(s, page, depth):
        return
    p.depth = depth
    p.serial = run.serial
    run.serial += 1
    s.site[p.site].known += 1
    key = 0.0 if run.queue == FIFO else rank_page(s, page, source, links, True)
    add_waiting(s, page, key, p.serial)


@helper(void(StateType, i8, f8))
def change_key(s: FrontierState, page: int, key: float) -> None:
    """Give a new key to a page that waits or is leased."""
    p = s.page[page]
    x = p.site
    if s.state[page] == LEASED:
        s.pool[s.visit[s.site[x].visit].block + p.pos].key = key
    elif s.run[0].batch > 0 and not p.marks & CHOSEN:
        backlog_changed(s, x, move(s, s.queue[x, BACKLOG], page, key))
    else:
        changed = move(s, s.queue[x, FRONT], page, key)
        if changed:
            queue_changed(s, x, changed)


@helper(void(StateType, i8))
def look_far(s: FrontierState, page: int) -> None:
    """Prefetch the state of a page that a link leads to. Every such read is a cache miss; prefetched early, the misses overlap."""
    prefetch(s.state, page)
    if not s.run[0].constant:
        prefetch(s.page, page)
        prefetch(s.columns, page)


@helper(void(StateType, i8))
def look_near(s: FrontierState, page: int) -> None:
    """Prefetch what the processing of a page will need. Its state is in the cache by now (`look_far`)."""
    state = s.state[page]
    if state == UNKNOWN:
        prefetch(s.page, page)
    elif state == WAITING and not s.run[0].constant:
        p = s.page[page]
        prefetch(s.pool, s.queue[p.site, FRONT].block + p.pos)


@helper(b1(StateType, i8, Pages, i8, b1))
def process_links(s: FrontierState, source: int, pages: Array, n: int, only_new: bool) -> bool:
    """Process links from page `source` (-1: seeds) to pages[:n], all registered, in order.

    `only_new`: a further link to a page that is queued already does not change its rank. Return False if the pool must
    grow first; the next call then continues with link run.resume - 1.
    """
    run = s.run[0]
    constant = run.constant or only_new  # a further link changes no rank
    links = n if source >= 0 else 0
    first = max(run.resume - 1, 0)
    for i in range(first, min(first + FAR, n)):
        look_far(s, pages[i])
    for i in range(first, n):
        if i + FAR < n:
            look_far(s, pages[i + FAR])
        if i + NEAR < n:
            look_near(s, pages[i + NEAR])
        page = pages[i]
        if page == ELSEWHERE:  # the prefetches above read index -1 for it, which costs little and harms nothing
            continue
        state = s.state[page]
        if state > LEASED or (constant and state != UNKNOWN):
            if run.learns and not only_new and (state in (FETCHED, REVISITED)):
                rank_page(s, page, source, links, False)
            continue
        if not has_room(s):
            run.resume = i + 1
            return False
        if state == UNKNOWN:
            enqueue_new(s, page, source, links)
        else:
            change_key(s, page, rank_page(s, page, source, links, False))
    run.resume = 0
    return True


@helper(b1(StateType, i8, Pages, i8))
def discover(s: FrontierState, source: int, pages: Array, n: int) -> bool:
    """Process links to pages[:n]; a further link to a waiting or leased page updates its rank. Return False as `process_links` does."""
    return process_links(s, source, pages, n, False)
