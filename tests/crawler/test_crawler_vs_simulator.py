"""In virtual time the live crawler fetches the same pages in the same order as the simulator, for every strategy.

The visits, the times and the results are the same too. The simulator's pages are numbers of a graph. The live crawler finds them in
HTML, makes their URLs canonical, and hashes and numbers them. Times are multiples of a quarter of a second, so that many events happen
at the same time.
"""

import math
import random
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from tests.crawler.virtual import VirtualWorld, crawled
from tests.effort import sample
from tests.frontier.worlds import ASKED, PAIRS, SEED, Rank
from trapline.defaults import QUALITY, STRATEGY
from trapline.frontier import Rules
from trapline.frontier.core.visits import SLOT_BITS
from trapline.graph import Graph, generate
from trapline.servers.sampled import Servers
from trapline.simulator import Network, constant_servers, simulate
from trapline.strategies import Strategy, pair, strategies
from trapline.strategies.base.choice import worded
from trapline.strategies.base.inputs import default_rules
from trapline.strategies.base.url_inputs import STATE_PAGES, first_pages

COMPILED = not numba.config.DISABLE_JIT
DEFAULT = f"{QUALITY}+{STRATEGY}"
FEW = [DEFAULT, "opic", "breadth-first", "batch-pagerank", "crawl-ability", "larger-sites-first"]


class Conditions(NamedTuple):
    """The conditions of a crawl, without its strategy."""

    connections: int = 1
    rules: dict[str, Any] = {}  # noqa: RUF012  # never changed
    pages: int = 200 if COMPILED else 60
    sites: int = 20
    sites_per_ip: float = 1.0
    requests: tuple[int, ...] = (0,)  # per connection, for the sites in turn; 0: the server never closes
    failed: float = 0.0
    refused: float = 0.0
    pause_s: float = 0.0
    seed: int = 0


MANY = {"per_connection": 5, "delay_s": 4.0}
CONDITIONS = {
    "one connection": Conditions(1, {"delay_s": 15.0}),
    "visits of several pages": Conditions(8, MANY, pause_s=0.5),
    "no delay": Conditions(16, {"delay_s": 0.0, "per_connection": 0}),
    "limits": Conditions(
        4, {"delay_s": 1.0, "per_connection": 3, "pages_per_site": 12, "depth_static": 3, "depth_dynamic": 2}
    ),
    "servers that close": Conditions(6, {**MANY, "per_connection": 0, "first_requests": 4}, requests=(1, 100, 3, 0, 2)),
    "sites on one address": Conditions(6, {**MANY, "ip_delay_s": 2.0}, sites_per_ip=2.5),
    "failures": Conditions(6, {**MANY, "retries": 1, "backoff_s": 8.0}, failed=0.1, refused=0.1),
    "batches": Conditions(5, {**MANY, "batch": 25}),
}


class FetchOutcome(NamedTuple):
    """The result of one requested page."""

    url: str
    result: int
    visit: int
    started: float


def check(strategy: Strategy, conditions: Conditions) -> int:
    """Crawl the same web with both. Return the number of requested pages."""
    web = generate(conditions.pages, conditions.sites, seed=conditions.seed, sites_per_ip=conditions.sites_per_ip)
    rules = default_rules(strategy, Rules(lease_s=1e6, **conditions.rules), web.pages)
    rng = np.random.default_rng(conditions.seed)
    latency_s, connection_s = rng.integers(1, 12, web.pages) / 4, rng.integers(0, 4, web.sites) / 4
    requests = np.resize(np.array(conditions.requests, np.int32), web.sites)
    inputs = dict.fromkeys(strategy.page.inputs, rng.random(web.pages))
    # A live crawl finds these by itself, from the URLs.
    urls = [str(url) for url in web.urls or ()]
    inputs |= {
        name: first_pages(np.array([of(url) for url in urls])) for name, of in STATE_PAGES.items() if name in inputs
    }
    shares = {
        "failed": conditions.failed,
        "refused": conditions.refused,
        "timeout_s": 5.0,
        "pause_s": conditions.pause_s,
    }
    theirs = _simulated(
        web, strategy, rules, conditions, Servers(connection_s, latency_s, *_fast(requests)), shares, inputs
    )
    world = VirtualWorld(web, connection_s, latency_s, requests, seed=conditions.seed, **shares)
    seeds = [world.urls[page] for page in web.home.tolist()]
    live = crawled(world, strategy, rules, seeds, conditions.connections, inputs=inputs, seed=conditions.seed)
    ours = [FetchOutcome(one.url, one.result, one.visit >> SLOT_BITS, one.started) for one in live]
    assert ours == theirs, (strategy.name, conditions)
    return len(ours)


def _simulated(
    web: Graph, strategy: Strategy, rules: Rules, conditions: Conditions, servers: Servers, shares: Any, inputs: Any
) -> list[FetchOutcome]:
    crawl = simulate(
        web,
        strategy,
        rules,
        connections=conditions.connections,
        servers=servers,
        network=Network(**shares),
        inputs=inputs,
        seed=conditions.seed,
    )
    columns = (crawl.log.page, crawl.log.result, crawl.log.visit, crawl.log.start)
    urls = [str(url) for url in web.urls or ()]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [FetchOutcome(urls[page], result, visit, start) for page, result, visit, start in rows]


def _fast(requests: np.ndarray) -> tuple[Any, ...]:
    """Return the other properties of the servers: nothing else takes time."""
    one = constant_servers(1.0)
    return one.speed, requests, one.keep_alive_s, np.zeros(1)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("name", [*sorted(strategies()), DEFAULT] if COMPILED else sample(FEW, 3))
def test_every_strategy_fetches_in_the_same_order(name: str, condition: str) -> None:
    assert check(worded(name), CONDITIONS[condition]) > 40


def random_conditions(chance: random.Random) -> Conditions:
    """Return a random web and crawl."""
    rules = {
        "delay_s": chance.choice([0.0, 0.25, 1.0, 4.0]),
        "ip_delay_s": chance.choice([None, 0.0, 0.5, 6.0]),
        "small_site_pages": chance.choice([0, 0, 5]),
        "small_site_delay_s": chance.choice([0.0, 3.0]),
        "per_connection": chance.choice([0, 1, 2, 5]),
        "retries": chance.choice([0, 1, 2]),
        "backoff_s": chance.choice([0.0, 2.0]),
        "pages_per_site": chance.choice([0, 0, 3, 8]),
        "depth_static": chance.choice([0, 0, 2]),
        "depth_dynamic": chance.choice([0, 0, 1]),
        "batch": chance.choice([0, 0, 1, 4, 20]),
        "batch_ahead": chance.choice([False, True]),
        "batch_least_active": chance.choice([0, 1, 3]),
        "rescore": chance.choice([0, 7, 25]),
        "estimator": chance.choice(["average", "median"]),
        "alpha": chance.choice([0.8, 0.0, 1.0]),
        "first_requests": chance.choice([50, 2]),
    }
    return Conditions(
        connections=chance.choice([1, 2, 5, 30]),
        rules=rules,
        pages=chance.choice([30, 60, 90]),
        sites=chance.choice([4, 8, 20]),
        sites_per_ip=chance.choice([1.0, 2.0, 4.0]),
        requests=tuple(chance.choices([0, 0, 1, 2, 3, 100], k=5)),
        failed=chance.choice([0.0, 0.0, 0.2]),
        refused=chance.choice([0.0, 0.0, 0.2]),
        pause_s=chance.choice([0.0, 0.0, 0.5]),
        seed=chance.randrange(1000),
    )


@pytest.mark.parametrize(
    "rank",
    sample(PAIRS, 3) if COMPILED else sample(PAIRS[:: len(PAIRS) // 12], 2),
    ids=lambda rank: f"{rank.page}+{rank.site}",
)
def test_every_pair_of_ranks_fetches_in_the_same_order_on_random_webs(rank: Rank) -> None:
    """TRAPLINE_WEBS sets a number of new webs, shared among the pairs. Without it the web is always the same."""
    for web in range(math.ceil(int(ASKED or 1) / len(PAIRS))):
        check(pair(*rank), random_conditions(random.Random(f"{SEED} {rank} {web}")))
