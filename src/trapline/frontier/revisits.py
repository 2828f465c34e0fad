"""Revisits: pages that were fetched are fetched again. Step 9 of the way of a URL.

Who chooses the pages is outside (refresh/); here they meet the politeness of every visit: the site and its address have rested, and
neither is under visit. What comes of a revisit is in visits.py, with all other visits. Laws: docs/frontier.md, A1 to A8.
"""

from trapline.frontier import blocks
from trapline.frontier.contest import settle_group
from trapline.frontier.kernels import advance
from trapline.frontier.layout import (
    FETCHED,
    FRONT,
    NEED_ROOM,
    REVISIT_FAULT,
    REVISITED,
    WAIT,
    Array,
    Numbers,
    Pages,
    State,
    StateType,
    Times,
    recall,
)
from trapline.frontier.limits import budget_left, connection_limit
from trapline.frontier.visits import open_visit
from trapline.jit import b1, f8, helper, i8, kernel

has_room = blocks.has_room
INFINITY = float("inf")


@helper(f8(StateType, i8))
def open_at(s: State, x: int) -> float:
    """The moment from which the site may be visited; infinity: it has no address or nothing left to give, or a visit is under way."""
    site = s.site[x]
    if site.group < 0 or site.budget == 0:
        return INFINITY
    group = s.group[site.group]
    if site.visit >= 0 or group.visit >= 0:
        return INFINITY
    return max(site.ready_at, group.ready_at)


@helper(i8(StateType, i8, Pages, i8, f8))
def begin_revisit(s: State, x: int, pages: Array, n: int, now: float) -> int:
    """The slot of a new visit, WAIT or NEED_ROOM. pages[:n] are fetched pages of the site, each of them once."""
    run = s.run[0]
    advance(s, now)
    if open_at(s, x) > run.now:
        return WAIT
    if run.free_visit < 0 or not has_room(s):
        return NEED_ROOM
    slot = open_visit(s, x, min(n, connection_limit(s, x)))
    settle_group(s, s.site[x].group)  # it may have been in the contest by another of its sites
    visit = s.visit[slot]
    visit.revisit = 1
    run.revisits += 1
    for i in range(visit.pages):
        s.state[pages[i]] = REVISITED
        e = s.pool[visit.block + i]
        e.key = 0.0
        e.serial = s.page[pages[i]].serial
        e.id = pages[i]
    return slot


@helper(b1(StateType, i8, Pages, i8))
def may_be_revisited(s: State, x: int, pages: Array, n: int) -> bool:
    """Whether pages[:n] are fetched pages of the site, each of them once; if not, the fault is noted."""
    run = s.run[0]
    checked = 0
    while checked < n:
        page = pages[checked]
        if not 0 <= page < run.pages or s.state[page] != FETCHED or s.page[page].site != x:
            run.fault = REVISIT_FAULT
            run.fault_item = page
            break
        s.state[page] = REVISITED  # so that it is not found a second time
        checked += 1
    for i in range(checked):
        s.state[pages[i]] = FETCHED
    return checked == n


@helper(i8(StateType, i8, Pages, i8, f8, Numbers, Times))
def answer_revisit(s: State, x: int, pages: Array, n: int, now: float, out: Array, moment: Array) -> int:
    """The number of pages leased, WAIT or NEED_ROOM; out[0] = visit id, or -1; moment[0] = the end of the lease, or `open_at`.
    Pages that are not for this call are a fault and change nothing."""
    out[0] = -1
    if not may_be_revisited(s, x, pages, n):
        return 0
    slot = begin_revisit(s, x, pages, n, now)
    if slot < 0:
        moment[0] = open_at(s, x)
        return slot
    visit = s.visit[slot]
    moment[0] = visit.expires_at
    out[0] = visit.id
    return visit.pages


@kernel(i8(i8, i8, Pages, i8, f8, Numbers, Times))
def revisit_pages(handle: int, x: int, pages: Array, n: int, now: float, out: Array, moment: Array) -> int:
    return answer_revisit(recall(handle), x, pages, n, now, out, moment)


@kernel(f8(i8, i8))
def site_open_at(handle: int, x: int) -> float:
    return open_at(recall(handle), x)


@kernel(i8(i8, i8))
def site_connection_limit(handle: int, x: int) -> int:
    return connection_limit(recall(handle), x)


@kernel(i8(i8, i8))
def site_budget_left(handle: int, x: int) -> int:
    return budget_left(recall(handle), x, FRONT)
