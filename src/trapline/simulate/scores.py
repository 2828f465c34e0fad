"""PageRank of the part of a graph that a crawl knows: its nodes are the pages discovered, its links those of the pages fetched.

What a driver answers when the frontier asks for scores. It sees the life of each page and the graph, not the frontier.
The linear form of graph/pagerank.py, iterated in place (Gauss-Seidel: a page sees what the pages before it have just got,
which takes about half the passes), each run from where the last one ended.
"""

import numpy as np
from numpy.typing import NDArray

from trapline.errors import InvariantError
from trapline.frontier.layout import FETCHED, UNKNOWN
from trapline.graph import Graph
from trapline.jit import kernel, ready

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Ids = NDArray[np.int32]
Bytes = NDArray[np.uint8]

DAMPING = 0.85
TOLERANCE = (
    1e-4  # share of the ranks that a pass still moves; finer costs passes and changes no curve (docs/decisions/010)
)
MOST_PASSES = 1_000


@kernel("int64(int64[::1], int32[::1], uint8[::1], int64[::1], int32[::1])")
def _turn_round(offsets: Longs, targets: Ids, state: Bytes, ends: Longs, sources: Ids) -> int:
    """The fetched pages that link to each page p, ascending, as sources[ends[p - 1]:ends[p]]; how many pages are known."""
    ends[:] = 0
    known = 0
    for page in range(len(state)):
        known += state[page] != UNKNOWN
        if state[page] == FETCHED:
            for link in range(offsets[page], offsets[page + 1]):
                ends[targets[link]] += 1
    total = 0
    for page in range(len(state)):
        count = ends[page]
        ends[page] = total
        total += count
    for page in range(len(state)):
        if state[page] == FETCHED:
            for link in range(offsets[page], offsets[page + 1]):
                target = targets[link]
                sources[ends[target]] = page
                ends[target] += 1
    return known


@kernel("void(int64[::1], uint8[::1], float64, float64, float64[::1], float64[::1])")
def _begin(offsets: Longs, state: Bytes, scale: float, base: float, rank: Floats, share: Floats) -> None:
    """Where the last run ended, scaled to today's number of pages; new pages begin with the least that a page can have."""
    for page in range(len(state)):
        if state[page] == UNKNOWN:
            continue
        rank[page] = rank[page] * scale if rank[page] > 0.0 else base
        links = offsets[page + 1] - offsets[page]
        if state[page] == FETCHED and links > 0:
            share[page] = rank[page] / links


@kernel("float64(int64[::1], int64[::1], int32[::1], uint8[::1], float64, float64[::1], float64[::1])")
def _pass(offsets: Longs, ends: Longs, sources: Ids, state: Bytes, base: float, rank: Floats, share: Floats) -> float:
    """Every known page gets its rank anew, in place; the sum of the changes as a share of the sum of ranks."""
    change = 0.0
    total = 0.0
    begin = 0
    for page in range(len(state)):
        end = ends[page]
        if state[page] != UNKNOWN:
            received = 0.0
            for link in range(begin, end):
                received += share[np.uint32(sources[link])]
            new = base + DAMPING * received
            change += abs(new - rank[page])
            total += new
            rank[page] = new
            links = offsets[page + 1] - offsets[page]
            if state[page] == FETCHED and links > 0:
                share[page] = new / links
        begin = end
    return change / total


class KnownGraph:
    """Scores, run after run. Who asks: the driver, when `Frontier.next` answers `Rescore`."""

    def __init__(self, graph: Graph, tolerance: float = TOLERANCE) -> None:
        self._graph, self._tolerance = graph, tolerance
        self._rank, self._share = np.zeros(graph.pages), np.zeros(graph.pages)
        self._ends, self._sources = np.zeros(graph.pages, np.int64), np.empty(graph.links, np.int32)
        self._known = 0
        self.passes = 0
        ready()

    def scores(self, state: Bytes) -> Floats:
        """PageRank of every page known, summing to 1; 0 for the others. `state[page]`: its life (frontier/layout.py)."""
        graph, life = self._graph, np.ascontiguousarray(state[: self._graph.pages])
        known = _turn_round(graph.offsets, graph.targets, life, self._ends, self._sources)
        base = (1.0 - DAMPING) / max(known, 1)
        _begin(graph.offsets, life, self._known / max(known, 1), base, self._rank, self._share)
        self._known = known
        for _ in range(MOST_PASSES):
            self.passes += 1
            change = _pass(graph.offsets, self._ends, self._sources, life, base, self._rank, self._share)
            if change < self._tolerance:
                return self._rank / self._rank.sum()
        raise InvariantError(f"PageRank of the known graph: {MOST_PASSES} passes are not enough")
