"""Visits the site that gives the most quality per second, where a page counts less the more pages were taken from its site.

Site rank: AQ / T * h / (h + n) (quality/s). AQ = sum of the P best qualities that wait at the site; P = number of pages of
the next visit; T = 2 c + P r / p, the time of that visit (s): base/visit_seconds.py; n = number of pages taken from the site so
far; h = 100, the number of pages after which a page counts half. Page rank: quality. Cost: O(log pages of the site) per
change of a page's rank.
Source: Cao et al. 4.4, which leaves other ways to add up a site's qualities to future work.
Differs from the paper: the form h / (h + n) and h = 100 are ours; they were not fitted to data.

Quality 3 in 2 s, at a site from which 100 pages were taken already: 1.5 / 2.

>>> from types import SimpleNamespace as record
>>> s = record(run=[record(pipeline_gain=1.0)])
>>> site = record(connection_s=0.5, response_s=0.5, taken=100)
>>> diminished_quality_per_second(s, site, record(quality_sum=3.0, planned=2))
0.75
"""

from trapline.frontier.layout import RankView, Record
from trapline.frontier.ranking import site_rank
from trapline.strategies import SiteRank, Strategy, quality
from trapline.strategies.base.visit_seconds import visit_s

HALF_VALUE_AFTER = 100.0


@site_rank
def diminished_quality_per_second(s: RankView, site: Record, queue: Record) -> float:
    seconds = visit_s(site.connection_s, site.response_s, queue.planned, s.run[0].pipeline_gain)
    return queue.quality_sum / seconds * (HALF_VALUE_AFTER / (HALF_VALUE_AFTER + site.taken))


SITE = SiteRank("crawl-ability-diminishing", diminished_quality_per_second, reads=("planned", "quality_sum"))
STRATEGY = Strategy("crawl-ability-diminishing", quality.PAGE, SITE)
