"""The estimated time of the next visit to a site: the T by which several site ranks divide.

    T = 2 c + P r / p

c = connection time (s, >= 0) and r = response time (s, >= 0), the site's estimates, or the means over the measured sites for
a site that was never measured; P = number of pages of the next visit; p = 1.2 with pipelining, else 1.

Source: Cao et al. 4.2. Differs from the paper: T is at least 1 ns, because a rank must be a finite number.

0.5 s to connect and two pages of 0.25 s each:

>>> visit_s(0.5, 0.25, 2, 1.0)
1.5
"""

from trapline.compiled.jit import shared

SHORTEST_S = 1e-9


@shared
def visit_s(connection_s: float, response_s: float, pages: int, pipeline_gain: float) -> float:
    """Return the estimated time of a visit, in seconds."""
    return max(2.0 * connection_s + pages * response_s / pipeline_gain, SHORTEST_S)
