"""The record of a simulated crawl: how early the important pages came. Tables, plots and JSON all show this one.

It reads what the crawl left (its log, strategy and rules) and knows neither files nor options.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trapline.graph import Graph
from trapline.simulate import Crawl, politeness_violations
from trapline.simulate.metrics import average_cumulative_pagerank, curve, kendall_tau

Curve = list[list[float]]
"""[fraction of pages, share of their PageRank], from [0, 0] to [1, 1]."""


@dataclass(frozen=True, slots=True)
class OrderRecord:
    """The optimal order has the same pages sorted by PageRank: no crawl can know it, none can beat it."""

    strategy: str
    page_rank: str
    site_rank: str
    pages: int
    links: int
    sites: int
    pages_fetched: int
    drained: bool  # every page that can be reached was fetched
    average_cumulative_pagerank: float
    optimal_average_cumulative_pagerank: float
    kendall_tau: float
    simulated_seconds: float
    wall_seconds: float  # of the loop alone
    politeness_violations: int
    curve: Curve
    optimal_curve: Curve

    @property
    def pages_per_second(self) -> float:
        return self.pages_fetched / max(self.wall_seconds, 1e-9)  # a clock may not move in a crawl of few pages


def record_of(crawl: Crawl, graph: Graph, rank: NDArray[np.float64]) -> OrderRecord:
    """Judge the order of a crawl by the PageRank of each page."""
    order, frontier = crawl.log.page, crawl.frontier
    optimum = order[np.argsort(-rank[order], kind="stable")]
    return OrderRecord(
        strategy=frontier.strategy.name,
        page_rank=frontier.strategy.page.name,
        site_rank=frontier.strategy.site.name,
        pages=graph.pages,
        links=graph.links,
        sites=graph.sites,
        pages_fetched=len(order),
        drained=crawl.drained,
        average_cumulative_pagerank=average_cumulative_pagerank(order, rank),
        optimal_average_cumulative_pagerank=average_cumulative_pagerank(optimum, rank),
        kendall_tau=kendall_tau(order, rank),
        simulated_seconds=crawl.simulated_seconds,
        wall_seconds=crawl.wall_seconds,
        politeness_violations=politeness_violations(crawl.log, graph.site, graph.ips, frontier.rules),
        curve=curve(order, rank),
        optimal_curve=curve(optimum, rank),
    )
