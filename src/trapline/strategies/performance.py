"""Visits the site that gives the most pages per second of connection.

Site rank: R = P / T (pages/s). P = number of pages of the next visit; T = 2 c + P r / p, the time of that visit (s):
base/visit_seconds.py. Page rank: fifo. Cost: O(log sites) per change of P, and at the end of a visit.
Source: Cao et al. 4.2.
Differs from the paper: a site that was never visited gets the mean over the visited sites; the paper does not say. As in the
paper, the delay after a visit is ignored (`performance-and-delay` counts it).

Two pages planned, 0.5 s to connect and 0.5 s per response: 2 / (1 + 1).

>>> from types import SimpleNamespace as record
>>> s = record(run=[record(pipeline_gain=1.0)])
>>> pages_per_second(s, record(connection_s=0.5, response_s=0.5), record(planned=2))
1.0
"""

from trapline.frontier.layout import RankView, Record
from trapline.frontier.ranking import site_rank
from trapline.strategies import SiteRank, Strategy, fifo
from trapline.strategies.base.visit_seconds import visit_s


@site_rank
def pages_per_second(s: RankView, site: Record, queue: Record) -> float:
    seconds = visit_s(site.connection_s, site.response_s, queue.planned, s.run[0].pipeline_gain)
    return queue.planned / seconds


SITE = SiteRank("performance", pages_per_second, reads=("planned",))
STRATEGY = Strategy("performance", fifo.PAGE, SITE)
