"""On-line page importance computation (OPIC): a fetched page splits its cash among the pages that it links to.

Page rank: cash(p) = 1 + sum over fetched pages q that link to p of cash(q) / links(q), links(q) = the number of links
on q. Site rank: the rank of the best page. Cost: O(log pages of the site) per link.
Source: Abiteboul, Preda, Cobena 2003, in the form of Castillo's thesis 4.3: all pages start equal.
Differs from the paper: a page is fetched once, so its cash is split once. The cash of a page without links is lost, and so
is the cash that goes to pages already fetched.

A page discovered by a link of a page with cash 1 and four links:

>>> from types import SimpleNamespace
>>> import numpy as np
>>> s = SimpleNamespace(columns=np.array([[1.0], [0.0]]))
>>> float(cash(s, 1, 0, 4, True))
1.25
"""

from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page


@page_rank
def cash(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    if is_new:
        s.columns[page, 0] = 1.0
    if source >= 0:
        s.columns[page, 0] += s.columns[source, 0] / links
    return s.columns[page, 0]


PAGE = PageRank("opic", cash, columns=("cash",), hands_on="cash")
STRATEGY = Strategy("opic", PAGE, top_page.SITE)
