"""Kendall's tau-b between a fetch order and the order of falling rank, on samples of the pages (castillo-thesis 4.3.3).

It sees an order and a rank per page, as `metrics.py` does.
"""

from collections.abc import Sequence

import numpy as np

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
    return tau_b(positions.tolist(), (-rank[order[positions]]).tolist())


def tau_spread(order: Ids, rank: Floats, samples: int = SAMPLES, sample: int = TAU_SAMPLE) -> tuple[float, float]:
    """The lowest and the highest tau of so many samples: what another draw could have said. Equal if all pages fit into one.

    >>> tau_spread(np.array([2, 0, 1]), np.array([0.2, 0.1, 0.7]))
    (1.0, 1.0)
    """
    draws = samples if len(order) > sample else 1
    taus = [kendall_tau(order, rank, sample, seed) for seed in range(_TAU_SEED, _TAU_SEED + draws)]
    return min(taus), max(taus)


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
