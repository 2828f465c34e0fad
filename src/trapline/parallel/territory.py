"""The part of a graph that one partition sees, as a graph of its own: pages and sites numbered from 0, links out of it as ELSEWHERE.

Two kinds of view. *own*: the pages of the partition and nothing else, so that all views together take the room of one graph.
*whole*: every page under its own number, for partitions that also fetch pages of others; links to those are ELSEWHERE there too.
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trapline.frontier.layout import ELSEWHERE, Array
from trapline.graph import Graph
from trapline.simulate.servers import Servers

Ids = NDArray[np.int32]


@dataclass(frozen=True, eq=False, slots=True)
class View:
    graph: Graph
    pages: Ids | None  # the number in the whole graph of each page; None: the same
    sites: Ids | None

    def whole_numbers(self, pages: Ids) -> Ids:
        return pages if self.pages is None else self.pages[pages]

    def own_numbers(self, pages: Ids) -> Ids:
        """The other way round, of pages that are all in the view."""
        return pages if self.pages is None else np.searchsorted(self.pages, pages).astype(np.int32)

    def of_pages(self, values: Array) -> Array:
        return values if self.pages is None else values[self.pages]

    def servers(self, servers: Servers) -> Servers:
        """What the sites and pages of this view are like."""
        if self.pages is None or self.sites is None:
            return servers
        by_page = {name: self._of(getattr(servers, name), self.pages) for name in ("latency_s", "size")}
        names = ("connection_s", "speed", "requests", "keep_alive_s")
        return replace(servers, **by_page, **{name: self._of(getattr(servers, name), self.sites) for name in names})

    @staticmethod
    def _of(values: Array, items: Ids) -> Array:
        return values if len(values) == 1 else values[items]


def own_views(graph: Graph, owner: Ids, partitions: int) -> list[View]:
    """What each partition owns. O(pages + links) for all of them together."""
    order = np.argsort(owner, kind="stable").astype(np.int32)
    number = np.empty(graph.pages, np.int32)  # of each page, at its owner
    bounds = np.searchsorted(owner[order], np.arange(partitions + 1))
    parts = [order[first:last] for first, last in itertools.pairwise(bounds)]
    for pages in parts:
        number[pages] = np.arange(len(pages), dtype=np.int32)
    return [_own_view(graph, owner, number, pages, partition) for partition, pages in enumerate(parts)]


def _own_view(graph: Graph, owner: Ids, number: Ids, pages: Ids, partition: int) -> View:
    degree = np.diff(graph.offsets)[pages]
    offsets = np.concatenate(([0], np.cumsum(degree)))
    links = np.repeat(graph.offsets[pages] - offsets[:-1], degree) + np.arange(offsets[-1])
    targets = graph.targets[links]
    targets = np.where(owner[targets] == partition, number[targets], ELSEWHERE).astype(np.int32)
    sites, site = np.unique(graph.site[pages], return_inverse=True)
    _, ips = np.unique(graph.ips[sites], return_inverse=True)
    home = np.full(len(sites), -1, np.int32)
    home[site[::-1]] = np.arange(len(pages), dtype=np.int32)[::-1]  # of each site the first page: nobody seeds by it
    seen = Graph(offsets, targets, site.astype(np.int32), home, graph.dynamic[pages], ips.astype(np.int32))
    return View(seen, pages, sites.astype(np.int32))


def whole_view(graph: Graph, owner: Ids | None, partition: int) -> View:
    """Every page; links to pages of others lead elsewhere. `owner` None: nothing is anybody's."""
    if owner is None:
        return View(graph, None, None)
    targets = np.where(owner[graph.targets] == partition, graph.targets, ELSEWHERE).astype(np.int32)
    return View(replace(graph, targets=targets), None, None)
