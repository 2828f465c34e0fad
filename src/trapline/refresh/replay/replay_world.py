"""The world of a replay: a random sample of everything except the updates, that is of accesses, levels, signals, published
points and their errors.

A world is sampled from a trace and a seed, and is the same for every policy. Each kind of number has its own random stream:
changing the precision of signals does not change accesses and levels.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError, nearest
from trapline.refresh.core.layout import LEVELS, NORMAL, POINT, SUPER
from trapline.refresh.replay.loop import EVENT
from trapline.refresh.replay.trace import Floats, Trace
from trapline.refresh.replay.truth import Measure

_LEVELS, _PAGES, _TIMES, _SIGNALS, _POINTS = range(2, 7)  # random streams
SCHEDULE_ERRORS = ("moved", "added")
Events = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class ReplayConditions:
    """Conditions of a replay: what providers signal and publish, and how pages are accessed. Shares are fractions of 1."""

    levels: Mapping[str, float] = field(default_factory=lambda: {"smart": 1.0})
    accesses: int = 20_000
    zipf: float = 0.85
    """the accesses of the page of popularity rank r are proportional to r ** -zipf"""
    zipf_time: float = 0.0
    """the same for cycles in random order; 0: accesses are Poisson"""
    precision: float = 1.0
    """share of signals that are true"""
    recall: float = 1.0
    """share of updates that are signalled"""
    schedule_precision: float = 1.0
    """share of published points that are updates; the others are at random times"""
    schedule_errors: str = "moved"
    """moved: a wrong point replaces an update, which is then not published; added: all updates are published, and wrong points besides"""
    calibrated: bool = False
    """each point is published with the probability `schedule_precision` instead of 1"""
    last_modified: bool = False
    """a crawl sees when the page last changed: a reliable Last-Modified"""
    cycle_s: float = 1800.0
    warm_up: float = 0.2
    measure: Measure = field(default_factory=Measure)

    def __post_init__(self) -> None:
        for name in self.levels:
            if name not in LEVELS:
                raise ConfigError(f"no level {name!r}; {nearest(name, LEVELS)}")
        if not math.isclose(sum(self.levels.values()), 1.0, abs_tol=1e-6):
            raise ConfigError(
                f"the shares of levels add up to {sum(self.levels.values()):g}; give shares that add up to 1"
            )
        if not 0.0 < self.precision <= 1.0:
            raise ConfigError(f"precision is {self.precision:g}; it must be above 0 and at most 1")
        if not 0.0 <= self.warm_up < 1.0:
            raise ConfigError(f"a warm-up of {self.warm_up:g} leaves nothing to measure; give a share below 1")
        if self.schedule_errors not in SCHEDULE_ERRORS:
            raise ConfigError(
                f"no schedule errors {self.schedule_errors!r}; {nearest(self.schedule_errors, SCHEDULE_ERRORS)}"
            )
        if self.schedule_errors == "added" and self.schedule_precision <= 0.0:
            raise ConfigError("a schedule precision of 0 would need infinitely many points; give more than 0")


@dataclass(frozen=True, slots=True)
class ReplayWorld:
    """The events of a replay, by kind."""

    trace: Trace
    conditions: ReplayConditions
    level: NDArray[np.uint8]
    update: Events
    access: Events
    signal: Events
    point: Events  # sorted by time
    published: NDArray[np.void]  # POINT, sorted by page and time
    point_offsets: NDArray[np.int64]
    shares: Floats  # share of each page of the accesses after the warm-up


def draw_world(trace: Trace, conditions: ReplayConditions, seed: int) -> ReplayWorld:
    """Sample a world from a trace and a seed."""

    def chance(stream: int) -> np.random.Generator:
        return np.random.default_rng((seed, stream))

    page = trace.page_of_update()
    level = _levels(chance(_LEVELS), trace.pages, conditions.levels)
    access = _accesses(chance(_PAGES), chance(_TIMES), trace, conditions)
    signal = _signals(chance(_SIGNALS), trace, page, level, conditions)
    points = _points(chance(_POINTS), trace, page, level, conditions)
    published = np.zeros(len(points), POINT)
    published["at_s"], published["p"] = points["at_s"], conditions.schedule_precision if conditions.calibrated else 1.0
    counts = np.bincount(points["page"], minlength=trace.pages)
    measured = access["page"][access["at_s"] >= conditions.warm_up * trace.horizon_s]
    shares = np.bincount(measured, minlength=trace.pages) / max(len(measured), 1)
    return ReplayWorld(
        trace=trace,
        conditions=conditions,
        level=level,
        update=_by_time(trace.at_s, page),
        access=access,
        signal=signal,
        point=np.sort(points, order="at_s", kind="stable"),
        published=published,
        point_offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        shares=shares,
    )


def _by_time(at_s: Floats, page: NDArray[np.integer]) -> Events:
    order = np.argsort(at_s, kind="stable")
    events = np.zeros(len(at_s), EVENT)
    events["at_s"], events["page"] = at_s[order], page[order]
    return events


def _levels(rng: np.random.Generator, pages: int, shares: Mapping[str, float]) -> NDArray[np.uint8]:
    """Return the level of each page: exactly these shares, up to rounding, assigned to pages at random."""
    ends = np.round(np.cumsum([shares.get(name, 0.0) for name in LEVELS]) * pages).astype(int)
    level = np.searchsorted(ends, np.arange(pages), side="right").astype(np.uint8)
    return level[rng.permutation(pages)]


def _accesses(
    by_page: np.random.Generator, by_time: np.random.Generator, trace: Trace, conditions: ReplayConditions
) -> Events:
    weight = np.arange(1, trace.pages + 1) ** -conditions.zipf
    weight = weight[by_page.permutation(trace.pages)]
    page = by_page.choice(trace.pages, conditions.accesses, p=weight / weight.sum()).astype(np.int32)
    return _by_time(_access_times(by_time, trace.horizon_s, conditions), page)


def _access_times(rng: np.random.Generator, horizon_s: float, conditions: ReplayConditions) -> Floats:
    """Return the times of the accesses. A given number of events of a Poisson process is uniform in time; with `zipf_time` the rate differs
    between cycles."""
    moments = rng.random(conditions.accesses)
    if conditions.zipf_time == 0.0:
        return moments * horizon_s
    cycles = max(1, math.ceil(horizon_s / conditions.cycle_s))
    weight = rng.permutation(np.arange(1, cycles + 1) ** -conditions.zipf_time)
    cycle = rng.choice(cycles, conditions.accesses, p=weight / weight.sum())
    return np.minimum((cycle + moments) * conditions.cycle_s, horizon_s)


def _signals(
    rng: np.random.Generator,
    trace: Trace,
    page: NDArray[np.int32],
    level: NDArray[np.uint8],
    conditions: ReplayConditions,
) -> Events:
    """Return true signals for a share `recall` of the updates, and false signals at random times, as many as the precision requires."""
    precision, recall = conditions.precision, conditions.recall
    can_signal = level[page] != NORMAL
    signalled = can_signal & (rng.random(len(page)) < recall)
    false_s, false_page = _false(rng, trace, page[can_signal], recall * (1.0 - precision) / precision)
    return _by_time(np.concatenate([trace.at_s[signalled], false_s]), np.concatenate([page[signalled], false_page]))


def _points(
    rng: np.random.Generator,
    trace: Trace,
    page: NDArray[np.int32],
    level: NDArray[np.uint8],
    conditions: ReplayConditions,
) -> Events:
    """Return the published points of super pages, sorted by page and time."""
    draw = _moved if conditions.schedule_errors == "moved" else _with_false
    at_s, page = draw(rng, trace, page, level[page] == SUPER, conditions.schedule_precision)
    order = np.lexsort((at_s, page))
    points = np.zeros(len(at_s), EVENT)
    points["at_s"], points["page"] = at_s[order], page[order]
    return points


def _moved(
    rng: np.random.Generator, trace: Trace, page: NDArray[np.int32], published: NDArray[np.bool_], precision: float
) -> tuple[Floats, NDArray[np.int32]]:
    """Return the updates as points, some of them replaced by random times."""
    wrong = rng.random(len(page)) >= precision
    at_s = np.where(wrong, rng.random(len(page)) * trace.horizon_s, trace.at_s)
    return at_s[published], page[published]


def _with_false(
    rng: np.random.Generator, trace: Trace, page: NDArray[np.int32], published: NDArray[np.bool_], precision: float
) -> tuple[Floats, NDArray[np.int32]]:
    """Return all updates as points, and (1 - q) / q as many random times, q = precision."""
    at_s, false_page = _false(rng, trace, page[published], (1.0 - precision) / precision)
    return np.concatenate([trace.at_s[published], at_s]), np.concatenate([page[published], false_page])


def _false(
    rng: np.random.Generator, trace: Trace, page: NDArray[np.int32], per_update: float
) -> tuple[Floats, NDArray[np.int32]]:
    """Return random times, on average `per_update` for each of these updates, and their pages."""
    counts = rng.poisson(per_update * np.bincount(page, minlength=trace.pages))
    false_page = np.repeat(np.arange(trace.pages, dtype=np.int32), counts)
    return rng.random(len(false_page)) * trace.horizon_s, false_page
