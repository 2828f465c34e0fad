"""Fetches a random waiting page at every step, each with the same probability: the baseline for all other orders.

Page rank: -c(p), c(p) = c(q) - ln(1 - u(seed, n)); q = the fetched page whose link discovered p (c(q) = 0 for a seed p), u =
a hash that is uniform in [0, 1), n = the page's serial at its discovery. Every page has a clock that rings after an
exponentially distributed time, counted from the ring of page q; the page whose clock rings first is fetched. Exponential
clocks have no memory, so each running clock is equally likely to ring next. A random number drawn at discovery would not
give equal probabilities: the pages that already wait were passed over, so they have bad numbers, and new pages would be
preferred to them. The same seed gives the same order, live or simulated. Site rank: the rank of the best page.
Cost: O(log pages of the site) per page.
Source: the baseline of Castillo's thesis 4.3; exponential clocks: Feller, vol. II, I.3.
Differs from the paper: while politeness keeps a site from being visited, the clocks of its pages ring all the same. These
pages are fetched first once the site may be visited.

Page 1, the fourth page discovered, was found on page 0, whose clock rang at 2:

>>> from types import SimpleNamespace as record
>>> import numpy as np
>>> s = record(run=[record(seed=7)], page=[record(serial=0), record(serial=3)], columns=np.array([[2.0], [0.0]]))
>>> bool(stroke(s, 1, 0, 4, True) == -(2.0 - math.log(1.0 - uniform(7, 3))))
True
"""

import math

from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.rng import uniform
from trapline.strategies import PageRank, Strategy, top_page


@page_rank
def stroke(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    if is_new:  # only then: a page that failed gets a new serial, and must keep its rank
        begin = s.columns[source, 0] if source >= 0 else 0.0
        s.columns[page, 0] = begin - math.log(1.0 - uniform(s.run[0].seed, int(s.page[page].serial)))
    return -s.columns[page, 0]


PAGE = PageRank("random", stroke, columns=("clock",), constant=True)
STRATEGY = Strategy("random", PAGE, top_page.SITE)
