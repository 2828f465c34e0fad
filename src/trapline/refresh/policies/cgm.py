"""Crawls the page whose copy has lost the most freshness since its last crawl: the index of Olston & Pandey.

    V = (mu / D) (1 - exp(-x) (1 + x)),  x = D (now - last crawl)

mu = accesses per second (refresh/core/evidence.py), D = changes per second (estimators.py), both learned. Only the estimator
`complete` uses signals. Cost: O(1) per event.
Source: Olston & Pandey WWW 2008, appendix; the same schedules as those of Cho & Garcia-Molina 2000 for Poisson changes.
"""

from trapline.refresh.core.layout import PolicyView
from trapline.refresh.policies.estimators import ESTIMATORS, access_rate, learn, learned_rate, lost
from trapline.refresh.policy import Policy, rule


@rule
def index(s: PolicyView, page: int, now: float) -> float:
    """Return V."""
    return access_rate(s, page, now) * lost(learned_rate(s, page, now, 0), now - s.page[page].crawled_s)


POLICY = Policy(
    "cgm", index, on_crawl=learn, options={"estimator": 0.0}, uses_signals=False, ways={"estimator": ESTIMATORS}
)
