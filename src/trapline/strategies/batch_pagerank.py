"""Fetches the pages with the highest PageRank of the known graph, K at a time: PageRank is computed, K pages are chosen and
fetched, and PageRank is computed again.

Page rank: R(p) of the last run, >= 0; 0 for a page found after it. Before the first run all pages have 0, so that home
pages are equal. R is the PageRank of the known graph, which consists of the discovered pages and the links of the
fetched pages. K = `batch` (pages). Site rank: the rank of the best page.
Cost: a PageRank of the known graph every K pages, then O(log pages of the site) per waiting page; O(1) per link.
Source: "Batch" of Castillo et al. 2004, V; "batch-pagerank" of Castillo's thesis 4.3.1, after Cho, Garcia-Molina and
Page 1998.
Differs from the paper: unless K is given, it is 1/35 of the web's pages, at least 50; the thesis has K = 100,000 of 3.5 M.

The last run gave page 0 a rank of 0.25. Page 1 is new, so the number in its column does not count:

>>> from types import SimpleNamespace
>>> import numpy as np
>>> s = SimpleNamespace(columns=np.array([[0.25], [0.5]]))
>>> float(last_score(s, 0, -1, 0, False)), float(last_score(s, 1, 0, 9, True))
(0.25, 0.0)
"""

from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page


@page_rank
def last_score(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    if is_new:
        s.columns[page, 0] = 0.0
    return s.columns[page, 0]


# Constant: links do not change the rank, only new scores do.
PAGE = PageRank("batch-pagerank", last_score, columns=("score",), constant=True, scores="score", batched=True)
STRATEGY = Strategy("batch-pagerank", PAGE, top_page.SITE)
