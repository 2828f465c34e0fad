"""How good a fetch order is, by the PageRank of what came early.

It sees an order (page ids, each once) and a rank per page; not who made the order, nor when pages came.
Definitions after Castillo's thesis, sections 4.1-4.3; the exact readings are ours and said in each function.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32] | NDArray[np.int64]
Floats = NDArray[np.float64]

TAU_SAMPLE = 5_000
_TAU_SEED = 1


def cumulative(order: Ids, rank: Floats) -> Floats:
    """[fetched] the share of the rank of all fetched pages that the first i + 1 hold; the last is 1."""
    sums: Floats = np.cumsum(rank[order])
    if not len(sums) or sums[-1] <= 0:
        return np.linspace(0.0, 1.0, len(sums) + 1)[1:]
    sums /= sums[-1]
    return sums


def average_cumulative_pagerank(order: Ids, rank: Floats) -> float:
    """The area under cumulative rank against fraction of pages, by trapezoids from (0, 0) to (1, 1).

    Pages never fetched count on neither axis. Pages of equal rank give 1/2 in any order. The mean of the shares
    after each page, another common reading, is larger by 1/(2 * pages fetched).

    >>> float(average_cumulative_pagerank(np.array([1, 0]), np.array([0.25, 0.75])))
    0.625
    """
    if not len(order):
        return 0.0
    return float(cumulative(order, rank).mean() - 0.5 / len(order))


def curve(order: Ids, rank: Floats, points: int = 200) -> list[list[float]]:
    """At most `points` pairs [fraction of pages, cumulative rank], evenly spaced, from [0, 0] to [1, 1]."""
    shares = cumulative(order, rank)
    fetched = len(shares)
    steps = np.unique(np.linspace(0, fetched, min(points, fetched + 1)).round().astype(np.int64))
    return [[float(step / fetched), float(shares[step - 1])] if step else [0.0, 0.0] for step in steps]


def kendall_tau(order: Ids, rank: Floats, sample: int = TAU_SAMPLE, seed: int = _TAU_SEED) -> float:
    """Kendall's tau-b between the fetch order and the order of falling rank, on a random sample of fetched pages.

    1: best pages first; -1: worst first; 0 if all ranks are equal or fewer than two pages are fetched.
    """
    positions = np.arange(len(order))
    if len(order) > sample:
        positions = np.sort(np.random.default_rng(seed).choice(len(order), sample, replace=False))
    return tau_b(positions.tolist(), (-rank[order[positions]]).tolist())


def tau_b(x: Sequence[float], y: Sequence[float]) -> float:
    """(concordant - discordant) / sqrt((pairs - ties in x) * (pairs - ties in y)); 0 where that is undefined.

    O(n log n). Source: Knight, "A Computer Method for Calculating Kendall's Tau with Ungrouped Data" (1966).

    >>> tau_b([1, 2, 3], [1, 3, 2])
    0.3333333333333333
    """
    pairs = sorted(zip(x, y, strict=True))
    every = len(pairs) * (len(pairs) - 1) // 2
    tied_x, tied_y, tied_both = _tied(x), _tied(y), _tied(pairs)
    # Pairs equal in x are sorted by y, so that they are not counted as discordant.
    discordant = _inversions([second for _, second in pairs])
    concordant = every - tied_x - tied_y + tied_both - discordant
    scale = (every - tied_x) * (every - tied_y)
    return (concordant - discordant) / scale**0.5 if scale else 0.0


def _tied(values: Sequence[object]) -> int:
    """Pairs of equal values."""
    counts: dict[object, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return sum(count * (count - 1) // 2 for count in counts.values())


def _inversions(values: list[float]) -> int:
    """Pairs in falling order, by merge sort; sorts `values`."""
    if len(values) < 2:
        return 0
    left, right = values[: len(values) // 2], values[len(values) // 2 :]
    found = _inversions(left) + _inversions(right)
    at = 0
    for value in right:
        while at < len(left) and left[at] <= value:
            at += 1
        found += len(left) - at
    values[:] = sorted(left + right)  # two sorted runs: a merge in linear time
    return found
