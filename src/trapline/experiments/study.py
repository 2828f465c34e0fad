"""Freshness of a policy in many worlds of one trace. The same setting is replayed once, however many figures show it.

It knows no paper, and nothing of what is expected.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trapline.refresh import Conditions, Policy, Trace, World, draw_world, replay, stretches

MEASURES = ("eq3", "binary")
Samples = dict[str, list[float]]  # by measure, one value a seed
_LEAST, _MOST = 1.0 / 256.0, 64.0  # crawls per update: between these a capacity is searched for
_CLOSE = 0.0005  # freshness; a tenth of what is shown of it


@dataclass
class Study:
    """`stretch_s`: each seed has another stretch of the trace, of this length; 0: all have the whole."""

    trace: Trace
    seeds: int
    stretch_s: float = 0.0
    _traces: Sequence[Trace] = field(init=False)
    _found: dict[tuple[str, str, float], Samples] = field(init=False, default_factory=dict)
    _worlds: tuple[str, list[World]] = field(init=False, default=("", []))

    def __post_init__(self) -> None:
        cut = 0.0 < self.stretch_s < self.trace.horizon_s
        self._traces = stretches(self.trace, self.stretch_s) if cut else [self.trace]

    def samples(self, conditions: Conditions, policy: Policy, capacity: float) -> Samples:
        key = (repr(conditions), f"{policy.name} {policy.options}", capacity)
        if key not in self._found:
            runs = [replay(world, policy, capacity) for world in self._drawn(conditions)]
            self._found[key] = {name: [getattr(run, name) for run in runs] for name in MEASURES}
        return self._found[key]

    def _drawn(self, conditions: Conditions) -> list[World]:
        """Kept until others are asked for: a setting is replayed by one policy after the other."""
        if self._worlds[0] != repr(conditions):
            traces = [self._traces[seed % len(self._traces)] for seed in range(self.seeds)]
            worlds = [draw_world(trace, conditions, seed) for seed, trace in enumerate(traces)]
            self._worlds = (repr(conditions), worlds)
        return self._worlds[1]


def capacity_for(
    freshness: float, study: Study, conditions: Conditions, policy: Policy, tell: Callable[[float], None]
) -> float:
    """Crawls per update with which the policy is so fresh by Eq. 3, by bisection of the logarithm; the nearest that was tried. `tell`
    hears of each before it is tried."""
    tried: dict[float, float] = {}
    low, high = _LEAST, _MOST
    for _ in range(24):
        capacity = (low * high) ** 0.5
        tell(capacity)
        values = study.samples(conditions, policy, capacity)["eq3"]
        tried[capacity] = sum(values) / len(values) - freshness
        if abs(tried[capacity]) < _CLOSE:
            break
        low, high = (low, capacity) if tried[capacity] > 0.0 else (capacity, high)
    return min(tried, key=lambda capacity: abs(tried[capacity]))
