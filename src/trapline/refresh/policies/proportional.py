"""Pages in proportion to how often they change: value = D (now - last crawl), D = changes per second, learned (estimators.py).

Source: the policy that Cho & Garcia-Molina 2000 compare with uniform, and find worse for Poisson changes. Cost: O(1) an event.
"""

from trapline.refresh.layout import View
from trapline.refresh.policies.estimators import ESTIMATORS, learn, learned_rate
from trapline.refresh.policy import Policy, rule


@rule
def changes_missed(s: View, page: int, now: float) -> float:
    return learned_rate(s, page, now, 0) * (now - s.page[page].crawled_s)


POLICY = Policy(
    "proportional",
    changes_missed,
    on_crawl=learn,
    options={"estimator": 0.0},
    hears=False,
    ways={"estimator": ESTIMATORS},
)
