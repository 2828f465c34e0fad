"""Sites take turns: the site that has been in the queue of sites for the longest time is next.

Site rank: -turn, turn = 1, 2, ..., the running number that a site takes when it has pages to fetch and joins the queue: when
its first page is found, and after each visit. Page rank: fifo. Cost: O(log sites) per visit.
Source: the server queue of Cao et al. 4.1.
Differs from the paper: in the paper a server without a page leaves the queue, and the paper does not say where it joins the
queue again; here it takes a new turn.

>>> from types import SimpleNamespace
>>> longest_in_the_queue(None, SimpleNamespace(turn=3), None)
-3.0
"""

from trapline.frontier.layout import RankView, Record
from trapline.frontier.ranking import site_rank
from trapline.strategies import SiteRank, Strategy, fifo


@site_rank
def longest_in_the_queue(s: RankView, site: Record, queue: Record) -> float:
    return -float(site.turn)


SITE = SiteRank("fifo-turn", longest_in_the_queue, reads=())
STRATEGY = Strategy("breadth-first-turn", fifo.PAGE, SITE)
