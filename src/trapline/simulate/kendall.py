"""Kendall's tau-b between a fetch order and the order of falling rank, on samples of the pages (castillo-thesis 4.3.3).

It sees an order and a rank per page, as `metrics.py` does.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trapline.jit import kernel, ready
from trapline.simulate.metrics import Floats, Ids

TAU_SAMPLE = 5_000
SAMPLES = 10
_TAU_SEED = 1


def kendall_tau(order: Ids, rank: Floats, sample: int = TAU_SAMPLE, seed: int = _TAU_SEED) -> float:
    """Kendall's tau-b between the fetch order and the order of falling rank, on a random sample of fetched pages.

    1: best pages first; -1: worst first; 0 if all ranks are equal or fewer than two pages are fetched.

    >>> kendall_tau(np.array([2, 0, 1]), np.array([0.2, 0.1, 0.7]))
    1.0
    """
    positions = np.arange(len(order))
    if len(order) > sample:
        positions = np.sort(np.random.default_rng(seed).choice(len(order), sample, replace=False))
    return tau_b(positions, -rank[order[positions]])


def tau_spread(order: Ids, rank: Floats, samples: int = SAMPLES, sample: int = TAU_SAMPLE) -> tuple[float, float]:
    """The lowest and the highest tau of so many samples: what another draw could have said. Equal if all pages fit into one.

    >>> tau_spread(np.array([2, 0, 1]), np.array([0.2, 0.1, 0.7]))
    (1.0, 1.0)
    """
    draws = samples if len(order) > sample else 1
    taus = [kendall_tau(order, rank, sample, seed) for seed in range(_TAU_SEED, _TAU_SEED + draws)]
    return min(taus), max(taus)


def tau_b(x: ArrayLike, y: ArrayLike) -> float:
    """(concordant - discordant) / sqrt((pairs - ties in x) * (pairs - ties in y)); 0 where that is undefined.

    O(n log n). Source: Knight, "A Computer Method for Calculating Kendall's Tau with Ungrouped Data" (1966).

    >>> tau_b([1, 2, 3], [1, 3, 2])
    0.3333333333333333
    """
    ready()
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
    """The place of each value among the different ones."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _tied(values: NDArray[np.int64]) -> int:
    """Pairs of equal values."""
    counts = np.unique(values, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


@kernel("int64(int64[::1], int64[::1])")
def inversions(values: NDArray[np.int64], came: NDArray[np.int64]) -> int:
    """Pairs in falling order. Values are places from 0; `came`, as many zeros and one more, counts them as a Fenwick tree."""
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
