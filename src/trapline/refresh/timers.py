"""Time passes in a live crawl: cycles begin, published points come, waits after failures end, old accesses are forgotten.

A replay has these as streams (loop.py); here they come about before whatever happens next. The heap of timers has every page with a point
ahead or a return, by the earlier of the two; filled and emptied by `set_timer`.
"""

import math

from trapline.frontier.heap import remove, replace, sift_up
from trapline.jit import b1, f8, helper, i8, void
from trapline.refresh.evidence import ask, note_point
from trapline.refresh.layout import AUDITED, AWAY, NORMAL, PROMISED, SMART, SUPER, State, StateType
from trapline.refresh.places import enqueue
from trapline.refresh.popularity import forget
from trapline.refresh.queue import heed, rebuild, settle, value_of

_UNPROMISED = 0xFF ^ PROMISED
MOST_HALVINGS = 32  # nothing is left after so many
MOST_CYCLES = 1000  # after a long sleep only the last ones are made up for


@helper(void(StateType, i8))
def relevel(s: State, page: int) -> None:
    """NORMAL until its site's channel has told anything, SUPER while points lie ahead."""
    p = s.page[page]
    row = s.site[p.site].row
    if p.marks & PROMISED:
        p.level = SUPER
    else:
        p.level = SMART if row > 0 or p.marks & AUDITED else NORMAL
    if p.trust == 0:
        p.trust = row if row > 0 or not p.marks & PROMISED else s.point[p.point].row


@helper(void(StateType, i8))
def set_timer(s: State, page: int) -> None:
    run = s.run[0]
    p = s.page[page]
    at_s = s.point[p.point].at_s if p.point < p.point_end else math.inf
    if p.place == AWAY:
        at_s = min(at_s, float(p.pos))
    if at_s == math.inf:
        if p.timer >= 0:
            remove(s.timer, 0, run.timers, s.page["timer"], p.timer)
            run.timers -= 1
            p.timer = -1
    elif p.timer >= 0:
        replace(s.timer, 0, run.timers, s.page["timer"], p.timer, -at_s, page, page)
    else:
        sift_up(s.timer, 0, s.page["timer"], run.timers, -at_s, page, page)
        run.timers += 1


@helper(void(StateType, i8, f8))
def come_back(s: State, page: int, now: float) -> None:
    """Into the queue again."""
    relevel(s, page)
    enqueue(s, page, value_of(s, page, now))
    settle(s, page, now)


@helper(void(StateType, i8, f8))
def _fire(s: State, page: int, at_s: float) -> None:
    p = s.page[page]
    if p.place == AWAY and p.pos <= at_s:
        come_back(s, page, at_s)
    else:
        note_point(s, page, at_s)
        if p.point == p.point_end:
            p.marks &= _UNPROMISED
            relevel(s, page)
        heed(s, page, at_s)
    set_timer(s, page)


@helper(void(StateType, f8, b1))
def pass_time(s: State, now: float, before: bool) -> None:
    """Whatever was to happen up to now. `before`: a signal of this very moment comes before the points of this moment."""
    run = s.run[0]
    run.now = now
    run.cycle = max(run.cycle, int(now / run.cycle_s) - MOST_CYCLES)
    while True:
        at_s = -s.timer[0].key if run.timers > 0 else math.inf
        cycle_s = run.cycle * run.cycle_s
        if cycle_s <= now and cycle_s <= at_s:
            ask(s, run.on_cycle, -1, cycle_s)
            run.cycle += 1
        elif at_s < now or (at_s == now and not before):
            _fire(s, s.timer[0].id, at_s)
        else:
            break
    if run.half_life_s > 0.0 and now - run.halved_s >= run.half_life_s:
        run.halved_s = max(run.halved_s, now - MOST_HALVINGS * run.half_life_s)
        while now - run.halved_s >= run.half_life_s:
            forget(s, run.halved_s + run.half_life_s)
        rebuild(s, now)
