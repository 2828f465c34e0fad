"""Freshness of policies in many worlds of one update trace. The same setting is replayed once, however many figures show it.

This module knows no paper and does not know what is expected.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trapline.refresh import Policy, ReplayConditions, ReplayWorld, Trace, draw_world, replay_world, stretches

MEASURES = ("eq3", "binary")
Samples = dict[str, list[float]]  # by measure, one value per seed
_LEAST, _MOST = 1.0 / 256.0, 64.0  # bounds of the search for a capacity, in crawls per update
_CLOSE = 0.0005  # precision of the search, in freshness; a tenth of the precision that is shown


@dataclass
class TraceStudy:
    """The freshness of policies on one trace. `stretch_s`: length of the piece of the trace that each seed uses; 0: the whole trace."""

    trace: Trace
    seeds: int
    stretch_s: float = 0.0
    _traces: Sequence[Trace] = field(init=False)
    _found: dict[tuple[str, str, float], Samples] = field(init=False, default_factory=dict)
    _worlds: tuple[str, list[ReplayWorld]] = field(init=False, default=("", []))

    def __post_init__(self) -> None:
        cut = 0.0 < self.stretch_s < self.trace.horizon_s
        self._traces = stretches(self.trace, self.stretch_s) if cut else [self.trace]

    def samples(self, conditions: ReplayConditions, policy: Policy, capacity: float) -> Samples:
        """Return the freshness of a policy for all seeds, replaying the worlds if necessary."""
        key = (repr(conditions), f"{policy.name} {policy.options}", capacity)
        if key not in self._found:
            runs = [replay_world(world, policy, capacity) for world in self._drawn(conditions)]
            self._found[key] = {name: [getattr(run, name) for run in runs] for name in MEASURES}
        return self._found[key]

    def _drawn(self, conditions: ReplayConditions) -> list[ReplayWorld]:
        """Return the worlds of these conditions. The last ones are kept, because several policies in a row replay the same setting."""
        if self._worlds[0] != repr(conditions):
            traces = [self._traces[seed % len(self._traces)] for seed in range(self.seeds)]
            worlds = [draw_world(trace, conditions, seed) for seed, trace in enumerate(traces)]
            self._worlds = (repr(conditions), worlds)
        return self._worlds[1]


def capacity_for(freshness: float, study: TraceStudy, conditions: ReplayConditions, policy: Policy) -> float:
    """Return the crawls per update with which the policy has this freshness by Eq. 3: the nearest one in a bisection of the logarithm."""
    tried: dict[float, float] = {}
    low, high = _LEAST, _MOST
    for _ in range(24):
        capacity = (low * high) ** 0.5
        values = study.samples(conditions, policy, capacity)["eq3"]
        tried[capacity] = sum(values) / len(values) - freshness
        if abs(tried[capacity]) < _CLOSE:
            break
        low, high = (low, capacity) if tried[capacity] > 0.0 else (capacity, high)
    return min(tried, key=lambda capacity: abs(tried[capacity]))
