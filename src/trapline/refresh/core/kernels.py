"""The compiled entry points of the refresher: one for all events of a page, one for a decision, and some to rebuild the queues.

Each gets a handle of the state (compiled/array_handles.py). `happen` and `decide` first let time pass up to `now`
(`pass_time`). Python has checked the arguments and made room. The answer is 0 or more, or NEED_ROOM: then only time has
changed, and Python repeats the call with more room.
"""

from trapline.compiled.jit import f8, helper, i8, kernel, void
from trapline.frontier.layout import FRONT, NEED_ROOM, Array, Numbers, Times
from trapline.frontier.layout import FrontierState as FrontierState
from trapline.frontier.layout import StateType as FrontierType
from trapline.frontier.layout import recall as recall_frontier
from trapline.frontier.rules import connection_limit, site_delay_s
from trapline.refresh.core.choosing import LEAST_WAIT_S, choose_page, count_slot, look_around, wake_sites
from trapline.refresh.core.evidence import note_access
from trapline.refresh.core.layout import AWAY, CHOSEN, OPEN, SHUT, RefreshState, StateType, recall
from trapline.refresh.core.membership import adopt_page, join_page, page_crawled, page_failed, page_leaves
from trapline.refresh.core.queue import (
    MOST_HOT,
    dequeue,
    enqueue,
    make_block_room,
    rebuild,
    settle,
    shut_site,
    value_of,
)
from trapline.refresh.core.timers import come_back, pass_time, process_signal, relevel, set_timer

# Events of a page, and other logged calls. The numbers are part of the log's format: add new ones, never reuse one. Number 9 is no longer
# written.
JOIN, CRAWLED, FAILED, RETURNED, LEAVE, ACCESSED, SIGNALLED, PUBLISHED, _UNUSED, CHOSE, TIME_PASSED = range(1, 12)
ADOPTED, TRUSTED, LEARNED = range(12, 15)

PRICE_KEEPS = 0.98  # weight of the old price in the moving average
MOST_LEFT = 4  # number of sites passed over in a decision before the whole turn is left to new pages
ENOUGH = 0.5  # a further page of the same visit must have at least this share of the price as its value


@kernel(i8(i8, i8, i8, i8, f8, f8))
def happen(handle: int, call: int, page: int, number: int, moment: float, now: float) -> int:
    """Process one event of a page. Return 0 or NEED_ROOM.

    `page`: the slot of the page. `number`: whether the page changed (CRAWLED), is gone (FAILED), comes back early
    (RETURNED) or moves to another refresher (LEAVE); how many accesses (ACCESSED); the row of trust (SIGNALLED). `moment`:
    the time of a signal, or at a crawl the age of the page's last change.
    """
    s = recall(handle)
    pass_time(s, now, call == SIGNALLED)
    if call == JOIN:
        return 0 if join_page(s, page, now) else NEED_ROOM
    if call == ADOPTED:
        return 0 if adopt_page(s, page, now) else NEED_ROOM
    if call == CRAWLED:
        page_crawled(s, page, now, number != 0, moment)
    elif call == FAILED:
        page_failed(s, page, now, number != 0)
    elif call == RETURNED:
        if s.page[page].place == CHOSEN or (s.page[page].place == AWAY and number != 0):
            come_back(s, page, now)
            set_timer(s, page)
    elif call == LEAVE:
        page_leaves(s, page, number != 0)
    elif call == ACCESSED:
        is_first = s.run[0].accesses == 0
        for _ in range(number):
            note_access(s, page, now)
        settle(s, page, now)
        if is_first and number > 0:  # until now the popularity of all pages was derived from their quality
            rebuild(s, now)
    elif call == SIGNALLED:
        process_signal(s, page, number, moment, now)
    elif call == PUBLISHED:
        relevel(s, page)
        set_timer(s, page)
        settle(s, page, now)
    return 0


# ---- decisions


@helper(void(StateType, f8))
def _keep_up(s: RefreshState, now: float) -> None:
    """Compute all values again if the number of pages has changed: at every change while there are few, later at changes of an eighth.

    Values may depend on the number of pages.
    """
    settled = s.run[0].settled_pages
    changed = abs(len(s.page) - settled)
    if changed > 0 and (len(s.page) <= MOST_HOT or 8 * changed >= settled):
        rebuild(s, now)


@helper(f8(StateType, i8, f8))
def value_now(s: RefreshState, page: int, now: float) -> float:
    """Return the page's value or, for a policy whose values are due times, the time for which the page has been due."""
    value = value_of(s, page, now)
    return now + value if s.run[0].still else value


@helper(i8(StateType, i8, i8, f8, f8, Numbers))
def _fill(s: RefreshState, x: int, most: int, least: float, now: float, out: Array) -> int:
    """Add further pages of the site to the visit, best first, from the head of its queue; return the number of pages. out[1] is set."""
    site = s.site[x]
    if not s.run[0].still:
        look_around(s, x, now, 2 * most)
    n, looks = 1, 2 * most
    while n < most and site.pages > 0 and looks > 0:
        first = s.value[site.block]
        page = first.id
        looks -= 1
        if value_of(s, page, now) < first.key:
            settle(s, page, now)
            continue
        if value_now(s, page, now) < least:
            break
        dequeue(s, page, CHOSEN)
        n += 1
        out[n] = s.page[page].id
    return n


@helper(i8(StateType, FrontierType, Times, f8, f8))
def _choose_by_share(s: RefreshState, f: FrontierState, credit: Array, needs: float, now: float) -> int:
    """Return the best page that need not wait for new pages of its site; -1: there is none, or too many sites were passed over.

    A site that is passed over is shut and checked again later, like a site under visit: a visit to its new pages is what
    gives it credit.
    """
    for _ in range(MOST_LEFT):
        page = choose_page(s, f, now)
        if page < 0:
            return -1
        x = s.page[page].site
        has = credit[x] if x < len(credit) else 0.0
        if has >= needs or f.queue[x, FRONT].planned <= 0:
            return page
        shut_site(s, x, now + max(LEAST_WAIT_S, site_delay_s(f.run[0], f.site[x])))
    return -1


@kernel(i8(i8, i8, f8, f8, Times, f8, Numbers, Times))
def decide(
    handle: int, frontier: int, now: float, least: float, credit: Array, needs: float, out: Array, value: Array
) -> int:
    """Choose the pages to crawl and return their number; -1: no site is open, and no slot is counted.

    `out` receives the site and the pages; value[0] receives the value of the first page.
    """
    s = recall(handle)
    f = recall_frontier(frontier)
    run = s.run[0]
    pass_time(s, now, False)
    wake_sites(s, f, now)
    if run.open == 0:
        return -1
    _keep_up(s, now)
    count_slot(s, now)
    page = _choose_by_share(s, f, credit, needs, now)
    if page < 0:
        return 0
    value[0] = value_now(s, page, now)
    if value[0] < least:
        return 0
    x = s.page[page].site
    note_price(s, value[0])
    dequeue(s, page, CHOSEN)
    out[0] = x
    out[1] = s.page[page].id
    n, most = 1, connection_limit(f, x)
    if most > 1 and s.site[x].pages > 0:
        n = _fill(s, x, most, max(least, ENOUGH * run.price), now, out)
    if s.site[x].place == OPEN:
        shut_site(s, x, now + site_delay_s(f.run[0], f.site[x]))
    return n


@helper(void(StateType, f8))
def note_price(s: RefreshState, value: float) -> None:
    """Update the price: the moving average of the values of the chosen pages."""
    run = s.run[0]
    run.price = value if run.price == 0.0 else PRICE_KEEPS * run.price + (1.0 - PRICE_KEEPS) * value


@kernel(void(i8, i8))
def look_again(handle: int, x: int) -> None:
    """Make the next decision check again whether a shut site may be visited."""
    s = recall(handle)
    if x < len(s.site) and s.site[x].place == SHUT:
        shut_site(s, x, s.run[0].now)


# ---- from a log, or from a snapshot


@kernel(void(i8, Numbers, i8, f8, f8))
def repeat_choice(handle: int, slots: Array, n: int, value: float, now: float) -> None:
    """Repeat a logged decision: apply its effects on the evidence, without the search."""
    s = recall(handle)
    pass_time(s, now, False)
    count_slot(s, now)
    if n > 0:
        note_price(s, value)
    for i in range(n):
        if s.page[slots[i]].place < CHOSEN:
            dequeue(s, slots[i], CHOSEN)


@kernel(void(i8))
def settle_all(handle: int) -> None:
    """Put every page where it belongs by its value at the time of the last event."""
    s = recall(handle)
    rebuild(s, s.run[0].now)


@kernel(i8(i8, i8))
def queue_again(handle: int, first: int) -> int:
    """Add all pages from `first` on to empty queues and timers, by their records. Return the page for which room was missing, or -1."""
    s = recall(handle)
    now = s.run[0].now
    for page in range(first, len(s.page)):
        p = s.page[page]
        if not make_block_room(s, p.site):
            return page
        s.site[p.site].members += 1
        p.timer = -1
        set_timer(s, page)
        if p.place < CHOSEN:
            enqueue(s, page, value_of(s, page, now))
    return -1
