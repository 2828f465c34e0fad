"""Scores of a simulated crawl: PageRank of what it knows. Its nodes are the pages discovered, its links those of the pages
fetched.

What a driver answers when the frontier asks for scores. It sees the life of each page and the graph, not the frontier.
"""

import numpy as np
from numpy.typing import NDArray

from trapline.frontier.layout import FETCHED, UNKNOWN
from trapline.graph import Graph
from trapline.graph.pagerank import DAMPING, Runs

TOLERANCE = (
    1e-4  # share of the ranks that a pass still moves; finer costs passes and changes no curve (docs/decisions/010)
)


class KnownGraph:
    """Scores, run after run. Who asks: the driver, when `Frontier.next` answers `Rescore`."""

    def __init__(self, graph: Graph, tolerance: float = TOLERANCE) -> None:
        self._pages, self._tolerance = graph.pages, tolerance
        self._runs = Runs(graph, DAMPING)

    @property
    def passes(self) -> int:
        return self._runs.passes

    def scores(self, state: NDArray[np.uint8]) -> NDArray[np.float64]:
        """PageRank of every page known, summing to 1; 0 for the others. `state[page]`: its life (frontier/layout.py)."""
        life = state[: self._pages]
        return self._runs.run((life != UNKNOWN).view(np.uint8), (life == FETCHED).view(np.uint8), self._tolerance)
