"""Small worlds for the tests of refresh."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from trapline.refresh import ReplayConditions, ReplayWorld, Trace, draw_world, drawn_trace, trace_of_pages


def small_trace(kind: str = "bursty", pages: int = 12, updates: int = 80, seed: int = 0) -> Trace:
    return drawn_trace(kind, pages, updates, 2.0, seed)


def small_world(level: str = "smart", seed: int = 0, trace: Trace | None = None, **conditions: Any) -> ReplayWorld:
    given = {"accesses": 120, **conditions}
    return draw_world(trace or small_trace(seed=seed), ReplayConditions(levels={level: 1.0}, **given), seed)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Traces with integer times, so that events coincide."""
    pages = draw(st.lists(st.lists(st.integers(0, 5_000), max_size=8), min_size=1, max_size=6))
    times = [np.array(sorted(page), np.float64) for page in pages]
    times.append(np.array([0.0, 5_000.0]))
    return trace_of_pages("drawn", times, [str(i // 2) for i in range(len(times))])
