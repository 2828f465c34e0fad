"""The site that gives the most quality per second of connection.

Site rank: C = AQ / T. AQ = sum of the best P qualities waiting; T = 2 c + P r / p, the time of the visit; c =
connection time (s), r = response time (s), both exponential averages (alpha = 0.8); P = pages of the next visit; p =
1.2 with pipelining, else 1. Page rank: quality. Cost: O(log pages of the site) a change of a page's rank.
Source: Cao et al. 4.4 and 4.2.
Differs from the paper: it prints a product sign where its words say "simple algebraic summation"; a site never
visited takes the mean over visited sites; T is at least 1 ns.

Two pages planned, quality 3 together, 0.5 s to connect and 0.5 s a response: 3 / (1 + 1).

>>> from types import SimpleNamespace as record
>>> s = record(run=[record(pipeline_gain=1.0)])
>>> quality_per_second(s, record(connection_s=0.5, response_s=0.5), record(quality_sum=3.0, planned=2))
1.5
"""

from trapline.frontier.layout import Record, View
from trapline.frontier.ranking import site_rank
from trapline.strategies import quality
from trapline.strategies.strategy import SiteRank, Strategy


@site_rank
def quality_per_second(s: View, site: Record, queue: Record) -> float:
    seconds = 2.0 * site.connection_s + queue.planned * site.response_s / s.run[0].pipeline_gain
    return queue.quality_sum / max(seconds, 1e-9)


SITE = SiteRank("crawl-ability", quality_per_second, reads=("planned", "quality_sum"))
STRATEGY = Strategy("crawl-ability", quality.PAGE, SITE)
