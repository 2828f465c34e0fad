"""The virtual-time driver: r connections crawl a graph under the frontier's rules, and time is a number.

The driver calls the frontier's compiled functions directly, without Python in between, and makes no decisions.
docs/simulator.md defines what it computes, and tests/simulator/test_driver.py compares it with a plain loop over
`Frontier`.
"""

import itertools
import math
import time
from dataclasses import dataclass

import numpy as np

from trapline.compiled import jit
from trapline.compiled.jit import b1, f8, helper, i8, kernel, prefetch, void
from trapline.errors import ConfigError
from trapline.frontier import Frontier, Rules
from trapline.frontier.core import heap
from trapline.frontier.core.discovery import discover
from trapline.frontier.core.kernels import begin_visit, next_moment
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
    FrontierState,
    StateType,
    recall,
    resized,
)
from trapline.graph import Graph
from trapline.processor import ProcessorTime, processor_clock
from trapline.progress import CountCallback
from trapline.servers.model import NO_LIMIT
from trapline.servers.sampled import Servers, constant_servers
from trapline.simulator import link
from trapline.simulator.connections import (
    ASK,
    CLOCK,
    FIRST_BYTE,
    NO_OWNERS,
    PAGE_IN,
    Costs,
    GraphLinks,
    SimulatedWorld,
    WorldType,
    begin_transfer,
    go_on,
    new_connections,
)
from trapline.simulator.log import FetchLog, new_log
from trapline.simulator.network import PROTOCOLS, Network
from trapline.simulator.scores import KnownGraph
from trapline.strategies import Strategy

remove = heap.remove
first_end, first_slot, stop_transfer = link.first_end, link.first_slot, link.stop

PAUSED = -9  # an answer of `crawl`, in addition to those of the frontier's kernels
SLICE = 200_000  # fetches after which the compiled loop returns to Python, because Ctrl-C does not reach compiled code


@helper(void(StateType, WorldType))
def look_ahead(s: FrontierState, w: SimulatedWorld) -> None:
    """Prefetch the page with which the next visit will probably begin: it is far away in memory from the present one."""
    if s.run[0].ready > 0:
        x = s.pool[s.group[s.heap[READY, 0].id].block].id
        q = s.queue[x, FRONT]
        page = q.head if s.run[0].queue == FIFO else s.pool[q.block].id
        prefetch(s.page, page)
        prefetch(w.web.offsets, page)


@helper(void(StateType, WorldType))
def pop_event(s: FrontierState, w: SimulatedWorld) -> None:
    """Process the first event: a first byte, or a page that is complete."""
    c = w.clock[0]
    slot = w.events[0].id
    remove(w.events, 0, c.events, w.connection["pos"], 0)
    c.events -= 1
    if w.connection[slot].phase == FIRST_BYTE:
        begin_transfer(s, w, slot)
    else:
        c.pending = slot + 1


@helper(void(WorldType))
def pop_transfer(w: SimulatedWorld) -> None:
    """End the first transfer: its page is complete."""
    c = w.clock[0]
    slot = first_slot(w.link)
    stop_transfer(w.link, c.now, slot)
    w.connection[slot].phase = PAGE_IN
    c.pending = slot + 1


@helper(f8(WorldType))
def first_event(w: SimulatedWorld) -> float:
    return -w.events[0].key if w.clock[0].events > 0 else np.inf


@helper(b1(StateType, WorldType))
def step(s: FrontierState, w: SimulatedWorld) -> bool:
    """Process the first event of the present moment, ordered by (time, serial of the page). Return False if there is none."""
    c = w.clock[0]
    event, end = first_event(w), first_end(w.link) if c.shared else np.inf
    if min(event, end) > c.now:
        return False
    if event < end or (event == end and w.events[0].serial < w.link.transfer[first_slot(w.link)].serial):
        pop_event(s, w)
    else:
        pop_transfer(w)
    return True


@helper(void(WorldType, i8))
def note_batch(w: SimulatedWorld, visit: int) -> None:
    """Record that a batch begins with this visit. A batch that is chosen in several steps before the visit is one batch."""
    c = w.clock[0]
    if c.batches == 0 or w.batch_visits[c.batches - 1] != visit:
        w.batch_visits[c.batches] = visit
        c.batches += 1


@helper(i8(StateType, WorldType))
def set_out(s: FrontierState, w: SimulatedWorld) -> int:
    """Let a free connection ask the frontier for a visit. Return 0 if it got one, otherwise the frontier's answer."""
    c = w.clock[0]
    run = s.run[0]
    visit, chosen = run.visits, run.chosen
    slot = begin_visit(s, c.now)
    # Only the choice of a batch adds chosen pages here; the visit has taken its own.
    if run.batch > 0 and run.chosen + (s.visit[slot].pages if slot >= 0 else 0) > chosen:
        note_batch(w, visit)
    if slot < 0:
        return slot
    connection = w.connection[slot]
    connection.at = connection.before = 0
    connection.start = c.now
    connection.phase = ASK
    c.pending = slot + 1
    return 0


@helper(i8(StateType, WorldType))
def crawl_on(s: FrontierState, w: SimulatedWorld) -> int:
    """Crawl, and return why the loop ended: 0 (`most` pages are fetched, or `stop` rows are written), DRAINED, WAIT
    (for ever), PAUSED (at `until`), RESCORE, or NEED_ROOM (the caller must make room and call again)."""
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
        if step(s, w):  # at the same moment, completions come before new visits
            continue
        moment = np.inf
        if s.run[0].active < c.connections:
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


@kernel(i8(i8, WorldType))
def crawl(handle: int, w: SimulatedWorld) -> int:
    return crawl_on(recall(handle), w)


@dataclass(frozen=True, slots=True)
class SimulatedCrawl:
    """What a simulated crawl did, and under which conditions."""

    log: FetchLog
    strategy: Strategy
    rules: Rules
    frontier: Frontier  # as the crawl left it
    drained: bool
    wall_seconds: float  # real time of the loop, without computing scores
    score_seconds: float  # real time of computing scores
    scorings: int
    servers: Servers
    network: Network
    connections: int
    processor: ProcessorTime | None = None  # of the loop and of computing scores; None: not measured
    batch_visits: Array | None = None  # number of the first visit of each batch; None: the crawl has no batches

    @property
    def simulated_seconds(self) -> float:
        return float(self.log.end[-1]) if len(self.log.end) else 0.0


def prepare(
    graph: Graph, strategy: Strategy, rules: Rules, inputs: dict[str, Array], connections: int, seed: int = 0
) -> Frontier:
    """Return a frontier with the sites, pages and addresses of the graph, in which no page is discovered yet."""
    frontier = Frontier(strategy, rules, seed)
    # One page more: `Frontier.receive` needs a row for a linking page of another partition.
    frontier.reserve(graph.pages + 1, graph.sites, int(graph.ips.max(initial=0)) + 1, connections)
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
    connections: int = 1,
    servers: Servers | None = None,
    network: Network | None = None,
    seeds: Array | None = None,
    most: int | None = None,
    until_s: float = math.inf,
    inputs: dict[str, Array] | None = None,
    seed: int = 0,
    progress: CountCallback | None = None,
) -> SimulatedCrawl:
    """Crawl the graph in virtual time, from its home pages or from `seeds`, until `most` pages are fetched or `until_s` has
    passed. Calls `progress(pages fetched, most)` from time to time."""
    servers, network = servers or constant_servers(1.0), network or Network()
    servers.check(graph)
    _check_lease(rules, servers, network)
    _check(graph, strategy, inputs or {}, connections, most)
    start = _seeds(graph, seeds)
    run = begin(graph, strategy, rules, start, connections, servers, network, inputs or {}, seed)
    run.world.clock["until"] = until_s
    goal = graph.pages if most is None else min(most, graph.pages)
    passed = processor_clock()
    answer = run.until(goal, progress)
    return SimulatedCrawl(
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
        connections=connections,
        processor=passed(),
        batch_visits=run.batch_visits if rules.batch else None,
    )


def begin(
    graph: Graph,
    strategy: Strategy,
    rules: Rules,
    seeds: Array,
    connections: int,
    servers: Servers,
    network: Network,
    inputs: dict[str, Array],
    seed: int,
) -> "Run":
    """Return a crawl that has not begun. The caller must have checked the arguments, as `simulate` does."""
    frontier = prepare(graph, strategy, rules, inputs, connections, seed)
    world = _world(graph, servers, network, seeds, frontier.visit_slots, connections, seed)
    if rules.batch:
        world = world._replace(batch_visits=np.zeros(graph.pages, np.int32))  # every batch has a page of its own
    return Run(frontier, world, KnownGraph(graph) if strategy.page.scores else None)


def _world(
    graph: Graph, servers: Servers, network: Network, seeds: Array, slots: int, connections: int, seed: int
) -> SimulatedWorld:
    clock = np.zeros(1, CLOCK)
    for name in ("pause_s", "failed", "refused", "timeout_s", "robots"):
        clock[name] = getattr(network, name)
    if network.protocol == "pipelining":
        clock["pause_s"] = 0.0  # all requests are sent at once
    clock["shared"] = not network.per_connection and network.bandwidth < NO_LIMIT
    clock["cap"] = network.bandwidth if network.per_connection else NO_LIMIT
    clock["tcp"] = bool(servers.initial_window.any() or servers.closing_s.any())
    clock["protocol"] = PROTOCOLS.index(network.protocol)
    clock["connections"], clock["seed"], clock["until"] = connections, seed, np.inf
    types = {"requests": np.int32}
    values = ((getattr(servers, name), types.get(name, np.float64)) for name in Costs._fields)
    connection, events = new_connections(slots)
    costs = Costs(*itertools.starmap(np.ascontiguousarray, values))
    return SimulatedWorld(
        web=GraphLinks(graph.offsets, graph.targets, seeds, *NO_OWNERS),
        costs=costs,
        log=new_log(graph.pages),
        connection=connection,
        events=events,
        link=link.new_link(network.bandwidth, slots),
        clock=clock,
        batch_visits=np.zeros(1, np.int32),
    )


def _check(graph: Graph, strategy: Strategy, inputs: dict[str, Array], connections: int, most: int | None) -> None:
    if connections < 1:
        raise ConfigError(f"{connections} connections: there must be at least 1")
    if most is not None and most < 0:
        raise ConfigError(f"most is {most} pages: give 0 or more")
    for name in strategy.page.inputs:
        count = len(inputs.get(name, ()))
        if count != graph.pages:
            raise ConfigError(
                f"strategy {strategy.name!r}: its input {name!r} has {count} values; give one for each of the {graph.pages} pages"
            )


def _seeds(graph: Graph, seeds: Array | None) -> Array:
    """Return the pages with which the crawl begins. They are checked here, because the compiled loop does not check
    page numbers."""
    if seeds is None:
        return graph.home
    given = np.asarray(seeds)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise ConfigError("seeds: they must be a one-dimensional list of at least one page number")
    if given.min() < 0 or given.max() >= graph.pages:
        raise ConfigError(
            f"seeds: page {given.max() if given.min() >= 0 else given.min()} is not in 0..{graph.pages - 1}"
        )
    return np.ascontiguousarray(given, np.int32)


def _check_lease(rules: Rules, servers: Servers, network: Network) -> None:
    """Raise `ConfigError` if a lease can end before its visit. In a simulation every visit ends, so that is a mistake
    in the rules."""
    if rules.lease_s == NO_LIMIT:
        return
    page_s = float(servers.latency_s.max()) + network.pause_s + (network.timeout_s if network.failed else 0.0)
    page_s += float(servers.closing_s.max())
    if network.bandwidth < NO_LIMIT or servers.speed.min() < NO_LIMIT or servers.initial_window.any():
        raise ConfigError(
            "with limited bandwidth or slow start a transfer can take any time, so no lease is safe; set lease_s to infinity"
        )
    pages = min(rules.per_connection or MOST_PER_VISIT, rules.first_requests, MOST_PER_VISIT)
    longest = float(servers.connection_s.max()) * pages + page_s * pages
    longest += float(servers.robots_s.max()) + network.pause_s if network.robots else 0.0
    if rules.lease_s <= longest:
        raise ConfigError(
            f"a visit can take {longest:g} s, but its lease ends after {rules.lease_s:g} s; raise lease_s"
        )


class Run:
    """The Python loop around the compiled loop: provides memory, scores and progress, and measures the real time."""

    def __init__(self, frontier: Frontier, world: SimulatedWorld, known: KnownGraph | None) -> None:
        self.frontier, self.world, self.known = frontier, world, known
        self.wall_seconds = self.score_seconds = 0.0
        self.scorings = 0
        jit.ready(crawl)

    @property
    def log(self) -> FetchLog:
        """Fetch log up to now."""
        rows = int(self.world.clock[0].rows)
        return FetchLog(*(column[:rows] for column in self.world.log))

    @property
    def batch_visits(self) -> Array:
        """First visit of each batch up to now."""
        return self.world.batch_visits[: int(self.world.clock[0].batches)]

    def keep_to_own(self, owner: Array, partition: int) -> None:
        """Crawl as one partition of several: links to pages of other owners lead ELSEWHERE. `owner`: of every page."""
        web = self.world.web
        widest = int(np.diff(web.offsets).max(initial=0))
        self.world = self.world._replace(web=web._replace(owner=owner, own_links=np.zeros(widest, np.int32)))
        self.world.clock["partition"] = partition

    def until(self, goal: int, progress: CountCallback | None) -> int:
        """Crawl until `goal` pages are fetched or the crawl cannot continue. Return the kernel's answer; 0: the goal is
        reached."""
        clock, answer = self.world.clock, 0
        clock["most"] = goal
        while answer in (0, RESCORE) and clock["fetched"][0] < goal:
            self.make_room()
            started = time.perf_counter()
            answer = self.frontier.run_kernel(crawl, self.world)
            self.wall_seconds += time.perf_counter() - started
            if answer == RESCORE:
                self._rescore()
            if progress is not None:
                progress(int(clock["fetched"][0]), goal)
        return answer

    def make_room(self) -> None:
        """Enlarge the log if it is full: because of retries there can be more rows than pages."""
        clock, log = self.world.clock, self.world.log
        rows = int(clock["rows"][0])
        if rows == len(log.page):
            self.world = self.world._replace(
                log=FetchLog(*(resized(column, rows * 3 // 2 + 16, rows) for column in log))
            )
        clock["stop"] = min(rows + SLICE, len(self.world.log.page))

    def _rescore(self) -> None:
        assert self.known is not None  # only a page rank with scores requests them
        started = time.perf_counter()
        scores = self.known.scores(self.frontier.page_states)
        self.score_seconds += time.perf_counter() - started
        self.scorings += 1
        started = time.perf_counter()
        self.frontier.rescore(scores, float(self.world.clock["now"][0]))
        self.wall_seconds += time.perf_counter() - started
