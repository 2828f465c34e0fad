"""The passing of time in a live crawl: cycles begin, published points come, waits after failures end, old accesses are
forgotten.

A replay has these events as streams (refresh/replay/loop.py). In a live crawl they are processed before the next event. The
heap of timers has every page that has a point ahead or waits after a failure, by the earlier of the two times. `set_timer`
adds and removes pages.
"""

import math

from trapline.compiled.jit import b1, f8, helper, i8, void
from trapline.frontier.core.heap import remove, replace, sift_up
from trapline.refresh.core.evidence import SAME_S, ask, forget, note_point, note_signal
from trapline.refresh.core.layout import AUDITED, AWAY, NORMAL, PROMISED, SMART, SUPER, RefreshState, StateType
from trapline.refresh.core.queue import enqueue, heed, rebuild, settle, value_of
from trapline.refresh.policies.trust import is_struck_out, precision_of
from trapline.rng import uniform

_UNPROMISED = 0xFF ^ PROMISED
MOST_HALVINGS = 32  # no count is left after this number
MOST_CYCLES = 1000  # after a long pause only this number of cycles is made up for


@helper(void(StateType, i8))
def relevel(s: RefreshState, page: int) -> None:
    """Set the page's level: NORMAL until its site has a trusted channel, then SMART; SUPER while points lie ahead."""
    p = s.page[page]
    row = s.site[p.site].row
    if p.marks & PROMISED:
        p.level = SUPER
    else:
        p.level = SMART if row > 0 or p.marks & AUDITED else NORMAL
    if p.trust == 0:
        p.trust = row if row > 0 or not p.marks & PROMISED else s.point[p.point].row


@helper(void(StateType, i8))
def set_timer(s: RefreshState, page: int) -> None:
    """Set the timer of the page to its next point or return, or remove it."""
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
def come_back(s: RefreshState, page: int, now: float) -> None:
    """Add the page to the queue again."""
    relevel(s, page)
    enqueue(s, page, value_of(s, page, now))
    settle(s, page, now)


@helper(void(StateType, i8, f8))
def _fire(s: RefreshState, page: int, at_s: float) -> None:
    """Process the return or the point of a page whose timer has come."""
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
def pass_time(s: RefreshState, now: float, before: bool) -> None:
    """Process all cycles, points, returns and half-lives up to `now`. `before`: without the points and returns at `now` itself, because a
    signal at `now` must come before them."""
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


# ---- Signals in a live crawl: which signals count, and whether the channel of a site is trusted.
#
# This part is between `Refresher.signalled` and evidence.py. A signal counts unless
# - it is about a change that the last crawl saw already, or repeats a signal since then within SAME_S;
# - it is unverified and its site has no trusted channel: alone it never changes the level of a page;
# - its channel was struck out (refresh/policies/trust.py) and this signal was not sampled for the audit.
# Of several signals for one update the most trusted one counts.

AUDIT = 0.03  # share of a struck-out channel's signals that are followed


@helper(void(StateType, i8, i8, f8))
def set_site_channel(s: RefreshState, x: int, row: int, now: float) -> None:
    """Set the row of trust that signals the site's updates from now on; 0: none."""
    site = s.site[x]
    site.row = row
    for i in range(site.pages):
        relevel(s, s.value[site.block + i].id)
    for i in range(site.pages):
        heed(s, s.value[site.block + i].id, now)


@helper(void(StateType, i8, i8, f8, f8))
def process_signal(s: RefreshState, page: int, row: int, moment: float, now: float) -> None:
    """Process a signal from a row of trust about a change at `moment`."""
    p = s.page[page]
    channel = s.trust[row]
    channel.received += 1
    if moment < p.crawled_s - SAME_S or (channel.unverified and p.level == NORMAL):
        return
    at_s = min(now, max(moment, p.crawled_s, p.last_signal_s))
    believed_more = precision_of(s, row) > precision_of(s, p.trust)
    if p.all_signals > 0 and at_s - p.last_signal_s < SAME_S and p.signals > 0:
        if believed_more:
            p.trust = row
            heed(s, page, now)
        return
    if is_struck_out(s, row):
        if channel.unverified or uniform(p.id, channel.received) >= AUDIT:
            return
        p.marks |= AUDITED
        p.level = max(p.level, SMART)
    elif not channel.unverified and s.site[p.site].row == 0:
        set_site_channel(s, p.site, row, now)
    if p.signals == 0 or believed_more:
        p.trust = row
    note_signal(s, page, at_s)
    heed(s, page, now)


@helper(void(StateType, i8, f8))
def judge_channel(s: RefreshState, page: int, now: float) -> None:
    """After a crawl, stop using the channel of the page's site if it has been struck out."""
    x = s.page[page].site
    if s.site[x].row > 0 and is_struck_out(s, s.site[x].row):
        set_site_channel(s, x, 0, now)
    relevel(s, page)
