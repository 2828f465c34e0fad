"""Simulated crawls of several webs, for the papers on crawl orders (`castillo`, `thesis`, `cao`).

A run returns numbers and short curves. Its key, by which the result is found, comes from the function beside it. This module
does not know what the papers expect.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trapline.confidence import estimate
from trapline.frontier import Rules
from trapline.lab.study import Result, StudyRun
from trapline.lab.webs import Floats, KnownWeb, WebCache, WebSource
from trapline.servers.model import MODELS
from trapline.servers.sampled import modelled_servers, page_seconds
from trapline.simulator import SimulatedCrawl, constant_servers, simulate
from trapline.simulator.breakdown import batch_of_row, pages_per_site
from trapline.simulator.log import FetchLog, fetched
from trapline.simulator.metrics import average_cumulative_pagerank, best_first, cumulative, kendall_tau
from trapline.simulator.network import Network
from trapline.simulator.timing import active_connections, rate, visits
from trapline.strategies import load_strategy
from trapline.strategies.base.inputs import default_rules, inputs_for

PERCENTS = tuple(range(101))
BINS = 60  # of the time of a crawl
_TIMED_MODEL = "measured"  # of the servers whose pages are timed
TIMES_S = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)


@dataclass(frozen=True, slots=True)
class OrderCrawl:
    """The conditions of a crawl. With `servers` "constant", a page takes a second, and only the order counts."""

    strategy: str
    connections: int = 1
    delay_s: float = 15.0
    per_connection: int = 1
    bandwidth: float = math.inf
    bandwidth_per: str = "link"
    servers: str = "constant"
    share: float = 1.0
    """share of the pages after which the crawl ends"""
    batches: int = 0
    """number of batches in which all pages would be fetched; 0: no batches"""

    @property
    def name(self) -> str:
        limit = "" if self.bandwidth == math.inf else f", B = {self.bandwidth:g} per {self.bandwidth_per}"
        end = "" if self.share == 1.0 else f", {self.share:g} of the pages"
        rules = f"r = {self.connections}, w = {self.delay_s:g}, k = {self.per_connection}"
        batches = f", batches of 1/{self.batches}" if self.batches else ""
        return f"{self.strategy}, {rules}{limit}, {self.servers} servers{batches}{end}"

    def batch(self, pages: int) -> int:
        """Return the size of a batch on a web of this size."""
        return -(-pages // self.batches) if self.batches else 0


def crawled(web: KnownWeb, given: OrderCrawl, seed: int = 0) -> SimulatedCrawl:
    strategy = load_strategy(given.strategy)
    rules = Rules(
        delay_s=given.delay_s,
        per_connection=given.per_connection,
        lease_s=math.inf,
        batch=given.batch(web.graph.pages),
    )
    drawn = modelled_servers(web.graph, MODELS[given.servers], seed)
    servers = replace(constant_servers(1.0), size=drawn.size) if given.servers == "constant" else drawn
    return simulate(
        web.graph,
        strategy,
        default_rules(strategy, rules, web.graph.pages),
        connections=min(given.connections, web.graph.sites),
        servers=servers,
        network=Network(given.bandwidth, given.bandwidth_per == "connection"),
        most=None if given.share == 1.0 else max(1, round(given.share * web.graph.pages)),
        inputs=inputs_for(strategy, web.graph, web.pagerank, web.pagerank, web.history, seed),
        seed=seed,
    )


# ---- orders


def order_key(source: WebSource, given: OrderCrawl) -> str:
    return f"{source.name}; order of {given.name}"


def order_run(cache: WebCache, source: WebSource, given: OrderCrawl) -> StudyRun:
    """Return the run of a crawl of which only the order counts."""

    def compute() -> Result:
        web = cache.load(source)
        order = fetched(crawled(web, given).log).page
        return {
            "average": average_cumulative_pagerank(order, web.pagerank),
            "tau": kendall_tau(order, web.pagerank),
            "curve": at_percents(cumulative(order, web.pagerank)),
        }

    return StudyRun(order_key(source, given), source.pages, compute, source.name)


def best_key(source: WebSource) -> str:
    return f"{source.name}; best pages first"


def best_run(cache: WebCache, source: WebSource) -> StudyRun:
    """Return the run of the upper bound: all pages, best first."""

    def compute() -> Result:
        web = cache.load(source)
        return {"curve": at_percents(cumulative(best_first(np.arange(web.graph.pages), web.pagerank), web.pagerank))}

    return StudyRun(best_key(source), max(1, source.pages // 10), compute, source.name)


def history_key(source: WebSource) -> str:
    return f"{source.name}; new pages"


def history_run(cache: WebCache, source: WebSource) -> StudyRun:
    """Return the run that counts the pages without history, and the PageRank of the others."""

    def compute() -> Result:
        web = cache.load(source)
        assert web.history is not None
        old = web.history.page >= 0
        return {"new": float(1 - old.mean()), "old_pagerank": float(web.pagerank[old].sum() / web.pagerank.sum())}

    return StudyRun(history_key(source), max(1, source.pages // 10), compute, source.name)


# ---- speed


def speed_key(source: WebSource, given: OrderCrawl) -> str:
    return f"{source.name}; speed of {given.name}"


def speed_run(cache: WebCache, source: WebSource, given: OrderCrawl) -> StudyRun:
    """Return the run of a crawl of which the speed counts."""

    def compute() -> Result:
        return {"pages_per_second": rate(crawled(cache.load(source), given).log)}

    cost = max(1, round(source.pages * given.share * 2))
    return StudyRun(speed_key(source, given), cost, compute, source.name)


def batch_key(source: WebSource, given: OrderCrawl) -> str:
    return f"{source.name}; the batch in the middle of {given.name}"


def batch_run(cache: WebCache, source: WebSource, given: OrderCrawl) -> StudyRun:
    """Return the run of a crawl in batches, of which the one in the middle counts."""
    before = given.batches // 2
    part = replace(given, share=(before + 1) / given.batches)

    def compute() -> Result:
        web = cache.load(source)
        size = given.batch(web.graph.pages)
        crawl = crawled(web, part)
        log = fetched(crawl.log)
        assert crawl.batch_visits is not None
        batch = batch_of_row(log, crawl.batch_visits, before * size)
        begin = float(log.end[log.visit < batch.visit.min()].max(initial=0.0))
        return {
            "pages": len(batch.page),
            "hours": (float(batch.end[-1]) - begin) / 3600,
            "sites": pages_per_site(batch.page, web.graph.site).sites,
            "active": _active(batch, begin, min(given.connections, web.graph.sites)),
        }

    cost = max(1, round(source.pages * part.share * 2))
    return StudyRun(batch_key(source, given), cost, compute, source.name)


def _active(log: FetchLog, begin: float, most: int) -> list[float]:
    """Return the active connections from `begin` to the end, in equal bins of time, as shares of all connections."""
    edges = np.linspace(begin, float(log.end[-1]), BINS + 1)
    return [round(float(value), 4) for value in active_connections(visits(log), edges) / most]


def page_time_key(source: WebSource) -> str:
    return f"{source.name}; time of a page, {_TIMED_MODEL} servers"


def page_time_run(cache: WebCache, source: WebSource) -> StudyRun:
    """Return the run that measures how long pages take by themselves, each on a new connection."""

    def compute() -> Result:
        graph = cache.load(source).graph
        seconds = page_seconds(modelled_servers(graph, MODELS[_TIMED_MODEL]), graph)
        total = seconds.total
        return {
            "shares": [round(float((total < limit).mean()), 6) for limit in TIMES_S],
            "mostly_waiting": seconds.mostly_waiting,
        }

    return StudyRun(page_time_key(source), max(1, source.pages // 20), compute, source.name)


# ---- the webs themselves


def sites_key(source: WebSource) -> str:
    return f"{source.name}; pages per site"


def sites_run(cache: WebCache, source: WebSource) -> StudyRun:
    """Return the run that counts the pages of each site of the web."""

    def compute() -> Result:
        graph = cache.load(source).graph
        sizes = pages_per_site(np.arange(graph.pages), graph.site)
        return {"sites": sizes.sites, "largest_share": sizes.largest / graph.pages}

    return StudyRun(sites_key(source), max(1, source.pages // 20), compute, source.name)


# ---- numbers of several webs


def at_percents(shares: Floats) -> list[float]:
    """Return the share after each percent of the pages.

    >>> at_percents(np.array([0.5, 1.0]))[50:52]
    [0.5, 0.51]
    """
    x = np.arange(len(shares) + 1) / max(1, len(shares))
    return [round(float(value), 6) for value in np.interp(np.array(PERCENTS) / 100, x, np.concatenate(([0.0], shares)))]


def mean_curve(curves: Sequence[Sequence[float]], axis: int = 0) -> list[float]:
    """Return the mean of several curves. `axis` 1: `curves` has for each point its values."""
    return [float(value) for value in np.mean(np.array(curves), axis=axis)]


def mean_and_spread(values: Sequence[float], digits: int = 3) -> str:
    found = estimate(values)
    return f"{found.mean:.{digits}f}" + ("" if found.ci is None else f" ± {found.ci:.{digits}f}")
