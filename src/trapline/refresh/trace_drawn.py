"""Update traces that are drawn: Poisson pages, and pages that change in bursts. For tests, benchmarks and what-ifs."""

import numpy as np

from trapline.refresh.trace import Trace

_SPREAD = 1.5  # sigma of the logarithm of the pages' rates: between the busiest and the quietest tenth a factor of 47
_BURST = 8  # updates of a burst on average
_BURST_SHARE = 0.01  # of the mean gap between bursts: the mean gap within one


def drawn_trace(kind: str, pages: int, updates: int, days: float, seed: int) -> Trace:
    """`kind`: poisson or bursty. Rates of pages are log-normal; so many updates in all."""
    rng = np.random.default_rng((seed, 1))
    rate = np.exp(_SPREAD * rng.standard_normal(pages))
    counts = rng.multinomial(updates, rate / rate.sum())
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    horizon_s = days * 86_400.0
    page = np.repeat(np.arange(pages), counts)
    at = rng.random(updates) if kind == "poisson" else _bursts(rng, page, counts)
    order = np.lexsort((at, page))
    site = (np.arange(pages) // 100).astype(np.int32)
    return Trace(f"{kind}-{pages}", offsets, at[order] * horizon_s, site, horizon_s, {"form": kind, "seed": seed})


def _bursts(rng: np.random.Generator, page: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Each update joins one of its page's bursts, some time after the burst's beginning."""
    bursts = np.maximum(counts // _BURST, 1)
    base = np.concatenate([[0], np.cumsum(bursts)[:-1]])
    begins = rng.random(int(bursts.sum()))
    joined = base[page] + (rng.random(len(page)) * bursts[page]).astype(np.int64)
    after = rng.exponential(_BURST * _BURST_SHARE / 2.0, len(page)) / bursts[page]
    return np.minimum(begins[joined] + after, 1.0)
