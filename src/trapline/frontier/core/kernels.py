"""The compiled entry points of the frontier. Python calls them with a handle of the state.

Each entry point can be resumed: after NEED_ROOM, Python makes room and repeats the call, which then continues. A wrong
argument is recorded in `run.fault` before anything changes. Most decisions are in the modules imported here.
"""

from trapline.compiled.jit import b1, f8, helper, i8, kernel, void
from trapline.frontier.core import blocks, queue
from trapline.frontier.core.batch import choose, count_chosen
from trapline.frontier.core.discovery import add_waiting, change_key, discover, process_links
from trapline.frontier.core.learning import check_best, learn_page
from trapline.frontier.core.ready_sites import leave, remove_group, settle_group, wake
from trapline.frontier.core.visits import (
    close,
    conclude,
    expire,
    give_back,
    is_held,
    lease,
    set_delay,
    settle_site,
    slot_of,
)
from trapline.frontier.layout import (
    BY_DELAY,
    DELAYED_GROUPS,
    DELAYED_SITES,
    DRAINED,
    DYNAMIC,
    ELSEWHERE,
    ENDED,
    EXPIRING,
    FETCHED,
    FIFO,
    FRONT,
    GONE,
    LEASED,
    NEED_ROOM,
    NEXT_VISIT,
    PAGE_FAULT,
    READY,
    RESCORE,
    WAIT,
    WAITING,
    Array,
    FrontierState,
    Numbers,
    Pages,
    StateType,
    Times,
    recall,
)
from trapline.frontier.ranking import measure_connection, measure_response, rank_page, rank_site
from trapline.frontier.rules import site_delay_s

has_room, free_blocks = blocks.has_room, queue.free_blocks
INFINITY = float("inf")


@helper(void(StateType, f8))
def advance(s: FrontierState, now: float) -> None:
    """Advance the frontier's clock to `now`. An earlier `now` leaves the clock as it is."""
    s.run[0].now = max(s.run[0].now, now)


@helper(f8(StateType))
def next_moment(s: FrontierState) -> float:
    """Return the earliest time at which time alone could change the answer of `next`."""
    run = s.run[0]
    moment = INFINITY
    if run.active > 0:
        moment = min(moment, -s.heap[EXPIRING, 0].key)
    if run.delayed_sites > 0:
        moment = min(moment, -s.heap[DELAYED_SITES, 0].key)
    if run.delayed_groups > 0:
        moment = min(moment, -s.heap[DELAYED_GROUPS, 0].key)
    return moment


@helper(b1(StateType))
def batch_is_over(s: FrontierState) -> bool:
    """Return whether the next batch must be chosen (law B2)."""
    run = s.run[0]
    active = run.active - run.revisits  # without revisits, which may follow one another for ever
    if run.chosen == 0 and (active == 0 or run.batch_ahead):
        return True
    return active < run.batch_least_active and run.ready == 0


@helper(b1(StateType, b1))
def scores_due(s: FrontierState, choosing: bool) -> bool:
    """Return whether the page rank needs new scores before the crawl continues, and whether the crawl has something to continue with."""
    run = s.run[0]
    if not run.scores or run.ready_sites + run.delayed_sites + run.open_backlogs == 0:
        return False
    if run.rescore > 0 and run.fetched >= run.rescore_at:
        return True
    return run.batched and choosing and 2 * (run.fetched + run.gone - run.scored) >= run.batch


@helper(i8(StateType, f8))
def begin_visit(s: FrontierState, now: float) -> int:
    """Begin the next visit. Return its slot, or DRAINED, WAIT, RESCORE or NEED_ROOM."""
    run = s.run[0]
    advance(s, now)
    if not expire(s) or not wake(s):
        return NEED_ROOM
    choosing = run.batch > 0 and (run.resume > 0 or batch_is_over(s))
    if scores_due(s, choosing):
        return RESCORE
    if choosing and not choose(s):
        return NEED_ROOM
    if run.ready == 0:
        idle = run.active + run.ready_sites + run.delayed_sites + run.unresolved + run.open_backlogs == 0
        return DRAINED if idle else WAIT
    if run.free_visit < 0 or not has_room(s):
        return NEED_ROOM
    if run.learns:
        check_best(s)
    group = s.group[s.heap[READY, 0].id]
    return lease(s, s.pool[group.block].id)


@helper(f8(StateType, f8))
def first_opening(s: FrontierState, now: float) -> float:
    """Return when `next` could answer with a visit or a request for scores: `now`, a later time, or infinity. Change nothing."""
    run = s.run[0]
    choosing = run.batch > 0 and (run.resume > 0 or batch_is_over(s))
    if run.ready > 0 or (choosing and run.open_backlogs > 0) or scores_due(s, choosing):
        return now
    moment = INFINITY
    if run.delayed_sites > 0:
        moment = min(moment, -s.heap[DELAYED_SITES, 0].key)
    if run.delayed_groups > 0:
        moment = min(moment, -s.heap[DELAYED_GROUPS, 0].key)
    return max(moment, now)


@kernel(f8(i8, f8))
def opening(handle: int, now: float) -> float:
    return first_opening(recall(handle), now)


@helper(b1(StateType, i8, i8, i8, f8, Pages, i8))
def take_report(s: FrontierState, slot: int, page: int, result: int, response_s: float, links: Array, n: int) -> bool:
    """Record the result of one page and process its links. Return False if the pool must grow first; the next call then continues."""
    if s.run[0].resume == 0 and is_held(s, page):
        if not has_room(s):
            return False
        if response_s == response_s:
            measure_response(s, s.visit[slot].site, response_s)
        conclude(s, slot, page, result)
        if s.run[0].learns and result == FETCHED and not s.visit[slot].revisit:
            learn_page(s, page)
    return result != FETCHED or process_links(s, page, links, n, s.visit[slot].revisit != 0)


@helper(i8(StateType, f8, Numbers, Times))
def answer_next(s: FrontierState, now: float, out: Array, moment: Array) -> int:
    """Answer `Frontier.next`: return the number of leased pages, or a code less than 0.

    For a visit, `out` receives the visit id, the site and the pages, and moment[0] the end of the lease. Otherwise out[0]
    receives the number of fetched pages, and moment[0] the time at which to call again.
    """
    slot = begin_visit(s, now)
    if slot < 0:
        moment[0] = next_moment(s)
        out[0] = s.run[0].fetched
        return slot
    visit = s.visit[slot]
    moment[0] = visit.expires_at
    out[0] = visit.id
    out[1] = visit.site
    for i in range(visit.pages):
        out[2 + i] = s.pool[visit.block + i].id
    return visit.pages


@kernel(i8(i8, f8, Numbers, Times))
def next_visit(handle: int, now: float, out: Array, moment: Array) -> int:
    return answer_next(recall(handle), now, out, moment)


@helper(b1(StateType, Pages, i8, i8))
def are_registered(s: FrontierState, pages: Array, n: int, least: int) -> bool:
    """Return whether pages[:n] are registered pages (or ELSEWHERE, if `least` allows it). If not, record the fault."""
    run = s.run[0]
    for i in range(n):
        if pages[i] < least or pages[i] >= run.pages:
            run.fault = PAGE_FAULT
            run.fault_item = pages[i]
            return False
    return True


@helper(b1(StateType, i8, i8))
def is_of_visit(s: FrontierState, slot: int, page: int) -> bool:
    """Return whether the visit holds the page. If not, record the fault."""
    run = s.run[0]
    # A site has one visit at a time, so a held page of the site belongs to this visit.
    if 0 <= page < run.pages and is_held(s, page) and s.page[page].site == s.visit[slot].site:
        return True
    run.fault = PAGE_FAULT
    run.fault_item = page
    return False


@helper(i8(StateType, i8, i8, i8, f8, f8, Pages, i8))
def answer_report(
    s: FrontierState, visit_id: int, page: int, result: int, now: float, response_s: float, links: Array, n: int
) -> int:
    """Answer `Frontier.report`: return 0, ENDED or NEED_ROOM.

    A page that is not in the visit, or a link to an unregistered page, is a fault and changes nothing.
    """
    slot = slot_of(s, visit_id)
    if slot < 0:
        advance(s, now)
        return ENDED
    if s.run[0].resume == 0 and not (is_of_visit(s, slot, page) and are_registered(s, links, n, ELSEWHERE)):
        return 0
    advance(s, now)
    return 0 if take_report(s, slot, page, result, response_s, links, n) else NEED_ROOM


@kernel(i8(i8, i8, i8, i8, f8, f8, Pages, i8))
def report_page(
    handle: int, visit_id: int, page: int, result: int, now: float, response_s: float, links: Array, n: int
) -> int:
    return answer_report(recall(handle), visit_id, page, result, now, response_s, links, n)


@helper(b1(StateType, i8, f8, i8, f8, i8))
def end_visit(s: FrontierState, slot: int, connection_s: float, requests: int, not_before: float, failed: int) -> bool:
    """End a visit: give unreported pages back, update the site's estimates, and begin its delay.

    `failed` != 0: the site itself failed, apart from its pages. Return False if the pool must grow before the call is repeated.
    """
    if not has_room(s) or not give_back(s, slot):
        return False
    x = s.visit[slot].site
    if connection_s == connection_s:
        measure_connection(s, x, connection_s)
    if requests > 0:
        s.site[x].requests = requests
    s.visit[slot].failed += failed
    close(s, slot, not_before)
    return True


@helper(i8(StateType, i8, i8, i8, f8, f8, f8))
def answer_finish(
    s: FrontierState, visit_id: int, requests: int, failed: int, now: float, connection_s: float, not_before: float
) -> int:
    """Answer `Frontier.finish`: return 0, ENDED or NEED_ROOM. `requests` > 0: the requests that the server allows per connection."""
    advance(s, now)
    slot = slot_of(s, visit_id)
    if slot < 0:
        return ENDED
    return 0 if end_visit(s, slot, connection_s, requests, not_before, failed) else NEED_ROOM


@kernel(i8(i8, i8, i8, i8, f8, f8, f8))
def finish_visit(
    handle: int, visit_id: int, requests: int, failed: int, now: float, connection_s: float, not_before: float
) -> int:
    return answer_finish(recall(handle), visit_id, requests, failed, now, connection_s, not_before)


@helper(i8(StateType, Pages, i8, f8))
def answer_discover(s: FrontierState, pages: Array, n: int, now: float) -> int:
    """Answer `Frontier.discover`: return 0 or NEED_ROOM. An id that is not a registered page is a fault and changes nothing."""
    if s.run[0].resume == 0 and not are_registered(s, pages, n, 0):
        return 0
    advance(s, now)
    return 0 if discover(s, -1, pages, n) else NEED_ROOM


@kernel(i8(i8, Pages, i8, f8))
def discover_pages(handle: int, pages: Array, n: int, now: float) -> int:
    return answer_discover(recall(handle), pages, n, now)


@helper(void(StateType, Pages, i8, i8))
def register(s: FrontierState, owners: Array, count: int, marked: int) -> None:
    """Register `count` pages. `owners` holds their sites, then `marked` marks (0 or `count`): not 0 for a dynamic page. The caller has made
    room for the pages."""
    run = s.run[0]
    for i in range(count):
        p = s.page[run.pages + i]
        p.site = owners[i]
        p.marks = DYNAMIC if i < marked and owners[count + i] != 0 else 0
    run.pages += count


@kernel(i8(i8, Pages, i8, i8))
def register_pages(handle: int, owners: Array, count: int, marked: int) -> int:
    """Register pages and return 1. If a site is not registered, change nothing and return 0."""
    s: FrontierState = recall(handle)
    for i in range(count):
        if owners[i] < 0 or owners[i] >= s.run[0].sites:
            return 0
    register(s, owners, count, marked)
    return 1


@kernel(i8(i8, f8))
def rescore_pages(handle: int, now: float) -> int:
    """Re-rank every page that waits or is leased, after the column of scores has changed. Return 0 or NEED_ROOM."""
    s: FrontierState = recall(handle)
    run = s.run[0]
    advance(s, now)
    if run.resume == 0:
        run.rescored += 1
    for page in range(max(run.resume - 1, 0), run.pages):
        if s.state[page] == WAITING or s.state[page] == LEASED:
            if not has_room(s):
                run.resume = page + 1
                return NEED_ROOM
            change_key(s, page, rank_page(s, page, -1, 0, False))
    run.resume = 0
    run.scored = run.fetched + run.gone
    if run.rescore > 0:
        run.rescore_at = (run.fetched // run.rescore + 1) * run.rescore
    return 0


@kernel(i8(i8, i8, i8, f8))
def change_site(handle: int, x: int, group: int, now: float) -> int:
    """Place the site again after a change of its record (rules, times), and set its group. Return 0 or NEED_ROOM."""
    s: FrontierState = recall(handle)
    advance(s, now)
    if not has_room(s):
        return NEED_ROOM
    leave(s, x)
    s.site[x].group = group
    settle_site(s, x)
    return 0


@kernel(i8(i8, f8))
def hold_sites(handle: int, now: float) -> int:
    """Delay every address that has a site, then every site, by its full delay from `now`; keep longer delays. Return 0 or NEED_ROOM."""
    s: FrontierState = recall(handle)
    run = s.run[0]
    advance(s, now)
    for x in range(run.sites if run.resume == 0 else 0):
        g = s.site[x].group
        if g >= 0:
            remove_group(s, g)
            s.group[g].ready_at = max(s.group[g].ready_at, run.now + run.ip_delay_s)
            settle_group(s, g)
    for x in range(max(run.resume - 1, 0), run.sites):
        if not has_room(s):
            run.resume = x + 1
            return NEED_ROOM
        set_delay(s, x, run.now + site_delay_s(run, s.site[x]), BY_DELAY)
        leave(s, x)
        settle_site(s, x)
    run.resume = 0
    return 0


@kernel(f8(i8, i8, i8))
def evaluate_site(handle: int, x: int, level: int) -> float:
    """Return the site rank as it would be now. The state stays as it is: what `rank_site` writes is restored."""
    s: FrontierState = recall(handle)
    site, q = s.site[x], s.queue[x, level]
    connection_s, response_s, oldest_serial = site.connection_s, site.response_s, q.oldest_serial
    fault = s.run[0].fault
    rank = rank_site(s, x, level)
    s.run[0].fault = fault
    site.connection_s, site.response_s, q.oldest_serial = connection_s, response_s, oldest_serial
    return rank


@kernel(i8(i8, i8, i8, Pages, Times))
def list_waiting(handle: int, x: int, level: int, pages: Array, keys: Array) -> int:
    """Write the waiting pages of one queue, in no particular order, and their keys. Return their number."""
    s: FrontierState = recall(handle)
    q = s.queue[x, level]
    kind = s.run[0].queue
    page = q.head
    for i in range(q.waiting):
        if kind == FIFO:
            pages[i] = page
            keys[i] = 0.0
            page = s.page[page].pos
        elif kind == NEXT_VISIT and i < q.planned:
            pages[i] = s.pool[q.next_block + i].id
            keys[i] = -s.pool[q.next_block + i].key
        else:
            e = s.pool[q.block + i - (q.planned if kind == NEXT_VISIT else 0)]
            pages[i] = e.id
            keys[i] = e.key
    return q.waiting


@kernel(i8(i8, i8, Pages, i8, f8))
def empty_site(handle: int, x: int, pages: Array, n: int, now: float) -> int:
    """Empty a site that moves to another partition: pages[:n], all its waiting pages, become GONE, and its budget becomes 0."""
    s: FrontierState = recall(handle)
    advance(s, now)
    s.site[x].budget = 0
    for level in range(s.queue.shape[1]):
        q = s.queue[x, level]
        if level == FRONT:
            count_chosen(s, x, -q.waiting)
        q.waiting = 0
        q.planned = 0
        q.whole = 0
        q.fraction = 0
        q.quality_sum = 0.0
        free_blocks(s, q)
    for i in range(n):
        s.state[pages[i]] = GONE
    s.run[0].gone += n
    settle_site(s, x)
    return 0


@kernel(i8(i8, Pages, Times, i8, f8))
def admit_pages(handle: int, pages: Array, keys: Array, n: int, now: float) -> int:
    """Queue pages[:n], imported from another partition, with the keys that they had there. Return 0 or NEED_ROOM."""
    s: FrontierState = recall(handle)
    advance(s, now)
    run = s.run[0]
    for i in range(max(run.resume - 1, 0), n):
        if not has_room(s):
            run.resume = i + 1
            return NEED_ROOM
        p = s.page[pages[i]]
        p.serial = run.serial
        run.serial += 1
        s.site[p.site].known += 1
        add_waiting(s, pages[i], keys[i], p.serial)
    run.resume = 0
    return 0
