"""Which page to crawl now: of those whose site may be visited, the one of the largest value.

It looks at the frontier, and never changes it: whether a site may be visited is the frontier's to say (`open_at`). A site that is found
shut goes
to the heap of shut sites until the moment it opens; its hot pages leave the list as they are met, and none is looked at until then. When
it opens, its first page competes again. So looks at pages that may not be visited are at most one each time that a page becomes hot, and
looks at sites some few for each of their visits, however many pages a site has.
"""

import math

from trapline.frontier.layout import State as FrontierState
from trapline.frontier.layout import StateType as FrontierType
from trapline.frontier.limits import rest_s
from trapline.frontier.revisits import open_at
from trapline.jit import b1, f8, helper, i8, void
from trapline.refresh.layout import OPEN, PARKED, SHUT, State, StateType
from trapline.refresh.places import make_hot, open_site, park, revalue, shut_site
from trapline.refresh.queue import LEAST, MOST_HOT, raise_floor, rebuild, revise, settle, value_of
from trapline.rng import uniform

REBUILDS, LIVE_REBUILDS = (
    8,
    32,
)  # at most so many in as many decisions as there are pages; sites that open and shut wear the floor out
LOOKS = 4
AROUND = 16  # pages of a site looked at when it opens
LOWERED = 0.9
LEAST_WAIT_S = 1.0  # before a site under visit is asked about again


# ---- sites


@helper(b1(StateType, FrontierType, i8, f8))
def _may_visit(s: State, f: FrontierState, x: int, now: float) -> bool:
    """If not, the site is shut from now on."""
    if s.site[x].place != OPEN:
        return False
    at_s = open_at(f, x) - s.run[0].started
    if at_s <= now:
        return True
    shut_site(s, x, at_s if at_s < math.inf else now + max(LEAST_WAIT_S, rest_s(f.run[0], f.site[x])))
    return False


@helper(void(StateType, FrontierType, f8))
def wake_sites(s: State, f: FrontierState, now: float) -> None:
    """Sites whose moment has come compete again."""
    run = s.run[0]
    while run.shut > 0 and -s.sites[SHUT, 0].key <= now:
        x = s.sites[SHUT, 0].id
        open_site(s, x)
        if _may_visit(s, f, x, now) and not run.still:
            _compete_again(s, x, now)


@helper(void(StateType, i8, f8))
def _compete_again(s: State, x: int, now: float) -> None:
    """With its first page; with all of them while all pages can be hot."""
    site = s.site[x]
    if s.run[0].floor == -math.inf:
        for i in range(site.pages):
            make_hot(s, s.value[site.block + i].id)
        return
    look_around(s, x, now, AROUND)
    _look_at_first(s, x, now)
    settle(s, s.value[site.block].id, now)


@helper(void(StateType, i8, f8, i8))
def look_around(s: State, x: int, now: float, most: int) -> None:
    """At some of the site's pages, by chance, or at all: values in its queue are of different moments, and most rise."""
    site = s.site[x]
    for i in range(min(site.pages, most)):
        site.looks += 1
        place = i if site.pages <= most else int(site.pages * uniform(x, site.looks))
        page = s.value[site.block + place].id
        value = value_of(s, page, now)
        if value < s.run[0].floor and s.page[page].place == PARKED:
            settle(s, page, now)
        else:  # who waits has a moment already
            revalue(s, page, value)


@helper(void(StateType, i8, f8))
def _look_at_first(s: State, x: int, now: float) -> None:
    """Look at the site's first page until its value has not fallen."""
    for _ in range(LOOKS):
        first = s.value[s.site[x].block]
        value = value_of(s, first.id, now)
        if value >= first.key:
            return
        revalue(s, first.id, value)


# ---- pages


@helper(b1(StateType, f8, i8, f8, i8))
def _better(s: State, value: float, page: int, than: float, other: int) -> bool:
    """Pages of equal value take turns."""
    if value != than:
        return value > than
    return (s.page[page].crawled_s, page) < (s.page[other].crawled_s, other)


@helper(i8(StateType, FrontierType, f8, i8))
def _best_looked_at(s: State, f: FrontierState, now: float, most: int) -> int:
    """The best by the values of the last look, looked at again, up to so many: exact where values only fall. -1: all is shut."""
    run = s.run[0]
    while run.open > 0:
        x = s.sites[OPEN, 0].id
        if not _may_visit(s, f, x, now):
            continue
        page = s.value[s.site[x].block].id
        if most == 0:
            return page
        most -= 1
        value = value_of(s, page, now)
        if value >= s.sites[OPEN, 0].key:
            return page
        revalue(s, page, value)
    return -1


@helper(i8(StateType, FrontierType, f8, i8))
def _best_hot(s: State, f: FrontierState, now: float, best: int) -> int:
    """The best of this page and the hot ones. A crowd, which only pages of equal value can be, is not looked through whole."""
    run = s.run[0]
    most = value_of(s, best, now)
    i = 0
    while i < min(run.hot, MOST_HOT):
        page = s.hot[i]
        x = s.page[page].site
        if s.site[x].place != OPEN:
            park(s, page)
            continue
        value = value_of(s, page, now)
        if _better(s, value, page, most, best):
            if not _may_visit(s, f, x, now):
                park(s, page)
                continue
            best, most = page, value
        if value < 0.5 * run.floor:  # values can fall
            settle(s, page, now)
        else:
            i += 1
    return best


@helper(void(StateType, f8))
def count_slot(s: State, now: float) -> None:
    """One more decision; once in a while the policy thinks about all pages before it."""
    run = s.run[0]
    run.slots += 1
    run.since_rebuild += 1
    run.since_raise += 1
    run.since_revision += 1
    heard = run.signals if run.hears else 0
    if run.revision > 0 and run.since_revision >= max(run.revision, run.growth * (run.slots + heard)):
        revise(s, now)


@helper(i8(StateType, FrontierType, f8))
def choose_page(s: State, f: FrontierState, now: float) -> int:
    """The page to crawl; -1: no site may be visited."""
    run = s.run[0]
    if run.still:
        return _best_looked_at(s, f, now, 0)
    while run.waiting > 0 and -s.waiting[0].key <= now:
        settle(s, s.waiting[0].id, now)
    if run.hot == 0 and run.since_rebuild * (LIVE_REBUILDS if run.live else REBUILDS) >= len(s.page):
        rebuild(s, now)
    elif run.hot > MOST_HOT and run.since_raise * REBUILDS >= run.hot and run.floor > -math.inf:
        raise_floor(s, now)
    best = _best_looked_at(s, f, now, LOOKS if run.hot > 0 else MOST_HOT)
    if best < 0:
        return -1
    if run.hot == 0:
        run.floor = min(run.floor, max(LEAST, LOWERED * value_of(s, best, now)))
    return _best_hot(s, f, now, best)
