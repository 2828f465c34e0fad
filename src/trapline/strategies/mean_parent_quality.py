"""Orders pages by the mean quality of the fetched pages that link to them.

Page rank: (sum of q(f)) / n, over the n fetched pages f that link to p and whose quality q(f) (>= 0) is known. While n = 0: the
rank that the first page with a link to p had; 1 for a page that no known page links to, such as a seed. Site rank: the rank of
the best page. Cost: O(log pages of the site) per link, at the latest when q(f) becomes known.
Source: the idea of Pezzuti, MacAvaney, Tonellotto 2025, Neural Prioritisation for Web Crawling (ICTIR), that the quality of a page
predicts that of its links; the mean over all pages with a link is ours.

Page 2 has a link of page 0, of quality 0.8, and now one of page 1, of quality 0.4:

>>> from types import SimpleNamespace
>>> import numpy as np
>>> s = SimpleNamespace(
...     columns=np.array([[0.8, 1.0, 0.0, 0.0], [0.4, 1.0, 0.0, 0.0], [-1.0, 0.8, 0.8, 1.0]]), run=[SimpleNamespace(pages=3)]
... )
>>> round(float(mean_quality_of_parents(s, 2, 1, 1, False)), 3)
0.6
"""

from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page

COLUMNS = ("fetched_quality", "expected", "parent_sum", "parents")
QUALITY, EXPECTED, SUM, PARENTS = range(len(COLUMNS))


@page_rank
def mean_quality_of_parents(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    c = s.columns
    is_here = 0 <= source < s.run[0].pages  # a page of another partition has no quality here
    if is_new:
        c[page, EXPECTED] = c[source, EXPECTED] if is_here else 1.0
    if is_here and c[source, QUALITY] >= 0.0:
        c[page, SUM] += c[source, QUALITY]
        c[page, PARENTS] += 1.0
        c[page, EXPECTED] = c[page, SUM] / c[page, PARENTS]
    return c[page, EXPECTED]


PAGE = PageRank("mean-parent-quality", mean_quality_of_parents, columns=COLUMNS, inputs=("fetched_quality",))
STRATEGY = Strategy("mean-parent-quality", PAGE, top_page.SITE)
