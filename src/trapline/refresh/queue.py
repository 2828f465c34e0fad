"""What each page is worth, and so where it stands: the largest value is found without looking at every page.

Pages whose value is at least the *floor* are hot: a decision evaluates them all, some dozens, and takes the best. The others wait
in a heap for the moment at which their value will have reached the floor. The queues of sites have all pages by their value when they were
last looked at, which finds the best of those whose values only fall. Where values are still, these queues do. A page of a site that may
not be visited now is neither hot nor waits: its value stands in the queue of its site until that opens (choosing.py).

`settle` puts a page where it belongs, after each event of it and when its moment has come. Invariant: a waiting page is below the floor,
unless its value rose faster than the search for its moment saw.

The floor follows the values. Too many hot pages: it is raised, so that BEST of them remain; timers set for the lower floor then fire too
early, which costs a look. None: it is lowered to what the best is worth, and set anew from the values of all pages if that
has not been done for pages / 8 decisions. So a decision costs O(log pages) on average.
"""

import math

from trapline.jit import f8, helper, i8, void
from trapline.refresh.evidence import ask
from trapline.refresh.layout import BEST, CHOSEN, HOT, OPEN, WAITS, Array, State, StateType, Values
from trapline.refresh.places import let_wait, make_hot, park, revalue

MOST_HOT = 4 * BEST
LEAST = 1e-300  # a page without any value is never hot, or all could be
_STEPS = 20
_FASTER = 4.0  # each step of the search for a moment is so many times as long as the one before
FIRST_STEP, CLOSE = 0.125, 0.25


@helper(f8(StateType, i8, f8))
def value_of(s: State, page: int, now: float) -> float:
    value = ask(s, s.run[0].value, page, now)
    return value if value == value else 0.0


@helper(void(StateType, i8, f8))
def settle(s: State, page: int, now: float) -> None:
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
    elif not (
        fell and p.place == WAITS and -s.waiting[p.pos].key > now
    ):  # else its moment was to come, and now comes later
        let_wait(s, page, moment(s, page, now))


@helper(void(StateType, i8, f8))
def heed(s: State, page: int, now: float) -> None:
    """A provider told something of the page. To a policy that hears nothing nothing happened, not even a look at the page."""
    if s.run[0].hears:
        settle(s, page, now)


@helper(f8(StateType, i8, f8))
def moment(s: State, page: int, now: float) -> float:
    """When the page's value will reach the floor, or somewhat earlier; then it is looked at again."""
    run = s.run[0]
    p = s.page[page]
    least_s = 0.5 / run.slots_per_s
    # What has not happened for long will take as long again, about.
    since_s = max(p.crawled_s, p.last_signal_s) if run.hears else p.crawled_s
    sure, step_s = now, max(least_s, FIRST_STEP * (now - since_s))
    for _ in range(_STEPS):
        if value_of(s, page, now + step_s) >= run.floor:
            break
        sure = now + step_s
        if step_s * run.slots_per_s > len(s.page):  # by then it will have been looked at for another reason
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
    """`best` is a heap with its least value first."""
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
def raise_floor(s: State, now: float) -> None:
    """So that BEST pages remain hot, and those of equal value."""
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
        if s.page[page].place == HOT:  # else another one has taken its place in the list
            i += 1


@helper(void(StateType, f8))
def rebuild(s: State, now: float) -> None:
    """The floor from the values of all pages that may be visited, and every page where it belongs."""
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
def revise(s: State, now: float) -> None:
    """Let the policy think about all pages at once."""
    s.run[0].since_revision = 0
    ask(s, s.run[0].on_revision, -1, now)
    rebuild(s, now)
