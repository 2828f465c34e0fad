"""Simulated crawls of several webs, for the papers on crawl orders (`castillo`, `thesis`, `cao`).

A web is loaded when a run needs it, and only one is kept. A run returns numbers and short curves. This module does not know
what the papers expect.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trapline.frontier import Rules
from trapline.graph import EvolutionRates, Graph, WebModel, build, evolve, pagerank
from trapline.lab.study import Result, StudyRun
from trapline.refresh import estimate
from trapline.simulate import Crawl, constant_servers, simulate
from trapline.simulate.log import FetchLog, fetched
from trapline.simulate.metrics import (
    average_cumulative_pagerank,
    best_first,
    cumulative,
    kendall_tau,
    middle,
    site_sizes,
)
from trapline.simulate.modelled import MODELS, modelled_servers
from trapline.simulate.servers import Network
from trapline.simulate.timing import active_connections, rate, visits
from trapline.strategies import load_strategy
from trapline.strategies.base.inputs import CrawlHistory, default_rules, inputs_for

Floats = NDArray[np.float64]
PERCENTS = tuple(range(101))
_BINS = 60


@dataclass(frozen=True, eq=False, slots=True)
class KnownWeb:
    graph: Graph
    pagerank: Floats
    history: CrawlHistory | None = None


@dataclass(frozen=True, slots=True)
class WebSource:
    """A web that can be loaded at any time. `name` says everything that decides its pages and links."""

    name: str
    load: Callable[[], KnownWeb]
    pages: int


def generated(pages: int, sites: int, seed: int) -> WebSource:
    def load() -> KnownWeb:
        graph = build(WebModel(pages, sites, seed))
        return KnownWeb(graph, pagerank(graph))

    return WebSource(f"generated {pages:,} pages, {sites:,} sites, seed {seed}", load, pages)


def recorded(name: str, graph: Graph) -> WebSource:
    return WebSource(f"{name}, {graph.pages:,} pages", lambda: KnownWeb(graph, pagerank(graph)), graph.pages)


def evolved(pages: int, sites: int, seed: int, days: float) -> WebSource:
    """A generated web after some days, with its PageRank of day 0 as history."""

    def load() -> KnownWeb:
        old, new = evolve(WebModel(pages, sites, seed), [0.0, days], EvolutionRates())
        old_rank = pagerank(old.graph)
        rank_of = dict(zip(old.name.tolist(), old_rank.tolist(), strict=True))
        of_pages = np.array([rank_of.get(name, -1.0) for name in new.name.tolist()])
        return KnownWeb(new.graph, pagerank(new.graph), CrawlHistory(of_pages, np.sort(old_rank)))

    return WebSource(f"evolved {pages:,} pages, {sites:,} sites, seed {seed}, {days:g} days", load, pages)


class Shelf:
    """Holds the web that was loaded last."""

    def __init__(self) -> None:
        self._name = ""
        self._web: KnownWeb | None = None

    def web(self, source: WebSource) -> KnownWeb:
        if self._web is not None and self._name == source.name:
            return self._web
        self._web = None  # frees the memory before the next web is loaded
        self._name, self._web = source.name, source.load()
        return self._web


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

    @property
    def name(self) -> str:
        limit = "" if self.bandwidth == math.inf else f", B = {self.bandwidth:g} per {self.bandwidth_per}"
        end = "" if self.share == 1.0 else f", {self.share:.0%} of the pages"
        rules = f"r = {self.connections}, w = {self.delay_s:g}, k = {self.per_connection}"
        return f"{self.strategy}, {rules}{limit}, {self.servers} servers{end}"


def crawled(web: KnownWeb, given: OrderCrawl, seed: int = 0) -> Crawl:
    strategy = load_strategy(given.strategy)
    rules = default_rules(
        strategy, Rules(delay_s=given.delay_s, per_connection=given.per_connection, lease_s=math.inf), web.graph.pages
    )
    drawn = modelled_servers(web.graph, MODELS[given.servers], seed)
    servers = replace(constant_servers(1.0), size=drawn.size) if given.servers == "constant" else drawn
    return simulate(
        web.graph,
        strategy,
        rules,
        connections=min(given.connections, web.graph.sites),
        servers=servers,
        network=Network(given.bandwidth, given.bandwidth_per == "connection"),
        most=None if given.share == 1.0 else max(1, round(given.share * web.graph.pages)),
        inputs=inputs_for(strategy, web.graph, web.pagerank, web.pagerank, web.history, seed),
        seed=seed,
    )


def order_run(shelf: Shelf, source: WebSource, given: OrderCrawl) -> StudyRun:
    """Return the run of a crawl of which only the order counts."""

    def compute() -> Result:
        web = shelf.web(source)
        order = fetched(crawled(web, given).log).page
        return {
            "average": average_cumulative_pagerank(order, web.pagerank),
            "tau": kendall_tau(order, web.pagerank),
            "curve": at_percents(cumulative(order, web.pagerank)),
        }

    return StudyRun(f"{source.name}; order of {given.name}", source.pages, compute)


def best_run(shelf: Shelf, source: WebSource) -> StudyRun:
    """Return the run of the upper bound: all pages, best first."""

    def compute() -> Result:
        web = shelf.web(source)
        return {"curve": at_percents(cumulative(best_first(np.arange(web.graph.pages), web.pagerank), web.pagerank))}

    return StudyRun(f"{source.name}; best pages first", source.pages // 10, compute)


def speed_run(shelf: Shelf, source: WebSource, given: OrderCrawl) -> StudyRun:
    """Return the run of a crawl of which the speed counts: pages per second, and one batch from its middle."""

    def compute() -> Result:
        web = shelf.web(source)
        crawl = crawled(web, given)
        order = fetched(crawl.log).page
        return {
            "pages_per_second": rate(crawl.log),
            "batch_sites": site_sizes(middle(order, max(1, len(order) // 10)), web.graph.site),
            "hours": float(crawl.log.end[-1]) / 3600 if len(crawl.log.end) else 0.0,
            **_connections(crawl.log, given.connections),
        }

    cost = max(1, round(source.pages * given.share * 2))
    return StudyRun(f"{source.name}; speed of {given.name}", cost, compute)


def _connections(log: FetchLog, most: int) -> Result:
    """Return the active connections over the time of the crawl, in equal bins, as shares of time and of the connections."""
    end = float(log.end[-1]) if len(log.end) else 0.0
    if end <= 0:
        return {"active": []}
    edges = np.linspace(0.0, end, _BINS + 1)
    return {"active": [round(float(value), 4) for value in active_connections(visits(log), edges) / most]}


def sites_run(shelf: Shelf, source: WebSource) -> StudyRun:
    """Return the run that counts the pages of each site of the web."""

    def compute() -> Result:
        graph = shelf.web(source).graph
        sizes = np.bincount(graph.site, minlength=graph.sites)
        bounds = 2 ** np.arange(0, int(sizes.max()).bit_length() + 1)
        counts, _ = np.histogram(sizes, bounds)
        return {
            "bounds": bounds.tolist(),
            "sites": counts.tolist(),
            "largest_share": float(sizes.max()) / graph.pages,
            "one_page": float((sizes == 1).mean()),
        }

    return StudyRun(f"{source.name}; pages per site", max(1, source.pages // 20), compute)


def at_percents(shares: Floats) -> list[float]:
    """Return the share after each percent of the pages.

    >>> at_percents(np.array([0.5, 1.0]))[50:52]
    [0.5, 0.51]
    """
    x = np.arange(len(shares) + 1) / max(1, len(shares))
    return [round(float(value), 6) for value in np.interp(np.array(PERCENTS) / 100, x, np.concatenate(([0.0], shares)))]


def mean_curve(curves: Sequence[Sequence[float]]) -> list[float]:
    return [float(value) for value in np.mean(np.array(curves), axis=0)]


def mean_and_spread(values: Sequence[float], digits: int = 3) -> str:
    found = estimate(values)
    return f"{found.mean:.{digits}f}" + ("" if found.ci is None else f" ± {found.ci:.{digits}f}")
