"""The queues of refresh: they find the page with the largest value without evaluating every page.

Pages whose value is at least the *floor* are hot: a decision evaluates all of them, some dozens, and takes the best. The other
pages wait in a heap for the time at which their value will reach the floor. The queue of a site has all its pages by their
values at their last evaluation, which finds the best of the pages whose values only fall. Where values are still, these
queues are enough. A page of a site that may not be visited now is neither hot nor waiting: it stays in the queue of its site
until the site opens (choosing.py).

`settle` puts a page where it belongs, after each event of the page and when its time has come. Invariant: a waiting page is
below the floor, unless its value rose faster than the search for its time could see.

The floor follows the values. If there are too many hot pages, the floor is raised so that BEST of them remain; times computed
for the lower floor then come too early, which costs one evaluation each. If there is no hot page, the floor is lowered to the
best value; it is computed from the values of all pages if that was not done for pages / 8 decisions. So a decision costs
O(log pages) on average.
"""

import math

from trapline.compiled.jit import b1, f8, helper, i8, void
from trapline.frontier.core.heap import remove, replace, sift_up
from trapline.refresh.core.evidence import ask
from trapline.refresh.core.layout import (
    BEST,
    CHOSEN,
    HOT,
    IDLE,
    OPEN,
    PARKED,
    SHUT,
    WAITS,
    Array,
    RefreshState,
    StateType,
    Values,
)

# ---- Places of pages (in the queue of their site, and besides waiting or hot) and of sites (open or shut).
#
# This part moves pages and sites, and knows neither values nor politeness. Which function maintains what
# - The queue of a site (a heap in a block of RefreshState.value): every page of the site that is not CHOSEN or AWAY, by its value at its
#   last evaluation. `enqueue` adds pages, `dequeue` removes them.
# - `waiting` and `hot`: some of these pages. `let_wait` and `make_hot` add them, `park` removes them.
# - Row OPEN of `sites`: the sites with a queued page that, as far as is known, may be visited, by their best page. Row SHUT: the other
#   sites with a queued page, by the time at which to check again. `open_site` and `shut_site` add sites. A site whose queue is empty is in
#   neither row.
# A replay has one site, which is always open. The block of a queue has 2^j entries. A queue that outgrows its block gets one of twice the
# size, and the old block goes to a free list.

# ---- waiting and hot pages


@helper(void(StateType, i8))
def park(s: RefreshState, page: int) -> None:
    """Remove the page from the waiting and hot pages. It stays in the queue of its site."""
    run = s.run[0]
    p = s.page[page]
    if p.place == HOT:
        run.hot -= 1
        last = s.hot[run.hot]
        s.hot[p.pos] = last
        s.page[last].pos = p.pos
    elif p.place == WAITS:
        remove(s.waiting, 0, run.waiting, s.page["pos"], p.pos)
        run.waiting -= 1
    p.place = PARKED


@helper(void(StateType, i8, f8))
def let_wait(s: RefreshState, page: int, until: float) -> None:
    """Make the page wait until a time."""
    run = s.run[0]
    p = s.page[page]
    if p.place == WAITS:
        replace(s.waiting, 0, run.waiting, s.page["pos"], p.pos, -until, page, page)
        return
    park(s, page)
    p.place = WAITS
    sift_up(s.waiting, 0, s.page["pos"], run.waiting, -until, page, page)
    run.waiting += 1


@helper(void(StateType, i8))
def make_hot(s: RefreshState, page: int) -> None:
    """Add the page to the hot pages."""
    run = s.run[0]
    p = s.page[page]
    if p.place != HOT:
        park(s, page)
        p.place = HOT
        p.pos = run.hot
        s.hot[run.hot] = page
        run.hot += 1


# ---- sites


@helper(void(StateType, i8))
def _take_site_out(s: RefreshState, x: int) -> None:
    run = s.run[0]
    site = s.site[x]
    if site.place == OPEN:
        remove(s.sites[OPEN], 0, run.open, s.site["pos"], site.pos)
        run.open -= 1
    elif site.place == SHUT:
        remove(s.sites[SHUT], 0, run.shut, s.site["pos"], site.pos)
        run.shut -= 1
    site.place = IDLE


@helper(void(StateType, i8))
def open_site(s: RefreshState, x: int) -> None:
    """Add the site, whose queue is not empty, to the open sites."""
    run = s.run[0]
    site = s.site[x]
    _take_site_out(s, x)
    first = s.value[site.block]
    site.place = OPEN
    sift_up(s.sites[OPEN], 0, s.site["pos"], run.open, first.key, first.id, x)
    run.open += 1


@helper(void(StateType, i8, f8))
def shut_site(s: RefreshState, x: int, until: float) -> None:
    """Add the site to the shut sites until a time, or to neither row if its queue is empty."""
    run = s.run[0]
    site = s.site[x]
    _take_site_out(s, x)
    if site.pages > 0:
        site.place = SHUT
        sift_up(s.sites[SHUT], 0, s.site["pos"], run.shut, -until, x, x)
        run.shut += 1


@helper(void(StateType, i8))
def _first_may_be_another(s: RefreshState, x: int) -> None:
    """Move an open site in its heap after a possible change of its best page."""
    site = s.site[x]
    if site.place == OPEN:
        first = s.value[site.block]
        replace(s.sites[OPEN], 0, s.run[0].open, s.site["pos"], site.pos, first.key, first.id, x)


# ---- the queue of a site


@helper(void(StateType, i8, f8))
def revalue(s: RefreshState, page: int, value: float) -> None:
    """Move the page in the queue of its site after an evaluation."""
    p = s.page[page]
    site = s.site[p.site]
    was_first = p.value_pos == 0
    replace(s.value, site.block, site.pages, s.page["value_pos"], p.value_pos, value, page, page)
    if was_first or p.value_pos == 0:
        _first_may_be_another(s, p.site)


@helper(void(StateType, i8, f8))
def enqueue(s: RefreshState, page: int, value: float) -> None:
    """Add the page to the queue of its site, whose block has room (`make_block_room`). An idle site becomes open, until it is checked."""
    p = s.page[page]
    site = s.site[p.site]
    p.place = PARKED
    sift_up(s.value, site.block, s.page["value_pos"], site.pages, value, page, page)
    site.pages += 1
    if site.place == IDLE:
        open_site(s, p.site)
    else:
        _first_may_be_another(s, p.site)


@helper(void(StateType, i8, i8))
def dequeue(s: RefreshState, page: int, place: int) -> None:
    """Remove the page from all queues and set its place."""
    park(s, page)
    p = s.page[page]
    site = s.site[p.site]
    remove(s.value, site.block, site.pages, s.page["value_pos"], p.value_pos)
    site.pages -= 1
    p.place = place
    if site.pages == 0:
        _take_site_out(s, p.site)
    else:
        _first_may_be_another(s, p.site)


@helper(b1(StateType, i8))
def make_block_room(s: RefreshState, x: int) -> bool:
    """Make room for one more page in the block of the site. Return False if the pool must grow first."""
    site = s.site[x]
    if site.log2 >= 0 and site.members < 1 << site.log2:
        return True
    block = _take_block(s, site.log2 + 1)
    if block < 0:
        return False
    for i in range(site.pages):
        s.value[block + i] = s.value[site.block + i]
    if site.log2 >= 0:
        s.value[site.block].id = s.free[site.log2]
        s.free[site.log2] = site.block
    site.block = block
    site.log2 += 1
    return True


@helper(i8(StateType, i8))
def _take_block(s: RefreshState, log2: int) -> int:
    run = s.run[0]
    block = s.free[log2]
    if block >= 0:
        s.free[log2] = s.value[block].id
        return block
    if run.pool + (1 << log2) > len(s.value):
        return -1
    run.pool += 1 << log2
    return run.pool - (1 << log2)


# ---- queue

MOST_HOT = 4 * BEST
LEAST = 1e-300  # lowest floor, so that a page of value 0 is never hot: otherwise all pages could be hot
_STEPS = 20
_FASTER = 4.0  # factor by which the steps of the search for a time grow
FIRST_STEP, CLOSE = 0.125, 0.25


@helper(f8(StateType, i8, f8))
def value_of(s: RefreshState, page: int, now: float) -> float:
    """Return the page's value by the policy; 0 for NaN."""
    value = ask(s, s.run[0].value, page, now)
    return value if value == value else 0.0


@helper(void(StateType, i8, f8))
def settle(s: RefreshState, page: int, now: float) -> None:
    """Put the page where it belongs by its value now."""
    run = s.run[0]
    p = s.page[page]
    if p.place >= CHOSEN:
        return
    value = value_of(s, page, now)
    if run.still:
        revalue(s, page, value)
        return
    site = s.site[p.site]
    fell = value < s.value[site.block + p.value_pos].key
    revalue(s, page, value)
    if value >= run.floor:
        if site.place == OPEN:
            make_hot(s, page)
        else:
            park(s, page)
    # A waiting page whose value fell keeps its time: the true time is later, and it will be evaluated then
    elif not (fell and p.place == WAITS and -s.waiting[p.pos].key > now):
        let_wait(s, page, moment(s, page, now))


@helper(void(StateType, i8, f8))
def heed(s: RefreshState, page: int, now: float) -> None:
    """Settle the page after a signal or a point. For a policy that ignores signals nothing happens, not even an evaluation."""
    if s.run[0].uses_signals:
        settle(s, page, now)


@helper(f8(StateType, i8, f8))
def moment(s: RefreshState, page: int, now: float) -> float:
    """Return when the page's value will reach the floor, or a somewhat earlier time. The page is evaluated again then."""
    run = s.run[0]
    p = s.page[page]
    least_s = 0.5 / run.slots_per_s
    # The first step is proportional to the time without an event: what has not happened for long will take about as long again.
    since_s = max(p.crawled_s, p.last_signal_s) if run.uses_signals else p.crawled_s
    sure, step_s = now, max(least_s, FIRST_STEP * (now - since_s))
    for _ in range(_STEPS):
        if value_of(s, page, now + step_s) >= run.floor:
            break
        sure = now + step_s
        if step_s * run.slots_per_s > len(s.page):  # by then it will have been evaluated for another reason
            return sure
        step_s *= _FASTER
    late = now + step_s
    while late - sure > max(least_s, CLOSE * (late - now)):
        middle = 0.5 * (sure + late)
        if value_of(s, page, middle) >= run.floor:
            late = middle
        else:
            sure = middle
    return max(sure, now + least_s)


# ---- the floor


@helper(void(Values, f8))
def _keep_if_best(best: Array, value: float) -> None:
    """Add the value to the BEST largest values. `best` is a heap with its least value first."""
    if value <= best[0]:
        return
    i = 0
    while True:
        child = 2 * i + 1
        if child >= BEST:
            break
        if child + 1 < BEST and best[child + 1] < best[child]:
            child += 1
        if best[child] >= value:
            break
        best[i] = best[child]
        i = child
    best[i] = value


@helper(void(StateType, f8))
def raise_floor(s: RefreshState, now: float) -> None:
    """Raise the floor so that BEST pages, and those of the same value, remain hot."""
    run = s.run[0]
    run.since_raise = 0
    s.best[:] = -math.inf
    for i in range(run.hot):
        _keep_if_best(s.best, value_of(s, s.hot[i], now))
    run.floor = max(s.best[0], run.floor)
    i = 0
    while i < run.hot:
        page = s.hot[i]
        settle(s, page, now)
        if s.page[page].place == HOT:  # otherwise another page has taken its place in the list
            i += 1


@helper(void(StateType, f8))
def rebuild(s: RefreshState, now: float) -> None:
    """Compute the floor from the values of all pages of open sites, and put every page where it belongs."""
    run = s.run[0]
    run.since_rebuild = 0
    run.settled_pages = len(s.page)
    s.best[:] = -math.inf
    if not run.still and len(s.page) > MOST_HOT:
        for page in range(len(s.page)):
            if s.page[page].place < CHOSEN and s.site[s.page[page].site].place == OPEN:
                _keep_if_best(s.best, value_of(s, page, now))
    run.floor = max(s.best[0], LEAST) if len(s.page) > MOST_HOT else -math.inf
    for page in range(len(s.page)):
        settle(s, page, now)


@helper(void(StateType, f8))
def revise(s: RefreshState, now: float) -> None:
    """Make a revision: call the policy's `on_revision`, which may read all pages, and compute all values again."""
    s.run[0].since_revision = 0
    ask(s, s.run[0].on_revision, -1, now)
    rebuild(s, now)
