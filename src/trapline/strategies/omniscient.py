"""Fetches the discovered page with the highest PageRank of the full graph first, which only an oracle knows.

Page rank: R(p), the PageRank of the full graph (> 0, sums to 1 over all pages), regardless of --quality. Site rank: the rank
of the best page. Cost: O(log pages of the site) per page.
Source: "Optimal" of Castillo et al. 2004, V; "omniscient" of Castillo's thesis 4.3.3.

>>> from types import SimpleNamespace
>>> import numpy as np
>>> float(final_pagerank(SimpleNamespace(columns=np.array([[0.5]])), 0, -1, 0, True))
0.5
"""

from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page


@page_rank
def final_pagerank(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    return s.columns[page, 0]


PAGE = PageRank("omniscient", final_pagerank, columns=("pagerank",), inputs=("pagerank",), constant=True)
STRATEGY = Strategy("omniscient", PAGE, top_page.SITE)
