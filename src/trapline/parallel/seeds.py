"""Where the partitions of a simulated crawl begin: so many random pages each, as in Cho and Garcia-Molina 2002."""

import numpy as np
from numpy.typing import NDArray

from trapline.rng import uniform

Ids = NDArray[np.int32]
_STREAM = 7_000_003  # of its own: ranks and servers draw from the seed's


def random_seeds(owner: Ids, partitions: int, each: int, seed: int) -> Ids:
    """So many pages of each partition, or all if it has fewer; rising.

    >>> random_seeds(np.array([0, 1, 1, 1], np.int32), 2, 2, seed=0).tolist()
    [0, 1, 3]
    """
    chosen = [_drawn(np.flatnonzero(owner == number), each, seed + number) for number in range(partitions)]
    return np.sort(np.concatenate(chosen)).astype(np.int32)


def _drawn(pages: NDArray[np.int64], each: int, seed: int) -> NDArray[np.int64]:
    """Of distinct draws the first; a draw is a place."""
    if len(pages) <= each:
        return pages
    places: dict[int, None] = {}
    number = 0
    while len(places) < each:
        places[int(uniform(_STREAM + seed, number) * len(pages))] = None
        number += 1
    return pages[list(places)]
