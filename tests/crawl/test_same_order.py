"""On virtual time the live crawler fetches the same pages in the same order as the simulator, for every strategy.

The simulator's pages are numbers of a graph, the live crawler's are found in HTML, made canonical, hashed and numbered as they come.
"""

import numpy as np
import pytest

from tests.crawl.virtual import VirtualWorld, crawled
from trapline.frontier import Rules
from trapline.graph import Graph, generate
from trapline.simulate import constant_servers, simulate
from trapline.simulate.servers import Servers
from trapline.strategies import load_strategy, strategies
from trapline.strategies.inputs import default_rules

PAGES, SITES = 400, 30
CONDITIONS = {
    "one robot": (1, Rules(delay_s=15.0)),
    "robots and visits of pages": (8, Rules(delay_s=4.0, per_connection=5, lease_s=1e6)),
    "no delay": (16, Rules(delay_s=0.0, per_connection=0, lease_s=1e6)),
    "limits": (
        4,
        Rules(delay_s=1.0, per_connection=3, pages_per_site=12, depth_static=4, depth_dynamic=2, lease_s=1e6),
    ),
}


@pytest.fixture(scope="module")
def web() -> Graph:
    return generate(PAGES, SITES, seed=3)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("name", sorted(strategies()))
def test_live_crawler_and_simulator_fetch_in_the_same_order(web: Graph, name: str, condition: str) -> None:
    robots, rules = CONDITIONS[condition]
    strategy = load_strategy(name)
    rules = default_rules(strategy, rules, web.pages)
    rng = np.random.default_rng(5)
    latency_s, connection_s = rng.uniform(0.1, 2.0, web.pages), rng.uniform(0.05, 0.4, web.sites)
    values = rng.random(web.pages)
    inputs = dict.fromkeys(strategy.page.inputs, values)
    one = constant_servers(1.0)
    servers = Servers(connection_s, latency_s, one.speed, one.requests, one.keep_alive_s, np.zeros(1))
    simulated = simulate(web, strategy, rules, robots=robots, servers=servers, inputs=inputs)
    world = VirtualWorld(web, connection_s, latency_s)
    seeds = [world.urls[page] for page in web.home.tolist()]
    live = crawled(world, strategy, rules, seeds, robots, inputs=inputs)
    assert [record.url for record in live] == [world.urls[page] for page in simulated.log.page.tolist()]
    assert len(live) > 100
