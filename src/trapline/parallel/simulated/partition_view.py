"""The view of one partition: the part of a graph that it sees, as a graph with pages and sites numbered from 0.

There are two kinds of view. An *own* view has only the pages of the partition, so that all views together need the
memory of one graph; links that lead out of it are ELSEWHERE. A *whole* view is the graph itself, for partitions that also
fetch pages of others.
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trapline.frontier.layout import ELSEWHERE, Array
from trapline.graph import Graph
from trapline.servers.sampled import Servers

Ids = NDArray[np.int32]


@dataclass(frozen=True, eq=False, slots=True)
class PartitionView:
    graph: Graph
    pages: Ids | None  # number in the whole graph, by page of the view; None: the numbers are the same
    sites: Ids | None

    def whole_numbers(self, pages: Ids) -> Ids:
        return pages if self.pages is None else self.pages[pages]

    def numbers_here(self, pages: Ids) -> Ids:
        """Return the numbers in the view of pages of the whole graph. All of them must be in the view."""
        return pages if self.pages is None else np.searchsorted(self.pages, pages).astype(np.int32)

    def of_pages(self, values: Array) -> Array:
        return values if self.pages is None else values[self.pages]

    def servers(self, servers: Servers) -> Servers:
        """Return the servers of the sites and pages in this view."""
        if self.pages is None or self.sites is None:
            return servers
        by_page = {name: self._of(getattr(servers, name), self.pages) for name in ("latency_s", "size")}
        names = set(servers.__slots__) - set(by_page)
        return replace(servers, **by_page, **{name: self._of(getattr(servers, name), self.sites) for name in names})

    @staticmethod
    def _of(values: Array, items: Ids) -> Array:
        return values if len(values) == 1 else values[items]


def own_views(graph: Graph, owner: Ids, number: Ids, partitions: int) -> list[PartitionView]:
    """Return the own view of each partition. O(pages + links) for all views together. `number`: see `own_numbers`."""
    order = np.argsort(owner, kind="stable").astype(np.int32)
    bounds = np.searchsorted(owner[order], np.arange(partitions + 1))
    parts = [order[first:last] for first, last in itertools.pairwise(bounds)]
    return [_own_view(graph, owner, number, pages, partition) for partition, pages in enumerate(parts)]


def own_numbers(owner: Ids, partitions: int) -> Ids:
    """Return the number of each page in the own view of its owner.

    >>> own_numbers(np.array([1, 0, 1, 1], np.int32), 2).tolist()
    [0, 0, 1, 2]
    """
    number = np.empty(len(owner), np.int32)
    for partition in range(partitions):
        pages = np.flatnonzero(owner == partition)
        number[pages] = np.arange(len(pages), dtype=np.int32)
    return number


def _own_view(graph: Graph, owner: Ids, number: Ids, pages: Ids, partition: int) -> PartitionView:
    degree = np.diff(graph.offsets)[pages]
    offsets = np.concatenate(([0], np.cumsum(degree)))
    links = np.repeat(graph.offsets[pages] - offsets[:-1], degree) + np.arange(offsets[-1])
    targets = graph.targets[links]
    targets = np.where(owner[targets] == partition, number[targets], ELSEWHERE).astype(np.int32)
    sites, site = np.unique(graph.site[pages], return_inverse=True)
    _, ips = np.unique(graph.ips[sites], return_inverse=True)
    home = np.full(len(sites), -1, np.int32)
    home[site[::-1]] = np.arange(len(pages), dtype=np.int32)[::-1]  # the first page of each site; not used as a seed
    seen = Graph(offsets, targets, site.astype(np.int32), home, graph.dynamic[pages], ips.astype(np.int32))
    return PartitionView(seen, pages, sites.astype(np.int32))


def whole_view(graph: Graph) -> PartitionView:
    return PartitionView(graph, None, None)
