"""Measures of a parallel crawl: those of Cho and Garcia-Molina 2002, and some more. They are computed from logs and the
graph alone.

overlap   = (N - I) / I                 N pages downloaded in all, I of them distinct
coverage  = I / U                       U pages that can be reached from the seeds
quality   = |A and P| / |P|             A the distinct pages downloaded, P as many of the best pages of the graph
communication = URLs sent between partitions / N
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trapline.frontier import Rules
from trapline.frontier.layout import FETCHED
from trapline.graph import Graph, depths
from trapline.parallel.simulated.crawl import ParallelCrawl
from trapline.parallel.simulated.url_exchange import links_to_others
from trapline.rng import uniform
from trapline.servers.sampled import Servers
from trapline.simulator.log import FetchLog, bytes_of, politeness_violations

# ---- The seeds of a simulated parallel crawl: a number of random pages for each partition, as in Cho and Garcia-Molina
# 2002.

Ids = NDArray[np.int32]
_STREAM = 7_000_003  # a random stream of its own: ranks and servers draw from the stream of the seed


def random_seeds(owner: Ids, partitions: int, each: int, seed: int) -> Ids:
    """Return `each` random pages of each partition, or all of them if the partition has fewer, in ascending order.

    >>> random_seeds(np.array([0, 1, 1, 1], np.int32), 2, 2, seed=0).tolist()
    [0, 1, 3]
    """
    chosen = [_sampled(np.flatnonzero(owner == number), each, seed + number) for number in range(partitions)]
    return np.sort(np.concatenate(chosen)).astype(np.int32)


def _sampled(pages: NDArray[np.int64], each: int, seed: int) -> NDArray[np.int64]:
    """Return the pages at the first `each` distinct places that are drawn."""
    if len(pages) <= each:
        return pages
    places: dict[int, None] = {}
    number = 0
    while len(places) < each:
        places[int(uniform(_STREAM + seed, number) * len(pages))] = None
        number += 1
    return pages[list(places)]


# ---- measures

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ParallelRecord:
    pages_downloaded: int
    pages_distinct: int
    pages_reachable: int
    coverage: float
    coverage_of_graph: float
    overlap: float
    quality: float
    links_between_partitions: int
    links_replicated: int
    links_filtered: int
    urls_exchanged: int
    urls_exchanged_per_page: float
    messages: int
    exchanges: int
    coordinator_messages: int
    politeness_violations: int
    imbalance_pages: float
    imbalance_bytes: float
    connections_at_work: float
    simulated_seconds: float
    wall_seconds: float
    drained: bool


def judge(
    crawl: ParallelCrawl, graph: Graph, rules: Rules, servers: Servers, page_values: Floats, most: int | None = None
) -> ParallelRecord:
    """Compute the measures of a crawl. `page_values`: the value of each page, for the quality. `most`: ignore everything
    after this number of pages."""
    log, process = merged(crawl.logs, most)
    is_fetched = log.result == FETCHED
    pages = log.page[is_fetched]
    distinct, traffic = np.unique(pages), crawl.traffic
    reachable = int((depths(graph, crawl.seeds) >= 0).sum())
    seconds = float(log.end.max(initial=0.0))
    processes = len(crawl.logs)
    by_pages = np.bincount(process[is_fetched], minlength=processes)
    by_bytes = np.bincount(process, bytes_of(log, servers.size), processes)
    return ParallelRecord(
        pages_downloaded=len(pages),
        pages_distinct=len(distinct),
        pages_reachable=reachable,
        coverage=len(distinct) / max(1, reachable),
        coverage_of_graph=len(distinct) / graph.pages,
        overlap=(len(pages) - len(distinct)) / max(1, len(distinct)),
        quality=quality(distinct, page_values),
        links_between_partitions=int(
            links_to_others(pages, process[is_fetched], graph.offsets, graph.targets, crawl.owner)
        ),
        links_replicated=traffic.replicated,
        links_filtered=traffic.filtered,
        urls_exchanged=traffic.urls,
        urls_exchanged_per_page=traffic.urls / max(1, len(pages)),
        messages=traffic.messages,
        exchanges=traffic.exchanges,
        coordinator_messages=2 * traffic.owner_requests,
        politeness_violations=politeness_violations(log, graph.site, graph.ips, rules),
        imbalance_pages=_imbalance(by_pages),
        imbalance_bytes=_imbalance(by_bytes),
        connections_at_work=float((log.end - log.start).sum()) / max(seconds, 1e-9),
        simulated_seconds=seconds,
        wall_seconds=crawl.wall_seconds,
        drained=crawl.drained,
    )


def merged(logs: list[FetchLog], most: int | None = None) -> tuple[FetchLog, NDArray[np.int32]]:
    """Return all rows in order of completion, up to the row with which `most` pages are fetched; and the partition of
    each row. Visits are renumbered, so that each has a number of its own."""
    process = np.repeat(np.arange(len(logs), dtype=np.int32), [len(log.page) for log in logs])
    visits = np.cumsum([0] + [int(log.visit.max(initial=-1)) + 1 for log in logs])
    columns = [np.concatenate(column) for column in zip(*logs, strict=True)]
    whole = FetchLog(*columns)._replace(visit=(columns[1] + visits[process]).astype(np.int32))
    order = np.argsort(whole.end, kind="stable")
    if most is not None:
        in_all = np.cumsum(whole.result[order] == FETCHED)
        order = order[: int(np.searchsorted(in_all, most)) + 1]
    return FetchLog(*(column[order] for column in whole)), process[order]


def quality(pages: NDArray[np.int32], page_values: Floats) -> float:
    """Return the share of the best pages that are among `pages`. The best pages are as many as `pages`; pages with the
    same value as the last of them count as best too.

    >>> quality(np.array([0, 2], np.int32), np.array([3.0, 2.0, 1.0, 2.0]))
    0.5
    >>> quality(np.array([0, 3], np.int32), np.array([3.0, 2.0, 1.0, 2.0]))
    1.0
    """
    if not len(pages):
        return 0.0
    least = np.partition(page_values, len(page_values) - len(pages))[len(page_values) - len(pages)]
    better = int((page_values > least).sum())
    ours = page_values[pages]
    as_good = min(int((ours == least).sum()), len(pages) - better)
    return (int((ours > least).sum()) + as_good) / len(pages)


def _imbalance(parts: NDArray[np.float64] | NDArray[np.int64]) -> float:
    """Return the ratio of the largest part to the mean."""
    return float(parts.max() / parts.mean()) if parts.sum() else 1.0
