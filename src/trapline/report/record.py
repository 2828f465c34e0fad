"""The record of a crawl: every number and curve that tables, plots, the HTML page and JSON show.

This module reads the log, strategy, rules, servers and network of a crawl, and knows neither files nor options. The
crawl was simulated, or is a live one that `together.py` has converted to the same form.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from trapline.frontier import FAILED, REFUSED, Rules
from trapline.graph import Graph, depths
from trapline.processor import CrawlProcessor, ProcessorTime
from trapline.simulator import FetchLog, Network, politeness_violations, timing
from trapline.simulator.breakdown import (
    BatchConnections,
    PagerankByDepth,
    PagerankByPeriod,
    PagesPerSite,
    ServerLocality,
    batch_connections,
    batch_edges,
    batch_of_row,
    middle_rows,
    pagerank_by_depth,
    pagerank_by_period,
    pages_per_site,
    server_locality,
)
from trapline.simulator.log import bytes_of, fetched
from trapline.simulator.metrics import (
    TOP_SHARES,
    Floats,
    Ids,
    average_cumulative_pagerank,
    best_first,
    curve,
    kendall_tau,
    pages_until,
    site_sizes,
    tau_spread,
)
from trapline.strategies.base.inputs import pages_a_run
from trapline.units import counted

Curve = list[list[float]]
"""[fraction of pages, share of their quality], from [0, 0] to [1, 1]."""

TOP = 0.1
QUALITY_SHARES = (0.5, 0.8, 0.95)
_HARVEST_SHARES = (0.1, 0.25, 0.5)


@dataclass(frozen=True, slots=True)
class RecordedCourse:
    """The progress of the crawl, at moments that are denser where more happened."""

    time_s: list[float]
    pages: list[int]
    quality: list[float]  # share of the quality of the whole web


@dataclass(frozen=True, slots=True)
class Load:
    """Averages over bins of time, which are narrower where more happened; `edges_s` has one value more than the others."""

    edges_s: list[float]
    active_connections: list[float]
    bytes: list[int]
    wasted_bandwidth: list[float] | None  # share of the link; None: the link has no limit


class JudgedCrawl(Protocol):
    """The attributes of a crawl that a record needs; `simulator.SimulatedCrawl` has all of them."""

    @property
    def log(self) -> FetchLog: ...
    @property
    def strategy(self) -> Any: ...
    @property
    def rules(self) -> Rules: ...
    @property
    def drained(self) -> bool: ...
    @property
    def wall_seconds(self) -> float: ...
    @property
    def servers(self) -> Any: ...
    @property
    def network(self) -> Network: ...
    @property
    def connections(self) -> int: ...
    @property
    def processor(self) -> ProcessorTime | None: ...
    @property
    def batch_visits(self) -> Ids | None: ...
    @property
    def simulated_seconds(self) -> float: ...


@dataclass(frozen=True, slots=True)
class CrawlRecord:
    """All numbers and curves of one crawl.

    The optimal order has the same pages, best first: no crawl can know it, and none can beat it.

    `top_tenth`: number of pages fetched until 90 % and so on of the top tenth by PageRank were fetched; None if they
    never were. It is a tenth of the reachable pages, which are the pages that a drained crawl fetched, or of all pages
    if the crawl was stopped.
    """

    # The crawl.
    strategy: str
    page_rank: str
    site_rank: str
    pages: int
    links: int
    sites: int
    connections: int
    bandwidth: float | None  # bytes per second of the whole link; None: no limit
    quality: str  # name of the measure of quality
    drained: bool  # every reachable page was fetched
    # What it fetched.
    pages_fetched: int
    fetches: int  # including those that failed or were refused
    failed: int
    refused: int
    visits: int
    bytes: int
    # In what order.
    average_cumulative_pagerank: float
    optimal_average_cumulative_pagerank: float
    average_cumulative_quality: float
    optimal_average_cumulative_quality: float
    kendall_tau: float
    kendall_tau_spread: tuple[float, float]  # lowest and highest of several samples
    top_tenth: dict[str, int | None]
    quality_fetched: float  # share of the whole web's quality
    batch_sites: list[list[int]]  # for a batch in the middle: [pages on a site, sites with that many pages]
    pagerank_by_depth: PagerankByDepth
    pages_per_site: PagesPerSite
    server_locality: ServerLocality
    # In what time.
    simulated_seconds: float
    seconds_until: dict[str, float]  # until 50 % and so on of the crawl's quality was fetched
    active_connections: float  # on average
    speed_up: float | None  # rate / rate with one connection on an unlimited link; None: the latter was not crawled
    optimal_seconds: float | None  # T*; None: the link has no limit
    wall_seconds: float  # time of the simulator's loop alone
    politeness_violations: int
    pagerank_by_period: PagerankByPeriod
    batch_connections: BatchConnections  # of the batch of `batch_sites`
    processor: CrawlProcessor | None  # None: not measured
    # Curves.
    curve: Curve
    optimal_curve: Curve
    web_curve: Curve  # the best pages of the whole web first, reachable or not
    progress: RecordedCourse
    load: Load
    clock: str = "simulated"  # the kind of its seconds: "simulated", or "" for a live crawl
    variant: dict[str, str] = field(default_factory=dict)
    """its conditions, as far as they differ between the crawls of a comparison: value by option, such as connections: 64"""
    # Harvest, unless the crawl was judged by PageRank alone.
    harvest_quality: float | None = None  # least quality of the pages that count
    harvest_share: float | None = None  # their share of the whole web
    harvest_rate: dict[str, float] = field(default_factory=dict)
    """their share of the first 10 % and so on of the pages fetched"""
    label: str = ""  # name among the crawls of a comparison; empty: the name of the strategy

    @property
    def name(self) -> str:
        return self.label or self.strategy

    @property
    def web_size(self) -> str:
        """Pages, links and sites of the web, as text."""
        return f"{counted(self.pages, 'page')}, {counted(self.links, 'link')}, {counted(self.sites, 'site')}"

    @property
    def of_time(self) -> str:
        """Text to be written before a unit of time."""
        return f"{self.clock} " if self.clock else ""

    @property
    def pages_per_second(self) -> float:
        """Pages per second of the simulator's loop, by the wall clock."""
        return self.pages_fetched / max(self.wall_seconds, 1e-9)  # the clock may not advance in a crawl of few pages

    @property
    def rate(self) -> float:
        """Pages per simulated second."""
        return self.pages_fetched / self.simulated_seconds if self.simulated_seconds else 0.0

    @property
    def closeness(self) -> float | None:
        """T* / T, which is 1 if the link was always full."""
        if self.optimal_seconds is None or not self.simulated_seconds:
            return None
        return self.optimal_seconds / self.simulated_seconds


def record_of(
    crawl: JudgedCrawl,
    graph: Graph,
    pagerank: Floats,
    quality: Floats | None = None,
    quality_name: str | None = None,
    harvest_quality: float | None = None,
    reference_rate: float | None = None,
    depth: Ids | None = None,
) -> CrawlRecord:
    """Judge a crawl by the PageRank of each page and, if given, by another measure of quality.

    `harvest_quality`: the least quality of the pages that count for the harvest rate; None: the median of all pages.
    `reference_rate`: pages per second of the crawl that the speed-up is relative to. `depth`: the clicks from the nearest seed
    to each page, -1 if there is no way; without it, from the nearest home page.
    """
    value = pagerank if quality is None else quality
    name = quality_name or ("PageRank" if quality is None else "quality")
    visits, brought = timing.visits(crawl.log), bytes_of(crawl.log, crawl.servers.size)
    came = fetched(crawl.log)
    order = came.page
    best = best_first(order, value)
    best_by_pagerank = best if quality is None else best_first(order, pagerank)
    averages = _averages(order, best, value)
    return CrawlRecord(
        **_who(crawl, graph, name),
        **_counts(crawl, order),
        **_named("pagerank", averages if quality is None else _averages(order, best_by_pagerank, pagerank)),
        **_named("quality", averages),
        **_curves(order, best, value),
        **_times(crawl, value, visits, int(brought.sum())),
        kendall_tau=kendall_tau(order, pagerank),
        kendall_tau_spread=tau_spread(order, pagerank),
        top_tenth=_top_tenth(order, best_by_pagerank if crawl.drained else _best_of_web(best_by_pagerank, pagerank)),
        quality_fetched=_share_of_all(order, value),
        **({} if quality is None else _harvest(order, quality, harvest_quality)),
        speed_up=timing.speed_up(timing.rate(crawl.log), reference_rate) if reference_rate else None,
        politeness_violations=politeness_violations(crawl.log, graph.site, graph.ips, crawl.rules),
        **_batch(crawl, came, visits, graph),
        pagerank_by_depth=pagerank_by_depth(order, pagerank, depths(graph) if depth is None else depth),
        pagerank_by_period=pagerank_by_period(came, pagerank),
        pages_per_site=pages_per_site(order, graph.site),
        server_locality=_server_locality(crawl.log, graph),
        processor=CrawlProcessor(crawl.processor) if crawl.processor else None,
        progress=_progress(crawl, value),
        load=_load(crawl, visits, brought),
    )


def harvest_rate(order: Ids, quality: Floats, least: float) -> dict[str, float]:
    """Return the share of pages with at least this quality among the first pages, by the share of the pages fetched.

    >>> harvest_rate(np.array([0, 2, 1, 3]), np.array([0.9, 0.1, 0.8, 0.2]), 0.5)
    {'10%': 1.0, '25%': 1.0, '50%': 1.0}
    """
    is_good = quality[order] >= least
    counts = {f"{share:.0%}": max(1, round(share * len(order))) for share in _HARVEST_SHARES}
    return {name: float(is_good[:count].mean()) if len(order) else 0.0 for name, count in counts.items()}


def _harvest(order: Ids, quality: Floats, least: float | None) -> dict[str, Any]:
    least = float(np.median(quality)) if least is None else least
    return {
        "harvest_quality": least,
        "harvest_share": float((quality >= least).mean()),
        "harvest_rate": harvest_rate(order, quality, least),
    }


def _best_of_web(best: Ids, value: Floats) -> Ids:
    """Return all pages of the web, best first; `best` has the fetched pages, best first."""
    return best if len(best) == len(value) else best_first(np.arange(len(value)), value)


def _who(crawl: JudgedCrawl, graph: Graph, quality: str) -> dict[str, Any]:
    strategy, link = crawl.strategy, timing.capacity(crawl.network, crawl.connections)
    return {
        "strategy": strategy.name,
        "page_rank": strategy.page.name,
        "site_rank": strategy.site.name,
        "pages": graph.pages,
        "links": graph.links,
        "sites": graph.sites,
        "connections": crawl.connections,
        "bandwidth": link if math.isfinite(link) else None,
        "quality": quality,
        "drained": crawl.drained,
    }


def _counts(crawl: JudgedCrawl, order: Ids) -> dict[str, Any]:
    log = crawl.log
    return {
        "pages_fetched": len(order),
        "fetches": len(log.page),
        "failed": int(np.count_nonzero(log.result == FAILED)),
        "refused": int(np.count_nonzero(log.result == REFUSED)),
    }


def _averages(order: Ids, best: Ids, value: Floats) -> tuple[float, float]:
    """Return the area under the curve of the order, and under that of the best order."""
    return average_cumulative_pagerank(order, value), average_cumulative_pagerank(best, value)


def _named(name: str, averages: tuple[float, float]) -> dict[str, Any]:
    return {f"average_cumulative_{name}": averages[0], f"optimal_average_cumulative_{name}": averages[1]}


def _curves(order: Ids, best: Ids, value: Floats) -> dict[str, Any]:
    optimal, best_of_web = curve(best, value), _best_of_web(best, value)
    return {
        "curve": curve(order, value),
        "optimal_curve": optimal,
        "web_curve": optimal if best_of_web is best else curve(best_of_web, value),
    }


def _share_of_all(order: Ids, value: Floats) -> float:
    whole = float(value.sum())
    return float(value[order].sum()) / whole if whole > 0 else 0.0


def _top_tenth(order: Ids, best: Ids) -> dict[str, int | None]:
    until = pages_until(order, best[: math.ceil(len(best) * TOP)])
    return dict(zip(map(_percent, TOP_SHARES), until, strict=True))


def _times(crawl: JudgedCrawl, value: Floats, visits: timing.Spans, total_bytes: int) -> dict[str, Any]:
    seconds, (begun, ended) = crawl.simulated_seconds, visits
    until = timing.seconds_until(crawl.log, value, QUALITY_SHARES)
    return {
        "visits": len(begun),
        "bytes": total_bytes,
        "simulated_seconds": seconds,
        "seconds_until": dict(zip(map(_percent, QUALITY_SHARES), until, strict=True)),
        "active_connections": float((ended - begun).sum() / seconds) if seconds else 0.0,
        "optimal_seconds": timing.optimal_seconds(total_bytes, timing.capacity(crawl.network, crawl.connections)),
        "wall_seconds": crawl.wall_seconds,
    }


def _batch(crawl: JudgedCrawl, came: FetchLog, visits: timing.Spans, graph: Graph) -> dict[str, Any]:
    """Measure the batch of the page in the middle (castillo04 VI), or as many pages in the middle if no batches are recorded."""
    if crawl.batch_visits is not None and len(came.page):
        batch = batch_of_row(came, crawl.batch_visits, len(came.page) // 2)
    else:
        batch = middle_rows(came, crawl.rules.batch or pages_a_run(len(came.page)))
    return {
        "batch_sites": site_sizes(batch.page, graph.site),
        "batch_connections": batch_connections(visits, batch_edges(batch)),
    }


def _server_locality(log: FetchLog, graph: Graph) -> ServerLocality:
    site = graph.site[log.page]
    return server_locality(log, site, graph.ips[site])


def _progress(crawl: JudgedCrawl, value: Floats) -> RecordedCourse:
    found = timing.progress(crawl.log, value, float(value.sum()))
    return RecordedCourse(*(column.tolist() for column in found))


def _load(crawl: JudgedCrawl, visits: timing.Spans, brought: timing.Counts) -> Load:
    edges, link = timing.bin_edges(crawl.log), timing.capacity(crawl.network, crawl.connections)
    received = timing.bytes_received(crawl.log, brought, edges)
    wasted = timing.wasted_bandwidth(received, edges, link).tolist() if math.isfinite(link) else None
    return Load(edges.tolist(), timing.active_connections(visits, edges).tolist(), received.tolist(), wasted)


def _percent(share: float) -> str:
    return f"{share:.0%}"
