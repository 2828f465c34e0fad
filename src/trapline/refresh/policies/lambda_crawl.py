"""Crawl rates that minimise a penalty which grows with every missed change, so that no page starves.

A page without signals is crawled at regular intervals, at the rate

    rho = (-D + sqrt(D^2 + 4 mu D / L)) / 2

Of a page that signals its changes, each change is crawled with probability p = min(1, mu / (L D)). L is such that the rates
rho and p D add up to the capacity. L is the price of a crawl, the same for both kinds of page, and so divides the capacity
between them. mu = accesses and D = changes per second are learned (refresh/core/evidence.py, estimators.py, trust.py). The
rates are solved again at each revision, first after a tenth as many slots and signals as there are pages. Cost: each solution
reads each page 60 times.
Source: Kolobov, Peres, Lu, Horvitz NeurIPS 2019, LambdaCrawl for incomplete and complete observations.
Differs from the paper: there is one search for L, instead of one for each kind of page within a search for the split. A slot
for which no page is due takes a page with a signal that was not sampled, the oldest signal first.
"""

import math

from trapline.refresh.core.layout import NORMAL, PolicyView
from trapline.refresh.policies.estimators import (
    COMPLETE,
    ESTIMATOR,
    ESTIMATORS,
    access_rate,
    learned_rate,
    note_outcome,
)
from trapline.refresh.policies.trust import signal_rate
from trapline.refresh.policy import Policy, rule
from trapline.rng import uniform

ACCESSED, CHANGES, RATE, DUE, OF_ESTIMATOR = range(5)
HALVINGS = 60
LATER, MUCH_LATER = 1e12, 1e15


@rule
def on_revision(s: PolicyView, page: int, now: float) -> float:
    """Solve for L by bisection, and store the rate of each page."""
    for i in range(len(s.page)):
        s.columns[i, ACCESSED] = access_rate(s, i, now)
        by_signals = s.page[i].level != NORMAL and s.option[ESTIMATOR] != COMPLETE
        s.columns[i, CHANGES] = signal_rate(s, i, now) if by_signals else learned_rate(s, i, now, OF_ESTIMATOR)
    low, high = -100.0, 100.0  # logarithms of L
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        price, total = math.exp(middle), 0.0
        for i in range(len(s.page)):
            mu, d = s.columns[i, ACCESSED], s.columns[i, CHANGES]
            is_signalled = s.page[i].level != NORMAL
            rate = min(d, mu / price) if is_signalled else 0.5 * (math.sqrt(d * d + 4.0 * mu * d / price) - d)
            s.columns[i, RATE] = rate
            total += rate
        low, high = (middle, high) if total > s.run[0].slots_per_s else (low, middle)
    return 0.0


@rule
def overdue(s: PolicyView, page: int, now: float) -> float:
    """Return the value: minus the time at which the page is due."""
    p = s.page[page]
    if p.level == NORMAL:
        rate = s.columns[page, RATE]
        return -(p.crawled_s + 1.0 / rate) if rate > 0.0 else -p.crawled_s
    if s.columns[page, DUE] > 0.0:
        return -s.columns[page, DUE]
    return -(LATER + p.first_signal_s) if p.signals > 0 else -(MUCH_LATER + p.crawled_s)


@rule
def on_signal(s: PolicyView, page: int, now: float) -> float:
    """Make the page due if the signal is sampled."""
    d = s.columns[page, CHANGES]
    drawn = d == 0.0 or uniform(page, s.page[page].all_signals) * d < s.columns[page, RATE]
    if drawn and s.columns[page, DUE] == 0.0:
        s.columns[page, DUE] = now
    return 0.0


@rule
def on_crawl(s: PolicyView, page: int, now: float) -> float:
    s.columns[page, DUE] = 0.0
    note_outcome(s, page, now, OF_ESTIMATOR)
    return 0.0


POLICY = Policy(
    "lambda-crawl",
    overdue,
    still=True,
    fills_capacity=True,
    on_signal=on_signal,
    on_crawl=on_crawl,
    on_revision=on_revision,
    revision=0.1,
    growth=0.25,
    columns=("accesses per second", "changes per second", "crawls per second", "due_s"),
    options={"estimator": 0.0},
    ways={"estimator": ESTIMATORS},
)
