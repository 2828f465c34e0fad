"""Orders pages by the quality of the page that first linked to them: good pages link to good pages.

Page rank: q(f), f = the fetched page that linked to p first, q(f) = its quality (>= 0), once it is known. Until then, and if f has
none, such as a redirect: the rank that f had. A page that no known page links to, such as a seed, has 1. Site rank: the rank of
the best page. Cost: O(log pages of the site) per new page, and once more when q(f) becomes known.
Source: Pezzuti, MacAvaney, Tonellotto 2025, Neural Prioritisation for Web Crawling (ICTIR): the quality of a page predicts that of
its links.
Differs from the paper: q is any measure, by --quality; a later link changes nothing.

Page 1 is found on page 0, whose quality 0.8 is known:

>>> from types import SimpleNamespace
>>> import numpy as np
>>> s = SimpleNamespace(columns=np.array([[0.8, 1.0, 0.0], [-1.0, 0.0, 0.0]]), run=[SimpleNamespace(pages=2)])
>>> float(quality_of_parent(s, 1, 0, 1, True))
0.8
"""

from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page

COLUMNS = ("fetched_quality", "expected", "finding_page")  # finding_page: 1 + the page that linked first; 0: none
QUALITY, EXPECTED, FINDER = range(len(COLUMNS))


@page_rank
def quality_of_parent(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    c = s.columns
    is_here = 0 <= source < s.run[0].pages  # a page of another partition has no quality here
    if is_new:
        c[page, EXPECTED] = 1.0
        if is_here:
            c[page, EXPECTED], c[page, FINDER] = c[source, EXPECTED], source + 1.0
    if is_here and c[source, QUALITY] >= 0.0 and int(c[page, FINDER]) == source + 1:
        c[page, EXPECTED] = c[source, QUALITY]
    return c[page, EXPECTED]


PAGE = PageRank("parent-quality", quality_of_parent, columns=COLUMNS, inputs=("fetched_quality",))
STRATEGY = Strategy("parent-quality", PAGE, top_page.SITE)
