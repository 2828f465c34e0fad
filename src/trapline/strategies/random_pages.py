"""Pages in random order: what every other order must beat.

Page rank: u(seed, n), a hash that is uniform in [0, 1); n = the page's serial at its discovery. The same seed gives the same
order, live or simulated. Site rank: the best page's. Cost: O(log pages of the site) a page.
Source: the baseline of Castillo's thesis 4.3.

>>> from types import SimpleNamespace as record
>>> import numpy as np
>>> s = record(run=[record(seed=7)], page=[record(serial=3)], columns=np.zeros((1, 1)))
>>> bool(drawn(s, 0, -1, 0, True) == uniform(7, 3))
True
"""

from trapline.frontier.layout import View
from trapline.frontier.ranking import page_rank
from trapline.rng import uniform
from trapline.strategies import top_page
from trapline.strategies.strategy import PageRank, Strategy


@page_rank
def drawn(s: View, page: int, source: int, links: int, is_new: bool) -> float:
    if is_new:  # a page that failed has another serial afterwards, and keeps its rank
        s.columns[page, 0] = uniform(s.run[0].seed, int(s.page[page].serial))
    return s.columns[page, 0]


PAGE = PageRank("random", drawn, columns=("draw",), constant=True)
STRATEGY = Strategy("random", PAGE, top_page.SITE)
