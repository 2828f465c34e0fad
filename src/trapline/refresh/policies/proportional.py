"""Crawls pages in proportion to their change rates: value = D (now - last crawl), D = changes per second, learned
(estimators.py).

Source: the policy that Cho & Garcia-Molina 2000 compare with uniform, and find worse for Poisson changes. Cost: O(1) per
event.
"""

from trapline.refresh.core.layout import PolicyView
from trapline.refresh.policies.estimators import ESTIMATORS, learn, learned_rate
from trapline.refresh.policy import Policy, rule


@rule
def changes_missed(s: PolicyView, page: int, now: float) -> float:
    """Return the expected number of changes since the last crawl."""
    return learned_rate(s, page, now, 0) * (now - s.page[page].crawled_s)


POLICY = Policy(
    "proportional",
    changes_missed,
    on_crawl=learn,
    options={"estimator": 0.0},
    uses_signals=False,
    ways={"estimator": ESTIMATORS},
)
