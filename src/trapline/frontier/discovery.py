"""How pages come in: seeds and links. Steps 1 to 3 of the way of a URL, after `urls` and `seen`."""

from trapline.frontier import blocks, queue
from trapline.frontier.batch import backlog_changed, count_chosen
from trapline.frontier.contest import queue_changed
from trapline.frontier.layout import (
    BACKLOG,
    CHOSEN,
    DEEPEST,
    DYNAMIC,
    ELSEWHERE,
    FIFO,
    FRONT,
    LEASED,
    UNKNOWN,
    WAITING,
    Array,
    Pages,
    State,
    StateType,
)
from trapline.frontier.ranking import rank_page
from trapline.jit import b1, f8, helper, i8, prefetch, void

has_room, join, move = blocks.has_room, queue.join, queue.move
FAR, NEAR = 12, 4  # links ahead: far enough for memory to answer, near enough to still be in the cache


@helper(b1(StateType, i8, i8))
def too_deep(s: State, page: int, depth: int) -> bool:
    run = s.run[0]
    limit = run.depth_dynamic if s.page[page].marks & DYNAMIC else run.depth_static
    return limit > 0 and depth > limit


@helper(void(StateType, i8, f8, i8))
def add_waiting(s: State, page: int, key: float, serial: int) -> None:
    """A page begins to wait: in its site's queue or, in batch mode, in the backlog unless it was chosen already."""
    x = s.page[page].site
    s.state[page] = WAITING
    if s.run[0].batch > 0 and not s.page[page].marks & CHOSEN:
        backlog_changed(s, x, join(s, s.queue[x, BACKLOG], page, key, serial))
    else:
        changed = join(s, s.queue[x, FRONT], page, key, serial)
        count_chosen(s, x, 1)
        queue_changed(s, x, changed)


@helper(void(StateType, i8, i8, i8))
def welcome(s: State, page: int, source: int, links: int) -> None:
    """A page nobody has pointed to before."""
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
def change_key(s: State, page: int, key: float) -> None:
    """A page that waits or is leased has a new key."""
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
def look_far(s: State, page: int) -> None:
    """Ask memory for a page that a link leads to: each look is a cache miss, and asked for early they overlap."""
    prefetch(s.state, page)
    if not s.run[0].constant:
        prefetch(s.page, page)
        prefetch(s.columns, page)


@helper(void(StateType, i8))
def look_near(s: State, page: int) -> None:
    """The page's state is near by now: ask for what it will need."""
    state = s.state[page]
    if state == UNKNOWN:
        prefetch(s.page, page)
    elif state == WAITING and not s.run[0].constant:
        p = s.page[page]
        prefetch(s.pool, s.queue[p.site, FRONT].block + p.pos)


@helper(b1(StateType, i8, Pages, i8, b1))
def meet(s: State, source: int, pages: Array, n: int, only_new: bool) -> bool:
    """Meet every page of pages[:n], all registered, in order. False: the pool must grow, then link run.resume - 1 is next."""
    run = s.run[0]
    constant = run.constant or only_new  # no rank changes by a further link
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
        if page == ELSEWHERE:  # looking ahead met it too, which costs a little and harms nothing
            continue
        state = s.state[page]
        if state > LEASED or (constant and state != UNKNOWN):
            continue
        if not has_room(s):
            run.resume = i + 1
            return False
        if state == UNKNOWN:
            welcome(s, page, source, links)
        else:
            change_key(s, page, rank_page(s, page, source, links, False))
    run.resume = 0
    return True


@helper(b1(StateType, i8, Pages, i8))
def discover(s: State, source: int, pages: Array, n: int) -> bool:
    """Meet pages[:n], a further link to one that waits counting too. False: see `meet`."""
    return meet(s, source, pages, n, False)
