"""At every step any of the waiting pages, each with the same chance: what every other order must beat.

Page rank: -c(p), c(p) = c(q) - ln(1 - u(seed, n)); q = the fetched page by which p was found (c = 0 for a seed), u = a
hash that is uniform in [0, 1), n = the page's serial at its discovery. Every page has a clock that strikes after an
exponentially distributed time, counted from the stroke of the page by which it was found; the first to strike is taken.
Such clocks have no memory, so each of those that run is as likely as any other to strike next. A plain draw at discovery
would not do: pages that wait already have been passed over, hence have bad draws, and new pages would be preferred to
them. The same seed gives the same order, live or simulated. Site rank: the best page's.
Cost: O(log pages of the site) a page.
Source: the baseline of Castillo's thesis 4.3; exponential clocks: Feller, vol. II, I.3.
Differs from the paper: where politeness keeps a site from being visited, its pages' clocks strike all the same, and are
taken first once it may be.

Page 1, the fourth page discovered, was found by page 0, whose clock struck at 2:

>>> from types import SimpleNamespace as record
>>> import numpy as np
>>> s = record(run=[record(seed=7)], page=[record(serial=0), record(serial=3)], columns=np.array([[2.0], [0.0]]))
>>> bool(stroke(s, 1, 0, 4, True) == -(2.0 - math.log(1.0 - uniform(7, 3))))
True
"""

import math

from trapline.frontier.layout import View
from trapline.frontier.ranking import page_rank
from trapline.rng import uniform
from trapline.strategies import top_page
from trapline.strategies.strategy import PageRank, Strategy


@page_rank
def stroke(s: View, page: int, source: int, links: int, is_new: bool) -> float:
    if is_new:  # a page that failed has another serial afterwards, and keeps its rank
        begin = s.columns[source, 0] if source >= 0 else 0.0
        s.columns[page, 0] = begin - math.log(1.0 - uniform(s.run[0].seed, int(s.page[page].serial)))
    return -s.columns[page, 0]


PAGE = PageRank("random", stroke, columns=("clock",), constant=True)
STRATEGY = Strategy("random", PAGE, top_page.SITE)
