"""Pages join, are crawled, fail and leave: the changes of their records and queues. Slots stay dense.

kernels.py calls these functions after it has let time pass; evidence.py records the results of crawls.
"""

import math

from trapline.compiled.jit import b1, f8, helper, i8, void
from trapline.refresh.core.evidence import note_crawl
from trapline.refresh.core.layout import ACCESS_CLASSES, AWAY, CHOSEN, HOT, PARKED, WAITS, RefreshState, StateType
from trapline.refresh.core.queue import dequeue, enqueue, let_wait, make_block_room, make_hot, rebuild, settle, value_of
from trapline.refresh.core.timers import come_back, judge_channel, relevel, set_timer

LEAST_REVISION = 256  # slots; a revision may cost as much as this number of decisions, however few pages there are
FIRST_WAIT_S, MOST_WAIT_S = 600.0, 604_800.0  # wait after one failure, and after many
FIRST_GONE_S, MOST_GONE_S = 86_400.0, 30 * 86_400.0  # the same for a page that is gone: few such pages come back
WINDOW_S = 600.0  # time in which the crawl's own slots are counted
LEAST_RATE = 1e-6  # slots per second
OTHER_RATE = 0.2  # relative change of the rate after which all values are computed again


@helper(b1(StateType, i8))
def _enter(s: RefreshState, page: int) -> bool:
    """Count a new page in the totals of its site and of all pages, without queueing it. Return False if the queue has no room."""
    run = s.run[0]
    p = s.page[page]
    if not make_block_room(s, p.site):
        return False
    s.site[p.site].members += 1
    p.timer = -1
    s.popular[0, min(p.accesses, ACCESS_CLASSES - 1)] += 1.0
    run.quality += p.quality
    if run.share > 0.0:
        run.revision = max(LEAST_REVISION, int(run.share * len(s.page) + 0.5))
    return True


@helper(b1(StateType, i8, f8))
def join_page(s: RefreshState, page: int, now: float) -> bool:
    """Add a page that was fetched for the first time. Return False if the queue has no room."""
    if not _enter(s, page):
        return False
    p = s.page[page]
    p.crawled_s = now
    p.joined = int(now)
    relevel(s, page)
    enqueue(s, page, value_of(s, page, now))
    settle(s, page, now)
    return True


@helper(b1(StateType, i8, f8))
def adopt_page(s: RefreshState, page: int, now: float) -> bool:
    """Add a page whose record comes from another refresher (refresh/live/moving.py). Return False if the queue has no room."""
    if not _enter(s, page):
        return False
    p = s.page[page]
    s.run[0].signals += p.all_signals
    if p.place != AWAY:
        enqueue(s, page, value_of(s, page, now))
        settle(s, page, now)
    set_timer(s, page)
    return True


@helper(void(StateType, f8))
def _measure_slots(s: RefreshState, now: float) -> None:
    """Measure the slots per second, which policies use as the capacity, from the crawl's own recent revisits."""
    run = s.run[0]
    run.window += 1
    since_s = now - run.window_s
    if since_s < WINDOW_S:
        return
    was = run.slots_per_s
    run.slots_per_s = max(LEAST_RATE, 0.5 * was + 0.5 * run.window / since_s)
    run.window = 0
    run.window_s = now
    if abs(run.slots_per_s - was) > OTHER_RATE * was:
        rebuild(s, now)


@helper(void(StateType, i8, f8, b1, f8))
def page_crawled(s: RefreshState, page: int, now: float, changed: bool, age_s: float) -> None:
    """Record a crawl and queue the page again."""
    p = s.page[page]
    note_crawl(s, page, now, changed, age_s)
    p.failures = 0
    judge_channel(s, page, now)
    if s.run[0].measures:
        _measure_slots(s, now)
    if p.place >= CHOSEN:
        come_back(s, page, now)
        set_timer(s, page)
    else:
        settle(s, page, now)


@helper(void(StateType, i8, f8, b1))
def page_failed(s: RefreshState, page: int, now: float, gone: bool) -> None:
    """Take the page out of the queues for a wait that doubles with every failure."""
    p = s.page[page]
    if p.place < CHOSEN:
        dequeue(s, page, AWAY)
    p.place = AWAY
    first_s, most_s = (FIRST_GONE_S, MOST_GONE_S) if gone else (FIRST_WAIT_S, MOST_WAIT_S)
    wait_s = min(first_s * 2.0**p.failures, most_s)
    p.failures = min(p.failures + 1, 60)
    p.pos = math.ceil(now + wait_s)
    set_timer(s, page)


@helper(void(StateType, i8, b1))
def page_leaves(s: RefreshState, page: int, moves: bool) -> None:
    """Remove a page. The last page takes its slot, so that slots stay dense, and Python cuts the last slot off.

    `moves`: the page moves to another refresher and takes its signals along.
    """
    run = s.run[0]
    p = s.page[page]
    if moves:
        run.signals -= p.all_signals
    if p.place < CHOSEN:
        dequeue(s, page, CHOSEN)
    p.place = CHOSEN
    p.point = p.point_end
    set_timer(s, page)
    s.site[p.site].members -= 1
    s.popular[0, min(p.accesses, ACCESS_CLASSES - 1)] -= 1.0
    run.quality -= p.quality
    if page != len(s.page) - 1:
        _move_page(s, len(s.page) - 1, page)


@helper(void(StateType, i8, i8))
def _move_page(s: RefreshState, page: int, to: int) -> None:
    """Move a page to another slot, with its place in the queues and its timer."""
    p = s.page[page]
    place, until, value = p.place, 0.0, 0.0
    if place == WAITS:
        until = -s.waiting[p.pos].key
    if place < CHOSEN:
        value = s.value[s.site[p.site].block + p.value_pos].key
        dequeue(s, page, PARKED)
    s.page[to] = p
    s.page[to].timer = -1
    for i in range(s.columns.shape[1]):
        s.columns[to, i] = s.columns[page, i]
    if p.timer >= 0:
        p.point = p.point_end
        p.place = CHOSEN
        set_timer(s, page)
    set_timer(s, to)
    if place < CHOSEN:
        enqueue(s, to, value)
        if place == WAITS:
            let_wait(s, to, until)
        elif place == HOT:
            make_hot(s, to)
