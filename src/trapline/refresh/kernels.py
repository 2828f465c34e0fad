"""The compiled entries of the refresher: one for everything that happens to a page, one for a decision, one for a queue made anew.

Each gets a handle of the state (pinned.py), lets time pass up to now and does what its call says; Python has checked the arguments and made
room. Answers: 0 and more, or NEED_ROOM, after which nothing has changed but time, and the call is made again with more room.
"""

from trapline.frontier.layout import FRONT, NEED_ROOM, Array, Numbers, Times
from trapline.frontier.layout import State as FrontierState
from trapline.frontier.layout import StateType as FrontierType
from trapline.frontier.layout import recall as recall_frontier
from trapline.frontier.limits import connection_limit, rest_s
from trapline.jit import f8, helper, i8, kernel, void
from trapline.refresh.choosing import LEAST_WAIT_S, choose_page, count_slot, look_around, wake_sites
from trapline.refresh.evidence import note_access
from trapline.refresh.layout import (
    AWAY,
    CHOSEN,
    OPEN,
    SHUT,
    State,
    StateType,
    recall,
)
from trapline.refresh.membership import adopt_page, join_page, page_crawled, page_failed, page_leaves
from trapline.refresh.places import dequeue, enqueue, make_block_room, shut_site
from trapline.refresh.queue import MOST_HOT, rebuild, settle, value_of
from trapline.refresh.telling import hear
from trapline.refresh.timers import come_back, pass_time, relevel, set_timer

# What happens to a page. Numbers are part of the log's format: add, never reuse. (_TOLD: no longer written.)
JOIN, CRAWLED, FAILED, RETURNED, LEAVE, ACCESSED, SIGNALLED, PUBLISHED, _TOLD, CHOSE, ASKED = range(1, 12)
ADOPTED, TRUSTED, LEARNED = range(12, 15)

PRICE_KEEPS = 0.98
MOST_LEFT = 4  # sites passed over in a decision, before all of the turn is left to new pages
ENOUGH = 0.5  # of the price: what another page of the same visit must be worth


@kernel(i8(i8, i8, i8, i8, f8, f8))
def happen(handle: int, call: int, page: int, number: int, moment: float, now: float) -> int:
    """`page`: a slot. `number`: whether it changed (CRAWLED), is gone (FAILED), comes back before its time (RETURNED), moves
    (LEAVE), how often (ACCESSED), a row of trust (SIGNALLED). `moment`: of a signal; of a crawl the age of the page's last change."""
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
        if is_first and number > 0:  # until now all pages were as popular as their quality said
            rebuild(s, now)
    elif call == SIGNALLED:
        hear(s, page, number, moment, now)
    elif call == PUBLISHED:
        relevel(s, page)
        set_timer(s, page)
        settle(s, page, now)
    return 0


# ---- decisions


@helper(void(StateType, f8))
def _keep_up(s: State, now: float) -> None:
    """Values may depend on how many pages there are: computed anew while these are few, and then for each eighth more or less."""
    settled = s.run[0].settled_pages
    changed = abs(len(s.page) - settled)
    if changed > 0 and (len(s.page) <= MOST_HOT or 8 * changed >= settled):
        rebuild(s, now)


@helper(f8(StateType, i8, f8))
def worth_of(s: State, page: int, now: float) -> float:
    """Its value; where values are moments at which pages are due, for how long it has been."""
    value = value_of(s, page, now)
    return now + value if s.run[0].still else value


@helper(i8(StateType, i8, i8, f8, f8, Numbers))
def _fill(s: State, x: int, most: int, least: float, now: float, out: Array) -> int:
    """More pages of a site about to be visited, best first, of those first in its queue after a look around; out[1] is there."""
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
        if worth_of(s, page, now) < least:
            break
        dequeue(s, page, CHOSEN)
        n += 1
        out[n] = s.page[page].id
    return n


@helper(i8(StateType, FrontierType, Times, f8, f8))
def _choose_by_share(s: State, f: FrontierState, credit: Array, needs: float, now: float) -> int:
    """The best page of those that need not wait for new pages of their site. A site passed over is asked about again as one under visit
    is: a visit to its new pages is what gives it credit. -1: there is none, or too many were passed over."""
    for _ in range(MOST_LEFT):
        page = choose_page(s, f, now)
        if page < 0:
            return -1
        x = s.page[page].site
        has = credit[x] if x < len(credit) else 0.0
        if has >= needs or f.queue[x, FRONT].planned <= 0:
            return page
        shut_site(s, x, now + max(LEAST_WAIT_S, rest_s(f.run[0], f.site[x])))
    return -1


@kernel(i8(i8, i8, f8, f8, Times, f8, Numbers, Times))
def decide(
    handle: int, frontier: int, now: float, least: float, credit: Array, needs: float, out: Array, worth: Array
) -> int:
    """out: the site, and the pages to crawl; worth: of the first. How many pages; -1: no site is open, and this was no slot."""
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
    worth[0] = worth_of(s, page, now)
    if worth[0] < least:
        return 0
    x = s.page[page].site
    note_price(s, worth[0])
    dequeue(s, page, CHOSEN)
    out[0] = x
    out[1] = s.page[page].id
    n, most = 1, connection_limit(f, x)
    if most > 1 and s.site[x].pages > 0:
        n = _fill(s, x, most, max(least, ENOUGH * run.price), now, out)
    if s.site[x].place == OPEN:
        shut_site(s, x, now + rest_s(f.run[0], f.site[x]))
    return n


@helper(void(StateType, f8))
def note_price(s: State, worth: float) -> None:
    run = s.run[0]
    run.price = worth if run.price == 0.0 else PRICE_KEEPS * run.price + (1.0 - PRICE_KEEPS) * worth


@kernel(void(i8, i8))
def look_again(handle: int, x: int) -> None:
    """A site may be open: the next decision asks."""
    s = recall(handle)
    if x < len(s.site) and s.site[x].place == SHUT:
        shut_site(s, x, s.run[0].now)


# ---- from a log, or from a snapshot


@kernel(void(i8, Numbers, i8, f8, f8))
def repeat_choice(handle: int, slots: Array, n: int, worth: float, now: float) -> None:
    """A decision as the log has it: what it did to the evidence, without the search."""
    s = recall(handle)
    pass_time(s, now, False)
    count_slot(s, now)
    if n > 0:
        note_price(s, worth)
    for i in range(n):
        if s.page[slots[i]].place < CHOSEN:
            dequeue(s, slots[i], CHOSEN)


@kernel(void(i8))
def settle_all(handle: int) -> None:
    """Every page where it belongs by its value at the last moment heard of."""
    s = recall(handle)
    rebuild(s, s.run[0].now)


@kernel(i8(i8, i8))
def queue_again(handle: int, first: int) -> int:
    """All pages from this one on into empty queues and timers, by what their records say; the page at which room ended, or -1."""
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
