"""The pages with the highest PageRank among those known, K at a time: computed, K pages chosen and fetched, computed
again.

Page rank: R(p) of the last run, >= 0; 0 for a page found after it. Before the first run all pages have 0, so that home
pages are equal. R is the PageRank of the known graph: its pages are those discovered, its links those of the pages
fetched. K = `batch` (pages). Site rank: the best page's.
Cost: a PageRank of the known graph every K pages, and O(log pages of the site) a waiting page then; O(1) a link.
Source: "Batch" of Castillo et al. 2004, V; "batch-pagerank" of Castillo's thesis 4.3.1, after Cho, Garcia-Molina and
Page 1998.
Differs from the paper: K is 1/35 of the web's pages, at least 50, unless given; the thesis has K = 100,000 of 3.5 M.

The last run gave page 0 a rank of 0.25; page 1 is found now, whatever stood in its place before:

>>> from types import SimpleNamespace
>>> import numpy as np
>>> s = SimpleNamespace(columns=np.array([[0.25], [0.5]]))
>>> float(last_score(s, 0, -1, 0, False)), float(last_score(s, 1, 0, 9, True))
(0.25, 0.0)
"""

from trapline.frontier.layout import View
from trapline.frontier.ranking import page_rank
from trapline.strategies import top_page
from trapline.strategies.strategy import PageRank, Strategy


@page_rank
def last_score(s: View, page: int, source: int, links: int, is_new: bool) -> float:
    if is_new:
        s.columns[page, 0] = 0.0
    return s.columns[page, 0]


# Constant: no link changes it, new scores alone do.
PAGE = PageRank("batch-pagerank", last_score, columns=("score",), constant=True, scores="score", batched=True)
STRATEGY = Strategy("batch-pagerank", PAGE, top_page.SITE)
