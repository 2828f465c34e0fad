"""Fetches the page with the most links from fetched pages first.

Page rank: b(p) = number of links to p on the pages fetched so far (>= 0; 0 for a seed). Site rank: the rank of the best
page. Cost: O(log pages of the site) per link.
Source: "backlink-count" of Castillo's thesis 4.3.1, after Cho, Garcia-Molina and Page 1998.

Page 0 is a seed; then page 1, which has seven links, links to it:

>>> from types import SimpleNamespace
>>> import numpy as np
>>> s = SimpleNamespace(columns=np.zeros((2, 1)))
>>> float(links_so_far(s, 0, -1, 0, True)), float(links_so_far(s, 0, 1, 7, False))
(0.0, 1.0)
"""

from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page


@page_rank
def links_so_far(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    if is_new:
        s.columns[page, 0] = 0.0
    if source >= 0:
        s.columns[page, 0] += 1.0
    return s.columns[page, 0]


PAGE = PageRank("backlink-count", links_so_far, columns=("backlinks",))
STRATEGY = Strategy("backlink-count", PAGE, top_page.SITE)
