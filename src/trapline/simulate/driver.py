"""The virtual-time driver: r robots crawl a graph under the frontier's rules, and time is a number.

It calls the frontier's compiled parts without the way through Python, and decides nothing itself;
tests/simulate/test_driver.py holds it against a plain loop over `Frontier`. Events are ordered by (time, kind,
serial), completions before new visits, so that a tie in time has one outcome. Every page takes a constant time here.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trapline import jit
from trapline.errors import ConfigError
from trapline.frontier import Frontier, Rules, heap
from trapline.frontier.discovery import discover
from trapline.frontier.kernels import advance, begin_visit, next_moment, take_report
from trapline.frontier.layout import (
    DRAINED,
    ENTRY,
    FETCHED,
    FIFO,
    FRONT,
    MOST_PER_VISIT,
    NEED_ROOM,
    READY,
    WAIT,
    Array,
    State,
    StateType,
    recall,
    record,
)
from trapline.frontier.visits import SLOT_BITS, close
from trapline.graph import Graph
from trapline.jit import b1, helper, i8, kernel, prefetch, type_of, void
from trapline.simulate.log import Log
from trapline.simulate.servers import Network, Servers, constant_servers
from trapline.strategies import Strategy

sift_up, remove = heap.sift_up, heap.remove

SLICE = 200_000  # pages between two looks at the terminal: the compiled loop hears no Ctrl-C

CLOCK = record(
    [
        ("now", "f8"),
        ("page_seconds", "f8"),
        ("robots", "i8"),
        ("most", "i8"),  # pages to fetch
        ("fetched", "i8"),
        ("events", "i8"),
        ("serial", "i8"),
        ("seeds", "i8"),  # seeds discovered so far
    ]
)


class Web(NamedTuple):
    """The links of the graph, and where a crawl begins."""

    offsets: Array
    targets: Array
    seeds: Array


class Robots(NamedTuple):
    """What is under way, by slot of the visit: the page being fetched, its start, and the heap of completions."""

    events: Array
    pos: Array
    at: Array  # number of the page within its visit
    start: Array


def _robots(slots: int) -> Robots:
    return Robots(np.zeros(slots, ENTRY), np.zeros(slots, np.int32), np.zeros(slots, np.int64), np.zeros(slots))


def _log(pages: int) -> Log:
    kinds = (np.int32, np.int32, np.float64, np.float64, np.float64, np.uint8)
    return Log(*(np.zeros(pages, kind) for kind in kinds))


_WebType = type_of(Web(np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.int32)))
_LogType = type_of(_log(1))
_RobotsType = type_of(_robots(1))
_ClockType = type_of(np.zeros(1, CLOCK))


@helper(void(StateType, _WebType))
def look_ahead(s: State, web: Web) -> None:
    """Ask memory for the page that the next visit will probably begin with: it is nowhere near this one."""
    if s.run[0].ready > 0:
        x = s.pool[s.group[s.heap[READY, 0].id].block].id
        q = s.queue[x, FRONT]
        page = q.head if s.run[0].queue == FIFO else s.pool[q.block].id
        prefetch(s.page, page)
        prefetch(web.offsets, page)


@helper(void(StateType, _WebType, _RobotsType, _ClockType, i8))
def begin_page(s: State, web: Web, robots: Robots, clock: Array, slot: int) -> None:
    """The robot of this visit asks for its next page."""
    c = clock[0]
    prefetch(web.targets, web.offsets[s.pool[s.visit[slot].block + robots.at[slot]].id])
    robots.start[slot] = c.now
    sift_up(robots.events, 0, robots.pos, c.events, -(c.now + c.page_seconds), c.serial, slot)
    c.events += 1
    c.serial += 1


@helper(b1(StateType, _WebType, _LogType, _RobotsType, _ClockType))
def complete_page(s: State, web: Web, log: Log, robots: Robots, clock: Array) -> bool:
    """The first completion happens. False: the pool must grow, then it happens again."""
    c = clock[0]
    slot = robots.events[0].id
    visit = s.visit[slot]
    page = s.pool[visit.block + robots.at[slot]].id
    advance(s, c.now)
    first, last = web.offsets[page], web.offsets[page + 1]
    if not take_report(s, slot, page, FETCHED, c.page_seconds, web.targets[first:last], last - first):
        return False
    log.page[c.fetched] = page
    log.visit[c.fetched] = visit.id >> SLOT_BITS
    log.start[c.fetched] = robots.start[slot]
    log.first_byte[c.fetched] = c.now
    log.end[c.fetched] = c.now
    log.result[c.fetched] = FETCHED
    c.fetched += 1
    remove(robots.events, 0, c.events, robots.pos, 0)
    c.events -= 1
    robots.at[slot] += 1
    if robots.at[slot] < visit.pages:
        begin_page(s, web, robots, clock, slot)
    else:
        close(s, slot, -1.0e300)
        look_ahead(s, web)
    return True


@kernel(i8(i8, _WebType, _LogType, _RobotsType, _ClockType))
def crawl(handle: int, web: Web, log: Log, robots: Robots, clock: Array) -> int:
    """Crawl until `most` pages are in (0), DRAINED, WAIT (for ever) or NEED_ROOM (call again)."""
    s: State = recall(handle)
    c = clock[0]
    if c.seeds == 0:
        if not discover(s, -1, web.seeds, web.seeds.size):
            return NEED_ROOM
        c.seeds = 1
    while c.fetched < c.most:
        if c.events > 0 and -robots.events[0].key <= c.now:  # at one moment, completions before new visits
            if not complete_page(s, web, log, robots, clock):
                return NEED_ROOM
            continue
        moment = np.inf
        if s.run[0].active < c.robots:
            slot = begin_visit(s, c.now)
            if slot >= 0:
                robots.at[slot] = 0
                begin_page(s, web, robots, clock, slot)
                continue
            if slot != WAIT:
                return slot
            moment = next_moment(s)
        if c.events > 0:
            moment = min(moment, -robots.events[0].key)
        if moment == np.inf:
            return WAIT
        c.now = moment
    return 0


@dataclass(frozen=True, slots=True)
class Crawl:
    """What a simulated crawl did."""

    log: Log  # the rows that were filled
    frontier: Frontier
    drained: bool
    wall_seconds: float  # of the loop alone
    servers: Servers
    network: Network
    robots: int

    @property
    def simulated_seconds(self) -> float:
        return float(self.log.end[-1]) if len(self.log.end) else 0.0


def prepare(
    graph: Graph, strategy: Strategy, rules: Rules, inputs: dict[str, Array], robots: int, seed: int = 0
) -> Frontier:
    """A frontier that knows the sites, pages and addresses of the graph, and nothing discovered."""
    frontier = Frontier(strategy, rules, seed)
    frontier.reserve(graph.pages, graph.sites, int(graph.ips.max(initial=0)) + 1, robots)
    frontier.add_sites(graph.sites, 0.0, graph.ips)
    frontier.add_pages(graph.site, graph.dynamic)
    for name in strategy.page.inputs:
        frontier.set_column(name, inputs[name])
    return frontier


def simulate(
    graph: Graph,
    strategy: Strategy,
    rules: Rules,
    *,
    robots: int = 1,
    page_seconds: float = 1.0,
    most: int | None = None,
    inputs: dict[str, Array] | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Crawl:
    """Crawl the graph from its home pages in virtual time. `progress(pages fetched, most)` is told now and then."""
    longest = min(rules.per_connection or MOST_PER_VISIT, rules.first_requests, MOST_PER_VISIT) * page_seconds
    if (
        rules.lease_s <= longest
    ):  # here every visit reports back, so a lease that expires would be a mistake of the rules
        raise ConfigError(f"a visit can take {longest:g} s and its lease ends after {rules.lease_s:g} s; raise lease_s")
    frontier = prepare(graph, strategy, rules, inputs or {}, robots, seed)
    web = Web(graph.offsets, graph.targets, graph.home)
    log, under_way = _log(graph.pages), _robots(len(frontier.state.visit))
    clock = np.zeros(1, CLOCK)
    clock["page_seconds"], clock["robots"] = page_seconds, robots
    jit.ready()
    goal, wall, answer = graph.pages if most is None else min(most, graph.pages), 0.0, 0
    while answer == 0 and clock["fetched"][0] < goal:
        clock["most"] = min(clock["fetched"][0] + SLICE, goal)
        started = time.perf_counter()
        answer = frontier.run_kernel(crawl, web, log, under_way, clock)
        wall += time.perf_counter() - started
        if progress is not None:
            progress(int(clock["fetched"][0]), goal)
    n = int(clock["fetched"][0])
    rows = Log(*(column[:n] for column in log))
    drained = answer == DRAINED or n == graph.pages
    return Crawl(rows, frontier, drained, wall, constant_servers(page_seconds), Network(), robots)
