"""Orders pages by their PageRank in an old crawl; new pages come after all old pages.

Page rank: H(p), the PageRank in the old crawl (> 0), or 0 for a page that was not in it (the input is -1 then). Site rank:
the rank of the best page. Cost: O(log pages of the site) per page.
Source: "historical-pagerank-zero" of Castillo's thesis 4.3.2.

An old page with 0.25, and a new page:

>>> from types import SimpleNamespace
>>> import numpy as np
>>> s = SimpleNamespace(columns=np.array([[0.25], [-1.0]]))
>>> float(old_or_zero(s, 0, -1, 0, True)), float(old_or_zero(s, 1, -1, 0, True))
(0.25, 0.0)
"""

from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page


@page_rank
def old_or_zero(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    return max(s.columns[page, 0], 0.0)


PAGE = PageRank("historical-pagerank-zero", old_or_zero, columns=("history",), inputs=("history",), constant=True)
STRATEGY = Strategy("historical-pagerank-zero", PAGE, top_page.SITE)
