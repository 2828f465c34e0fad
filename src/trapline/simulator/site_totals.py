"""What a simulated crawl fetched from each site. One value per site in every array."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.frontier.layout import FAILED, FETCHED, REFUSED
from trapline.graph import Graph
from trapline.simulator.log import FetchLog, bytes_of

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


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
