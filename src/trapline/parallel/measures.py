"""How a parallel crawl went: the measures of Cho and Garcia-Molina 2002, and some that they leave out. It reads logs and the graph alone.

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
from trapline.parallel.in_process import ParallelCrawl
from trapline.parallel.ownership import links_to_others
from trapline.simulate.audit import politeness_violations
from trapline.simulate.log import Log, bytes_of
from trapline.simulate.servers import Servers

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
    robots_at_work: float
    simulated_seconds: float
    wall_seconds: float
    drained: bool


def judge(
    crawl: ParallelCrawl, graph: Graph, rules: Rules, servers: Servers, worth: Floats, most: int | None = None
) -> ParallelRecord:
    """`worth`: of each page, for the quality. `most`: nothing after so many pages counts."""
    log, process = merged(crawl.logs, most)
    came = log.result == FETCHED
    pages = log.page[came]
    distinct, traffic = np.unique(pages), crawl.traffic
    reachable = int((depths(graph, crawl.seeds) >= 0).sum())
    seconds = float(log.end.max(initial=0.0))
    processes = len(crawl.logs)
    by_pages = np.bincount(process[came], minlength=processes)
    by_bytes = np.bincount(process, bytes_of(log, servers.size), processes)
    return ParallelRecord(
        pages_downloaded=len(pages),
        pages_distinct=len(distinct),
        pages_reachable=reachable,
        coverage=len(distinct) / max(1, reachable),
        coverage_of_graph=len(distinct) / graph.pages,
        overlap=(len(pages) - len(distinct)) / max(1, len(distinct)),
        quality=quality(distinct, worth),
        links_between_partitions=int(links_to_others(pages, process[came], graph.offsets, graph.targets, crawl.owner)),
        links_replicated=traffic.replicated,
        links_filtered=traffic.filtered,
        urls_exchanged=traffic.urls,
        urls_exchanged_per_page=traffic.urls / max(1, len(pages)),
        messages=traffic.messages,
        exchanges=traffic.exchanges,
        coordinator_messages=2 * traffic.asked,
        politeness_violations=politeness_violations(log, graph.site, graph.ips, rules),
        imbalance_pages=_imbalance(by_pages),
        imbalance_bytes=_imbalance(by_bytes),
        robots_at_work=float((log.end - log.start).sum()) / max(seconds, 1e-9),
        simulated_seconds=seconds,
        wall_seconds=crawl.wall_seconds,
        drained=crawl.drained,
    )


def merged(logs: list[Log], most: int | None = None) -> tuple[Log, NDArray[np.int32]]:
    """All rows in order of completion, up to the one with which `most` pages are in; and whose each is. Visits get numbers of their own."""
    process = np.repeat(np.arange(len(logs), dtype=np.int32), [len(log.page) for log in logs])
    visits = np.cumsum([0] + [int(log.visit.max(initial=-1)) + 1 for log in logs])
    columns = [np.concatenate(column) for column in zip(*logs, strict=True)]
    whole = Log(*columns)._replace(visit=(columns[1] + visits[process]).astype(np.int32))
    order = np.argsort(whole.end, kind="stable")
    if most is not None:
        in_all = np.cumsum(whole.result[order] == FETCHED)
        order = order[: int(np.searchsorted(in_all, most)) + 1]
    return Log(*(column[order] for column in whole)), process[order]


def quality(pages: NDArray[np.int32], worth: Floats) -> float:
    """The share of as many best pages that are among these. Pages as good as the last of the best are as good as it.

    >>> quality(np.array([0, 2], np.int32), np.array([3.0, 2.0, 1.0, 2.0]))
    0.5
    >>> quality(np.array([0, 3], np.int32), np.array([3.0, 2.0, 1.0, 2.0]))
    1.0
    """
    if not len(pages):
        return 0.0
    least = np.partition(worth, len(worth) - len(pages))[len(worth) - len(pages)]
    better = int((worth > least).sum())
    ours = worth[pages]
    as_good = min(int((ours == least).sum()), len(pages) - better)
    return (int((ours > least).sum()) + as_good) / len(pages)


def _imbalance(parts: NDArray[np.float64] | NDArray[np.int64]) -> float:
    """The largest against the mean."""
    return float(parts.max() / parts.mean()) if parts.sum() else 1.0
