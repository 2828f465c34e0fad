"""PageRank, of a whole graph or of a part that grows.

    R(v) = (1 - d)/n + d * (sum over links u -> v of R(u)/links(u) + D/n)

d = `damping`, n = pages, D = the rank of all pages without links (and what flows out of the part), spread evenly. The
ranks sum to 1.

What is spread evenly only scales the solution, so we iterate x(v) = (1 - d)/n + d * sum x(u)/links(u) without D and
divide by the sum at the end: the same ranks, in a third fewer passes where 30 % of the pages have no links. A pass goes
over the pages in order and in place (Gauss-Seidel): a page sees what the pages before it have just got, which takes
about half the passes.

Cost: one pass over the links per iteration, and the transpose of the part in memory. Each page pulls from the pages that
link to it, in ascending order, so that equal graphs give equal bits.
Sources: Page et al., "The PageRank Citation Ranking" (1998); the linear form: Del Corso et al., "Fast PageRank
Computation via a Sparse Linear System" (2005).
"""

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph.graph import Graph
from trapline.jit import kernel, ready

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Ids = NDArray[np.int32]
Marks = NDArray[np.uint8]

DAMPING = 0.85


@kernel("void(int64[::1], int32[::1], uint8[::1], int64[::1], int32[::1])")
def _turn_round(offsets: Longs, targets: Ids, linking: Marks, ends: Longs, sources: Ids) -> None:
    """The linking pages that link to page p, ascending: sources[ends[p - 1]:ends[p]]."""
    ends[:] = 0
    for page in range(len(linking)):
        if linking[page]:
            for link in range(offsets[page], offsets[page + 1]):
                ends[targets[link]] += 1
    total = 0
    for page in range(len(linking)):
        count = ends[page]
        ends[page] = total
        total += count
    for page in range(len(linking)):
        if linking[page]:
            for link in range(offsets[page], offsets[page + 1]):
                target = targets[link]
                sources[ends[target]] = page
                ends[target] += 1


@kernel("void(int64[::1], uint8[::1], float64[::1], float64[::1])")
def _split(offsets: Longs, linking: Marks, rank: Floats, share: Floats) -> None:
    """What each page gives along each link."""
    for page in range(len(linking)):
        if linking[page]:
            share[page] = rank[page] / max(offsets[page + 1] - offsets[page], 1)


@kernel(
    "float64(int64[::1], int64[::1], int32[::1], uint8[::1], uint8[::1], float64, float64, float64[::1], float64[::1])"
)
def _pass(
    offsets: Longs,
    ends: Longs,
    sources: Ids,
    known: Marks,
    linking: Marks,
    base: float,
    damping: float,
    rank: Floats,
    share: Floats,
) -> float:
    """Every known page gets its rank anew, in place; the sum of the changes as a share of the sum of ranks."""
    change = 0.0
    total = 0.0
    begin = 0
    for page in range(len(known)):
        end = ends[page]
        if known[page]:
            received = 0.0
            for link in range(begin, end):
                # Unsigned: numba then omits the test for indices from the end, a fifth of the time.
                received += share[np.uint32(sources[link])]
            new = base + damping * received
            change += abs(new - rank[page])
            total += new
            rank[page] = new
            if linking[page]:
                share[page] = new / max(offsets[page + 1] - offsets[page], 1)
        begin = end
    return change / total


class Runs:
    """PageRank of a part of a graph that grows, run after run, each from where the last one ended."""

    def __init__(self, graph: Graph, damping: float = DAMPING) -> None:
        if not 0 <= damping < 1:
            raise ConfigError(f"PageRank: damping is {damping}, must be in 0..1 without 1")
        self._graph, self._damping = graph, damping
        self._rank, self._share = np.zeros(graph.pages), np.zeros(graph.pages)
        self._ends, self._sources = np.zeros(graph.pages, np.int64), np.empty(graph.links, np.int32)
        self._known = 0
        self.passes = 0
        ready()

    def start(self, rank: Floats) -> None:
        """The first run begins with these instead: x of the linear form, of a part as large as the first will be."""
        self._rank, self._known = rank, self._graph.pages

    def run(self, known: Marks, linking: Marks, tolerance: float, most_passes: int = 1000) -> Floats:
        """The ranks of the known pages; 0 for the others. The links are those of the linking pages, a part of the known.

        It ends when a pass changes the ranks, all added up, by less than `tolerance` of their sum.
        """
        if not tolerance > 0:
            raise ConfigError(f"PageRank: tolerance is {tolerance}, must be positive")
        graph, pages = self._graph, max(int(np.count_nonzero(known)), 1)
        base = (1.0 - self._damping) / pages
        _turn_round(graph.offsets, graph.targets, linking, self._ends, self._sources)
        self._rank *= self._known / pages
        self._rank[(self._rank == 0.0) & (known != 0)] = base  # new pages: the least that a page can have
        self._known = pages
        _split(graph.offsets, linking, self._rank, self._share)
        for _ in range(most_passes):
            self.passes += 1
            change = _pass(
                graph.offsets,
                self._ends,
                self._sources,
                known,
                linking,
                base,
                self._damping,
                self._rank,
                self._share,
            )
            if change < tolerance:
                return self._rank / self._rank.sum()
        raise ConfigError(f"PageRank: {most_passes} iterations do not reach tolerance {tolerance:g}")


def pagerank(
    graph: Graph,
    damping: float = DAMPING,
    tolerance: float = 1e-9,
    start: Floats | None = None,
    max_iterations: int = 1000,
) -> Floats:
    """The rank of each page of a whole graph. `start`: ranks of an earlier run to go on from; pages unknown to it have 0."""
    runs, every = Runs(graph, damping), np.ones(graph.pages, np.uint8)
    runs.start(_linear(graph, damping, start))
    return runs.run(every, every, tolerance, max_iterations)


def _linear(graph: Graph, damping: float, start: Floats | None) -> Floats:
    """x of the linear form. In a part of the web that leads to no page without links, x is 1/n on average, and such parts
    converge slowest."""
    if start is None:
        return np.full(graph.pages, 1.0 / graph.pages)
    ranks = _sound(start, graph.pages)
    dangling = float(ranks[np.diff(graph.offsets) == 0].sum())
    return ranks * ((1.0 - damping) / (1.0 - damping + damping * dangling))


def _sound(start: Floats, pages: int) -> Floats:
    total = float(start.sum())
    if len(start) != pages or not 0 < total < np.inf or start.min() < 0:
        raise ConfigError(f"PageRank: the start must be {pages} numbers, none negative, some positive")
    return np.asarray(start, dtype=np.float64) / total
