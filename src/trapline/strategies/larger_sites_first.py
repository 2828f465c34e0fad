"""Visits the site with the most waiting pages first, so that at the end of the crawl no large site is left, of which only
one page every w seconds can be fetched.

Site rank: n, the number of pages waiting at the site (>= 1), updated at each insert. Page rank: fifo. Cost: O(log
sites) per discovered page.
Source: "Length" of Castillo et al. 2004, V; "larger-sites-first" of Castillo's thesis 4.3.

>>> from types import SimpleNamespace
>>> most_waiting(None, None, SimpleNamespace(waiting=7))
7.0
"""

from trapline.frontier.layout import RankView, Record
from trapline.frontier.ranking import site_rank
from trapline.strategies import SiteRank, Strategy, fifo


@site_rank
def most_waiting(s: RankView, site: Record, queue: Record) -> float:
    return float(queue.waiting)


SITE = SiteRank("larger-sites-first", most_waiting, reads=("waiting",))
STRATEGY = Strategy("larger-sites-first", fifo.PAGE, SITE)
