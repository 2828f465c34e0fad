"""The slow twin of the replayer: freshness from its definition, and the paper's scores from their formulas. No state is
carried from event to event; every question goes through all events again."""

import math
from bisect import bisect_right
from itertools import pairwise

import numpy as np

from trapline.refresh import Measure, ReplayWorld


def slots(world: ReplayWorld, crawls: int) -> list[float]:
    return [(k + 0.5) * world.trace.horizon_s / crawls for k in range(crawls)]


def by_page(events: np.ndarray, pages: int) -> list[list[float]]:
    times: list[list[float]] = [[] for _ in range(pages)]
    for event in events:
        times[event["page"]].append(float(event["at_s"]))
    return times


def age(missed: list[float], now: float, t0_s: float, measure: Measure) -> float:
    weights = [len(missed) if measure.weight == "count" else m for m in range(1, len(missed) + 1)]
    return sum(weight * (now - t) for weight, t in zip(weights, missed, strict=True)) / t0_s


def eq3(missed: list[float], now: float, t0_s: float, measure: Measure) -> float:
    if not missed:
        return 1.0
    sum_of_ages = age(missed, now, t0_s, measure)
    if measure.form == "literal":
        return min(1.0, 1.0 / sum_of_ages) if sum_of_ages > 0.0 else 1.0
    return 1.0 / (1.0 + sum_of_ages)


class Copies:
    """Which updates each copy misses at any moment, given the page that was crawled in each slot."""

    def __init__(self, world: ReplayWorld, chosen: list[int]) -> None:
        self.world = world
        self.t0_s = world.conditions.measure.t0_s or world.conditions.cycle_s
        self.updates = by_page(world.update, world.trace.pages)
        self.crawls: list[list[float]] = [[] for _ in range(world.trace.pages)]
        for at_s, page in zip(slots(world, len(chosen)), chosen, strict=True):
            self.crawls[page].append(at_s)

    def missed(self, page: int, now: float, also_now: bool) -> list[float]:
        """`also_now`: a crawl or an update at this very moment counts."""
        crawls = [t for t in self.crawls[page] if t < now or (also_now and t == now)]
        since = crawls[-1] if crawls else -math.inf
        return [t for t in self.updates[page] if since < t <= now]

    def by_access(self) -> tuple[float, float]:
        conditions = self.world.conditions
        warm_s = conditions.warm_up * self.world.trace.horizon_s
        found = [self.missed(e["page"], e["at_s"], False) for e in self.world.access if e["at_s"] >= warm_s]
        times = [float(e["at_s"]) for e in self.world.access if e["at_s"] >= warm_s]
        measure = [eq3(missed, now, self.t0_s, conditions.measure) for missed, now in zip(found, times, strict=True)]
        return sum(not missed for missed in found) / max(len(found), 1), sum(measure) / max(len(found), 1)

    def by_time(self) -> tuple[float, float]:
        """Between two events of a page F is 1 / (a + b t), which is integrated in closed form."""
        conditions, horizon_s = self.world.conditions, self.world.trace.horizon_s
        warm_s = conditions.warm_up * horizon_s
        binary = measure = 0.0
        for page in range(self.world.trace.pages):
            cuts = sorted({warm_s, horizon_s, *(t for t in self.updates[page] + self.crawls[page] if t > warm_s)})
            for begin, end in pairwise(cuts):
                missed = self.missed(page, begin, True)
                weight = float(self.world.shares[page])
                binary += weight * (end - begin) * (not missed)
                measure += weight * _integral(missed, begin, end, self.t0_s, conditions.measure)
        return binary / (horizon_s - warm_s), measure / (horizon_s - warm_s)


def _integral(missed: list[float], begin: float, end: float, t0_s: float, measure: Measure) -> float:
    if not missed:
        return end - begin
    from_age, to_age = age(missed, begin, t0_s, measure), age(missed, end, t0_s, measure)
    per_second = (to_age - from_age) / (end - begin)
    if measure.form == "repaired":
        return math.log((1.0 + to_age) / (1.0 + from_age)) / per_second
    clamped = max(0.0, min(1.0, to_age) - from_age) / per_second
    return clamped + math.log(max(1.0, to_age) / max(1.0, from_age)) / per_second


class XuScores:
    """Eq. 4 and 5 as repaired, from all accesses and signals before now."""

    def __init__(self, world: ReplayWorld) -> None:
        self.world = world
        self.signals = by_page(world.signal, world.trace.pages)
        self.accesses = by_page(world.access, world.trace.pages)

    def score(self, page: int, crawled_s: float, now: float, past: int) -> float:
        since = crawled_s if crawled_s > 0.0 else -1.0  # the first crawl comes before everything
        accesses = [t for t in self.accesses[page] if since < t <= now]
        if self.world.level[page] == 0:
            return 0.5 * (now - crawled_s) * (len(accesses) + 1.0)
        missed = [t for t in self.signals[page] if since < t <= now]
        if not missed:
            return 0.0
        stale = [t for t in accesses if t >= missed[0]]  # at the same moment the signal comes first
        turn = 1e-6 * (now - missed[0])
        if past == 1:
            return turn + sum(now - t for t in stale)
        ends = [*missed[1:], now] if past == 0 else missed[1:]
        return turn + sum((end - t) * _before(stale, end, now) for t, end in zip(missed, ends, strict=False))


def _before(stale: list[float], end: float, now: float) -> int:
    """Accesses up to `end`. An access at the moment of a signal comes after it."""
    return bisect_right(stale, end) if end == now else sum(t < end for t in stale)
