"""A simulated web that changes: a graph, the moments at which its pages change, and what their sites tell of it.

Pages and links stay as they are; what changes is the content. It knows no crawler. Histories are dealt to pages as testweb deals them,
so that the same trace and seed make the same web here and there; signals and published points are those of a replay
(refresh/world.py), but who tells is drawn by site, because that is what a crawl learns levels by.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph import Graph
from trapline.refresh import Conditions, Trace, draw_world
from trapline.refresh.layout import LEVELS, NORMAL, SUPER
from trapline.refresh.trace_dealt import dealt, round_of
from trapline.refresh.world import Events, World

_LEVELS = 12  # stream of chance
Floats = NDArray[np.float64]
Point = tuple[float, float]
"""When, and with which probability."""


@dataclass(frozen=True, slots=True)
class ChangingWeb:
    graph: Graph
    changes: Trace
    """of the graph's pages; as long as the crawl may take"""
    level: NDArray[np.uint8]
    """[sites]"""
    signals: tuple[list[float], list[int]]
    """moments and pages, in order of time"""
    points: Mapping[int, list[Point]]
    """of the pages that publish any, in order of time"""

    @property
    def until_s(self) -> float:
        return self.changes.horizon_s

    def points_after(self, page: int, now: float) -> list[Point]:
        points = self.points.get(page, [])
        return points[bisect_right(points, (now, math.inf)) :]


def still_web(graph: Graph, until_s: float) -> ChangingWeb:
    """One that never changes."""
    nothing = np.zeros(graph.pages + 1, np.int64)
    trace = Trace("still", nothing, np.zeros(0), graph.site, until_s)
    return ChangingWeb(graph, trace, np.zeros(graph.sites, np.uint8), ([], []), {})


def changing_web(
    graph: Graph, trace: Trace, until_s: float, told: Conditions, *, speed: float = 1.0, seed: int = 0
) -> ChangingWeb:
    """The histories of a trace, dealt to the pages: `speed` seconds of it are a second, and when it is over it begins anew. `told`: what
    sites tell; its accesses are not used."""
    if not (speed > 0 and 0 < until_s < math.inf):
        raise ConfigError(
            f"a web that changes at speed {speed:g} for {until_s:g} s: both must be above 0, and the time finite"
        )
    changes = _repeated(dealt(trace, graph.pages, seed), trace, graph, until_s, speed)
    level = _levels(graph.sites, told.levels, seed)
    # Everyone tells everything, and of that only those are heard who do: so that one site's level leaves the others as they were.
    world = draw_world(changes, replace(told, levels={"super": 1.0}, accesses=0), seed)
    return ChangingWeb(
        graph, changes, level, _signals(world.signal, level[graph.site]), _points(world, level[graph.site])
    )


def _repeated(histories: list[Floats], trace: Trace, graph: Graph, until_s: float, speed: float) -> Trace:
    """Round after round, until the end."""
    round_s = round_of(trace, speed)
    begins = np.arange(math.ceil(until_s / round_s)) * round_s
    moments = [(begins[:, None] + own / speed).ravel() for own in histories]
    moments = [own[own <= until_s] for own in moments]
    offsets = np.cumsum([0, *map(len, moments)]).astype(np.int64)
    return Trace(trace.name, offsets, np.concatenate(moments), graph.site, until_s, {**trace.origin, "speed": speed})


def _levels(sites: int, shares: Mapping[str, float], seed: int) -> NDArray[np.uint8]:
    """Exactly these shares, as far as sites can be divided; who is what is drawn."""
    ends = np.round(np.cumsum([shares.get(name, 0.0) for name in LEVELS]) * sites).astype(int)
    level = np.searchsorted(ends, np.arange(sites), side="right").astype(np.uint8)
    return level[np.random.default_rng((seed, _LEVELS)).permutation(sites)]


def _signals(everyone: Events, level: NDArray[np.uint8]) -> tuple[list[float], list[int]]:
    heard = everyone[level[everyone["page"]] != NORMAL]
    return heard["at_s"].tolist(), heard["page"].tolist()


def _points(world: World, level: NDArray[np.uint8]) -> dict[int, list[Point]]:
    offsets, points = world.point_offsets, world.published
    of = {page: points[offsets[page] : offsets[page + 1]] for page in np.flatnonzero(level == SUPER).tolist()}
    return {page: list(zip(own["at_s"].tolist(), own["p"].tolist(), strict=True)) for page, own in of.items()}
