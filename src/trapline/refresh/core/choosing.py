"""The choice of the page to crawl now: the page with the largest value among the sites that may be visited.

It reads the frontier, which decides whether a site may be visited (`open_at`), and never changes it. A site that is found shut
goes to the heap of shut sites until it opens. Its hot pages leave the list when they are met, and none of its pages is
evaluated until then. When the site opens, its best page becomes a candidate again. So a page that may not be visited is
evaluated at most once each time that it becomes hot, and a site is checked a few times per visit, however many pages it has.
"""

import math

from trapline.compiled.jit import b1, f8, helper, i8, void
from trapline.frontier.core.revisits import open_at
from trapline.frontier.layout import FrontierState as FrontierState
from trapline.frontier.layout import StateType as FrontierType
from trapline.frontier.rules import site_delay_s
from trapline.refresh.core.layout import OPEN, PARKED, SHUT, RefreshState, StateType
from trapline.refresh.core.queue import (
    LEAST,
    MOST_HOT,
    make_hot,
    open_site,
    park,
    raise_floor,
    rebuild,
    revalue,
    revise,
    settle,
    shut_site,
    value_of,
)
from trapline.rng import uniform

# Most rebuilds in as many decisions as there are pages; more in a live crawl, where sites that open and shut make the
# floor stale
REBUILDS, LIVE_REBUILDS = 8, 32
LOOKS = 4  # most evaluations of pages whose values have fallen, in a search for the best
AROUND = 16  # number of pages of a site that are evaluated when it opens
LOWERED = 0.9  # the floor is lowered to this share of the best value
LEAST_WAIT_S = 1.0  # least time before a site under visit is checked again


# ---- sites


@helper(b1(StateType, FrontierType, i8, f8))
def _may_visit(s: RefreshState, f: FrontierState, x: int, now: float) -> bool:
    """Return whether the site may be visited now. If not, shut it."""
    if s.site[x].place != OPEN:
        return False
    at_s = open_at(f, x) - s.run[0].started
    if at_s <= now:
        return True
    shut_site(s, x, at_s if at_s < math.inf else now + max(LEAST_WAIT_S, site_delay_s(f.run[0], f.site[x])))
    return False


@helper(void(StateType, FrontierType, f8))
def wake_sites(s: RefreshState, f: FrontierState, now: float) -> None:
    """Open the shut sites whose time has come and that may be visited."""
    run = s.run[0]
    while run.shut > 0 and -s.sites[SHUT, 0].key <= now:
        x = s.sites[SHUT, 0].id
        open_site(s, x)
        if _may_visit(s, f, x, now) and not run.still:
            _compete_again(s, x, now)


@helper(void(StateType, i8, f8))
def _compete_again(s: RefreshState, x: int, now: float) -> None:
    """Make the best page of a site that has opened a candidate again; all its pages, while all pages can be hot."""
    site = s.site[x]
    if s.run[0].floor == -math.inf:
        for i in range(site.pages):
            make_hot(s, s.value[site.block + i].id)
        return
    look_around(s, x, now, AROUND)
    _look_at_first(s, x, now)
    settle(s, s.value[site.block].id, now)


@helper(void(StateType, i8, f8, i8))
def look_around(s: RefreshState, x: int, now: float, most: int) -> None:
    """Evaluate some pages of the site, chosen at random, or all: the values in its queue are from different times, and most rise."""
    site = s.site[x]
    for i in range(min(site.pages, most)):
        site.looks += 1
        place = i if site.pages <= most else int(site.pages * uniform(x, site.looks))
        page = s.value[site.block + place].id
        value = value_of(s, page, now)
        if value < s.run[0].floor and s.page[page].place == PARKED:
            settle(s, page, now)
        else:  # a waiting page has its time already
            revalue(s, page, value)


@helper(void(StateType, i8, f8))
def _look_at_first(s: RefreshState, x: int, now: float) -> None:
    """Evaluate the first page of the site's queue until its value has not fallen."""
    for _ in range(LOOKS):
        first = s.value[s.site[x].block]
        value = value_of(s, first.id, now)
        if value >= first.key:
            return
        revalue(s, first.id, value)


# ---- pages


@helper(b1(StateType, f8, i8, f8, i8))
def _better(s: RefreshState, value: float, page: int, than: float, other: int) -> bool:
    """Return whether the page comes before the other page. Among pages of equal value, the one crawled longest ago comes first."""
    if value != than:
        return value > than
    return (s.page[page].crawled_s, page) < (s.page[other].crawled_s, other)


@helper(i8(StateType, FrontierType, f8, i8))
def _best_looked_at(s: RefreshState, f: FrontierState, now: float, most: int) -> int:
    """Return the best page by the values of the last evaluations, after at most `most` new ones; -1: all sites are shut.

    The choice is exact where values only fall.
    """
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
def _best_hot(s: RefreshState, f: FrontierState, now: float, best: int) -> int:
    """Return the best of the page `best` and the hot pages. Only MOST_HOT hot pages are evaluated; more can be hot only if they have the
    same value."""
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
def count_slot(s: RefreshState, now: float) -> None:
    """Count a decision, and make a revision before it when one is due."""
    run = s.run[0]
    run.slots += 1
    run.since_rebuild += 1
    run.since_raise += 1
    run.since_revision += 1
    signals = run.signals if run.uses_signals else 0
    if run.revision > 0 and run.since_revision >= max(run.revision, run.growth * (run.slots + signals)):
        revise(s, now)


@helper(i8(StateType, FrontierType, f8))
def choose_page(s: RefreshState, f: FrontierState, now: float) -> int:
    """Return the page to crawl; -1: no site may be visited."""
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
