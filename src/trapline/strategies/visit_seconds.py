"""How long the next visit to a site would take: the T that several site ranks divide by. Not a strategy.

    T = 2 c + P r / p

c = connection time (s, >= 0) and r = response time (s, >= 0), the site's estimates, or the means over visited sites for a
site never visited; P = pages of the next visit; p = 1.2 with pipelining, else 1. With the rest after it: T + w, w = the
site's own delay (s, >= 0) or the rules', by its size.

Source: Cao et al. 4.2; the rest: spec, section 2. Differs from the paper: T is at least 1 ns, because a rank must be a
finite number.

0.5 s to connect, two pages of 0.25 s each, and a rest of 15 s:

>>> from types import SimpleNamespace as record
>>> s = record(run=[record(pipeline_gain=1.0, small_site_pages=0, delay_s=15.0)])
>>> site = record(connection_s=0.5, response_s=0.25, delay_s=float("nan"), known=3)
>>> visit_s(s, site, record(planned=2))
1.5
>>> visit_and_rest_s(s, site, record(planned=2))
16.5
"""

from trapline.frontier.layout import Record, View
from trapline.jit import shared

SHORTEST_S = 1e-9


@shared
def visit_s(s: View, site: Record, queue: Record) -> float:
    seconds = 2.0 * site.connection_s + queue.planned * site.response_s / s.run[0].pipeline_gain
    return max(seconds, SHORTEST_S)


@shared
def rest_s(s: View, site: Record) -> float:
    """w, as frontier/limits.py has it for the rest itself."""
    run = s.run[0]
    if site.delay_s == site.delay_s:
        return site.delay_s
    return run.small_site_delay_s if site.known < run.small_site_pages else run.delay_s


@shared
def visit_and_rest_s(s: View, site: Record, queue: Record) -> float:
    return visit_s(s, site, queue) + rest_s(s, site)
