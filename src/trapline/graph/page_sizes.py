"""Sizes of generated pages: a lognormal body, in which the pages of one site resemble each other, and a Pareto tail.

    98 % of pages:  ln size = m + s (sqrt(h) z(site) + sqrt(1 - h) z(page)), both z standard normal
    the others:     P(size > x) = (x/x0)^-a, from x0 = 160 kB, the 98th percentile of the body, to 14 MB

Source: two recorded crawls with sizes, of a university network (9,996 pages) and of a faculty (53,779 pages); m and s are
fitted to the quantiles .05 to .90, a is Hill's estimate from the top 1 %. `bench/fit_servers.py` prints the table's
numbers, `bench/webs.py` compares both crawls with a generated web.

| | network | faculty | set |
|---|---|---|---|
| e^m, bytes | 6,690 | 3,921 | 5,100 |
| s | 1.61 | 1.77 | 1.68 |
| h, share of the variance of ln size between sites | .58 | .50 | .5 |
| a | 1.4 | - (one site has 2,000 pages of some 800 kB) | 1.4 |
"""

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.jit import kernel
from trapline.graph.exact import exp, key_of, normal_quantile, number_in, power, stream

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Ids = NDArray[np.int32]

_MEDIAN_BYTES, _SPREAD = 5_100.0, 1.68
_TAIL, _TAIL_FROM_BYTES, _TAIL_EXPONENT = 0.02, 160_000.0, 1.4
_STEPS, _TAIL_STEPS = 4096, 256
_SQRT_HALF = 0.7071067811865476


@kernel("void(int64, int64, int32[::1], float64[::1], float64[::1], float64, int64[::1])")
def _draw(key: int, first: int, site: Ids, body: Floats, tail: Floats, share: float, out: Longs) -> None:
    """Draw the size of each page.

    body: e^(s z / sqrt 2) at the quantiles of z, in the middle of each step. tail: bytes, at quantiles likewise.
    """
    for page in range(len(out)):
        draws = stream(key, first + page)
        if number_in(draws, 1) < share:
            out[page] = int(tail[int(number_in(draws, 2) * len(tail))])
        else:
            factor = (
                body[int(number_in(draws, 2) * len(body))]
                * body[int(number_in(stream(key, int(site[page])), 3) * len(body))]
            )
            out[page] = max(int(_MEDIAN_BYTES * factor), 1)


def page_sizes(seed: int, site: Ids, first: int = 0) -> Longs:
    """Return the bytes, at least 1, of the pages `first`, `first` + 1, ... on the given sites; equal on every machine."""
    sizes = np.empty(len(site), dtype=np.int64)
    # h = 1/2: site and page contribute equally to z.
    middles = (np.arange(_STEPS) + 0.5) / _STEPS
    body = exp(_SPREAD * _SQRT_HALF * normal_quantile(middles))
    left = (np.arange(_TAIL_STEPS) + 0.5) / _TAIL_STEPS
    tail = _TAIL_FROM_BYTES / power(left, 1.0 / _TAIL_EXPONENT)
    _draw(key_of(seed, "bytes"), first, site, body, tail, _TAIL, sizes)
    return sizes
