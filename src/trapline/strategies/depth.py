"""Fetches shallow pages first: the pages that are the fewest links away from a seed.

Page rank: -d, d = number of links on the path from a seed by which the page was discovered (0..32,767); among equals the
page discovered first. Site rank: the rank of the best page. Cost: O(log pages of the site) per page.
Source: "Depth" of Castillo et al. 2004, V.
Differs from the paper: the depth is set at discovery; a shorter path found later does not change it.

A page three links away from a seed:

>>> from types import SimpleNamespace as record
>>> shallow_first(record(page=[record(depth=3)]), 0, -1, 0, True)
-3.0
"""

from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page


@page_rank
def shallow_first(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    return -float(s.page[page].depth)


PAGE = PageRank("depth", shallow_first, constant=True)
STRATEGY = Strategy("depth", PAGE, top_page.SITE)
