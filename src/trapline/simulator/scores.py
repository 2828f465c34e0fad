"""Scores of a simulated crawl: PageRank of the known graph, whose nodes are the discovered pages and whose links are
those of the fetched pages.

A driver computes these scores when the frontier requests them. This module sees the state of each page and the graph,
not the frontier.
"""

import numpy as np
from numpy.typing import NDArray

from trapline.frontier.layout import FETCHED, UNKNOWN
from trapline.graph import Graph
from trapline.graph.pagerank import DAMPING, Runs

# Share of the rank that the last pass still moves. A smaller one costs more passes and changes no curve
# (docs/decisions/010).
TOLERANCE = 1e-4


class KnownGraph:
    """Computes scores repeatedly during a crawl. The driver calls it when `Frontier.next` answers `Rescore`."""

    def __init__(self, graph: Graph, tolerance: float = TOLERANCE) -> None:
        self._pages, self._tolerance = graph.pages, tolerance
        self._runs = Runs(graph, DAMPING)

    @property
    def passes(self) -> int:
        return self._runs.passes

    def scores(self, state: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the PageRank of every known page, summing to 1; 0 for the others. `state`: the state of each page
        (frontier/layout.py)."""
        own = state[: self._pages]
        return self._runs.run((own != UNKNOWN).view(np.uint8), (own == FETCHED).view(np.uint8), self._tolerance)
