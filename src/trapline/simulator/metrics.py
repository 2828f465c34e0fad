"""Measures of a fetch order, by the PageRank of the pages that were fetched early.

This module sees an order (page ids, each once) and a rank per page; not who made the order, nor when pages were
fetched. The definitions follow Castillo's thesis, sections 4.1-4.4; the exact interpretations are ours, and each
function states its own. How a crawl used its time is measured in `timing.py`.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trapline.compiled.jit import kernel

Ids = NDArray[np.int32] | NDArray[np.int64]
Floats = NDArray[np.float64]

TOP_SHARES = (0.9, 0.95, 0.99, 1.0)


def cumulative(order: Ids, rank: Floats) -> Floats:
    """Return the share of the rank of all fetched pages that the first i + 1 pages have: [fetched]; the last value is 1."""
    sums: Floats = np.cumsum(rank[order])
    if not len(sums) or sums[-1] <= 0:
        return np.linspace(0.0, 1.0, len(sums) + 1)[1:]
    sums /= sums[-1]
    return sums


def average_cumulative_pagerank(order: Ids, rank: Floats) -> float:
    """Return the area under the curve of cumulative rank against the fraction of pages, by trapezoids from (0, 0) to (1, 1).

    Pages that were never fetched count on neither axis. Pages of equal rank give 1/2 in any order. The mean of the shares
    after each page, another common interpretation, is larger by 1/(2 * pages fetched).

    >>> float(average_cumulative_pagerank(np.array([1, 0]), np.array([0.25, 0.75])))
    0.625
    """
    if not len(order):
        return 0.0
    return float(cumulative(order, rank).mean() - 0.5 / len(order))


def curve(order: Ids, rank: Floats, points: int = 200) -> list[list[float]]:
    """Return at most `points` pairs [fraction of pages, cumulative rank], from [0, 0] to [1, 1]. Half of them are
    evenly spaced, half geometrically from the first page on, because the first pages of a good order have a large share
    of the rank."""
    shares = cumulative(order, rank)
    fetched = len(shares)
    return [[step / fetched, float(shares[step - 1])] if step else [0.0, 0.0] for step in _steps(fetched, points)]


def _steps(fetched: int, points: int) -> list[int]:
    """Return the numbers of pages at which the curve has points.

    >>> _steps(1000, 8)
    [0, 1, 10, 100, 333, 667, 1000]
    """
    if fetched < points:
        return list(range(fetched + 1))
    even = max(2, points - points // 2)
    steps = np.concatenate((np.linspace(0, fetched, even), np.geomspace(1, fetched, points - even)))
    return np.unique(steps.round().astype(np.int64)).tolist()


def best_first(pages: Ids, rank: Floats) -> Ids:
    """Return the pages by falling rank, equal ranks by page number: the best possible order, which no crawl can know.

    >>> best_first(np.array([0, 1, 2]), np.array([0.2, 0.5, 0.3])).tolist()
    [1, 2, 0]
    """
    by_number = pages.copy()
    by_number.sort()
    return by_number[np.argsort(-rank[by_number], kind="stable")]


def pages_until(order: Ids, wanted: Ids, shares: Sequence[float] = TOP_SHARES) -> list[int | None]:
    """Return, for each of `shares`, the number of pages fetched until that share of the wanted pages was fetched; None:
    it never was.

    Usually the wanted pages are the best ones, the first tenth of `best_first(pages, rank)`. A single good page that
    comes last determines the value for 100 % (thesis 4.3.4); the values for smaller shares show how far to trust it.

    >>> pages_until(np.array([3, 1, 0, 2]), wanted=np.array([1, 3]), shares=(0.5, 1.0))
    [1, 2]
    """
    is_wanted = np.zeros(max(order.max(initial=0), wanted.max(initial=0)) + 1, np.bool_)
    is_wanted[wanted] = True
    positions = np.flatnonzero(is_wanted[order]) + 1  # numbers of fetched pages at which a wanted page was fetched
    needed = [max(1, math.ceil(share * len(wanted))) for share in shares]
    return [int(positions[number - 1]) if number <= len(positions) else None for number in needed]


def site_sizes(pages: Ids, site: Ids) -> list[list[int]]:
    """Return how a set of pages, such as a batch, is distributed over sites: pairs [pages on a site, number of such
    sites], ascending.

    >>> site_sizes(np.array([0, 1, 2, 4]), site=np.array([7, 7, 3, 3, 5]))
    [[1, 2], [2, 1]]
    """
    _, counts = np.unique(site[pages], return_counts=True)
    sizes, sites = np.unique(counts, return_counts=True)
    return np.column_stack((sizes, sites)).tolist()


def middle(order: Ids, pages: int) -> Ids:
    """Return `pages` pages from the middle of the order: a typical batch (castillo04 VI).

    >>> middle(np.arange(10), 4).tolist()
    [3, 4, 5, 6]
    """
    first = max(0, (len(order) - pages) // 2)
    return order[first : first + pages]


# ---- Kendall's tau-b between a fetch order and the order of falling rank, on samples of the pages (castillo-thesis 4.3.3).

TAU_SAMPLE = 5_000
SAMPLES = 10
_TAU_SEED = 1


def kendall_tau(order: Ids, rank: Floats, sample: int = TAU_SAMPLE, seed: int = _TAU_SEED) -> float:
    """Return Kendall's tau-b between the fetch order and the order of falling rank, on a random sample of fetched pages.

    1: best pages first; -1: worst first; 0 if all ranks are equal or fewer than two pages are fetched.

    >>> kendall_tau(np.array([2, 0, 1]), np.array([0.2, 0.1, 0.7]))
    1.0
    """
    positions = np.arange(len(order))
    if len(order) > sample:
        positions = np.sort(np.random.default_rng(seed).choice(len(order), sample, replace=False))
    return tau_b(positions, -rank[order[positions]])


def tau_spread(order: Ids, rank: Floats, samples: int = SAMPLES, sample: int = TAU_SAMPLE) -> tuple[float, float]:
    """Return the lowest and the highest tau of several samples: the range that another sample could give. Both are
    equal if all pages fit into one sample.

    >>> tau_spread(np.array([2, 0, 1]), np.array([0.2, 0.1, 0.7]))
    (1.0, 1.0)
    """
    draws = samples if len(order) > sample else 1
    taus = [kendall_tau(order, rank, sample, seed) for seed in range(_TAU_SEED, _TAU_SEED + draws)]
    return min(taus), max(taus)


def tau_b(x: ArrayLike, y: ArrayLike) -> float:
    """Return (concordant - discordant) / sqrt((pairs - ties in x) * (pairs - ties in y)); 0 if that is undefined.

    O(n log n). Source: Knight, "A Computer Method for Calculating Kendall's Tau with Ungrouped Data" (1966).

    >>> tau_b([1, 2, 3], [1, 3, 2])
    0.3333333333333333
    """
    x, y = _places(x), _places(y)
    every = len(x) * (len(x) - 1) // 2
    # Pairs equal in x are sorted by y, so that they are not counted as discordant.
    by_x_then_y = x * (len(x) + 1) + y
    tied_x, tied_y, tied_both = _tied(x), _tied(y), _tied(by_x_then_y)
    discordant = int(inversions(y[np.argsort(by_x_then_y)], np.zeros(len(y) + 1, np.int64)))
    concordant = every - tied_x - tied_y + tied_both - discordant
    scale = (every - tied_x) * (every - tied_y)
    return float((concordant - discordant) / scale**0.5) if scale else 0.0


def _places(values: ArrayLike) -> NDArray[np.int64]:
    """Return the rank of each value among the distinct values, from 0."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _tied(values: NDArray[np.int64]) -> int:
    """Return the number of pairs of equal values."""
    counts = np.unique(values, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


@kernel("int64(int64[::1], int64[::1])")
def inversions(values: NDArray[np.int64], came: NDArray[np.int64]) -> int:
    """Count the pairs in falling order. Values are ranks from 0. `came` is a Fenwick tree that counts them: initially
    zeros, one more than there are values."""
    found = 0
    for before in range(values.size):
        not_larger, at = 0, values[before] + 1
        while at > 0:
            not_larger += came[at]
            at -= at & -at
        found += before - not_larger
        at = values[before] + 1
        while at < came.size:
            came[at] += 1
            at += at & -at
    return found
