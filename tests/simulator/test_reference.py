"""Orders on a recorded crawl, compared with those of an independent slow reference.

Seeds are the shortest URL of each host, with one connection, w = 15 s, one second per page, and d = 0.85.
"""

import heapq
import math
import random
from pathlib import Path

import numba
import numpy as np
import pytest

from tests.effort import slow
from trapline.frontier import Rules
from trapline.graph import Graph, generate, load_graph, pagerank
from trapline.simulator import simulate
from trapline.simulator.metrics import average_cumulative_pagerank
from trapline.strategies import load_strategy
from trapline.strategies.base.inputs import default_rules, inputs_for

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT=1: it would take minutes")

REFERENCE = {
    "breadth-first": 0.635,
    "larger-sites-first": 0.623,
    "backlink-count": 0.645,
    "partial-pagerank": 0.644,
    "batch-pagerank": 0.62,
    "opic": 0.650,
    "omniscient": 0.694,
}
W_S = 15.0


@pytest.fixture(scope="module")
def graph(recorded_data: Path) -> Graph:
    return load_graph(recorded_data / "ku-crawl-2021b")


@pytest.fixture(scope="module")
def rank(graph: Graph) -> np.ndarray:
    return pagerank(graph)


def average(graph: Graph, rank: np.ndarray, name: str, seed: int = 0) -> float:
    strategy = load_strategy(name)
    rules = Rules(delay_s=W_S, lease_s=math.inf, first_connection_s=0.0, first_response_s=1.0)
    inputs = inputs_for(strategy, graph, rank, rank, None, seed)
    crawl = simulate(graph, strategy, default_rules(strategy, rules, graph.pages), inputs=inputs, seed=seed)
    return average_cumulative_pagerank(crawl.log.page, rank)


@pytest.mark.parametrize("name", REFERENCE)
def test_average_cumulative_pagerank_equals_that_of_the_reference(graph: Graph, rank: np.ndarray, name: str) -> None:
    assert average(graph, rank, name) == pytest.approx(REFERENCE[name], abs=0.01)


@slow
def test_random_takes_every_allowed_page_with_equal_probability(graph: Graph, rank: np.ndarray) -> None:
    """The reference has .584 and does not say how it samples. A sample fixed at discovery gives .570. Ours equals a
    plain loop that samples among all pages that may be fetched now. Means over 8 seeds, each with a spread of about
    .006."""
    ours = np.mean([average(graph, rank, "random", seed) for seed in range(8)])
    drawn = np.mean([average_cumulative_pagerank(drawn_order(graph, seed), rank) for seed in range(8)])
    assert ours == pytest.approx(drawn, abs=0.01)
    assert ours == pytest.approx(0.584, abs=0.02)


def test_random_order_equals_that_of_a_plain_loop() -> None:
    """The same on a generated web, for machines without the recorded graph. The spread of a mean over 8 seeds is about .003."""
    web = generate(1_500, 60, seed=5)
    rank = pagerank(web)
    ours = np.mean([average(web, rank, "random", seed) for seed in range(8)])
    drawn = np.mean([average_cumulative_pagerank(drawn_order(web, seed), rank) for seed in range(8)])
    assert ours == pytest.approx(drawn, abs=0.015)


def drawn_order(graph: Graph, seed: int) -> np.ndarray:
    """One connection and one second per page: at each step a random waiting page of all sites that are not delayed."""
    draw = random.Random(seed)
    waiting: dict[int, list[int]] = {}
    seen: set[int] = set()
    delayed: list[tuple[float, int]] = []
    order: list[int] = []
    now = 0.0

    def discover(pages: list[int]) -> None:
        for page in pages:
            if page not in seen:
                seen.add(page)
                waiting.setdefault(int(graph.site[page]), []).append(page)

    discover(graph.home.tolist())
    while any(waiting.values()):
        while delayed and delayed[0][0] <= now:
            heapq.heappop(delayed)
        closed = {site for _, site in delayed}
        open_sites = [site for site, pages in waiting.items() if pages and site not in closed]
        if not open_sites:
            now = delayed[0][0]
            continue
        site = draw.choices(open_sites, [len(waiting[site]) for site in open_sites])[0]
        pages = waiting[site]
        at = draw.randrange(len(pages))
        pages[at], pages[-1] = pages[-1], pages[at]
        order.append(pages.pop())
        now += 1.0
        heapq.heappush(delayed, (now + W_S, site))
        discover(graph.targets_of(order[-1]).tolist())
    return np.array(order)
