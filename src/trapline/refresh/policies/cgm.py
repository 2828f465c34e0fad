"""The page whose copy has lost the most against a crawl just made: the index of Olston & Pandey.

    V = (mu / D) (1 - exp(-x) (1 + x)),  x = D (now - last crawl)

mu = accesses per second (popularity.py), D = changes per second (estimators.py), both learned. Signals are not heard, but by the estimator
`complete`. Cost: O(1) an event.
Source: Olston & Pandey WWW 2008, appendix; the same schedules as those of Cho & Garcia-Molina 2000 for Poisson changes.
"""

from trapline.refresh.layout import View
from trapline.refresh.policies.estimators import ESTIMATORS, learn, learned_rate
from trapline.refresh.policies.rates import access_rate, lost
from trapline.refresh.policy import Policy, rule


@rule
def index(s: View, page: int, now: float) -> float:
    return access_rate(s, page, now) * lost(learned_rate(s, page, now, 0), now - s.page[page].crawled_s)


POLICY = Policy("cgm", index, on_crawl=learn, options={"estimator": 0.0}, hears=False, ways={"estimator": ESTIMATORS})
