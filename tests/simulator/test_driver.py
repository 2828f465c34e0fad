"""The compiled driver makes the same crawl as a plain loop over the frontier's interface. Its log is polite and complete.

The slow twin is tests/naive/simulator.py. What is compared, and how closely:
- *exact* webs: every time is a multiple of 2^-4 s, and every divisor is a power of two. Sums are exact, so ties in time are
  frequent and real, and every column must agree to the bit. Either nothing is shared, or two connections share a link with
  servers that have at least half of it each, so that shares are powers of two as well.
- *rough* webs: any number of connections shares a link. Sizes or latencies are drawn from a continuum, so that two ends
  coincide with probability 0. Order and integers must agree exactly, times to 1e-9, because the two round differently.

"""

import itertools
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.effort import PROOF, examples, sample
from tests.frontier.worlds import one_of_each
from tests.naive.simulator import Row, Twin
from trapline.errors import ConfigError
from trapline.frontier import FAILED, FETCHED, REFUSED, Frontier, Rules
from trapline.frontier.core import core
from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.graph import Graph
from trapline.simulator import (
    PROTOCOLS,
    FetchLog,
    Network,
    Servers,
    SimulatedCrawl,
    constant_servers,
    politeness_violations,
    simulate,
)
from trapline.simulator.connections import FATE
from trapline.simulator.scores import KnownGraph
from trapline.strategies import PageRank, Strategy, page_ranks, pair, site_ranks
from trapline.strategies.base.url_inputs import STATE_PAGES

UNCOMPILED = bool(numba.config.DISABLE_JIT)
WEBS = (10 if PROOF else 5) if UNCOMPILED else examples(400)
SEED = 7


def rows(log: FetchLog) -> list[Row]:
    return [Row(*row) for row in zip(*(column.tolist() for column in log), strict=True)]


# Strategies: those of the folder, and one that uses scores.


@page_rank
def last_score(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    return s.columns[page, 0]


SCORED = PageRank("scored", last_score, columns=("score",), scores="score")
SCORED_BATCHES = PageRank("scored-batches", last_score, columns=("score",), scores="score", batched=True)
PAGE_RANKS = [*page_ranks().values(), SCORED, SCORED_BATCHES]
STRATEGIES = [Strategy(f"{p.name} x {s.name}", p, s) for p in PAGE_RANKS for s in site_ranks().values()]


def inputs_of(strategy: Strategy, pages: int) -> dict[str, Any]:
    """Values with ties for every column that the page rank wants. Three pages in a row have a directory, whose state the first of them
    keeps."""
    given = {name: np.arange(pages) * 7 % 5 / 4 - 0.5 for name in strategy.page.inputs}
    return given | {name: np.arange(pages) // 3 * 3.0 for name in STATE_PAGES if name in given}


# Webs.


def graph_of(links: list[list[int]], site: list[int], ips: list[int], dynamic: list[int] | None = None) -> Graph:
    return Graph(
        offsets=np.cumsum([0, *map(len, links)]).astype(np.int64),
        targets=np.array([target for page in links for target in page], np.int32),
        site=np.array(site, np.int32),
        home=np.array([site.index(one) for one in range(len(ips))], np.int32),
        dynamic=np.array(dynamic or [0] * len(site), np.uint8),
        ips=np.array(ips, np.int32),
    )


def random_graph(number: int) -> Graph:
    """Up to 7 sites on up to 3 addresses, up to 40 pages. Every site has a home page."""
    random = np.random.default_rng(number)
    sites = int(random.integers(1, 8))
    pages = sites + int(random.integers(0, 34))
    site = [*range(sites), *random.integers(0, sites, pages - sites).tolist()]
    links = [random.permutation(pages)[: random.integers(0, 7)].tolist() for _ in range(pages)]
    ips = random.integers(0, min(3, sites), sites).tolist()
    return graph_of(links, site, ips, random.integers(0, 2, pages).tolist())


# A web is one number, and nothing is shrunk: uncompiled that would take minutes, and a web of 40 pages is readable.
NUMBERS = st.integers(0, 2**32 - 1)
GRAPHS = NUMBERS.map(random_graph)
RULES = one_of_each(
    delay_s=[1.0, 0.0, 0.5, 15.0],
    ip_delay_s=[None, 0.0, 2.0],
    per_connection=[1, 2, 5, 0],
    small_site_pages=[0, 3],
    small_site_delay_s=[0.25, 15.0],
    pages_per_site=[0, 0, 3],
    depth_dynamic=[0, 1],
    batch=[0, 0, 1, 5],
    batch_ahead=[False, True],
    batch_least_active=[0, 2],
    rescore=[0, 1, 7],
    retries=[2, 0, 1],
    backoff_s=[2.0, 0.0, 0.5],
    backoff_most_s=[60.0, 3.0],
    first_requests=[50, 2],
    estimator=["average", "median"],
    pipelining=[False, True],
).map(lambda chosen: Rules(**chosen, lease_s=math.inf))


class World(NamedTuple):
    """A web, its servers, and the connections that crawl it."""

    graph: Graph
    servers: Servers
    network: Network
    connections: int
    seeds: np.ndarray | None


def some(random: np.random.Generator, count: int, *values: float) -> np.ndarray:
    """One of the values for each item, or one for all."""
    return random.choice(np.array(values), count if random.random() < 0.7 else 1)


def rough(random: np.random.Generator, count: int, least: float, most: float) -> np.ndarray:
    return random.uniform(least, most, count)


def random_network(random: np.random.Generator, bandwidth: float, per_connection: bool) -> Network:
    return Network(
        bandwidth=bandwidth,
        per_connection=per_connection,
        protocol=str(random.choice(PROTOCOLS)),
        pause_s=float(random.choice([0.0, 0.0, 0.25, 1.5])),
        failed=float(random.choice([0.0, 0.0, 0.25])),
        refused=float(random.choice([0.0, 0.0, 0.125])),
        timeout_s=float(random.choice([0.0, 0.5, 3.0])),
        robots=bool(random.random() < 0.3),
    )


def random_seeds(random: np.random.Generator, graph: Graph) -> np.ndarray | None:
    """Home pages or any pages, possibly one of them twice."""
    return random.integers(0, graph.pages, random.integers(1, 5)).astype(np.int32) if random.random() < 0.3 else None


def counts(random: np.random.Generator, sites: int) -> np.ndarray:
    return some(random, sites, 0, 1, 2, 5).astype(np.int32)


def random_tcp(random: np.random.Generator, sites: int) -> dict[str, np.ndarray]:
    """Slow start, closing and robots.txt: absent in half of the worlds."""
    closing_s, window = some(random, sites, 0.0, 0.25, 0.5), some(random, sites, 0.0, 1.0, 2.0, 4.0)
    kept = {"closing_s": closing_s, "initial_window": window} if random.random() < 0.5 else {}
    return {"robots_s": some(random, sites, 0.0, 0.5, 1.0), **kept}


def exact_world(number: int) -> World:
    random, graph = np.random.default_rng(number), random_graph(number)
    kind = str(random.choice(["unlimited", "per connection", "two share"]))
    servers = Servers(
        connection_s=some(random, graph.sites, 0.0, 0.25, 0.5),
        latency_s=some(random, graph.pages, 0.0, 0.25, 0.5, 1.0, 3.0),
        speed=some(random, graph.sites, 2.0, 4.0, 8.0, math.inf),
        requests=counts(random, graph.sites),
        keep_alive_s=some(random, graph.sites, 0.0, 1.0, 15.0, math.inf),
        size=some(random, graph.pages, 0.0, 1.0, 3.0, 4.0, 16.0),
    )
    bandwidth = math.inf if kind == "unlimited" else 4.0
    network = random_network(random, bandwidth, kind == "per connection")
    connections = int(random.integers(1, 3 if kind == "two share" else 5))
    seeds = random_seeds(random, graph)
    return World(graph, replace(servers, **random_tcp(random, graph.sites)), network, connections, seeds)


def rough_world(number: int) -> World:
    """A link that many connections share. Either sizes or latencies may be equal for all, not both."""
    random, graph = np.random.default_rng(number), random_graph(number)
    one = int(random.integers(0, 3))
    servers = Servers(
        connection_s=some(random, graph.sites, 0.0, 0.25, 0.5),
        latency_s=np.array([0.75]) if one == 1 else rough(random, graph.pages, 0.0, 2.0),
        speed=some(random, graph.sites, 1.0, 3.0, 7.0, 25.0, math.inf),
        requests=counts(random, graph.sites),
        keep_alive_s=some(random, graph.sites, 0.0, 1.0, 15.0, math.inf),
        size=np.array([5.0])
        if one == 2
        else rough(random, graph.pages, 1.0, 30.0) * (random.random(graph.pages) > 0.1),
    )
    network = random_network(random, float(random.choice([2.0, 7.0, 20.0])), per_connection=False)
    connections, seeds = int(random.integers(1, 8)), random_seeds(random, graph)
    return World(graph, replace(servers, **random_tcp(random, graph.sites)), network, connections, seeds)


EXACT, ROUGH = NUMBERS.map(exact_world), NUMBERS.map(rough_world)
WORLDS = EXACT | ROUGH


def mixed(value: int) -> int:
    """As in rng.py, whose compiled form is for kernels only."""
    for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39)):
        value = ((value ^ value >> shift) * factor) & 0xFFFFFFFF
    return value ^ value >> 15


def draw(page: int, tries: int) -> float:
    """A number in [0, 1) for each page and try."""
    return mixed(mixed(16 * page + tries) ^ mixed(SEED + FATE + 1)) / 2**32


def twin_of(world: World, strategy: Strategy, rules: Rules) -> Twin:
    known = KnownGraph(world.graph)
    return Twin(
        world.graph,
        strategy,
        rules,
        connections=world.connections,
        servers=world.servers,
        network=world.network,
        inputs=inputs_of(strategy, world.graph.pages),
        draw=draw,
        seeds=world.seeds,
        seed=SEED,
        score=lambda frontier: known.scores(frontier.state.state),
    )


def crawl_of(world: World, strategy: Strategy, rules: Rules, **options: Any) -> SimulatedCrawl:
    how = {
        "servers": world.servers,
        "network": world.network,
        "connections": world.connections,
        "seeds": world.seeds,
        **options,
    }
    return crawl(world.graph, strategy, rules, seed=SEED, **how)


def crawl(graph: Graph, strategy: Strategy, rules: Rules, **options: Any) -> SimulatedCrawl:
    return simulate(graph, strategy, rules, inputs=inputs_of(strategy, graph.pages), **options)


def violations(graph: Graph, log: FetchLog, rules: Rules) -> int:
    return politeness_violations(log, graph.site, graph.ips, rules)


def most_active(log: FetchLog) -> int:
    """The largest number of simultaneous visits, from the first start to the last end of each."""
    begin: dict[int, float] = {}
    over: dict[int, float] = {}
    for row in rows(log):
        begin[row.visit] = min(begin.get(row.visit, math.inf), row.start)
        over[row.visit] = max(over.get(row.visit, 0.0), row.end)
    changes = sorted([(time, 1) for time in begin.values()] + [(time, -1) for time in over.values()])
    return max(itertools.accumulate(change for _, change in changes), default=0)


def assert_lawful(world: World, rules: Rules, done: SimulatedCrawl) -> None:
    """What holds for every log, whichever driver made it."""
    log = rows(done.log)
    assert violations(world.graph, done.log, rules) == 0
    assert most_active(done.log) <= world.connections
    tried = [row.page for row in log]
    assert len({row.page for row in log if row.result == FETCHED}) == sum(row.result == FETCHED for row in log)
    assert all(tried.count(page) <= rules.retries + 1 for page in set(tried))
    assert [row.end for row in log] == sorted(row.end for row in log)
    assert done.simulated_seconds == (log[-1].end if log else 0.0)


each_web = settings(max_examples=WEBS, phases=[Phase.generate])
any_strategy = st.sampled_from(STRATEGIES)


@each_web
@given(world=EXACT, rules=RULES, strategy=any_strategy)
def test_the_crawl_equals_that_of_a_plain_loop_to_the_bit(world: World, rules: Rules, strategy: Strategy) -> None:
    twin = twin_of(world, strategy, rules)
    done = crawl_of(world, strategy, rules)
    assert rows(done.log) == twin.run()
    assert ([] if done.batch_visits is None else done.batch_visits.tolist()) == twin.batch_visits
    assert learned(done.frontier, done.log, world.graph) == learned(twin.frontier, done.log, world.graph)
    assert_lawful(world, rules, done)


@each_web
@given(world=ROUGH, rules=RULES, strategy=any_strategy)
def test_on_a_shared_link_the_crawl_equals_that_of_water_filling(
    world: World, rules: Rules, strategy: Strategy
) -> None:
    twin = twin_of(world, strategy, rules)
    expected, done = twin.run(), crawl_of(world, strategy, rules)
    log = rows(done.log)
    assert [(r.page, r.visit, r.result) for r in log] == [(r.page, r.visit, r.result) for r in expected]
    assert ([] if done.batch_visits is None else done.batch_visits.tolist()) == twin.batch_visits
    np.testing.assert_allclose(
        [(r.start, r.first_byte, r.end) for r in log],
        [(r.start, r.first_byte, r.end) for r in expected],
        rtol=1e-9,
        atol=1e-12,
    )
    assert_lawful(world, rules, done)
    assert_conserved(twin)


def learned(frontier: Frontier, log: FetchLog, graph: Graph) -> list[Any]:
    """What the frontier learned of each site. The compiled loop ends with the last page, before its visit ends."""
    last = int(graph.site[log.page[-1]]) if np.count_nonzero(log.result == FETCHED) == graph.pages else -1
    kept = frontier.state.site[["requests", "connection_s", "response_s", "failures", "ready_at"]]
    return [kept[site].tolist() for site in range(graph.sites) if site != last]


def assert_conserved(twin: Twin) -> None:
    """The link never carries more than its bandwidth, and every transfer that ended got its size."""
    got = dict.fromkeys(twin.size_of, 0.0)
    for flow in twin.flows:
        assert sum(flow.rates.values()) <= twin.network.bandwidth * (1 + 1e-12)
        for serial, rate in flow.rates.items():
            got[serial] += rate * (flow.until - flow.since)
    under_way = {transfer.serial for transfer in twin.transfers}
    for serial in got.keys() - under_way:
        assert got[serial] == pytest.approx(twin.size_of[serial], rel=1e-9, abs=1e-9)


@each_web
@given(world=WORLDS, rules=RULES, strategy=any_strategy, most=st.integers(0, 45))
def test_a_crawl_of_at_most_m_pages_is_the_beginning_of_the_full_crawl(
    world: World, rules: Rules, strategy: Strategy, most: int
) -> None:
    """The crawl ends with the m-th fetched page. Failed and refused pages do not count."""
    whole, part = (rows(crawl_of(world, strategy, rules, most=m).log) for m in (None, most))
    assert part == whole[: len(part)]
    fetched = [row.result == FETCHED for row in part]
    assert sum(fetched) == min(most, sum(row.result == FETCHED for row in whole))
    assert len(part) == len(whole) or not part or fetched[-1]


@each_web
@given(world=WORLDS, rules=RULES, strategy=any_strategy)
def test_growing_memory_does_not_change_the_crawl(world: World, rules: Rules, strategy: Strategy) -> None:
    """The compiled loop may return for more memory at any page and visit. No row is written twice."""
    expected = rows(crawl_of(world, strategy, rules).log)
    with pytest.MonkeyPatch.context() as patch:
        grown = make_memory_scarce(patch)
        assert rows(crawl_of(world, strategy, rules).log) == expected
    assert grown or len(expected) < 8


def make_memory_scarce(patch: pytest.MonkeyPatch) -> list[int]:
    """Let the pool have room for at most one more page whenever it grows. Return the list of its sizes."""
    sizes: list[int] = []

    def grow(self: Frontier) -> None:
        s, run = self.state, self.state.run[0]
        sizes.append(int(run.pool + run.reserve))
        self._replace(pool=core.resized(s.pool, sizes[-1], int(run.pool)))

    patch.setattr(core, "FIRST_POOL", 64)
    patch.setattr(Frontier, "_grow", grow)
    patch.setattr(Frontier, "reserve", lambda self, pages, sites, groups, visits: self.make_room(pages, sites, groups))
    return sizes


@pytest.mark.parametrize("slice_", [1, 2, 5])
def test_a_loop_that_returns_regularly_misses_nothing(slice_: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries give more rows than pages."""
    world = exact_world(5)._replace(network=Network(failed=0.6, timeout_s=1.0))
    rules, strategy = Rules(delay_s=0.0, retries=5, lease_s=math.inf), pair("opic", "top-page")
    whole = crawl_of(world, strategy, rules)
    monkeypatch.setattr("trapline.simulator.driver.SLICE", slice_)
    reported: list[tuple[int, int]] = []
    again = crawl_of(world, strategy, rules, progress=lambda *now: reported.append(now))
    assert rows(again.log) == rows(whole.log)
    assert len(whole.log.page) > world.graph.pages
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)


@each_web
@given(world=WORLDS, rules=RULES, strategies=st.tuples(any_strategy, any_strategy))
def test_the_fate_of_a_fetch_does_not_depend_on_the_order(
    world: World, rules: Rules, strategies: tuple[Strategy, Strategy]
) -> None:
    """Under two strategies the results of a page's tries are the same, as far as it was tried."""
    fates: list[dict[int, list[int]]] = [{}, {}]
    for strategy, fate in zip(strategies, fates, strict=True):
        for row in rows(crawl_of(world, strategy, rules).log):
            fate.setdefault(row.page, []).append(row.result)
    for page in fates[0].keys() & fates[1].keys():
        assert all(a == b for a, b in zip(fates[0][page], fates[1][page], strict=False))


def test_shares_of_failures_and_refusals_are_kept() -> None:
    """Of 3,000 first tries (400 uncompiled) 30 % fail and 20 % are refused, within four standard deviations."""
    n = 400 if UNCOMPILED else 3_000
    graph = graph_of([[] for _ in range(n)], list(range(n)), list(range(n)))
    rules = Rules(delay_s=0.0, retries=0, lease_s=math.inf)
    log = crawl(graph, pair("fifo", "fifo"), rules, connections=9, network=Network(failed=0.3, refused=0.2)).log
    for result, share in ((FAILED, 0.3), (REFUSED, 0.2), (FETCHED, 0.5)):
        assert abs((log.result == result).mean() - share) < 4 * math.sqrt(share * (1 - share) / n)


@each_web
@given(
    graph=GRAPHS, rules=RULES, strategy=any_strategy, connections=st.integers(1, 4), seconds=st.sampled_from([1.0, 3.5])
)
def test_without_network_every_page_takes_the_same_time(
    graph: Graph, rules: Rules, strategy: Strategy, connections: int, seconds: float
) -> None:
    """Without connection time, size and link, a page ends `seconds` after its start, and the next page of the visit starts then."""
    log = rows(crawl(graph, strategy, rules, connections=connections, servers=constant_servers(seconds)).log)
    assert all(row.first_byte == row.end == row.start + seconds for row in log)
    visits: dict[int, list[Row]] = {}
    for row in log:
        visits.setdefault(row.visit, []).append(row)
    for visit in visits.values():
        assert all(after.start == before.end for before, after in itertools.pairwise(visit))


def test_at_one_moment_completions_come_before_new_visits() -> None:
    """Pages 0 and 1 end at 1.0. Page 3, to which the second of them links, is better than page 2, to which the first links."""
    graph = graph_of([[2], [3], [], []], [0, 1, 0, 1], [0, 1])
    inputs = {"quality": np.array([1.0, 1.0, 0.0, 9.0])}
    log = simulate(graph, pair("quality", "top-page"), Rules(delay_s=0.0), connections=2, inputs=inputs).log
    assert log.page.tolist() == [0, 1, 3, 2]
    assert log.start.tolist() == [0.0, 0.0, 1.0, 1.0]


def apart(sites: int) -> Graph:
    """This number of sites with one page each, each on its own address, and no links."""
    return graph_of([[] for _ in range(sites)], list(range(sites)), list(range(sites)))


@pytest.mark.parametrize("connections", sample([65, 64, 63, 200], 4) if UNCOMPILED else [63, 64, 65, 200])
def test_more_connections_than_the_initial_slots_of_the_frontier(connections: int) -> None:
    """All connections start at once, and the crawl lasts as long as the rounds they need."""
    done = crawl(apart(400), pair("opic", "top-page"), Rules(delay_s=0.0), connections=connections)
    assert done.drained and len(done.log.page) == 400
    assert done.simulated_seconds == math.ceil(400 / connections)
    assert most_active(done.log) == connections


def test_a_crawl_of_no_pages_takes_no_time() -> None:
    done = crawl(apart(2), pair("fifo", "fifo"), Rules(), most=0)
    assert len(done.log.page) == 0 and done.simulated_seconds == 0.0


@pytest.mark.parametrize(
    ("page", "rules", "scorings"),
    [
        (SCORED, Rules(delay_s=0.0, rescore=3), 3),
        (SCORED, Rules(delay_s=0.0), 0),
        (SCORED_BATCHES, Rules(delay_s=0.0, batch=5), 2),
    ],
)
def test_scores_come_every_k_pages_or_before_every_batch(page: PageRank, rules: Rules, scorings: int) -> None:
    """A site of twelve pages, the first of which links to the others: scores come after 3, 6 and 9 pages. Or in batches
    of 1 (too few for scores), 5, 5 and 1: scores come before the third and the fourth."""
    graph = graph_of([list(range(1, 12)), *([] for _ in range(11))], [0] * 12, [0])
    done = crawl(graph, Strategy("by scores", page, site_ranks()["top-page"]), rules)
    assert done.drained and done.scorings == scorings


# Invalid input: one line that says what to do.

TWO = apart(2)
BAD = {
    "no connections": ({"connections": 0}, "connections"),
    "too many connections": ({"connections": 10**9}, "visits at once"),
    "no seeds": ({"seeds": []}, "seeds"),
    "a seed that is no page": ({"seeds": [0, 2]}, "seeds"),
    "a seed below 0": ({"seeds": [-1]}, "seeds"),
    "a seed that is too large for any page": ({"seeds": [2**32]}, "seeds"),
    "a seed that is no whole number": ({"seeds": [0.5]}, "seeds"),
    "seeds in two rows": ({"seeds": [[0], [1]]}, "seeds"),
    "fewer than no pages": ({"most": -1}, "most"),
    "no input": ({"strategy": pair("quality", "top-page"), "inputs": {}}, "'quality'"),
    "too short an input": ({"strategy": pair("quality", "top-page"), "inputs": {"quality": np.ones(1)}}, "'quality'"),
    "too long an input": ({"strategy": pair("quality", "top-page"), "inputs": {"quality": np.ones(3)}}, "'quality'"),
    "NaN as input": ({"strategy": pair("quality", "top-page"), "inputs": {"quality": [1.0, math.nan]}}, "quality"),
    "a lease that a visit outlasts": ({"rules": Rules(lease_s=5.0), "servers": constant_servers(7.0)}, "raise lease_s"),
    "a lease with a shared link": ({"network": Network(bandwidth=1.0)}, "lease_s to infinity"),
}


@pytest.mark.parametrize(("options", "said"), BAD.values(), ids=BAD)
def test_invalid_input_is_refused_in_one_line(options: dict[str, Any], said: str) -> None:
    given = {"strategy": pair("fifo", "fifo"), "rules": Rules(), **options}
    with pytest.raises(ConfigError, match=said) as refused:
        simulate(TWO, **given)
    assert "\n" not in str(refused.value)


# The audit.


def fetch(page: int, visit: int, start: float, end: float) -> Row:
    return Row(page, visit, start, end, end, FETCHED)


def log_of(*fetches: Row) -> FetchLog:
    return FetchLog(*(np.array(column) for column in zip(*fetches, strict=True)))


# Pages 0 and 1 are on site 0, page 2 is on site 1 at the same address, and page 3 is on site 2 at another.
FOUR = graph_of([[], [], [], []], [0, 0, 1, 2], [0, 0, 1])
W = Rules(delay_s=15.0)


@pytest.mark.parametrize(
    "log",
    [
        log_of(fetch(0, 0, 0.0, 1.0), fetch(1, 1, 16.0, 17.0)),
        log_of(fetch(0, 0, 0.0, 1.0), fetch(1, 0, 1.0, 2.0)),
        log_of(fetch(0, 0, 0.0, 1.0), fetch(2, 1, 16.0, 17.0)),
        log_of(fetch(0, 0, 0.0, 1.0), fetch(3, 1, 0.0, 1.0)),
    ],
    ids=["delay of the site", "one connection", "delay of the address", "elsewhere"],
)
def test_a_polite_log_has_no_violations(log: FetchLog) -> None:
    assert violations(FOUR, log, W) == 0


@pytest.mark.parametrize(
    "log",
    [
        log_of(fetch(0, 0, 0.0, 1.0), fetch(1, 1, 15.9, 16.9)),
        log_of(fetch(0, 0, 0.0, 1.0), fetch(1, 1, 0.5, 1.5)),
        log_of(fetch(0, 0, 0.0, 1.0), fetch(1, 0, 0.5, 1.5)),
        log_of(fetch(0, 0, 0.0, 1.0), fetch(2, 1, 15.9, 16.9)),
        log_of(fetch(0, 0, 0.0, 90.0), fetch(2, 1, 50.0, 51.0)),
        log_of(fetch(2, 1, 50.0, 51.0), fetch(0, 0, 0.0, 90.0)),
        log_of(fetch(0, 0, 0.0, 1.0), fetch(2, 1, 20.0, 21.0), fetch(1, 0, 40.0, 41.0)),
    ],
    ids=[
        "early start",
        "two visits at once",
        "two pages at once",
        "early on the address",
        "overlap on the address",
        "overlap, logged by completion",
        "a visit inside another",
    ],
)
def test_a_forged_log_has_violations(log: FetchLog) -> None:
    assert violations(FOUR, log, W) > 0


def test_the_delays_of_site_and_address_are_audited_apart() -> None:
    log = log_of(fetch(0, 0, 0.0, 1.0), fetch(2, 1, 3.0, 4.0))
    assert violations(FOUR, log, Rules(delay_s=15.0, ip_delay_s=2.0)) == 0
    assert violations(FOUR, log, Rules(delay_s=1.0, ip_delay_s=2.5)) > 0
