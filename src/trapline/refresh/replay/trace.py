"""Update traces: when each page changed during a period. This module knows no crawler and no files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Trace:
    """An update trace. Times are seconds since its beginning; those of page i are at_s[offsets[i] : offsets[i + 1]], ascending."""

    name: str
    offsets: Ints
    at_s: Floats
    site: NDArray[np.int32]
    horizon_s: float
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def pages(self) -> int:
        """Number of pages."""
        return len(self.offsets) - 1

    @property
    def updates(self) -> int:
        """Number of updates."""
        return len(self.at_s)

    @property
    def sites(self) -> int:
        """Number of sites."""
        return int(self.site.max()) + 1

    def page_of_update(self) -> NDArray[np.int32]:
        """Return the page of each update."""
        return np.repeat(np.arange(self.pages, dtype=np.int32), np.diff(self.offsets))


def trace_of_pages(name: str, times: Sequence[Floats], sites: Sequence[str], **origin: Any) -> Trace:
    """Return a trace from the update times of each page, on any clock. It begins with the first update and ends with the last."""
    found = [page_s for page_s in times if len(page_s)]
    if not found:
        raise ConfigError(f"{name}: no updates in it; give another trace")
    begin = min(float(page_s.min()) for page_s in found)
    horizon_s = max(float(page_s.max()) for page_s in found) - begin
    if horizon_s <= 0:
        raise ConfigError(f"{name}: all its updates are at the same moment; give a trace that covers some time")
    offsets = np.concatenate([[0], np.cumsum([len(page_s) for page_s in times])]).astype(np.int64)
    at_s = np.concatenate([np.sort(page_s) for page_s in times]).astype(np.float64) - begin
    _, site = np.unique(np.array(sites), return_inverse=True)
    return Trace(name, offsets, at_s, site.astype(np.int32), horizon_s, origin)


def in_steps(trace: Trace, step_s: float) -> Trace:
    """Return the trace as a poll every `step_s` would see it: an update becomes known at the next poll, at most one per poll.

    The trace of Xu et al. is of this kind.
    """
    at_s = np.ceil(trace.at_s / step_s) * step_s
    page = trace.page_of_update()
    kept = np.ones(len(at_s), bool)
    kept[1:] = (at_s[1:] != at_s[:-1]) | (page[1:] != page[:-1])
    counts = np.bincount(page[kept], minlength=trace.pages)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    horizon_s = float(np.ceil(trace.horizon_s / step_s) * step_s)
    return Trace(trace.name, offsets, at_s[kept], trace.site, horizon_s, {**trace.origin, "step_s": step_s})


def stretches(trace: Trace, length_s: float) -> list[Trace]:
    """Cut the trace into consecutive pieces of this length; a shorter rest at the end is dropped. Every piece has all pages, also those
    that do not change in it."""
    page = trace.page_of_update()
    found = []
    for number in range(int(trace.horizon_s // length_s)):
        begin_s = number * length_s
        inside = (trace.at_s >= begin_s) & (trace.at_s < begin_s + length_s)
        counts = np.bincount(page[inside], minlength=trace.pages)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        origin = {**trace.origin, "begin_s": begin_s}
        found.append(Trace(trace.name, offsets, trace.at_s[inside] - begin_s, trace.site, length_s, origin))
    return found


# ---- Histories of a trace for the pages of another web. The assignment depends on the trace and the seed only, so that testweb and the
# simulator have the same web. This part knows no graph.

_DEALING = 11  # random stream
_BEYOND = (
    1.0 + 1e-6
)  # a round is longer than the trace by this factor, so that the last update, at the very end, belongs to it


def dealt(trace: Trace, pages: int, seed: int) -> list[Floats]:
    """Sample a history for each page.

    A history that is used for a second page is rotated by a random part of its length, so that the two pages do not change
    together.
    """
    rng = np.random.default_rng((seed, _DEALING))
    histories: list[Floats] = []
    while len(histories) < pages:
        rotate = bool(histories)
        for page in rng.permutation(trace.pages)[: pages - len(histories)].tolist():
            own = trace.at_s[trace.offsets[page] : trace.offsets[page + 1]]
            histories.append(np.sort((own + rng.random() * trace.horizon_s) % trace.horizon_s) if rotate else own)
    return histories


def round_of(trace: Trace, speed: float) -> float:
    """Return the seconds after which a history repeats, if `speed` seconds of the trace pass in one second."""
    return trace.horizon_s * _BEYOND / speed


# ---- Random update traces: Poisson pages, and pages that change in bursts. For tests, benchmarks and experiments.

_SPREAD = 1.5  # sigma of the logarithm of the pages' rates: a factor of 47 between the busiest and the quietest tenth
_BURST = 8  # mean number of updates in a burst
_BURST_SHARE = 0.01  # mean gap within a burst, as a share of the mean gap between bursts


def drawn_trace(kind: str, pages: int, updates: int, days: float, seed: int) -> Trace:
    """Sample a trace with `updates` updates in all. `kind`: poisson or bursty. The rates of pages are log-normal."""
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
    """Return the time of each update, as a share of the period: it joins a random burst of its page, some time after its beginning."""
    bursts = np.maximum(counts // _BURST, 1)
    base = np.concatenate([[0], np.cumsum(bursts)[:-1]])
    begins = rng.random(int(bursts.sum()))
    joined = base[page] + (rng.random(len(page)) * bursts[page]).astype(np.int64)
    after = rng.exponential(_BURST * _BURST_SHARE / 2.0, len(page)) / bursts[page]
    return np.minimum(begins[joined] + after, 1.0)
