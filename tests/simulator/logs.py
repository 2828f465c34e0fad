"""Plausible fetch logs, made without a crawl, for tests of their readers."""

import numpy as np
from numpy.typing import NDArray

from trapline.frontier import FAILED, FETCHED, REFUSED
from trapline.simulator.log import FetchLog


def plausible_log(
    order: NDArray[np.int32], connections: int = 3, per_visit: int = 2, seed: int = 0, spoiled: float = 0.0
) -> FetchLog:
    """The pages in this order. One connection fetches `per_visit` of them in a row and then waits a while.

    A share `spoiled` of the fetches fails or is refused and brings nothing, and the page does not come again.

    """
    chance = np.random.default_rng(seed)
    visit = np.arange(len(order)) // per_visit
    takes, waits = chance.lognormal(0.0, 0.7, len(order)), chance.random(len(order))
    waits = np.where(np.arange(len(order)) % per_visit == 0, chance.exponential(1.0, len(order)), 0.0)
    end = np.empty(len(order))
    for connection in range(connections):
        own = visit % connections == connection
        end[own] = np.cumsum((takes + waits)[own])
    kinds = chance.choice([FETCHED, FAILED, REFUSED], len(order), p=[1 - spoiled, spoiled / 2, spoiled / 2])
    first_byte = np.where(kinds == FETCHED, end - takes * waits, end)
    rows = np.argsort(end, kind="stable")
    log = FetchLog(order.astype(np.int32), visit.astype(np.int32), end - takes, first_byte, end, kinds.astype(np.uint8))
    return FetchLog(*(column[rows] for column in log))
