"""First come, first served: the pages of a site in order of discovery, the sites in order of their oldest waiting
page.

Page rank: 0 for all, so that the serial decides. Site rank: -serial of the site's best page (the oldest, with this
page rank). Cost: O(1) a page, O(log sites) a visit.
Source: breadth-first of Cao et al. 4.1 and of Castillo's thesis.
Differs from the paper: with another page rank the site's best page stands for its oldest one.
"""

from trapline.frontier.layout import Record, View
from trapline.frontier.ranking import page_rank, site_rank
from trapline.strategies.strategy import PageRank, SiteRank, Strategy


@page_rank
def equal(s: View, page: int, source: int, links: int, is_new: bool) -> float:
    return 0.0


@site_rank
def oldest_first(s: View, site: Record, queue: Record) -> float:
    return -float(queue.best_serial)


PAGE = PageRank("fifo", equal, constant=True, fifo=True)
SITE = SiteRank("fifo", oldest_first, reads=("best",))
STRATEGY = Strategy("breadth-first", PAGE, SITE)
