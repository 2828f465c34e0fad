"""Visits the site that gives the most quality per second of connection.

Site rank: C = AQ / T (quality/s). AQ = sum of the P best qualities that wait at the site; P = number of pages of the next
visit; T = 2 c + P r / p, the time of that visit (s): base/visit_seconds.py. Page rank: quality. Cost: O(log pages of the site)
per change of a page's rank.
Source: Cao et al. 4.4 and 4.2.
Differs from the paper: the paper prints a product sign where its text says "simple algebraic summation"; a site that was
never measured gets the mean estimates of the measured sites. As in the paper, the delay after a visit is ignored
(`crawl-ability-and-delay` counts it).

Two pages planned, of quality 3 together, 0.5 s to connect and 0.5 s per response: 3 / (1 + 1).

>>> from types import SimpleNamespace as record
>>> s = record(run=[record(pipeline_gain=1.0)])
>>> quality_per_second(s, record(connection_s=0.5, response_s=0.5), record(quality_sum=3.0, planned=2))
1.5
"""

from trapline.frontier.layout import RankView, Record
from trapline.frontier.ranking import site_rank
from trapline.strategies import SiteRank, Strategy, quality
from trapline.strategies.base.visit_seconds import visit_s


@site_rank
def quality_per_second(s: RankView, site: Record, queue: Record) -> float:
    seconds = visit_s(site.connection_s, site.response_s, queue.planned, s.run[0].pipeline_gain)
    return queue.quality_sum / seconds


SITE = SiteRank("crawl-ability", quality_per_second, reads=("planned", "quality_sum"))
STRATEGY = Strategy("crawl-ability", quality.PAGE, SITE)
