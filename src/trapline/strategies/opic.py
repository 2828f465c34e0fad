"""On-line page importance: pages hand the cash they received on to the pages they link to.

Page rank: cash(p) = 1 + sum over fetched pages q that link to p of cash(q) / links(q), links(q) = the number of links
on q. Site rank: the best page's. Cost: O(log pages of the site) a link.
Source: Abiteboul, Preda, Cobena 2003, in the form of Castillo's thesis 4.3: all pages start equal. Differs from the
paper: a page is fetched once, so its cash is split once; the cash of a page without links, and what goes to pages
already fetched, is lost.

A page that was discovered by a page with cash 1 and four links:

>>> from types import SimpleNamespace
>>> import numpy as np
>>> s = SimpleNamespace(columns=np.array([[1.0], [0.0]]))
>>> float(cash(s, 1, 0, 4, True))
1.25
"""

from trapline.frontier.layout import View
from trapline.frontier.ranking import page_rank
from trapline.strategies import top_page
from trapline.strategies.strategy import PageRank, Strategy


@page_rank
def cash(s: View, page: int, source: int, links: int, is_new: bool) -> float:
    if is_new:
        s.columns[page, 0] = 1.0
    if source >= 0:
        s.columns[page, 0] += s.columns[source, 0] / links
    return s.columns[page, 0]


PAGE = PageRank("opic", cash, columns=("cash",), hands_on="cash")
STRATEGY = Strategy("opic", PAGE, top_page.SITE)
