"""Visits the site with the best page.

Site rank: the key of the best waiting page. With this site rank, and without politeness, any page rank orders the whole
frontier as one queue. Cost: O(1); evaluated again only when the site's best page changes.
Source: Castillo et al. 2004, section V; Castillo's thesis 4.3 (the site-level half of all page-based strategies).

>>> from types import SimpleNamespace
>>> best_page(None, None, SimpleNamespace(best_key=0.25))
0.25
"""

from trapline.frontier.layout import RankView, Record
from trapline.frontier.ranking import site_rank
from trapline.strategies import SiteRank


@site_rank
def best_page(s: RankView, site: Record, queue: Record) -> float:
    return float(queue.best_key)


SITE = SiteRank("top-page", best_page, reads=("best",))
