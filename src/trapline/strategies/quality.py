"""Orders pages by a quality that is known before the crawl: an oracle's PageRank, page views, votes.

Page rank: q(p), the column `quality`, set by the caller. Site rank: the rank of the best page.
Cost: O(log pages of the site) per page.
Source: Cao et al. 4.3.

>>> from types import SimpleNamespace
>>> import numpy as np
>>> float(known_quality(SimpleNamespace(columns=np.array([[0.5]])), 0, -1, 0, True))
0.5
"""

from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page


@page_rank
def known_quality(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    return s.columns[page, 0]


PAGE = PageRank("quality", known_quality, columns=("quality",), inputs=("quality",), constant=True)
STRATEGY = Strategy("quality", PAGE, top_page.SITE)
