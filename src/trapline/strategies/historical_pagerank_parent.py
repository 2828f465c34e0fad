"""Orders pages by their PageRank in an old crawl; a new page by its share of the rank of the page that first linked to it.

Page rank: W(p) = H(p), the PageRank in the old crawl (>= 0; the input is -1 for a page that was not in it), or W(q) / links(q)
for a new page, q = the fetched page whose link to p was the first, links(q) = the number of links on q; 0 for a new seed.
Site rank: the rank of the best page. Cost: O(log pages of the site) per page.
Source: "historical-pagerank-parent" of Castillo's thesis 4.3.2.
Differs from the paper: the paper does not say what the new pages get that a new page links to; here they get shares of the
new page's share.

Page 0 is old and has 0.5. One of its four links leads to page 1, which is new; one of the two links there leads to page 2:

>>> from types import SimpleNamespace
>>> import numpy as np
>>> s = SimpleNamespace(columns=np.array([[0.5, 0.0], [-1.0, 0.0], [-1.0, 0.0]]))
>>> [float(old_or_share(s, page, page - 1, links, True)) for page, links in ((0, 0), (1, 4), (2, 2))]
[0.5, 0.125, 0.0625]
"""

from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page

HISTORY, VALUE = 0, 1


@page_rank
def old_or_share(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    if is_new:
        share = s.columns[source, VALUE] / links if source >= 0 else 0.0
        s.columns[page, VALUE] = s.columns[page, HISTORY] if s.columns[page, HISTORY] >= 0.0 else share
    return s.columns[page, VALUE]


PAGE = PageRank(
    "historical-pagerank-parent",
    old_or_share,
    columns=("history", "value"),
    inputs=("history",),
    constant=True,
    hands_on="value",
)
STRATEGY = Strategy("historical-pagerank-parent", PAGE, top_page.SITE)
