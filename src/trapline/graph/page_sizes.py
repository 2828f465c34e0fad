"""Sizes of generated pages: a lognormal body, in which the pages of a site are alike, and a Pareto tail.

    98 % of pages:  ln size = m + s (sqrt(h) z(site) + sqrt(1 - h) z(page)), both z standard normal
    the others:     P(size > x) = (x/x0)^-a, from x0 = 160 kB, the 98th percentile of the body, to 14 MB

Source: two recorded crawls with sizes, of a university network (9,996 pages) and of a faculty (53,779 pages); m and s are
fitted to the quantiles .05 to .90, a is Hill's estimate from the top 1 %. `bench/webs.py` prints both beside a generated web.

| | network | faculty | set |
|---|---|---|---|
| e^m, bytes | 6,706 | 3,937 | 5,100 |
| s | 1.60 | 1.76 | 1.68 |
| h, share of the variance of ln size between sites | .58 | .50 | .5 |
| a | 1.4 | - (one site has 2,000 pages of some 800 kB) | 1.4 |
"""

import numpy as np
from numpy.typing import NDArray

from trapline.graph.exact import exponential_of, key_of, logarithm, power, stream, uniform
from trapline.jit import kernel, ready

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Ids = NDArray[np.int32]

_MEDIAN_BYTES, _SPREAD = 5_100.0, 1.68
_TAIL, _TAIL_FROM_BYTES, _TAIL_EXPONENT = 0.02, 160_000.0, 1.4
_STEPS, _TAIL_STEPS = 4096, 256
_SQRT_HALF = 0.7071067811865476


@kernel("void(int64, int64, int32[::1], float64[::1], float64[::1], float64, int64[::1])")
def _draw(key: int, first: int, site: Ids, body: Floats, tail: Floats, share: float, out: Longs) -> None:
    """body: e^(s z / sqrt 2) at the quantiles of z, in the middle of each step. tail: bytes, likewise."""
    for page in range(len(out)):
        draws = stream(key, first + page)
        if uniform(draws, 1) < share:
            out[page] = int(tail[int(uniform(draws, 2) * len(tail))])
        else:
            factor = (
                body[int(uniform(draws, 2) * len(body))]
                * body[int(uniform(stream(key, int(site[page])), 3) * len(body))]
            )
            out[page] = max(int(_MEDIAN_BYTES * factor), 1)


def page_sizes(seed: int, site: Ids, first: int = 0) -> Longs:
    """Bytes of the pages `first`, `first` + 1, ..., on these sites, at least 1; equal on every machine."""
    ready()
    sizes = np.empty(len(site), dtype=np.int64)
    # h = 1/2: site and page have the same share in z.
    body = exponential_of(_SPREAD * _SQRT_HALF * _normal_quantiles())
    left = (np.arange(_TAIL_STEPS) + 0.5) / _TAIL_STEPS
    tail = _TAIL_FROM_BYTES / power(left, 1.0 / _TAIL_EXPONENT)
    _draw(key_of(seed, "bytes"), first, site, body, tail, _TAIL, sizes)
    return sizes


def _normal_quantiles() -> Floats:
    """Acklam's rational approximation (relative error 1e-9), in the middle of each step."""
    chance = (np.arange(_STEPS) + 0.5) / _STEPS
    tail = np.minimum(chance, 1.0 - chance)
    outer = np.minimum(tail, 0.02425)
    far = np.sqrt(-2.0 * logarithm(outer))
    low = _ratio(far, _FAR, _FAR_BELOW)
    middle = chance - 0.5
    near = middle * _ratio(middle * middle, _NEAR, _NEAR_BELOW)
    return np.where(tail < 0.02425, np.where(chance < 0.5, low, -low), near)


def _ratio(x: Floats, above: tuple[float, ...], below: tuple[float, ...]) -> Floats:
    return _polynomial(x, above) / _polynomial(x, below)


def _polynomial(x: Floats, coefficients: tuple[float, ...]) -> Floats:
    value = np.zeros_like(x)
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


# Peter J. Acklam, "An algorithm for computing the inverse normal cumulative distribution function" (2003).
_NEAR = (
    -3.969683028665376e01,
    2.209460984245205e02,
    -2.759285104469687e02,
    1.383577518672690e02,
    -3.066479806614716e01,
    2.506628277459239e00,
)
_NEAR_BELOW = (
    -5.447609879822406e01,
    1.615858368580409e02,
    -1.556989798598866e02,
    6.680131188771972e01,
    -1.328068155288572e01,
    1.0,
)
_FAR = (
    -7.784894002430293e-03,
    -3.223964580411365e-01,
    -2.400758277161838e00,
    -2.549732539343734e00,
    4.374664141464968e00,
    2.938163982698783e00,
)
_FAR_BELOW = (7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00, 1.0)
