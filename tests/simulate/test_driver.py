"""The compiled driver makes the crawl that a plain loop over the frontier's face makes; its log is polite and complete.

The loop below is the slow twin: events by (time, completions first, serial), one call of the face at a time.
"""

import heapq
import itertools
import math
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.frontier.worlds import one_of_each
from trapline.errors import ConfigError
from trapline.frontier import FETCHED, Drained, Frontier, Outcome, Rules, Visit, WaitUntil
from trapline.frontier.visits import SLOT_BITS
from trapline.graph import Graph
from trapline.simulate import Crawl, Log, politeness_violations, simulate
from trapline.strategies import Strategy, page_ranks, pair, site_ranks

PAIRS = [(page, site) for page in page_ranks() for site in site_ranks()]
WEBS = 8 if numba.config.DISABLE_JIT else 60
COMPLETION, ASK = range(2)


class Row(NamedTuple):
    """One fetched page."""

    page: int
    visit: int
    start: float
    end: float


def rows(log: Log) -> list[Row]:
    columns = (log.page, log.visit, log.start, log.end)
    return [Row(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


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
    """Up to 7 sites on up to 3 addresses, up to 40 pages; every site has a page, its home."""
    random = np.random.default_rng(number)
    sites = int(random.integers(1, 8))
    pages = sites + int(random.integers(0, 34))
    site = [*range(sites), *random.integers(0, sites, pages - sites).tolist()]
    links = [random.permutation(pages)[: random.integers(0, 7)].tolist() for _ in range(pages)]
    ips = random.integers(0, min(3, sites), sites).tolist()
    return graph_of(links, site, ips, random.integers(0, 2, pages).tolist())


# A web is one number, and nothing is shrunk: uncompiled that would take minutes, and a web of 40 pages can be read.
GRAPHS = st.integers(0, 2**32 - 1).map(random_graph)
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
).map(lambda chosen: Rules(**chosen))


def inputs_of(strategy: Strategy, pages: int) -> dict[str, Any]:
    """Ranks with ties, for every column that the page rank wants."""
    return {name: np.arange(pages) * 7 % 5 / 4 - 0.5 for name in strategy.page.inputs}


# The slow twin.


class Loop:
    def __init__(self, graph: Graph, strategy: Strategy, rules: Rules, robots: int, page_seconds: float) -> None:
        self.graph, self.page_seconds, self.free = graph, page_seconds, robots
        self.frontier = Frontier(strategy, rules)
        self.frontier.add_sites(graph.sites, 0.0, graph.ips)
        self.frontier.add_pages(graph.site, graph.dynamic)
        for name, values in inputs_of(strategy, graph.pages).items():
            self.frontier.set_column(name, values)
        self.frontier.discover(graph.home, 0.0)
        self.rows: list[Row] = []
        self.events: list[tuple[float, int, int, Any]] = []
        self.serial = itertools.count()
        self.drained = False

    def run(self, most: int) -> list[Row]:
        self.at(0.0, ASK, None)
        while self.events and len(self.rows) < most and not self.drained:
            now, kind, _, tour = heapq.heappop(self.events)
            if kind == COMPLETION:
                self.complete(now, *tour)
            elif self.free:
                self.ask(now)
        return self.rows

    def at(self, time: float, kind: int, tour: Any) -> None:
        heapq.heappush(self.events, (time, kind, next(self.serial), tour))

    def ask(self, now: float) -> None:
        answer = self.frontier.next(now)
        if isinstance(answer, Visit):
            self.free -= 1
            self.at(now + self.page_seconds, COMPLETION, (answer, 0, now))
            self.at(now, ASK, None)
        elif isinstance(answer, WaitUntil) and answer.time < math.inf:
            self.at(answer.time, ASK, None)
        else:
            self.drained = isinstance(answer, Drained)

    def complete(self, now: float, visit: Visit, at: int, start: float) -> None:
        page = visit.pages[at]
        links = self.graph.targets_of(page)
        assert self.frontier.report(visit, page, FETCHED, now, links, self.page_seconds)
        self.rows.append(Row(page, visit.id >> SLOT_BITS, start, now))
        if at + 1 < len(visit.pages):
            self.at(now + self.page_seconds, COMPLETION, (visit, at + 1, now))
        else:
            assert self.frontier.finish(visit, Outcome(), now)
            self.free += 1
        self.at(now, ASK, None)


def crawl(graph: Graph, strategy: Strategy, rules: Rules, **options: Any) -> Crawl:
    return simulate(graph, strategy, rules, inputs=inputs_of(strategy, graph.pages), **options)


def violations(graph: Graph, log: Log, rules: Rules) -> int:
    return politeness_violations(log, graph.site, graph.ips, rules)


# Laws.


@pytest.mark.parametrize(("page", "site"), PAIRS)
@settings(max_examples=WEBS, phases=[Phase.generate])
@given(graph=GRAPHS, rules=RULES, robots=st.integers(1, 4), seconds=st.sampled_from([1.0, 0.25, 3.5]))
def test_the_crawl_is_that_of_a_plain_loop(
    page: str, site: str, graph: Graph, rules: Rules, robots: int, seconds: float
) -> None:
    strategy = pair(page, site)
    loop = Loop(graph, strategy, rules, robots, seconds)
    expected = loop.run(graph.pages)
    done = crawl(graph, strategy, rules, robots=robots, page_seconds=seconds)
    assert rows(done.log) == expected
    assert violations(graph, done.log, rules) == 0
    fetched = done.log.page.tolist()
    assert len(set(fetched)) == len(fetched)
    assert done.simulated_seconds == (expected[-1].end if expected else 0.0)


@settings(max_examples=WEBS, phases=[Phase.generate])
@given(graph=GRAPHS, rules=RULES, robots=st.integers(1, 4), most=st.integers(0, 45))
def test_a_crawl_of_at_most_m_pages_is_the_beginning_of_the_whole_one(
    graph: Graph, rules: Rules, robots: int, most: int
) -> None:
    strategy = pair("opic", "crawl-ability")
    whole = rows(crawl(graph, strategy, rules, robots=robots).log)
    assert rows(crawl(graph, strategy, rules, robots=robots, most=most).log) == whole[:most]


def test_at_one_moment_completions_come_before_new_visits() -> None:
    """Pages 0 and 1 are in at 1.0. Page 3, which the second of them links to, is better than page 2 of the first."""
    graph = graph_of([[2], [3], [], []], [0, 1, 0, 1], [0, 1])
    inputs = {"quality": np.array([1.0, 1.0, 0.0, 9.0])}
    log = simulate(graph, pair("quality", "top-page"), Rules(delay_s=0.0), robots=2, inputs=inputs).log
    assert log.page.tolist() == [0, 1, 3, 2]
    assert log.start.tolist() == [0.0, 0.0, 1.0, 1.0]


def apart(sites: int) -> Graph:
    """As many sites of one page, each on an address of its own, and no links."""
    return graph_of([[] for _ in range(sites)], list(range(sites)), list(range(sites)))


@pytest.mark.parametrize("robots", [63, 64, 65, 200])
def test_more_robots_than_the_frontier_has_room_for_at_first(robots: int) -> None:
    """All robots set out at once, and the crawl lasts as long as the rounds they need."""
    done = crawl(apart(400), pair("opic", "top-page"), Rules(delay_s=0.0), robots=robots)
    assert done.drained and len(done.log.page) == 400
    assert done.simulated_seconds == math.ceil(400 / robots)


def test_a_lease_that_a_visit_could_outlast_is_refused() -> None:
    """Every robot of a simulation comes back, so a lease that ends before it does is a mistake of the rules."""
    with pytest.raises(ConfigError, match="raise lease_s"):
        crawl(apart(2), pair("fifo", "fifo"), Rules(delay_s=0.0, lease_s=5.0), page_seconds=7.0)


def test_a_crawl_of_no_pages_takes_no_time() -> None:
    done = crawl(apart(2), pair("fifo", "fifo"), Rules(), most=0)
    assert len(done.log.page) == 0 and done.simulated_seconds == 0.0


# The audit.


def log_of(*visits: Row) -> Log:
    pages, ids, starts, ends = zip(*visits, strict=True)
    fetched = np.full(len(pages), FETCHED, np.uint8)
    return Log(np.array(pages, np.int32), np.array(ids), np.array(starts), np.array(starts), np.array(ends), fetched)


# Pages 0 and 1 are of site 0, page 2 of site 1 on the same address, page 3 of site 2 on another.
FOUR = graph_of([[], [], [], []], [0, 0, 1, 2], [0, 0, 1])
W = Rules(delay_s=15.0)


@pytest.mark.parametrize(
    "log",
    [
        log_of(Row(0, 0, 0.0, 1.0), Row(1, 1, 16.0, 17.0)),
        log_of(Row(0, 0, 0.0, 1.0), Row(1, 0, 1.0, 2.0)),
        log_of(Row(0, 0, 0.0, 1.0), Row(2, 1, 16.0, 17.0)),
        log_of(Row(0, 0, 0.0, 1.0), Row(3, 1, 0.0, 1.0)),
    ],
    ids=["rested", "one connection", "address rested", "elsewhere"],
)
def test_a_polite_log_has_no_violations(log: Log) -> None:
    assert violations(FOUR, log, W) == 0


@pytest.mark.parametrize(
    "log",
    [
        log_of(Row(0, 0, 0.0, 1.0), Row(1, 1, 15.9, 16.9)),
        log_of(Row(0, 0, 0.0, 1.0), Row(1, 1, 0.5, 1.5)),
        log_of(Row(0, 0, 0.0, 1.0), Row(1, 0, 0.5, 1.5)),
        log_of(Row(0, 0, 0.0, 1.0), Row(2, 1, 15.9, 16.9)),
        log_of(Row(0, 0, 0.0, 90.0), Row(2, 1, 50.0, 51.0)),
        log_of(Row(2, 1, 50.0, 51.0), Row(0, 0, 0.0, 90.0)),
        log_of(Row(0, 0, 0.0, 1.0), Row(2, 1, 20.0, 21.0), Row(1, 0, 40.0, 41.0)),
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
def test_a_forged_log_has_violations(log: Log) -> None:
    assert violations(FOUR, log, W) > 0


def test_the_delays_of_site_and_address_are_audited_apart() -> None:
    log = log_of(Row(0, 0, 0.0, 1.0), Row(2, 1, 3.0, 4.0))
    assert violations(FOUR, log, Rules(delay_s=15.0, ip_delay_s=2.0)) == 0
    assert violations(FOUR, log, Rules(delay_s=1.0, ip_delay_s=2.5)) > 0
