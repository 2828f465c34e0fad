"""Orders pages by their PageRank in an old crawl; a new page by the PageRank of an old page that is sampled at random.

Page rank: H(p), the PageRank in the old crawl (>= 0), or H(q) for a new page p. q is sampled uniformly from all old pages by
a hash of the seed and p's URL (base/inputs.py), so that a live and a simulated crawl of the same web sample the same pages. Site
rank: the rank of the best page. Cost: O(log pages of the site) per page.
Source: "historical-pagerank-random" of Castillo's thesis 4.3.2.

>>> from types import SimpleNamespace
>>> import numpy as np
>>> float(old_or_drawn(SimpleNamespace(columns=np.array([[0.25]])), 0, -1, 0, True))
0.25
"""

from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page


@page_rank
def old_or_drawn(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    return s.columns[page, 0]


INPUTS = ("history_random",)
PAGE = PageRank("historical-pagerank-random", old_or_drawn, columns=INPUTS, inputs=INPUTS, constant=True)
STRATEGY = Strategy("historical-pagerank-random", PAGE, top_page.SITE)
