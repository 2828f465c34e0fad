"""Visits the site that gives the most pages per second, where the delay after the visit counts as part of the visit.

Site rank: P / (T + w) (pages/s). P = number of pages of the next visit; T = 2 c + P r / p, the time of that visit (s); w =
the site's own delay, or the delay that the rules set by its size (s). Page rank: fifo. Cost: O(log sites) per change of P,
and at the end of a visit.
Source: Cao et al. 4.2 and the spec's variant (section 2).
Differs from the paper: the paper ignores w. The delay of the site's address is not counted.

Two pages planned, 0.5 s to connect, 0.5 s per response, 6 s of delay: 2 / (1 + 1 + 6).

>>> from types import SimpleNamespace as record
>>> rules = record(pipeline_gain=1.0, small_site_pages=0, small_site_delay_s=15.0, delay_s=6.0)
>>> site = record(connection_s=0.5, response_s=0.5, delay_s=float("nan"), known=9)
>>> pages_per_second(record(run=[rules]), site, record(planned=2))
0.25
"""

from trapline.frontier.layout import RankView, Record
from trapline.frontier.ranking import site_rank
from trapline.frontier.rules import site_delay_s
from trapline.strategies import SiteRank, Strategy, fifo
from trapline.strategies.base.visit_seconds import visit_s


@site_rank
def pages_per_second(s: RankView, site: Record, queue: Record) -> float:
    run = s.run[0]
    seconds = visit_s(site.connection_s, site.response_s, queue.planned, run.pipeline_gain)
    seconds += site_delay_s(run, site)
    return queue.planned / seconds


SITE = SiteRank("performance-and-delay", pages_per_second, reads=("planned",))
STRATEGY = Strategy("performance-and-delay", fifo.PAGE, SITE)
