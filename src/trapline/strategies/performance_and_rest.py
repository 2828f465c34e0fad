"""The site that gives the most pages per second, with the rest after the visit counted as part of it.

Site rank: P / (T + w) (pages/s). P = pages of the next visit; T = 2 c + P r / p, its time (s); w = the site's own delay or
the rules', by its size (s). Page rank: fifo. Cost: O(log sites) a change of P, and at the end of a visit.
Source: Cao et al. 4.2 and the spec's variant (section 2).
Differs from the paper: it ignores w. The rest of the site's address is not counted.

Two pages planned, 0.5 s to connect, 0.5 s a response, 6 s of rest: 2 / (1 + 1 + 6).

>>> from types import SimpleNamespace as record
>>> rules = record(pipeline_gain=1.0, small_site_pages=0, small_site_delay_s=15.0, delay_s=6.0)
>>> site = record(connection_s=0.5, response_s=0.5, delay_s=float("nan"), known=9)
>>> pages_per_second(record(run=[rules]), site, record(planned=2))
0.25
"""

from trapline.frontier.layout import Record, View
from trapline.frontier.limits import rest_s
from trapline.frontier.ranking import site_rank
from trapline.strategies import fifo
from trapline.strategies.strategy import SiteRank, Strategy
from trapline.strategies.visit_seconds import visit_s


@site_rank
def pages_per_second(s: View, site: Record, queue: Record) -> float:
    run = s.run[0]
    seconds = visit_s(site.connection_s, site.response_s, queue.planned, run.pipeline_gain)
    seconds += rest_s(run, site)
    return queue.planned / seconds


SITE = SiteRank("performance-and-rest", pages_per_second, reads=("planned",))
STRATEGY = Strategy("performance-and-rest", fifo.PAGE, SITE)
