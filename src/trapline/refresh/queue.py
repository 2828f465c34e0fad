"""Which page to crawl now: the largest value, without looking at every page.

Pages whose value is at least the *floor* are hot: a decision evaluates them all, some dozens, and takes the best. The others wait
in a heap for the moment at which their value will have reached the floor. A second heap has all pages by their value when they were last
looked at, which finds the best of those whose values only fall. Where values are still, one heap by value does.

Who fills the three: `settle`, after each event of a page and when its moment has come. Who empties them: `settle`; every page is always in
the heap of values, and either hot or waiting. Invariant: a waiting page is below the floor, unless its value rose faster than
the search for its moment saw.

The floor follows the values. Too many hot pages: it is raised, so that BEST of them remain; timers set for the lower floor then fire too
early, which costs a look. None: it is lowered to what the best is worth, and set anew from the values of all pages if that
has not been done for pages / 8 decisions. So a decision costs O(log pages) on average.
"""

import math

from trapline.frontier.heap import remove, replace, sift_up
from trapline.jit import b1, f8, helper, i8, void
from trapline.refresh.evidence import ask
from trapline.refresh.layout import BEST, HOT, WAITS, Array, State, StateType, Values

MOST_HOT = 4 * BEST
REBUILDS = 8  # at most so many in as many decisions as there are pages
_STEPS = 20
_FASTER = 4.0  # each step of the search for a moment is so many times as long as the one before
_LEAST = 1e-300  # a page without any value is never hot, or all could be
LOOKS = 4
FIRST_STEP, CLOSE = 0.125, 0.25
LOWERED = 0.9


@helper(f8(StateType, i8, f8))
def value_of(s: State, page: int, now: float) -> float:
    value = ask(s, s.run[0].value, page, now)
    return value if value == value else 0.0


# ---- the two places


@helper(void(StateType, i8))
def _take_out(s: State, page: int) -> None:
    run = s.run[0]
    p = s.page[page]
    if p.place == HOT:
        run.hot -= 1
        last = s.hot[run.hot]
        s.hot[p.pos] = last
        s.page[last].pos = p.pos
    else:
        remove(s.waiting, 0, run.waiting, s.page["pos"], p.pos)
        run.waiting -= 1


@helper(void(StateType, i8, f8))
def _let_wait(s: State, page: int, key: float) -> None:
    """Put or move the page into the heap."""
    run = s.run[0]
    p = s.page[page]
    if p.place == HOT:
        _take_out(s, page)
        p.place = WAITS
        sift_up(s.waiting, 0, s.page["pos"], run.waiting, key, page, page)
        run.waiting += 1
    else:
        replace(s.waiting, 0, run.waiting, s.page["pos"], p.pos, key, page, page)


@helper(void(StateType, i8))
def _make_hot(s: State, page: int) -> None:
    run = s.run[0]
    p = s.page[page]
    if p.place != HOT:
        _take_out(s, page)
        p.place = HOT
        p.pos = run.hot
        s.hot[run.hot] = page
        run.hot += 1


@helper(void(StateType, i8, f8))
def settle(s: State, page: int, now: float) -> None:
    """Put the page where it belongs by its value now."""
    run = s.run[0]
    value = value_of(s, page, now)
    if run.still:
        _let_wait(s, page, value)
        return
    p = s.page[page]
    fell = value < s.value[p.value_pos].key
    replace(s.value, 0, len(s.page), s.page["value_pos"], p.value_pos, value, page, page)
    if value >= run.floor:
        _make_hot(s, page)
    elif not (
        fell and p.place == WAITS and -s.waiting[p.pos].key > now
    ):  # else its moment was to come, and now comes later
        _let_wait(s, page, -moment(s, page, now))


@helper(f8(StateType, i8, f8))
def moment(s: State, page: int, now: float) -> float:
    """When the page's value will reach the floor, or somewhat earlier; then it is looked at again."""
    run = s.run[0]
    p = s.page[page]
    least_s = 0.5 / run.slots_per_s
    # What has not happened for long will take as long again, about.
    sure, step_s = now, max(least_s, FIRST_STEP * (now - max(p.crawled_s, p.last_signal_s)))
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
def _raise_floor(s: State, now: float) -> None:
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
    """The floor from the values of all pages, and every page where it belongs."""
    run = s.run[0]
    run.since_rebuild = 0
    s.best[:] = -math.inf
    if not run.still and len(s.page) > MOST_HOT:
        for page in range(len(s.page)):
            _keep_if_best(s.best, value_of(s, page, now))
    run.floor = max(s.best[0], _LEAST) if len(s.page) > MOST_HOT else -math.inf
    for page in range(len(s.page)):
        settle(s, page, now)


@helper(void(StateType, f8))
def revise(s: State, now: float) -> None:
    """Let the policy think about all pages at once."""
    s.run[0].since_revision = 0
    ask(s, s.run[0].on_revision, -1, now)
    rebuild(s, now)


# ---- decisions


@helper(b1(StateType, f8, i8, f8, i8))
def _better(s: State, value: float, page: int, than: float, other: int) -> bool:
    """Pages of equal value take turns."""
    if value != than:
        return value > than
    return (s.page[page].crawled_s, page) < (s.page[other].crawled_s, other)


@helper(i8(StateType, f8, i8))
def _best_looked_at(s: State, now: float, most: int) -> int:
    """The best by the values of the last look, looked at again, up to so many: exact where values only fall."""
    page = int(s.value[0].id)
    for _ in range(most):
        value = value_of(s, page, now)
        if value >= s.value[0].key:
            break
        replace(s.value, 0, len(s.page), s.page["value_pos"], 0, value, page, page)
        page = int(s.value[0].id)
    return page


@helper(i8(StateType, f8, i8))
def _best_hot(s: State, now: float, best: int) -> int:
    """The best of this page and the hot ones. A crowd, which only pages of equal value can be, is not looked through whole."""
    run = s.run[0]
    most = value_of(s, best, now)
    i = 0
    while i < min(run.hot, MOST_HOT):
        page = s.hot[i]
        value = value_of(s, page, now)
        if _better(s, value, page, most, best):
            best, most = page, value
        if value < 0.5 * run.floor:  # values can fall
            settle(s, page, now)
        else:
            i += 1
    return best


@helper(i8(StateType, f8))
def choose(s: State, now: float) -> int:
    """The page to crawl."""
    run = s.run[0]
    run.slots += 1
    run.since_rebuild += 1
    run.since_raise += 1
    run.since_revision += 1
    if run.revision > 0 and run.since_revision >= max(run.revision, run.growth * (run.slots + run.signals)):
        revise(s, now)
    if run.still:
        return s.waiting[0].id
    while run.waiting > 0 and -s.waiting[0].key <= now:
        settle(s, s.waiting[0].id, now)
    if run.hot == 0 and run.since_rebuild * REBUILDS >= len(s.page):
        rebuild(s, now)
    elif run.hot > MOST_HOT and run.since_raise * REBUILDS >= run.hot and run.floor > -math.inf:
        _raise_floor(s, now)
    best = _best_looked_at(s, now, LOOKS if run.hot > 0 else MOST_HOT)
    if run.hot == 0:
        run.floor = min(run.floor, max(_LEAST, LOWERED * value_of(s, best, now)))
    return _best_hot(s, now, best)
