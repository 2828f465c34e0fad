"""Scores of a live crawl: PageRank of what it knows. Its nodes are the pages known, its links those of the pages fetched.

Kept only for page ranks that have scores. The links are those the frontier was told of, page by page, as they came.
"""

from collections.abc import Iterable

import numpy as np

from trapline.frontier.layout import FETCHED, REVISITED, UNKNOWN, Array
from trapline.graph import Graph
from trapline.graph.pagerank import DAMPING, Runs

TOLERANCE = 1e-4  # as in the simulator


class Scores:
    def __init__(self) -> None:
        self._links: dict[int, Array] = {}  # of each page fetched

    def keep(self, page: int, links: Array) -> None:
        self._links[page] = links

    def restore(self, fetched: Iterable[tuple[int, bytes]]) -> None:
        """What an earlier run kept: pages and their links, as the database has them."""
        for page, links in fetched:
            self.keep(page, np.frombuffer(links, "<i4"))

    def scores(self, life: Array) -> Array:
        """PageRank of every page known; `life[page]`: its state (frontier/layout.py)."""
        pages = len(life)
        counts = np.zeros(pages + 1, np.int64)
        counts[np.fromiter(self._links, np.int64, len(self._links)) + 1] = [*map(len, self._links.values())]
        offsets = np.cumsum(counts)
        targets = np.empty(int(offsets[-1]), np.int32)
        for page, links in self._links.items():
            targets[offsets[page] : offsets[page + 1]] = links
        graph = Graph(
            offsets=offsets,
            targets=targets,
            site=np.zeros(pages, np.int32),
            home=np.zeros(1, np.int32),
            dynamic=np.zeros(pages, np.uint8),
            ips=np.zeros(1, np.int32),
        )
        known = (life != UNKNOWN).view(np.uint8)
        return Runs(graph, DAMPING).run(known, ((life == FETCHED) | (life == REVISITED)).view(np.uint8), TOLERANCE)
