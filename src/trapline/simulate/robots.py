"""Robots on their visits: what each is waiting for, and what comes of a page. The costs are those of docs/simulator.md.

A robot is the slot of its visit. It waits in `events` for the first byte of a page (or, where the link is not shared, for
its end), or in the link (link.py) for the end of a transfer. The driver decides what happens first.
"""

from typing import NamedTuple

import numpy as np

from trapline.frontier import heap
from trapline.frontier.kernels import advance, end_visit, take_report
from trapline.frontier.layout import ENTRY, FAILED, FETCHED, REFUSED, Array, State, StateType, record
from trapline.frontier.visits import SLOT_BITS
from trapline.jit import b1, f8, helper, i8, prefetch, type_of, void
from trapline.rng import uniform
from trapline.simulate.link import Link, new_link
from trapline.simulate.link import start as start_transfer
from trapline.simulate.log import Log, new_log
from trapline.simulate.servers import PROTOCOLS

sift_up = heap.sift_up
KEEP_ALIVE, HTTP_1_0, PIPELINING = range(len(PROTOCOLS))
FATE = 1_000_003  # a stream of its own: ranks draw from the seed's
# What a robot waits for or must do (`robot.phase`).
ASK, FIRST_BYTE, TRANSFER, PAGE_IN, VISIT_OVER = range(5)

ROBOT = record(
    [
        ("start", "f8"),
        ("asked", "f8"),  # the request was sent
        ("first_byte", "f8"),
        ("phase", "i4"),
        ("pos", "i4"),  # in events
        ("at", "i4"),  # number of the page within its visit
        ("serial", "i4"),
        ("result", "i4"),
        ("closed", "i4"),  # requests after which the server closed; 0: it did not
    ]
)

CLOCK = record(
    [
        ("now", "f8"),
        ("until", "f8"),  # nothing happens beyond it
        ("next", "f8"),  # what would have happened next, when that came
        # network
        ("shared", "i8"),  # robots share the link; else each has `cap`
        ("cap", "f8"),
        ("protocol", "i8"),
        ("pause_s", "f8"),
        ("failed", "f8"),
        ("refused", "f8"),
        ("timeout_s", "f8"),
        ("seed", "i8"),
        # the crawl
        ("robots", "i8"),
        ("most", "i8"),  # pages to fetch
        ("fetched", "i8"),
        ("rows", "i8"),  # of the log
        ("stop", "i8"),  # rows after which the loop comes up for air
        ("events", "i8"),
        ("serial", "i8"),
        ("pending", "i8"),  # 1 + the robot that has something to do now
        ("seeded", "i8"),
    ]
)


class Web(NamedTuple):
    """The links of the graph, and where a crawl begins."""

    offsets: Array
    targets: Array
    seeds: Array


class Costs(NamedTuple):
    """`Servers` as kernels take them: an array of length 1 holds for all."""

    connection_s: Array
    latency_s: Array
    speed: Array
    requests: Array
    keep_alive_s: Array
    size: Array


class World(NamedTuple):
    """All that a simulated crawl is, but the frontier."""

    web: Web
    costs: Costs
    log: Log
    robot: Array  # ROBOT[slots]
    events: Array  # ENTRY[slots]
    link: Link
    clock: Array  # CLOCK[1]


def new_robots(slots: int) -> tuple[Array, Array]:
    return np.zeros(slots, ROBOT), np.zeros(slots, ENTRY)


def _example() -> World:
    one, whole = np.zeros(1), np.zeros(1, np.int32)
    web, costs = Web(np.zeros(1, np.int64), whole, whole), Costs(one, one, one, whole, one, one)
    return World(web, costs, new_log(1), *new_robots(1), new_link(1.0, 1), np.zeros(1, CLOCK))


WorldType = type_of(_example())
Floats = type_of(np.zeros(1))


@helper(f8(Floats, i8))
def of(values: Array, item: int) -> float:
    """The value of a site or page."""
    return values[item] if values.size > 1 else values[0]


# ---- a page begins


@helper(i8(WorldType, i8, i8))
def fate(w: World, page: int, tries: int) -> int:
    """What will come of this fetch: drawn by page and try, so that no order of events changes it."""
    c = w.clock[0]
    if c.failed + c.refused == 0.0:
        return FETCHED
    drawn = uniform(int(c.seed) + FATE, 16 * int(page) + int(tries))  # int: uncompiled, ids are 32 bits wide
    if drawn < c.failed:
        return FAILED
    return REFUSED if drawn < c.failed + c.refused else FETCHED


@helper(f8(WorldType, i8, i8, i8))
def wait_s(w: World, site: int, page: int, at: int) -> float:
    """From the request to the first byte: pipelined requests spare the way there and back."""
    latency_s = of(w.costs.latency_s, page)
    if w.clock[0].protocol == PIPELINING and at > 0:
        return max(0.0, latency_s - of(w.costs.connection_s, site))
    return latency_s


@helper(void(StateType, WorldType, i8))
def begin_page(s: State, w: World, slot: int) -> None:
    """At `robot.start` the robot of this visit asks for its next page, or opens a connection for it first."""
    c = w.clock[0]
    robot = w.robot[slot]
    visit = s.visit[slot]
    page = s.pool[visit.block + robot.at].id
    prefetch(w.web.targets, w.web.offsets[page])
    robot.asked = robot.start
    if robot.at == 0 or c.protocol == HTTP_1_0:
        robot.asked += of(w.costs.connection_s, visit.site)
    robot.result = fate(w, page, s.page[page].tries)
    robot.serial = c.serial
    c.serial += 1
    robot.phase = PAGE_IN
    if robot.result == FAILED:
        robot.first_byte = moment = robot.asked + c.timeout_s
    else:
        robot.first_byte = moment = robot.asked + wait_s(w, visit.site, page, robot.at)
        size = of(w.costs.size, page)
        if robot.result == FETCHED and size > 0.0:
            if c.shared:
                robot.phase = FIRST_BYTE
            else:
                moment += size / min(of(w.costs.speed, visit.site), c.cap)
    sift_up(w.events, 0, w.robot["pos"], c.events, -moment, robot.serial, slot)
    c.events += 1


@helper(void(StateType, WorldType, i8))
def begin_transfer(s: State, w: World, slot: int) -> None:
    """The first byte is here."""
    robot = w.robot[slot]
    visit = s.visit[slot]
    page = s.pool[visit.block + robot.at].id
    robot.phase = TRANSFER
    start_transfer(w.link, w.clock[0].now, slot, of(w.costs.size, page), of(w.costs.speed, visit.site), robot.serial)


# ---- a page or a visit is over


@helper(void(WorldType, i8, i8, i8))
def write_row(w: World, slot: int, page: int, visit_id: int) -> None:
    c = w.clock[0]
    robot = w.robot[slot]
    row = c.rows
    w.log.page[row] = page
    w.log.visit[row] = visit_id >> SLOT_BITS
    w.log.start[row] = robot.start
    w.log.first_byte[row] = robot.first_byte
    w.log.end[row] = c.now
    w.log.result[row] = robot.result
    c.rows += 1


@helper(b1(WorldType, i8, i8, b1))
def has_closed(w: World, slot: int, site: int, over: bool) -> bool:
    """Whether the server closes the connection after the page that is in: its number of requests, or the pause, if one follows."""
    c = w.clock[0]
    if c.protocol == HTTP_1_0:
        return False
    requests = w.costs.requests[site if w.costs.requests.size > 1 else 0]
    if requests > 0 and w.robot[slot].at >= requests:
        return True
    return c.protocol == KEEP_ALIVE and not over and c.pause_s > of(w.costs.keep_alive_s, site)


@helper(b1(StateType, WorldType, i8))
def complete_page(s: State, w: World, slot: int) -> bool:
    """The page is in: report it, and go on with the visit. False: the pool must grow, then again."""
    c = w.clock[0]
    robot = w.robot[slot]
    visit = s.visit[slot]
    page = s.pool[visit.block + robot.at].id
    advance(s, c.now)
    response_s = np.nan
    if robot.result != FAILED:  # the wait as it is, not as the difference of two moments, which is rounded
        response_s = wait_s(w, visit.site, page, robot.at) + (c.now - robot.first_byte)
    first, last = w.web.offsets[page], w.web.offsets[page + 1]
    if not take_report(s, slot, page, robot.result, response_s, w.web.targets[first:last], last - first):
        return False
    write_row(w, slot, page, visit.id)
    c.fetched += robot.result == FETCHED
    robot.at += 1
    over = robot.result == FAILED or robot.at == visit.pages
    robot.closed = robot.at if has_closed(w, slot, visit.site, over) else 0
    if over or robot.closed > 0:
        robot.phase = VISIT_OVER
    else:
        robot.phase = ASK
        robot.start = c.now + c.pause_s
    return True


@helper(b1(StateType, WorldType, i8))
def complete_visit(s: State, w: World, slot: int) -> bool:
    """The visit is over. False: the pool must grow, then again."""
    return end_visit(s, slot, of(w.costs.connection_s, s.visit[slot].site), w.robot[slot].closed, -np.inf, 0)


@helper(b1(StateType, WorldType))
def go_on(s: State, w: World) -> bool:
    """The pending robot does what is to be done now. False: the pool must grow, then again."""
    c = w.clock[0]
    slot = c.pending - 1
    robot = w.robot[slot]
    if robot.phase == PAGE_IN and not complete_page(s, w, slot):
        return False
    if robot.phase == ASK:
        begin_page(s, w, slot)  # called here alone, and so compiled into the loop: passing its arrays would cost
    elif robot.phase == VISIT_OVER and not complete_visit(s, w, slot):
        return False
    c.pending = 0
    return True
