"""First come, first served: the pages of a site in order of discovery, the sites in order of their oldest waiting
page.

Page rank: 0 for all, so that the serial decides. Site rank: -o, o = the smallest serial of the site's waiting pages
(>= 0). Cost: O(1) a page, O(log sites) a visit.
Source: breadth-first of Cao et al. 4.1 and of Castillo's thesis 4.3.1; the site rank: spec, section 1.
Differs from the paper: Cao's queue of servers goes by when a server joined it; that is `fifo-turn`.

>>> from types import SimpleNamespace
>>> oldest_first(None, None, SimpleNamespace(oldest_serial=12))
-12.0
"""

from trapline.frontier.layout import Record, View
from trapline.frontier.ranking import page_rank, site_rank
from trapline.strategies.strategy import PageRank, SiteRank, Strategy


@page_rank
def equal(s: View, page: int, source: int, links: int, is_new: bool) -> float:
    return 0.0


@site_rank
def oldest_first(s: View, site: Record, queue: Record) -> float:
    return -float(queue.oldest_serial)


PAGE = PageRank("fifo", equal, constant=True, fifo=True)
SITE = SiteRank("fifo", oldest_first, reads=("oldest",))
STRATEGY = Strategy("breadth-first", PAGE, SITE)
