"""The virtual-time driver: r robots crawl a graph under the frontier's rules, and time is a number.

It calls the frontier's compiled parts without the way through Python, and decides nothing itself; what it computes is in
docs/simulator.md, and tests/simulate/test_driver.py holds it against a plain loop over `Frontier`.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trapline import jit
from trapline.errors import ConfigError
from trapline.frontier import Frontier, Rules, heap
from trapline.frontier.discovery import discover
from trapline.frontier.kernels import begin_visit, next_moment
from trapline.frontier.layout import (
    DRAINED,
    FIFO,
    FRONT,
    MOST_PER_VISIT,
    NEED_ROOM,
    READY,
    RESCORE,
    WAIT,
    Array,
    State,
    StateType,
    recall,
    resized,
)
from trapline.graph import Graph
from trapline.jit import b1, f8, helper, i8, kernel, prefetch, void
from trapline.simulate import link
from trapline.simulate.log import Log, new_log
from trapline.simulate.robots import (
    ASK,
    CLOCK,
    FIRST_BYTE,
    PAGE_IN,
    Costs,
    Web,
    World,
    WorldType,
    begin_transfer,
    go_on,
    new_robots,
)
from trapline.simulate.scores import KnownGraph
from trapline.simulate.servers import NO_LIMIT, PROTOCOLS, Network, Servers, constant_servers
from trapline.strategies import Strategy

remove = heap.remove
first_end, first_slot, stop_transfer = link.first_end, link.first_slot, link.stop

PAUSED = -9  # beside the answers of the frontier's kernels
SLICE = 200_000  # fetches between two looks at the terminal: the compiled loop hears no Ctrl-C


@helper(void(StateType, WorldType))
def look_ahead(s: State, w: World) -> None:
    """Ask memory for the page that the next visit will probably begin with: it is nowhere near this one."""
    if s.run[0].ready > 0:
        x = s.pool[s.group[s.heap[READY, 0].id].block].id
        q = s.queue[x, FRONT]
        page = q.head if s.run[0].queue == FIFO else s.pool[q.block].id
        prefetch(s.page, page)
        prefetch(w.web.offsets, page)


@helper(void(StateType, WorldType))
def pop_event(s: State, w: World) -> None:
    """The first event happens: a first byte, or a page that is in."""
    c = w.clock[0]
    slot = w.events[0].id
    remove(w.events, 0, c.events, w.robot["pos"], 0)
    c.events -= 1
    if w.robot[slot].phase == FIRST_BYTE:
        begin_transfer(s, w, slot)
    else:
        c.pending = slot + 1


@helper(void(WorldType))
def pop_transfer(w: World) -> None:
    """The first transfer is over, and its page is in."""
    c = w.clock[0]
    slot = first_slot(w.link)
    stop_transfer(w.link, c.now, slot)
    w.robot[slot].phase = PAGE_IN
    c.pending = slot + 1


@helper(f8(WorldType))
def first_event(w: World) -> float:
    return -w.events[0].key if w.clock[0].events > 0 else np.inf


@helper(b1(StateType, WorldType))
def step(s: State, w: World) -> bool:
    """If something happens now, let the first of it happen, by (time, serial of the page)."""
    c = w.clock[0]
    event, end = first_event(w), first_end(w.link) if c.shared else np.inf
    if min(event, end) > c.now:
        return False
    if event < end or (event == end and w.events[0].serial < w.link.transfer[first_slot(w.link)].serial):
        pop_event(s, w)
    else:
        pop_transfer(w)
    return True


@helper(i8(StateType, WorldType))
def set_out(s: State, w: World) -> int:
    """A free robot asks: 0 if it has a visit now, else the answer."""
    c = w.clock[0]
    slot = begin_visit(s, c.now)
    if slot < 0:
        return slot
    robot = w.robot[slot]
    robot.at = 0
    robot.start = c.now
    robot.phase = ASK
    c.pending = slot + 1
    return 0


@kernel(i8(i8, WorldType))
def crawl(handle: int, w: World) -> int:
    """Crawl until `most` pages are in or `stop` rows are written (0), DRAINED, WAIT (for ever), PAUSED (at `until`), RESCORE, or
    NEED_ROOM (call again)."""
    s: State = recall(handle)
    c = w.clock[0]
    if not c.seeded:
        if not discover(s, -1, w.web.seeds, w.web.seeds.size):
            return NEED_ROOM
        c.seeded = 1
    while c.fetched < c.most and c.rows < c.stop:
        if c.pending > 0:
            if not go_on(s, w):
                return NEED_ROOM
            look_ahead(s, w)
            continue
        if step(s, w):  # at one moment, completions before new visits
            continue
        moment = np.inf
        if s.run[0].active < c.robots:
            answer = set_out(s, w)
            if answer == 0:
                continue
            if answer != WAIT:
                return answer
            moment = next_moment(s)
        moment = min(moment, first_event(w))
        if c.shared:
            moment = min(moment, first_end(w.link))
        if moment == np.inf:
            return WAIT
        if moment > c.until:
            c.next = moment
            return PAUSED
        c.now = moment
    return 0


@dataclass(frozen=True, slots=True)
class Crawl:
    """What a simulated crawl did, and under which conditions."""

    log: Log
    strategy: Strategy
    rules: Rules
    frontier: Frontier  # as the crawl left it
    drained: bool
    wall_seconds: float  # of the loop, without the scores
    score_seconds: float  # of computing scores
    scorings: int
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
    servers: Servers | None = None,
    network: Network | None = None,
    seeds: Array | None = None,
    most: int | None = None,
    inputs: dict[str, Array] | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Crawl:
    """Crawl the graph in virtual time, from its home pages or `seeds`. `progress(pages fetched, most)` is told now and then."""
    servers, network = servers or constant_servers(1.0), network or Network()
    servers.check(graph)
    _check_lease(rules, servers, network)
    _check(graph, strategy, inputs or {}, robots, most)
    start = _seeds(graph, seeds)
    run = begin(graph, strategy, rules, start, robots, servers, network, inputs or {}, seed)
    goal = graph.pages if most is None else min(most, graph.pages)
    answer = run.until(goal, progress)
    return Crawl(
        log=run.log,
        strategy=strategy,
        rules=rules,
        frontier=run.frontier,
        drained=answer == DRAINED or int(run.world.clock[0].fetched) == graph.pages,
        wall_seconds=run.wall_seconds,
        score_seconds=run.score_seconds,
        scorings=run.scorings,
        servers=servers,
        network=network,
        robots=robots,
    )


def begin(
    graph: Graph,
    strategy: Strategy,
    rules: Rules,
    seeds: Array,
    robots: int,
    servers: Servers,
    network: Network,
    inputs: dict[str, Array],
    seed: int,
) -> "Run":
    """A crawl that has not begun. Its arguments are sound: `simulate` checks them."""
    frontier = prepare(graph, strategy, rules, inputs, robots, seed)
    world = _world(graph, servers, network, seeds, len(frontier.state.visit), robots, seed)
    return Run(frontier, world, KnownGraph(graph) if strategy.page.scores else None)


def _world(graph: Graph, servers: Servers, network: Network, seeds: Array, slots: int, robots: int, seed: int) -> World:
    clock = np.zeros(1, CLOCK)
    for name in ("pause_s", "failed", "refused", "timeout_s"):
        clock[name] = getattr(network, name)
    if network.protocol == "pipelining":
        clock["pause_s"] = 0.0  # all requests are sent at once
    clock["shared"] = not network.per_robot and network.bandwidth < NO_LIMIT
    clock["cap"] = network.bandwidth if network.per_robot else NO_LIMIT
    clock["protocol"] = PROTOCOLS.index(network.protocol)
    clock["robots"], clock["seed"], clock["until"] = robots, seed, np.inf
    types = {"requests": np.int32}
    values = ((getattr(servers, name), types.get(name, np.float64)) for name in Costs._fields)
    robot, events = new_robots(slots)
    costs = Costs(*itertools.starmap(np.ascontiguousarray, values))
    return World(
        web=Web(graph.offsets, graph.targets, seeds),
        costs=costs,
        log=new_log(graph.pages),
        robot=robot,
        events=events,
        link=link.new_link(network.bandwidth, slots),
        clock=clock,
    )


def _check(graph: Graph, strategy: Strategy, inputs: dict[str, Array], robots: int, most: int | None) -> None:
    if robots < 1:
        raise ConfigError(f"{robots} robots; there must be at least 1")
    if most is not None and most < 0:
        raise ConfigError(f"most: a crawl of {most} pages; give at least 0")
    for name in strategy.page.inputs:
        given = len(inputs.get(name, ()))
        if given != graph.pages:
            raise ConfigError(
                f"strategy {strategy.name!r}: {given} values of its input {name!r} for {graph.pages} pages"
            )


def _seeds(graph: Graph, seeds: Array | None) -> Array:
    """Where the crawl begins. The compiled loop looks pages up without asking, so these are checked here."""
    if seeds is None:
        return graph.home
    given = np.asarray(seeds)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise ConfigError("seeds: they must be page numbers in one row, and at least one")
    if given.min() < 0 or given.max() >= graph.pages:
        raise ConfigError(
            f"seeds: page {given.max() if given.min() >= 0 else given.min()} is not in 0..{graph.pages - 1}"
        )
    return np.ascontiguousarray(given, np.int32)


def _check_lease(rules: Rules, servers: Servers, network: Network) -> None:
    """Here every robot comes back, so a lease that ends before it does is a mistake of the rules."""
    if rules.lease_s == NO_LIMIT:
        return
    page_s = float(servers.latency_s.max()) + network.pause_s + (network.timeout_s if network.failed else 0.0)
    if network.bandwidth < NO_LIMIT or servers.speed.min() < NO_LIMIT:
        raise ConfigError("transfers can take any time, so no lease is safe; set lease_s to infinity")
    pages = min(rules.per_connection or MOST_PER_VISIT, rules.first_requests, MOST_PER_VISIT)
    longest = float(servers.connection_s.max()) * pages + page_s * pages
    if rules.lease_s <= longest:
        raise ConfigError(f"a visit can take {longest:g} s and its lease ends after {rules.lease_s:g} s; raise lease_s")


class Run:
    """The loop round the compiled one: memory, scores, progress, and the time it takes."""

    def __init__(self, frontier: Frontier, world: World, known: KnownGraph | None) -> None:
        self.frontier, self.world, self.known = frontier, world, known
        self.wall_seconds = self.score_seconds = 0.0
        self.scorings = 0
        jit.ready()

    @property
    def log(self) -> Log:
        """What was fetched so far."""
        rows = int(self.world.clock[0].rows)
        return Log(*(column[:rows] for column in self.world.log))

    def until(self, goal: int, progress: Callable[[int, int], None] | None) -> int:
        """Crawl until so many pages are fetched (0), or the crawl is over; the answer of the kernel."""
        clock, answer = self.world.clock, 0
        clock["most"] = goal
        while answer in (0, RESCORE) and clock["fetched"][0] < goal:
            self._make_room()
            started = time.perf_counter()
            answer = self.frontier.run_kernel(crawl, self.world)
            self.wall_seconds += time.perf_counter() - started
            if answer == RESCORE:
                self._rescore()
            if progress is not None:
                progress(int(clock["fetched"][0]), goal)
        return answer

    def _make_room(self) -> None:
        """Retries make more rows than there are pages."""
        clock, log = self.world.clock, self.world.log
        rows = int(clock["rows"][0])
        if rows == len(log.page):
            self.world = self.world._replace(log=Log(*(resized(column, rows * 3 // 2 + 16, rows) for column in log)))
        clock["stop"] = min(rows + SLICE, len(self.world.log.page))

    def _rescore(self) -> None:
        assert self.known is not None  # only a page rank that has scores asks for them
        started = time.perf_counter()
        scores = self.known.scores(self.frontier.state.state)
        self.score_seconds += time.perf_counter() - started
        self.scorings += 1
        started = time.perf_counter()
        self.frontier.rescore(scores, float(self.world.clock["now"][0]))
        self.wall_seconds += time.perf_counter() - started
