"""Shallow pages first: those that the fewest links lead to from a seed.

Page rank: -d, d = links on the way from a seed by which the page was discovered (0..32,767); among equals the page
discovered first. Site rank: the best page's. Cost: O(log pages of the site) a page.
Source: "Depth" of Castillo et al. 2004, V.
Differs from the paper: the depth is that of the discovery; a shorter way found later does not change it.

A page three links from a seed:

>>> from types import SimpleNamespace as record
>>> shallow_first(record(page=[record(depth=3)]), 0, -1, 0, True)
-3.0
"""

from trapline.frontier.layout import View
from trapline.frontier.ranking import page_rank
from trapline.strategies import top_page
from trapline.strategies.strategy import PageRank, Strategy


@page_rank
def shallow_first(s: View, page: int, source: int, links: int, is_new: bool) -> float:
    return -float(s.page[page].depth)


PAGE = PageRank("depth", shallow_first, constant=True)
STRATEGY = Strategy("depth", PAGE, top_page.SITE)
