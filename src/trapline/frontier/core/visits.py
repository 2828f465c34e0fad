"""Visits: they begin with a lease, are reported page by page, and are finished or expire.

The pages of a visit are LEASED or, in a revisit (revisits.py begins those), REVISITED. In both states the visit *holds* the
page. EXPIRING is the heap of the visits under way by the end of their lease; `open_visit` adds to it, `close` removes from
it. The free slots of the visit table form a list that begins at `run.free_visit`.
"""

from trapline.compiled.jit import b1, f8, helper, i8, void
from trapline.frontier.core import blocks, heap, queue
from trapline.frontier.core.batch import backlog_changed, count_chosen, limit_front, place_backlog
from trapline.frontier.core.discovery import add_waiting
from trapline.frontier.core.ready_sites import leave, place, settle_group
from trapline.frontier.layout import (
    BACKLOG,
    BY_BACKOFF,
    BY_DELAY,
    BY_ORDER,
    COMPETES,
    EXPIRING,
    FAILED,
    FETCHED,
    FIFO,
    FRONT,
    GONE,
    LEASED,
    REVISITED,
    WAITING,
    FrontierState,
    StateType,
)
from trapline.frontier.rules import backoff_s, site_delay_s, visit_limit

has_room, take_block, give_block = blocks.has_room, blocks.take, blocks.give
sift_up, remove = heap.sift_up, heap.remove
join, rejoin_fifo, take_best, set_limit = queue.join, queue.rejoin_fifo, queue.take_best, queue.set_limit
SLOT_BITS = 20


@helper(i8(StateType, i8))
def slot_of(s: FrontierState, visit_id: int) -> int:
    """Return the slot of a visit under way, or -1 if the visit has ended."""
    slot = visit_id & ((1 << SLOT_BITS) - 1)
    if visit_id < 0 or slot >= s.visit.size or s.visit[slot].id != visit_id:
        return -1
    return slot


@helper(void(StateType, i8))
def mark_leased(s: FrontierState, slot: int) -> None:
    """Mark the pages of the visit as LEASED and count them."""
    visit = s.visit[slot]
    s.site[visit.site].taken += visit.pages
    count_chosen(s, visit.site, -visit.pages)
    for i in range(visit.pages):
        page = s.pool[visit.block + i].id
        s.state[page] = LEASED
        s.page[page].pos = i


@helper(i8(StateType, i8, i8))
def open_visit(s: FrontierState, x: int, pages: int) -> int:
    """Open a visit with a block for `pages` pages, remove the site from the ready sites, and return the slot of the visit.

    The caller has made sure that the pool has room and that a slot is free.
    """
    run = s.run[0]
    site = s.site[x]
    slot = run.free_visit
    visit = s.visit[slot]
    run.free_visit = visit.free
    visit.id = (run.visits << SLOT_BITS) | slot
    run.visits += 1
    run.active += 1
    visit.site = x
    visit.expires_at = run.now + run.lease_s
    visit.pages = pages
    visit.failed = 0
    visit.fetched = 0
    visit.revisit = 0
    visit.log2 = blocks.SMALLEST_LOG2
    while (1 << visit.log2) < visit.pages:
        visit.log2 += 1
    visit.block = take_block(s, visit.log2)
    s.group[site.group].visit = slot
    leave(s, x)
    site.visit = slot
    sift_up(s.heap[EXPIRING], 0, s.visit["pos"], run.active - 1, -visit.expires_at, run.visits, slot)
    return slot


@helper(i8(StateType, i8))
def lease(s: FrontierState, x: int) -> int:
    """Begin a visit to the site and return its slot. The caller has made sure that the pool has room and that a slot is free."""
    q = s.queue[x, FRONT]
    slot = open_visit(s, x, q.planned)
    take_best(s, q, s.visit[slot].pages, s.visit[slot].block)
    mark_leased(s, slot)
    return slot


@helper(b1(StateType, i8))
def is_held(s: FrontierState, page: int) -> bool:
    """Return whether a visit under way has the page and has not reported its result yet."""
    return s.state[page] == LEASED or s.state[page] == REVISITED


@helper(void(StateType, i8))
def refuse(s: FrontierState, page: int) -> None:
    """Mark a held page as GONE, and give its share of the budget back to the site."""
    run = s.run[0]
    x = s.page[page].site
    s.state[page] = GONE
    run.gone += 1
    s.site[x].taken -= 1
    if run.batch > 0:
        backlog_changed(s, x, 0)


@helper(void(StateType, i8, i8))
def fail(s: FrontierState, slot: int, page: int) -> None:
    """Record that a leased page failed: queue it again with half its rank (a negative rank is doubled), or drop it after the last retry."""
    run = s.run[0]
    p = s.page[page]
    visit = s.visit[slot]
    visit.failed += 1
    if p.tries >= run.retries:
        refuse(s, page)
        return
    p.tries += 1
    s.site[p.site].taken -= 1
    key = s.pool[visit.block + p.pos].key
    p.serial = run.serial
    run.serial += 1
    add_waiting(s, page, key * 0.5 if key > 0.0 else key * 2.0, p.serial)


@helper(void(StateType, i8, i8, i8))
def conclude_revisit(s: FrontierState, slot: int, page: int, result: int) -> None:
    """Record the result of one page of a revisit. Unless the page is refused, it is FETCHED again, even if this fetch failed."""
    visit = s.visit[slot]
    if result != FETCHED and result != FAILED:
        s.run[0].fetched -= 1
        refuse(s, page)
        return
    s.state[page] = FETCHED
    visit.failed += result == FAILED
    visit.fetched += result == FETCHED


@helper(void(StateType, i8, i8, i8))
def conclude(s: FrontierState, slot: int, page: int, result: int) -> None:
    """Record the result of one page of a visit. The caller processes its links afterwards."""
    if s.visit[slot].revisit:
        conclude_revisit(s, slot, page, result)
    elif result == FETCHED:
        s.state[page] = FETCHED
        s.run[0].fetched += 1
        s.visit[slot].fetched += 1
    elif result == FAILED:
        fail(s, slot, page)
    else:
        refuse(s, page)


@helper(b1(StateType, i8))
def give_back(s: FrontierState, slot: int) -> bool:
    """Give back the pages that were not reported: they are WAITING or FETCHED as before. Return False if the pool must grow first."""
    visit = s.visit[slot]
    x = visit.site
    q = s.queue[x, FRONT]
    for i in range(visit.pages - 1, -1, -1):  # last page first, because a fifo queue takes them back at its head
        e = s.pool[visit.block + i]
        if s.state[e.id] == REVISITED:
            s.state[e.id] = FETCHED
        if s.state[e.id] != LEASED:
            continue
        if not has_room(s):
            return False
        s.state[e.id] = WAITING
        s.site[x].taken -= 1
        count_chosen(s, x, 1)
        if s.run[0].queue == FIFO:
            rejoin_fifo(s, q, e.id)
        else:
            join(s, q, e.id, e.key, e.serial)
    return True


@helper(void(StateType, i8))
def settle_site(s: FrontierState, x: int) -> None:
    """Place the site and its group again, after a change of the site's limits, times or group."""
    limit_front(s, x)
    place(s, x)
    if s.site[x].group >= 0 and s.site[x].place != COMPETES:
        settle_group(s, s.site[x].group)  # `place` has settled the group of a site that joined the ready sites
    if s.run[0].batch > 0:
        set_limit(s, s.queue[x, BACKLOG], visit_limit(s, x, BACKLOG))
        place_backlog(s, x)


@helper(void(StateType, i8, f8, i8))
def set_delay(s: FrontierState, x: int, ready_at: float, rule: int) -> None:
    """Delay the site until `ready_at` at least. A longer delay, which may have been set during the visit, stays."""
    if ready_at > s.site[x].ready_at:
        s.site[x].ready_at = ready_at
        s.site[x].delay_rule = rule


@helper(void(StateType, i8, f8))
def close(s: FrontierState, slot: int, not_before: float) -> None:
    """End the visit: set when the site and its group may be visited again, free the slot, and place the site."""
    run = s.run[0]
    visit = s.visit[slot]
    x = visit.site
    site = s.site[x]
    if visit.failed > 0:
        site.failures += 1
    elif visit.fetched > 0:
        site.failures = 0
    set_delay(s, x, run.now + site_delay_s(run, site), BY_DELAY)
    if site.failures > 0:
        set_delay(s, x, run.now + backoff_s(s, x), BY_BACKOFF)
    set_delay(s, x, not_before, BY_ORDER)
    group = s.group[site.group]
    group.ready_at = max(group.ready_at, run.now + run.ip_delay_s)
    remove(s.heap[EXPIRING], 0, run.active, s.visit["pos"], visit.pos)
    run.active -= 1
    run.revisits -= visit.revisit
    give_block(s, visit.block, visit.log2)
    visit.id = -1
    visit.free = run.free_visit
    run.free_visit = slot
    site.visit = -1
    group.visit = -1
    settle_site(s, x)


@helper(b1(StateType))
def expire(s: FrontierState) -> bool:
    """End the visits whose lease is over; the pages that they still hold have failed. Return False if the pool must grow first."""
    run = s.run[0]
    while run.active > 0 and -s.heap[EXPIRING, 0].key <= run.now:
        slot = s.heap[EXPIRING, 0].id
        visit = s.visit[slot]
        for i in range(visit.pages):
            page = s.pool[visit.block + i].id
            if is_held(s, page):
                if not has_room(s):
                    return False
                conclude(s, slot, page, FAILED)
        if not has_room(s):
            return False
        close(s, slot, -1.0e300)
    return True
