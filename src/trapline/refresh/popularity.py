"""How popular a page is that was accessed n times: less than n says if n is large by luck, more if it is small.

Pages are taken for draws from an unknown mixture of Poisson rates. The mixture is learned from how many pages had 0, 1, 2, ... accesses
(the census) by a few steps of expectation-maximisation over a grid of rates: the non-parametric maximum likelihood of Kiefer and Wolfowitz
1956, in the form of Laird 1978. What n accesses say is then the mean rate of a page given n. Pages with more accesses than
the census counts are taken at their word. Cost: 64 x 32 x steps each time the accesses have grown by a tenth.

In a live crawl old accesses count less: every half-life all counts are halved, and so is the time that they are taken to be from
(`forget`). A crawl that nobody has accessed yet goes by the quality of its pages instead.
"""

import math

from trapline.jit import f8, helper, i8, shared, void
from trapline.refresh.layout import CENSUS, GRID, State, StateType, View
from trapline.rng import uniform

_STEPS = 8
_LEAST, _RATIO = 0.03, 1.3  # the grid, in accesses so far: 0.03 to 0.03 * 1.3^31 = 102
_BY_QUALITY = 1.0 / 86_400.0  # accesses per second of the mean page, where none are known; any number would do


@helper(f8(i8))
def _expected(g: int) -> float:
    return _LEAST * _RATIO**g


@helper(void(StateType))
def _fill_likelihoods(s: State) -> None:
    """guess[n, g] = the Poisson probability of n at the rate g, for all counts but the last."""
    for g in range(GRID):
        x = _expected(g)
        s.guess[0, g] = math.exp(-x)
        for n in range(1, CENSUS - 1):
            s.guess[n, g] = s.guess[n - 1, g] * x / n


@helper(void(StateType))
def _improve(s: State) -> None:
    """One step: each rate gets the share of pages that it explains."""
    shares = s.guess[CENSUS - 1]
    gained = s.best  # GRID numbers of scratch
    gained[:GRID] = 1e-9
    for n in range(CENSUS - 1):
        if s.popular[0, n] > 0.0:
            likely = 0.0
            for g in range(GRID):
                likely += shares[g] * s.guess[n, g]
            for g in range(GRID):
                gained[g] += s.popular[0, n] * shares[g] * s.guess[n, g] / max(likely, 1e-300)
    whole = gained[:GRID].sum()
    for g in range(GRID):
        shares[g] = gained[g] / whole


@helper(void(StateType, f8))
def learn_popularity(s: State, now: float) -> None:
    """Set popular[1, n], accesses per second to be expected of a page that had n so far."""
    _fill_likelihoods(s)
    for _ in range(_STEPS):
        _improve(s)
    shares = s.guess[CENSUS - 1]
    for n in range(CENSUS - 1):
        whole, mean = 0.0, 0.0
        for g in range(GRID):
            likely = shares[g] * s.guess[n, g]
            whole += likely
            mean += likely * _expected(g)
        s.popular[1, n] = mean / max(whole, 1e-300) / max(now - s.run[0].forgotten_s, 1.0)


@shared
def access_rate(s: State | View, page: int, now: float) -> float:
    """Accesses per second to be expected of the page."""
    run, n = s.run[0], s.page[page].accesses
    if run.accesses == 0 and run.quality > 0.0:
        return s.page[page].quality / run.quality * len(s.page) * _BY_QUALITY
    if n < CENSUS - 1:
        return s.popular[1, n]
    return n / max(now - run.forgotten_s, 1.0)


@helper(void(StateType, f8))
def forget(s: State, now: float) -> None:
    """Half of all accesses, and half of the time. Odd counts are rounded up or down, by chance."""
    run = s.run[0]
    s.popular[0] = 0.0
    for page in range(len(s.page)):
        p = s.page[page]
        p.accesses = int(0.5 * p.accesses + 0.5 * (p.accesses % 2) * (2.0 * (uniform(p.id, run.cycle) < 0.5) - 1.0))
        s.popular[0, min(p.accesses, CENSUS - 1)] += 1.0
    run.forgotten_s = now - 0.5 * (now - run.forgotten_s)
    run.halved_s = now
    run.next_census = run.accesses
