"""Published points as a refresher keeps them: what a provider may say is much, what is kept is bounded. Pure."""

from collections.abc import Sequence

import numpy as np

from trapline.refresh.layout import Array

MOST_AHEAD_S = 30 * 86_400.0
MERGED_S = 60.0  # points so close to each other are one: it changes at any of them
MOST_POINTS = 1000  # of a page


def ahead(points: Sequence[tuple[float, float]], now: float) -> Array:
    """Moments and probabilities in turn: those ahead, by time, merged.

    >>> ahead([(500.0, 0.5), (90.0, 1.0), (530.0, 0.5), (1e9, 1.0)], now=100.0).tolist()
    [500.0, 0.75]
    """
    kept: list[list[float]] = []
    for at_s, p in sorted((at_s, p) for at_s, p in points if now < at_s <= now + MOST_AHEAD_S and 0.0 < p <= 1.0):
        if kept and at_s - kept[-1][0] < MERGED_S:
            kept[-1][1] = 1.0 - (1.0 - kept[-1][1]) * (1.0 - p)
        else:
            kept.append([at_s, p])
    return np.array(kept[:MOST_POINTS], np.float64).reshape(-1)
