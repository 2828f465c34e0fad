"""Orders pages by their PageRank in an old crawl; a new page by its PageRank in the full graph, which only an oracle knows.

Page rank: H(p), the PageRank in the old crawl (>= 0; the input is -1 for a page that was not in it), or R(p), the PageRank of
the full graph, for a new page. Both sum to 1 over their own graph. Site rank: the rank of the best page. Cost: O(log pages
of the site) per page.
Source: "historical-pagerank-omniscient" of Castillo's thesis 4.3.2.

An old page with 0.25, and a new page to which the oracle gives 0.125:

>>> from types import SimpleNamespace
>>> import numpy as np
>>> s = SimpleNamespace(columns=np.array([[0.25, 0.5], [-1.0, 0.125]]))
>>> float(old_or_oracle(s, 0, -1, 0, True)), float(old_or_oracle(s, 1, -1, 0, True))
(0.25, 0.125)
"""

from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page

HISTORY, PAGERANK = 0, 1


@page_rank
def old_or_oracle(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    return s.columns[page, HISTORY] if s.columns[page, HISTORY] >= 0.0 else s.columns[page, PAGERANK]


INPUTS = ("history", "pagerank")
PAGE = PageRank("historical-pagerank-omniscient", old_or_oracle, columns=INPUTS, inputs=INPUTS, constant=True)
STRATEGY = Strategy("historical-pagerank-omniscient", PAGE, top_page.SITE)
