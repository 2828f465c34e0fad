"""The page with the highest PageRank among those known, computed every K pages and estimated in between.

Page rank: R(p), the PageRank of the known graph at the last run, if p was known then (> 0); else the estimate E(p) = sum
over fetched pages q that link to p of W(q) / links(q), W(q) = R(q) or, if q too is newer than the last run, E(q);
links(q) = the number of links on q. A seed has E = 1 before the first run, which says that all home pages are equal, and 0
after it: the run counter `rescored` tells which. K = `rescore` (pages). Site rank: the best page's.
Cost: a PageRank of the known graph every K pages, and O(log pages of the site) a waiting page then and a link.
Source: "Partial" of Castillo et al. 2004, V; "partial-pagerank" of Castillo's thesis 4.3.1.
Differs from the paper: it does not say what a parent without a PageRank of its own is worth; here, its estimate.

Page 0 had 0.5 in the last run. It has five links, one of them to page 1, new since; page 1 has two, one to page 2:

>>> from types import SimpleNamespace as record
>>> import numpy as np
>>> s = record(run=[record(rescored=1)], columns=np.array([[0.5, 0.0], [0.0, 0.0], [0.0, 0.0]]))
>>> float(score_or_estimate(s, 1, 0, 5, True)), float(score_or_estimate(s, 2, 1, 2, True))
(0.1, 0.05)
"""

from trapline.frontier.layout import View
from trapline.frontier.ranking import page_rank
from trapline.jit import shared
from trapline.strategies import top_page
from trapline.strategies.strategy import PageRank, Strategy

SCORE, ESTIMATE = 0, 1


@shared
def worth(score: float, estimate: float) -> float:
    """PageRank is at least (1 - d)/n, so a score of 0 is that of a page newer than the last run."""
    return score if score > 0.0 else estimate


@page_rank
def score_or_estimate(s: View, page: int, source: int, links: int, is_new: bool) -> float:
    if is_new:
        s.columns[page, SCORE] = 0.0
        s.columns[page, ESTIMATE] = 1.0 if source < 0 and s.run[0].rescored == 0 else 0.0
    if source >= 0:
        s.columns[page, ESTIMATE] += worth(s.columns[source, SCORE], s.columns[source, ESTIMATE]) / links
    return worth(s.columns[page, SCORE], s.columns[page, ESTIMATE])


PAGE = PageRank("partial-pagerank", score_or_estimate, columns=("score", "estimate"), scores="score")
STRATEGY = Strategy("partial-pagerank", PAGE, top_page.SITE)
