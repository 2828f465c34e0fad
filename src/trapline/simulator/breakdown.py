"""A crawl broken down: PageRank by depth and by period of time, pages per site, one batch, server locality, and totals of sites.

This module reads the log and arrays of the web, after the crawl; it does not know who chose the pages. The size of every
result is bounded, however long the crawl was.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.frontier.layout import FAILED, FETCHED, REFUSED
from trapline.graph import Graph
from trapline.simulator.log import FetchLog, bytes_of
from trapline.simulator.metrics import Floats, Ids
from trapline.simulator.timing import Spans, active_connections

MOST_DEPTHS = 31
"""The last one includes all deeper pages."""
MOST_PERIODS = 50
BATCH_BINS = 60
_PERIODS_S = (1.0, 10.0, 60.0, 600.0, 3_600.0, 86_400.0, 604_800.0)


@dataclass(frozen=True, slots=True)
class PagerankByDepth:
    """Fetched pages by depth: the clicks from the nearest seed."""

    depth: list[int]
    pages: list[int]
    pagerank: list[float]  # their share of the PageRank of the whole web
    average_pagerank: list[float | None]  # of a page, relative to the average page of the web; None: no pages


@dataclass(frozen=True, slots=True)
class PagerankByPeriod:
    """Fetched pages by the period of time in which they arrived."""

    period_s: float
    begin_s: list[float]
    pages: list[int]
    pagerank: list[float]  # as by depth
    average_pagerank: list[float | None]


@dataclass(frozen=True, slots=True)
class BatchConnections:
    """Average active connections in equal bins of time, from the begin to the end of one batch; one edge more than bins."""

    edges_s: list[float]
    active_connections: list[float]


@dataclass(frozen=True, slots=True)
class PagesPerSite:
    """Fetched pages per site. The lists have a class of sites for each power of two: from it to just below the next one."""

    at_least: list[int]
    sites: list[int]
    pages: list[int]
    average: float
    median: float
    largest: int


@dataclass(frozen=True, slots=True)
class ServerLocality:
    """Share of the fetches that follow a fetch of the same visit, and whose predecessor in the log has the same site or
    address. None: nothing was fetched."""

    visit: float | None
    site: float | None
    address: float | None


def pagerank_by_depth(pages: Ids, rank: Floats, depth: Ids) -> PagerankByDepth:
    """Return the PageRank of the fetched pages by their depth. Pages with depth -1, to which no links lead, are omitted.

    >>> found = pagerank_by_depth(np.array([2, 0, 1]), np.array([0.5, 0.1, 0.2, 0.2]), depth=np.array([0, 1, 1, 2]))
    >>> found.depth, found.pages, found.average_pagerank
    ([0, 1], [1, 2], [2.0, 0.6000000000000001])
    """
    clicks = np.minimum(depth[pages], MOST_DEPTHS - 1)
    reached = clicks >= 0
    if not reached.all():
        pages, clicks = pages[reached], clicks[reached]
    depths = int(clicks.max(initial=-1)) + 1
    return PagerankByDepth(list(range(depths)), *pagerank_by_group(clicks, depths, pages, rank))


def pagerank_by_period(came: FetchLog, rank: Floats) -> PagerankByPeriod:
    """Return the PageRank of the fetched pages by the period of time in which they arrived.

    >>> from trapline.simulator.log import log_of
    >>> came = log_of((0, 0, 0.0, 1.0, 1.5), (1, 0, 1.5, 2.0, 3.0))
    >>> pagerank_by_period(came, np.array([0.75, 0.25])).pagerank
    [0.0, 0.75, 0.0, 0.25]
    """
    seconds = float(came.end[-1]) if len(came.end) else 0.0
    period_s = period_of(seconds)
    periods = int(seconds // period_s) + 1 if len(came.end) else 0
    group = (came.end // period_s).astype(np.int32)
    begin_s = [number * period_s for number in range(periods)]
    return PagerankByPeriod(period_s, begin_s, *pagerank_by_group(group, periods, came.page, rank))


def period_of(seconds: float) -> float:
    """Return the shortest round period of which a crawl has at most `MOST_PERIODS`: a second, 10, a minute, 10, an hour,
    a day, a week; then ten weeks and so on.

    >>> [period_of(seconds) for seconds in (30.0, 7_200.0, 864_000.0)]
    [1.0, 600.0, 86400.0]
    """
    for period_s in _PERIODS_S:
        if seconds < MOST_PERIODS * period_s:
            return period_s
    period_s = _PERIODS_S[-1]
    while seconds >= MOST_PERIODS * period_s:
        period_s *= 10
    return period_s


def pagerank_by_group(
    group: Ids, groups: int, pages: Ids, rank: Floats
) -> tuple[list[int], list[float], list[float | None]]:
    """Return for each group of pages: their number, their share of the PageRank of the whole web, and their average PageRank
    relative to the average page of the web (None: no pages). `group`: number of the group of each page.

    >>> pagerank_by_group(np.array([0, 2]), 3, pages=np.array([3, 0]), rank=np.array([0.5, 0.125, 0.125, 0.25]))
    ([1, 0, 1], [0.25, 0.0, 0.5], [1.0, None, 2.0])
    """
    counts = np.bincount(group, minlength=groups)
    whole = float(rank.sum()) or 1.0
    shares = np.bincount(group, rank[pages], minlength=groups) / whole
    averages = [
        share * len(rank) / count if count else None
        for share, count in zip(shares.tolist(), counts.tolist(), strict=True)
    ]
    return counts.tolist(), shares.tolist(), averages


def pages_per_site(pages: Ids, site: Ids) -> PagesPerSite:
    """Return how the fetched pages are distributed over the sites that have at least one of them.

    >>> found = pages_per_site(np.array([0, 1, 2, 4]), site=np.array([7, 7, 3, 3, 5]))
    >>> found.at_least, found.sites, found.pages, found.largest
    ([1, 2], [2, 1], [2, 2], 2)
    """
    sizes = np.bincount(site[pages])
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return PagesPerSite([], [], [], 0.0, 0.0, 0)
    power = np.frexp(sizes)[1] - 1  # exact, unlike a logarithm
    sites, held = np.bincount(power), np.bincount(power, sizes)
    return PagesPerSite(
        (2 ** np.arange(len(sites))).tolist(),
        sites.tolist(),
        held.astype(np.int64).tolist(),
        float(sizes.mean()),
        float(np.median(sizes)),
        int(sizes.max()),
    )


def server_locality(log: FetchLog, site: Ids, address: Ids) -> ServerLocality:
    """Return how often consecutive fetches go to the same server. `site`, `address`: of each row of the log.

    >>> from trapline.simulator.log import log_of
    >>> log = log_of((0, 0, 0.0, 1.0, 1.0), (1, 0, 1.0, 2.0, 2.0), (2, 1, 2.0, 3.0, 3.0), (3, 2, 3.0, 4.0, 4.0))
    >>> server_locality(log, np.array([5, 5, 6, 7]), np.array([0, 0, 0, 1]))
    ServerLocality(visit=0.25, site=0.25, address=0.5)
    """
    rows = len(log.page)
    if not rows:
        return ServerLocality(None, None, None)
    seen = np.zeros(int(log.visit.max()) + 1, np.bool_)
    seen[log.visit] = True
    return ServerLocality(1.0 - int(np.count_nonzero(seen)) / rows, _repeated(site) / rows, _repeated(address) / rows)


def _repeated(values: Ids) -> int:
    """Return how many values equal their predecessor."""
    return int(np.count_nonzero(values[1:] == values[:-1]))


def batch_of_row(came: FetchLog, batch_visits: Ids, row: int) -> FetchLog:
    """Return the rows of the batch to which a row belongs. `batch_visits`: the first visit of each batch.

    >>> from trapline.simulator.log import log_of
    >>> came = log_of(*((page, page, 0.0, 0.0, page + 1.0) for page in range(6)))
    >>> batch_of_row(came, np.array([0, 1, 4]), row=3).page.tolist()
    [1, 2, 3]
    """
    number = int(np.searchsorted(batch_visits, came.visit[row], side="right"))
    is_inside = came.visit >= batch_visits[number - 1]
    if number < len(batch_visits):
        is_inside &= came.visit < batch_visits[number]
    return FetchLog(*(column[is_inside] for column in came))


def middle_rows(came: FetchLog, pages: int) -> FetchLog:
    """Return as many rows from the middle of the crawl, or all if there are fewer."""
    first = max(0, (len(came.page) - pages) // 2)
    return FetchLog(*(column[first : first + pages] for column in came))


def batch_edges(batch: FetchLog) -> Floats:
    """Return the edges of equal bins from the first request to the last byte of a batch."""
    if not len(batch.end) or batch.end[-1] <= batch.start.min():
        return np.zeros(1)
    return np.linspace(float(batch.start.min()), float(batch.end[-1]), BATCH_BINS + 1)


def batch_connections(visits: Spans, edges: Floats) -> BatchConnections:
    """Return the average active connections between the edges; visits that began before or ended later count in part.

    >>> visits = np.array([0.0, 2.0]), np.array([4.0, 9.0])
    >>> batch_connections(visits, np.array([1.0, 3.0, 5.0])).active_connections
    [1.5, 1.5]
    """
    begun, ended = visits
    inside: NDArray[np.bool_] = (ended > edges[0]) & (begun < edges[-1])
    spans = np.maximum(begun[inside], edges[0]), np.minimum(ended[inside], edges[-1])
    return BatchConnections(edges.tolist(), active_connections(spans, edges).tolist())


# ---- What the crawl fetched from each site. One value per site in every array.

Counts = NDArray[np.int64]


class SiteTotals(NamedTuple):
    pages: Counts  # pages of the web
    pages_fetched: Counts
    failed: Counts
    refused: Counts
    visits: Counts
    bytes: Counts
    pagerank: Floats  # of all pages of the site
    pagerank_fetched: Floats
    first_s: Floats  # when its first page was fetched; NaN: no page was
    last_s: Floats


def site_totals(log: FetchLog, graph: Graph, size: Floats, pagerank: Floats) -> SiteTotals:
    """Return the totals of every site. `size`: bytes of each page, or one value for all.

    >>> from trapline.graph import generate
    >>> from trapline.simulator.log import log_of
    >>> web = generate(20, 2, seed=1)
    >>> log = log_of((0, 0, 0.0, 1.0, 2.0), (1, 1, 5.0, 6.0, 7.0, FAILED))
    >>> found = site_totals(log, web, np.full(1, 100.0), np.full(20, 0.05))
    >>> found.pages_fetched.tolist(), found.failed.tolist(), found.bytes.tolist(), found.last_s.tolist()
    ([1, 0], [0, 1], [100, 0], [2.0, nan])
    """
    site = graph.site[log.page]
    is_fetched = log.result == FETCHED
    of_visit = np.full(int(log.visit.max(initial=-1)) + 1, -1, np.int64)
    of_visit[log.visit] = site
    first, last = np.full(graph.sites, np.inf), np.full(graph.sites, -np.inf)
    np.minimum.at(first, site[is_fetched], log.end[is_fetched])
    np.maximum.at(last, site[is_fetched], log.end[is_fetched])

    def count(sites: NDArray[np.int64] | NDArray[np.int32]) -> Counts:
        return np.bincount(sites, minlength=graph.sites)

    def total(sites: NDArray[np.int32], values: Floats | Counts) -> Floats:
        return np.asarray(np.bincount(sites, values, graph.sites), np.float64)

    return SiteTotals(
        pages=count(graph.site),
        pages_fetched=count(site[is_fetched]),
        failed=count(site[log.result == FAILED]),
        refused=count(site[log.result == REFUSED]),
        visits=count(of_visit[of_visit >= 0]),
        bytes=np.rint(total(site, bytes_of(log, size))).astype(np.int64),
        pagerank=total(graph.site, pagerank),
        pagerank_fetched=total(site[is_fetched], pagerank[log.page[is_fetched]]),
        first_s=np.where(np.isfinite(first), first, np.nan),
        last_s=np.where(np.isfinite(last), last, np.nan),
    )
