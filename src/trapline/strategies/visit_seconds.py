"""How long the next visit to a site would take: the T that several site ranks divide by. Not a strategy.

    T = 2 c + P r / p

c = connection time (s, >= 0) and r = response time (s, >= 0), the site's estimates, or the means over visited sites for a
site never measured; P = pages of the next visit; p = 1.2 with pipelining, else 1. The rest after it, w: the site's own delay
(s, >= 0; NaN: none) or the rules', by its size.

Source: Cao et al. 4.2; the rest: spec, section 2, and Castillo's thesis 4.5.2. Differs from the paper: T is at least 1 ns,
because a rank must be a finite number.

0.5 s to connect and two pages of 0.25 s each; a site of 3 pages with no delay of its own, where sites under 100 rest 15 s:

>>> visit_s(0.5, 0.25, 2, 1.0)
1.5
>>> rest_s(float("nan"), 3, 100, 15.0, 5.0)
15.0
"""

from trapline.jit import shared

SHORTEST_S = 1e-9


@shared
def visit_s(connection_s: float, response_s: float, pages: int, pipeline_gain: float) -> float:
    return max(2.0 * connection_s + pages * response_s / pipeline_gain, SHORTEST_S)


@shared
def rest_s(own_s: float, pages: int, small_pages: int, small_s: float, large_s: float) -> float:
    """As frontier/limits.py has it for the rest itself."""
    if own_s == own_s:
        return own_s
    return small_s if pages < small_pages else large_s
