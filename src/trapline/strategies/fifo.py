"""First in, first out: the pages of a site in the order of their discovery, the sites in the order of their oldest waiting
page.

Page rank: 0 for all pages, so that the serial decides. Site rank: -o, o = the smallest serial of the site's waiting pages
(>= 0). Cost: O(1) per page, O(log sites) per visit.
Source: breadth-first of Cao et al. 4.1 and of Castillo's thesis 4.3.1; the site rank: spec, section 1.
Differs from the paper: Cao's queue of servers is ordered by when a server joined the queue; that is `fifo-turn`.

>>> from types import SimpleNamespace
>>> oldest_first(None, None, SimpleNamespace(oldest_serial=12))
-12.0
"""

from trapline.frontier.layout import RankView, Record
from trapline.frontier.ranking import page_rank, site_rank
from trapline.strategies import PageRank, SiteRank, Strategy


@page_rank
def equal(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    return 0.0


@site_rank
def oldest_first(s: RankView, site: Record, queue: Record) -> float:
    return -float(queue.oldest_serial)


PAGE = PageRank("fifo", equal, constant=True, fifo=True)
SITE = SiteRank("fifo", oldest_first, reads=("oldest",))
STRATEGY = Strategy("breadth-first", PAGE, SITE)
