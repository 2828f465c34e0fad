"""Traces that were not used to choose constants: recorded traces, cut and joined, and drawn ones.

Used by bench/refresh_table.py --study other.
"""

from collections.abc import Iterator

import numpy as np

from trapline.refresh import Trace, drawn_trace, stretches, trace_of_pages

DAY_S = 86_400.0
_DRAWN = (600, 12_000, 31.0)  # pages, updates, days


def other_traces(recorded: list[Trace]) -> Iterator[Trace]:
    for trace in recorded:
        for number, half in enumerate(stretches(trace, trace.horizon_s / 2), 1):
            yield _named(f"{trace.name}, half {number} of its time", half)
        for number in (1, 2):
            yield _every_other_page(trace, number)
    if len(recorded) > 1:
        yield _joined(recorded)
    for kind in ("poisson", "bursty"):
        yield drawn_trace(kind, *_DRAWN, seed=1)
    yield daily_rhythm(*_DRAWN, seed=1)


def daily_rhythm(pages: int, updates: int, days: float, seed: int) -> Trace:
    """Return a trace of Poisson pages whose times of day follow a von Mises distribution, with few updates at night."""
    drawn = drawn_trace("poisson", pages, updates, days, seed)
    rng = np.random.default_rng((seed, 2))
    time_of_day = np.mod(rng.vonmises(0.0, 1.0, updates) / (2.0 * np.pi) + 0.5, 1.0)  # in days; most at noon
    at_s = (np.floor(drawn.at_s / DAY_S) + time_of_day) * DAY_S
    at_s = at_s[np.lexsort((at_s, drawn.page_of_update()))]
    return Trace(f"daily-{pages}", drawn.offsets, at_s, drawn.site, drawn.horizon_s + DAY_S, {"form": "daily"})


def _named(name: str, trace: Trace) -> Trace:
    return Trace(name, trace.offsets, trace.at_s, trace.site, trace.horizon_s, trace.origin)


def _times(trace: Trace) -> list[np.ndarray]:
    return [trace.at_s[begin:end] for begin, end in zip(trace.offsets[:-1], trace.offsets[1:], strict=True)]


def _every_other_page(trace: Trace, number: int) -> Trace:
    kept = range(number - 1, trace.pages, 2)
    times = _times(trace)
    sites = [str(trace.site[page]) for page in kept]
    return trace_of_pages(f"{trace.name}, half {number} of its pages", [times[page] for page in kept], sites)


def _joined(traces: list[Trace]) -> Trace:
    """Return one trace with the pages of all traces, each scaled to a month, so that pages of very different kinds compete."""
    times = [at_s * (31.0 * DAY_S / trace.horizon_s) for trace in traces for at_s in _times(trace)]
    sites = [f"{trace.name} {site}" for trace in traces for site in trace.site]
    return trace_of_pages("all recorded ones together", times, sites)
