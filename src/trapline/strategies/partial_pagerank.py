"""Fetches the page with the highest PageRank of the known graph first, computed every K pages and estimated in between.

Page rank: R(p), the PageRank of the known graph at the last run, if p was known then (> 0); else the estimate E(p) = sum
over fetched pages q that link to p of W(q) / links(q), W(q) = R(q) or, if q too is newer than the last run, E(q);
links(q) = the number of links on q. A seed has E = 1 before the first run, because all home pages are equal, and E = 0
after it; the run counter `rescored` distinguishes the two. K = `rescore` (pages). Site rank: the rank of the best page.
Cost: a PageRank of the known graph every K pages, then O(log pages of the site) per waiting page; the same per link.
Source: "Partial" of Castillo et al. 2004, V; "partial-pagerank" of Castillo's thesis 4.3.1.
Differs from the paper: the paper does not say what a parent without a PageRank of its own hands on; here, its estimate.

Page 0 had 0.5 in the last run. One of its five links leads to page 1, which is new since then; one of the two links of page
1 leads to page 2:

>>> from types import SimpleNamespace as record
>>> import numpy as np
>>> s = record(run=[record(rescored=1)], columns=np.array([[0.5, 0.0], [0.0, 0.0], [0.0, 0.0]]))
>>> float(score_or_estimate(s, 1, 0, 5, True)), float(score_or_estimate(s, 2, 1, 2, True))
(0.1, 0.05)
"""

from trapline.compiled.jit import shared
from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page

SCORE, ESTIMATE = 0, 1


@shared
def known_score(score: float, estimate: float) -> float:
    """Return the score or, for a page newer than the last run, the estimate. Such a page has score 0; a PageRank is at least (1 - d)/n."""
    return score if score > 0.0 else estimate


@page_rank
def score_or_estimate(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    if is_new:
        s.columns[page, SCORE] = 0.0
        s.columns[page, ESTIMATE] = 1.0 if source < 0 and s.run[0].rescored == 0 else 0.0
    if source >= 0:
        s.columns[page, ESTIMATE] += known_score(s.columns[source, SCORE], s.columns[source, ESTIMATE]) / links
    return known_score(s.columns[page, SCORE], s.columns[page, ESTIMATE])


PAGE = PageRank("partial-pagerank", score_or_estimate, columns=("score", "estimate"), scores="score")
STRATEGY = Strategy("partial-pagerank", PAGE, top_page.SITE)
