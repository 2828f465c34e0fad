"""An update trace: when which page changed, over a stretch of time. It knows no crawler and no file."""

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
    """Times are seconds since the beginning; those of page i are at_s[offsets[i] : offsets[i + 1]], ascending."""

    name: str
    offsets: Ints
    at_s: Floats
    site: NDArray[np.int32]
    horizon_s: float
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def pages(self) -> int:
        return len(self.offsets) - 1

    @property
    def updates(self) -> int:
        return len(self.at_s)

    @property
    def sites(self) -> int:
        return int(self.site.max()) + 1

    def page_of_update(self) -> NDArray[np.int32]:
        return np.repeat(np.arange(self.pages, dtype=np.int32), np.diff(self.offsets))


def trace_of_pages(name: str, times: Sequence[Floats], sites: Sequence[str], **origin: Any) -> Trace:
    """From the times of each page, on any clock. It begins with the first update and ends with the last."""
    found = [page_s for page_s in times if len(page_s)]
    if not found:
        raise ConfigError(f"{name}: no updates in it")
    begin = min(float(page_s.min()) for page_s in found)
    horizon_s = max(float(page_s.max()) for page_s in found) - begin
    if horizon_s <= 0:
        raise ConfigError(f"{name}: all its updates are at the same moment")
    offsets = np.concatenate([[0], np.cumsum([len(page_s) for page_s in times])]).astype(np.int64)
    at_s = np.concatenate([np.sort(page_s) for page_s in times]).astype(np.float64) - begin
    _, site = np.unique(np.array(sites), return_inverse=True)
    return Trace(name, offsets, at_s, site.astype(np.int32), horizon_s, origin)


def in_steps(trace: Trace, step_s: float) -> Trace:
    """The same as seen by a poll every `step_s`: an update becomes known at the next poll, and at most one a step (xu's own
    trace is of this kind)."""
    at_s = np.ceil(trace.at_s / step_s) * step_s
    page = trace.page_of_update()
    kept = np.ones(len(at_s), bool)
    kept[1:] = (at_s[1:] != at_s[:-1]) | (page[1:] != page[:-1])
    counts = np.bincount(page[kept], minlength=trace.pages)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    horizon_s = float(np.ceil(trace.horizon_s / step_s) * step_s)
    return Trace(trace.name, offsets, at_s[kept], trace.site, horizon_s, {**trace.origin, "step_s": step_s})


def stretches(trace: Trace, length_s: float) -> list[Trace]:
    """The trace cut into pieces of this length, one after the other; what is left at the end is left out. A page that does not change
    in a piece is there all the same."""
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
