"""How good a fetch order is, by the PageRank of what came early.

It sees an order (page ids, each once) and a rank per page; not who made the order, nor when pages came.
Definitions after Castillo's thesis, sections 4.1-4.4; the exact readings are ours and said in each function. Kendall's
tau is in `kendall.py`; what a crawl made of its time, in `timing.py`.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32] | NDArray[np.int64]
Floats = NDArray[np.float64]

TOP_SHARES = (0.9, 0.95, 0.99, 1.0)


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
    """At most `points` pairs [fraction of pages, cumulative rank], from [0, 0] to [1, 1]: half of them evenly spaced, half
    geometrically from the first page on, because the first pages of a good order hold much."""
    shares = cumulative(order, rank)
    fetched = len(shares)
    return [[step / fetched, float(shares[step - 1])] if step else [0.0, 0.0] for step in _steps(fetched, points)]


def _steps(fetched: int, points: int) -> list[int]:
    """
    >>> _steps(1000, 8)
    [0, 1, 10, 100, 333, 667, 1000]
    """
    if fetched < points:
        return list(range(fetched + 1))
    even = max(2, points - points // 2)
    steps = np.concatenate((np.linspace(0, fetched, even), np.geomspace(1, fetched, points - even)))
    return np.unique(steps.round().astype(np.int64)).tolist()


def best_first(pages: Ids, rank: Floats) -> Ids:
    """The pages by falling rank: the order that no crawl can know and none can beat. Equal ranks by page number.

    >>> best_first(np.array([0, 1, 2]), np.array([0.2, 0.5, 0.3])).tolist()
    [1, 2, 0]
    """
    by_number = pages.copy()
    by_number.sort()
    return by_number[np.argsort(-rank[by_number], kind="stable")]


def pages_until(order: Ids, wanted: Ids, shares: Sequence[float] = TOP_SHARES) -> list[int | None]:
    """Pages fetched until each of `shares` of the wanted pages was in; None: it never was.

    Wanted are the best, as a rule: `best_first(pages, rank)` and of it the first tenth. One good page that comes last decides the value
    for 100 % (thesis 4.3.4), so several shares say how far to trust it.

    >>> pages_until(np.array([3, 1, 0, 2]), wanted=np.array([1, 3]), shares=(0.5, 1.0))
    [1, 2]
    """
    is_wanted = np.zeros(max(order.max(initial=0), wanted.max(initial=0)) + 1, np.bool_)
    is_wanted[wanted] = True
    came = np.flatnonzero(is_wanted[order]) + 1  # the counts at which a wanted page came in
    needed = [max(1, math.ceil(share * len(wanted))) for share in shares]
    return [int(came[number - 1]) if number <= len(came) else None for number in needed]


def site_sizes(pages: Ids, site: Ids) -> list[list[int]]:
    """How a set of pages, such as a batch, lies on sites: pairs [pages on a site, sites with so many], rising.

    >>> site_sizes(np.array([0, 1, 2, 4]), site=np.array([7, 7, 3, 3, 5]))
    [[1, 2], [2, 1]]
    """
    _, counts = np.unique(site[pages], return_counts=True)
    sizes, sites = np.unique(counts, return_counts=True)
    return np.column_stack((sizes, sites)).tolist()


def middle(order: Ids, pages: int) -> Ids:
    """So many pages from the middle of the order: a typical batch (castillo04 VI).

    >>> middle(np.arange(10), 4).tolist()
    [3, 4, 5, 6]
    """
    first = max(0, (len(order) - pages) // 2)
    return order[first : first + pages]
