"""Simulated connections during their visits: what each one waits for, and what follows from a page. docs/simulator.md
defines the costs.

A connection is identified by the slot of its visit. It waits in `events` for the first byte of a page (or, if the link
is not shared, for the end of the page), or in the shared link (link.py) for the end of a transfer. The driver decides
what happens first.
"""

from typing import NamedTuple

import numpy as np

from trapline.compiled.jit import b1, f8, helper, i8, prefetch, type_of, void
from trapline.frontier.core import heap
from trapline.frontier.core.kernels import advance, end_visit, take_report
from trapline.frontier.core.visits import SLOT_BITS
from trapline.frontier.layout import (
    ELSEWHERE,
    ENTRY,
    FAILED,
    FETCHED,
    REFUSED,
    Array,
    FrontierState,
    StateType,
    record,
)
from trapline.rng import uniform
from trapline.servers.slow_start import stall_s
from trapline.simulator.link import SharedLink, new_link
from trapline.simulator.link import start as start_transfer
from trapline.simulator.log import FetchLog, new_log
from trapline.simulator.network import PROTOCOLS

sift_up = heap.sift_up
KEEP_ALIVE, HTTP_1_0, PIPELINING = range(len(PROTOCOLS))
FATE = 1_000_003  # a random stream of its own: ranks draw from the stream of the seed
# Values of `connection.phase`: what a connection waits for or must do.
ASK, FIRST_BYTE, TRANSFER, PAGE_IN, VISIT_OVER, ROBOTS_IN = range(6)

CONNECTION = record(
    [
        ("start", "f8"),
        ("requested", "f8"),  # when the request was sent
        ("first_byte", "f8"),
        ("sent", "f8"),  # bytes that the server has sent on this connection, if slow start counts
        ("phase", "i4"),
        ("pos", "i4"),  # in events
        ("at", "i4"),  # number of the page within its visit
        ("serial", "i4"),
        ("result", "i4"),
        ("before", "i4"),  # number of requests on this connection before the visit's pages: 1 if it fetched robots.txt
        ("closed", "i4"),  # number of requests after which the server closed the connection; 0: it did not
    ]
)

CLOCK = record(
    [
        ("now", "f8"),
        ("until", "f8"),  # the loop pauses before any later event
        ("next", "f8"),  # when paused: the time of the next event
        # network
        ("shared", "i8"),  # 1: connections share the link; 0: each has bandwidth `cap`
        ("cap", "f8"),
        ("protocol", "i8"),
        ("pause_s", "f8"),
        ("failed", "f8"),
        ("refused", "f8"),
        ("timeout_s", "f8"),
        ("robots", "i8"),  # 1: the first visit to a site fetches robots.txt
        ("tcp", "i8"),  # 1: slow start or closing take time
        ("seed", "i8"),
        # the crawl
        ("connections", "i8"),
        ("partition", "i8"),  # its number, if pages have owners
        ("most", "i8"),  # number of pages to fetch
        ("fetched", "i8"),
        ("rows", "i8"),  # number of rows of the log
        ("stop", "i8"),  # number of rows after which the loop returns to Python
        ("events", "i8"),
        ("serial", "i8"),
        ("pending", "i8"),  # 1 + slot of the connection that must act now; 0: none
        ("seeded", "i8"),
        ("batches", "i8"),  # number of batches that have begun
    ]
)


class GraphLinks(NamedTuple):
    """The links of the graph, and the seeds of the crawl."""

    offsets: Array
    targets: Array
    seeds: Array
    owner: Array  # int32[pages]: the partition that owns each page; empty: the crawl owns all of them
    own_links: Array  # int32: room for the links of one page, if there are owners


NO_OWNERS = (np.zeros(0, np.int32), np.zeros(0, np.int32))


class Costs(NamedTuple):
    """`Servers` in the form that kernels take: an array of length 1 applies to all."""

    connection_s: Array
    latency_s: Array
    speed: Array
    requests: Array
    keep_alive_s: Array
    size: Array
    closing_s: Array
    initial_window: Array
    robots_s: Array


class SimulatedWorld(NamedTuple):
    """The whole state of a simulated crawl, except the frontier."""

    web: GraphLinks
    costs: Costs
    log: FetchLog
    connection: Array  # CONNECTION[slots]
    events: Array  # ENTRY[slots]
    link: SharedLink
    clock: Array  # CLOCK[1]
    batch_visits: Array  # int32: the first visit of each batch; length 1 if there are no batches


def new_connections(slots: int) -> tuple[Array, Array]:
    return np.zeros(slots, CONNECTION), np.zeros(slots, ENTRY)


def example_world() -> SimulatedWorld:
    one, whole = np.zeros(1), np.zeros(1, np.int32)
    web, costs = (
        GraphLinks(np.zeros(1, np.int64), whole, whole, *NO_OWNERS),
        Costs(one, one, one, whole, *(one,) * 5),
    )
    return SimulatedWorld(web, costs, new_log(1), *new_connections(1), new_link(1.0, 1), np.zeros(1, CLOCK), whole)


WorldType = type_of(example_world())
Floats = type_of(np.zeros(1))


@helper(f8(Floats, i8))
def of(values: Array, item: int) -> float:
    """Return the value of a site or page."""
    return values[item] if values.size > 1 else values[0]


# ---- the beginning of a page


@helper(i8(WorldType, i8, i8))
def fate(w: SimulatedWorld, page: int, tries: int) -> int:
    """Return the result of a fetch. It depends on page and try only, so that the order of events does not change it."""
    c = w.clock[0]
    if c.failed + c.refused == 0.0:
        return FETCHED
    drawn = uniform(int(c.seed) + FATE, 16 * int(page) + int(tries))  # int(): without compilation, ids are 32 bits wide
    if drawn < c.failed:
        return FAILED
    return REFUSED if drawn < c.failed + c.refused else FETCHED


@helper(f8(WorldType, i8, i8, i8))
def wait_s(w: SimulatedWorld, site: int, page: int, at: int) -> float:
    """Return the time from the request to the first byte. Pipelined requests save the round trip."""
    latency_s = of(w.costs.latency_s, page)
    if w.clock[0].protocol == PIPELINING and at > 0:
        return max(0.0, latency_s - of(w.costs.connection_s, site))
    return latency_s


@helper(f8(WorldType, i8, i8, f8))
def tcp_s(w: SimulatedWorld, slot: int, site: int, size: float) -> float:
    """Return the time that slow start and closing add to an answer of `size` bytes, and count the bytes."""
    c = w.clock[0]
    connection = w.connection[slot]
    added = 0.0
    if connection.at == 0 or c.protocol == HTTP_1_0:
        connection.sent = 0.0
    window = of(w.costs.initial_window, site)
    if window > 0.0:
        rate = min(of(w.costs.speed, site), c.cap)
        added = stall_s(size, rate, of(w.costs.connection_s, site), window + connection.sent)
        connection.sent += size
    if closes_after(w, site, connection.before + connection.at + 1):
        added += of(w.costs.closing_s, site)
    return added


@helper(b1(WorldType, i8, i8))
def closes_after(w: SimulatedWorld, site: int, requests: int) -> bool:
    """Return whether the answer to this request of a connection is its last one."""
    return w.clock[0].protocol == HTTP_1_0 or w.costs.requests[site if w.costs.requests.size > 1 else 0] == requests


@helper(b1(StateType, WorldType, i8))
def needs_robots(s: FrontierState, w: SimulatedWorld, slot: int) -> bool:
    """Return whether the visit must fetch robots.txt first: no visit to the site has ended so far."""
    connection = w.connection[slot]
    return connection.at + connection.before == 0 and s.site[s.visit[slot].site].connections == 0


@helper(void(WorldType, i8, i8))
def request_robots(w: SimulatedWorld, slot: int, site: int) -> None:
    c = w.clock[0]
    connection = w.connection[slot]
    moment = connection.start + of(w.costs.connection_s, site) + of(w.costs.robots_s, site)
    if closes_after(w, site, 1):
        moment += of(w.costs.closing_s, site)
    connection.serial = c.serial
    c.serial += 1
    connection.phase = ROBOTS_IN
    sift_up(w.events, 0, w.connection["pos"], c.events, -moment, connection.serial, slot)
    c.events += 1


@helper(void(StateType, WorldType, i8))
def take_robots(s: FrontierState, w: SimulatedWorld, slot: int) -> None:
    """Continue the visit after robots.txt, or end it if the server closes the connection."""
    c = w.clock[0]
    connection = w.connection[slot]
    advance(s, c.now)
    connection.before = 1
    connection.closed = 0
    connection.start = c.now + c.pause_s
    connection.phase = VISIT_OVER if closes_after(w, s.visit[slot].site, 1) else ASK


@helper(void(StateType, WorldType, i8))
def begin_page(s: FrontierState, w: SimulatedWorld, slot: int) -> None:
    """Request the next page of a visit at `connection.start`, after opening a connection if one is needed."""
    c = w.clock[0]
    connection = w.connection[slot]
    visit = s.visit[slot]
    if c.robots and needs_robots(s, w, slot):
        request_robots(w, slot, visit.site)
        return
    page = s.pool[visit.block + connection.at].id
    prefetch(w.web.targets, w.web.offsets[page])
    connection.requested = connection.start
    if connection.at + connection.before == 0 or c.protocol == HTTP_1_0:
        connection.requested += of(w.costs.connection_s, visit.site)
    connection.result = fate(w, page, s.page[page].tries)
    connection.serial = c.serial
    c.serial += 1
    connection.phase = PAGE_IN
    if connection.result == FAILED:
        connection.first_byte = moment = connection.requested + c.timeout_s
    else:
        connection.first_byte = moment = connection.requested + wait_s(w, visit.site, page, connection.at)
        size = of(w.costs.size, page) if connection.result == FETCHED else 0.0
        if c.tcp:
            moment += tcp_s(w, slot, visit.site, size)
        if size > 0.0:
            if c.shared:
                connection.phase = FIRST_BYTE
            else:
                moment += size / min(of(w.costs.speed, visit.site), c.cap)
    sift_up(w.events, 0, w.connection["pos"], c.events, -moment, connection.serial, slot)
    c.events += 1


@helper(void(StateType, WorldType, i8))
def begin_transfer(s: FrontierState, w: SimulatedWorld, slot: int) -> None:
    """Begin the transfer of a page over the shared link: its first byte has arrived."""
    connection = w.connection[slot]
    visit = s.visit[slot]
    page = s.pool[visit.block + connection.at].id
    connection.phase = TRANSFER
    start_transfer(
        w.link, w.clock[0].now, slot, of(w.costs.size, page), of(w.costs.speed, visit.site), connection.serial
    )


# ---- the end of a page or a visit


@helper(void(WorldType, i8, i8, i8))
def write_row(w: SimulatedWorld, slot: int, page: int, visit_id: int) -> None:
    c = w.clock[0]
    connection = w.connection[slot]
    row = c.rows
    w.log.page[row] = page
    w.log.visit[row] = visit_id >> SLOT_BITS
    w.log.start[row] = connection.start
    w.log.first_byte[row] = connection.first_byte
    w.log.end[row] = c.now
    w.log.result[row] = connection.result
    c.rows += 1


@helper(b1(WorldType, i8, i8, b1))
def has_closed(w: SimulatedWorld, slot: int, site: int, over: bool) -> bool:
    """Return whether the server closes the connection after the last page: because its limit of requests is reached, or
    because the pause that follows is longer than its keep-alive time. `over`: no pause follows, the visit is over."""
    c = w.clock[0]
    if c.protocol == HTTP_1_0:
        return False
    requests = w.costs.requests[site if w.costs.requests.size > 1 else 0]
    if requests > 0 and w.connection[slot].before + w.connection[slot].at >= requests:
        return True
    return c.protocol == KEEP_ALIVE and not over and c.pause_s > of(w.costs.keep_alive_s, site)


@helper(void(WorldType, i8, i8))
def find_own_links(w: SimulatedWorld, first: int, last: int) -> None:
    """Copy links `first` to `last` to `own_links`; a page that another partition owns becomes ELSEWHERE."""
    for at in range(first, last):
        target = w.web.targets[at]
        w.web.own_links[at - first] = target if w.web.owner[target] == w.clock[0].partition else ELSEWHERE


@helper(b1(StateType, WorldType, i8))
def complete_page(s: FrontierState, w: SimulatedWorld, slot: int) -> bool:
    """Report a complete page, and continue the visit. False: the pool must grow before another call."""
    c = w.clock[0]
    connection = w.connection[slot]
    visit = s.visit[slot]
    page = s.pool[visit.block + connection.at].id
    advance(s, c.now)
    response_s = np.nan
    if connection.result != FAILED:  # the exact wait, not the difference of two times, which is rounded
        response_s = wait_s(w, visit.site, page, connection.at) + (c.now - connection.first_byte)
    first, last = w.web.offsets[page], w.web.offsets[page + 1]
    links = w.web.targets[first:last]
    if w.web.owner.size > 0:
        find_own_links(w, first, last)
        links = w.web.own_links[: last - first]
    if not take_report(s, slot, page, connection.result, response_s, links, last - first):
        return False
    write_row(w, slot, page, visit.id)
    c.fetched += connection.result == FETCHED
    connection.at += 1
    over = connection.result == FAILED or connection.at == visit.pages
    connection.closed = connection.before + connection.at if has_closed(w, slot, visit.site, over) else 0
    if over or connection.closed > 0:
        connection.phase = VISIT_OVER
    else:
        connection.phase = ASK
        connection.start = c.now + c.pause_s
    return True


@helper(b1(StateType, WorldType, i8))
def complete_visit(s: FrontierState, w: SimulatedWorld, slot: int) -> bool:
    """End a visit. False: the pool must grow before another call."""
    return end_visit(s, slot, of(w.costs.connection_s, s.visit[slot].site), w.connection[slot].closed, -np.inf, 0)


@helper(b1(StateType, WorldType))
def go_on(s: FrontierState, w: SimulatedWorld) -> bool:
    """Let the pending connection act. False: the pool must grow before another call."""
    c = w.clock[0]
    slot = c.pending - 1
    connection = w.connection[slot]
    if connection.phase == PAGE_IN and not complete_page(s, w, slot):
        return False
    if connection.phase == ROBOTS_IN:
        take_robots(s, w, slot)
    if connection.phase == ASK:
        # Called only here, so that it is inlined into the loop: passing its arrays would take time
        begin_page(s, w, slot)
    elif connection.phase == VISIT_OVER and not complete_visit(s, w, slot):
        return False
    c.pending = 0
    return True
