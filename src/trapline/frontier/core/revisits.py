"""Visits to a site that the caller chooses: revisits, which fetch fetched pages again (step 9 of "The way of a URL",
docs/architecture.md), and visits to the waiting pages of one site.

The module does not choose the pages of a revisit; refresh/ does. It applies the politeness rules of every visit: the delays of the site
and of its address are over, and neither is under visit. visits.py handles the results, as of all visits. Laws:
docs/frontier.md, V6 and A1 to A8.
"""

from trapline.compiled.jit import b1, f8, helper, i8, kernel
from trapline.frontier.core import blocks
from trapline.frontier.core.kernels import advance
from trapline.frontier.core.ready_sites import settle_group
from trapline.frontier.core.visits import lease, open_visit
from trapline.frontier.layout import (
    FETCHED,
    FRONT,
    NEED_ROOM,
    REVISIT_FAULT,
    REVISITED,
    WAIT,
    Array,
    FrontierState,
    Numbers,
    Pages,
    StateType,
    Times,
    recall,
)
from trapline.frontier.rules import budget_left, connection_limit

has_room = blocks.has_room
INFINITY = float("inf")


@helper(f8(StateType, i8))
def open_at(s: FrontierState, x: int) -> float:
    """Return the time from which the site may be visited. Infinity: it has no address, its own budget is 0, or it or its address is under
    visit."""
    site = s.site[x]
    if site.group < 0 or site.budget == 0:
        return INFINITY
    group = s.group[site.group]
    if site.visit >= 0 or group.visit >= 0:
        return INFINITY
    return max(site.ready_at, group.ready_at)


@helper(i8(StateType, i8, Pages, i8, f8))
def begin_revisit(s: FrontierState, x: int, pages: Array, n: int, now: float) -> int:
    """Begin a revisit. Return its slot, WAIT or NEED_ROOM. pages[:n] must be different fetched pages of the site."""
    run = s.run[0]
    advance(s, now)
    if open_at(s, x) > run.now:
        return WAIT
    if run.free_visit < 0 or not has_room(s):
        return NEED_ROOM
    slot = open_visit(s, x, min(n, connection_limit(s, x)))
    settle_group(s, s.site[x].group)  # the group may be in READY because of another of its sites
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
def may_be_revisited(s: FrontierState, x: int, pages: Array, n: int) -> bool:
    """Return whether pages[:n] are different fetched pages of the site. If not, record the fault."""
    run = s.run[0]
    checked = 0
    while checked < n:
        page = pages[checked]
        if not 0 <= page < run.pages or s.state[page] != FETCHED or s.page[page].site != x:
            run.fault = REVISIT_FAULT
            run.fault_item = page
            break
        s.state[page] = REVISITED  # so that a second occurrence fails the check
        checked += 1
    for i in range(checked):
        s.state[pages[i]] = FETCHED
    return checked == n


@helper(i8(StateType, i8, Pages, i8, f8, Numbers, Times))
def answer_revisit(s: FrontierState, x: int, pages: Array, n: int, now: float, out: Array, moment: Array) -> int:
    """Answer `Frontier.revisit`: return the number of leased pages, WAIT or NEED_ROOM.

    out[0] receives the visit id, or -1. moment[0] receives the end of the lease, or `open_at`. Pages that are not
    different fetched pages of the site are a fault and change nothing.
    """
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


@helper(i8(StateType, i8, f8, Numbers, Times))
def answer_visit(s: FrontierState, x: int, now: float, out: Array, moment: Array) -> int:
    """Answer `Frontier.visit`: return the number of leased pages, WAIT or NEED_ROOM.

    For a visit, `out` receives the visit id, the site and the pages, and moment[0] the end of the lease. Otherwise moment[0] is `open_at`.
    """
    run = s.run[0]
    advance(s, now)
    moment[0] = open_at(s, x)
    if moment[0] > run.now:
        return WAIT
    if run.free_visit < 0 or not has_room(s):
        return NEED_ROOM
    visit = s.visit[lease(s, x)]
    settle_group(s, s.site[x].group)  # the group may be in READY because of another of its sites
    moment[0] = visit.expires_at
    out[0] = visit.id
    out[1] = x
    for i in range(visit.pages):
        out[2 + i] = s.pool[visit.block + i].id
    return visit.pages


@kernel(i8(i8, i8, f8, Numbers, Times))
def visit_site(handle: int, x: int, now: float, out: Array, moment: Array) -> int:
    return answer_visit(recall(handle), x, now, out, moment)


@kernel(f8(i8, i8))
def site_open_at(handle: int, x: int) -> float:
    return open_at(recall(handle), x)


@kernel(i8(i8, i8))
def site_connection_limit(handle: int, x: int) -> int:
    return connection_limit(recall(handle), x)


@kernel(i8(i8, i8))
def site_budget_left(handle: int, x: int) -> int:
    return budget_left(recall(handle), x, FRONT)
