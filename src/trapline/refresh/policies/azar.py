"""Crawl rates that maximise freshness for Poisson changes, some of them zero. Each page is crawled at regular intervals.

    rho = max(0, sqrt(mu D / L) - D),  L such that all rates add up to the capacity

mu = accesses and D = changes per second (refresh/core/evidence.py, estimators.py) are learned. The rates are solved again at
each revision, first after a tenth as many slots as there are pages. `floor`: a share of the capacity that is divided equally
among all pages, so that no page starves. Cost: each solution reads each page 60 times.
Source: Azar, Horvitz, Lubetzky, Peres, Shahaf PNAS 2018; its closed form over the sorted pages gives the same rates.
"""

import math

from trapline.refresh.core.layout import PolicyView
from trapline.refresh.policies.estimators import ESTIMATORS, access_rate, learned_rate, note_outcome
from trapline.refresh.policy import Policy, rule

ACCESSED, CHANGES, RATE, OF_ESTIMATOR = range(4)
FLOOR = 1
NEVER = 1e15
HALVINGS = 60


@rule
def on_revision(s: PolicyView, page: int, now: float) -> float:
    """Solve for L by bisection, and store the rate of each page."""
    for i in range(len(s.page)):
        s.columns[i, ACCESSED] = access_rate(s, i, now)
        s.columns[i, CHANGES] = learned_rate(s, i, now, OF_ESTIMATOR)
    least = s.option[FLOOR] * s.run[0].slots_per_s / len(s.page)
    low, high = -100.0, 100.0  # logarithms of L
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        price, total = math.exp(middle), 0.0
        for i in range(len(s.page)):
            d = s.columns[i, CHANGES]
            s.columns[i, RATE] = max(least, math.sqrt(s.columns[i, ACCESSED] * d / price) - d)
            total += s.columns[i, RATE]
        low, high = (middle, high) if total > s.run[0].slots_per_s else (low, middle)
    return 0.0


@rule
def overdue(s: PolicyView, page: int, now: float) -> float:
    """Return the value: minus the time at which the page is due."""
    rate = s.columns[page, RATE]
    crawled_s = s.page[page].crawled_s
    if rate > 0.0:
        return -(crawled_s + 1.0 / rate)
    # Before the first solution all pages are crawled in turn.
    return -crawled_s if s.columns[page, CHANGES] == 0.0 else -crawled_s - NEVER


@rule
def on_crawl(s: PolicyView, page: int, now: float) -> float:
    note_outcome(s, page, now, OF_ESTIMATOR)
    return 0.0


POLICY = Policy(
    "azar",
    overdue,
    still=True,
    fills_capacity=True,
    on_crawl=on_crawl,
    on_revision=on_revision,
    revision=0.1,
    growth=0.25,
    columns=("accesses per second", "changes per second", "crawls per second"),
    options={"estimator": 0.0, "floor": 0.0},
    uses_signals=False,
    ways={"estimator": ESTIMATORS},
)
