"""What an experiment with parallel crawls is made of: charts of measured values, claims with their verdicts, and notes. Knows no paper.

Beside `figures.py`, whose figures are grids of refresh conditions and say nothing of other measures than freshness.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trapline.experiments.judgement import Judged, Values

Curve = Mapping[float, Values]  # by x, one value a draw


@dataclass(frozen=True, slots=True)
class Chart:
    """`names`: of values of x that stand for something else. `doubling`: x is shown by its logarithm. `apart`: values of x are kinds, and
    nothing lies between two of them."""

    name: str
    title: str
    x_label: str
    y_label: str
    curves: Mapping[str, Curve]
    names: Mapping[float, str] = field(default_factory=dict)
    doubling: bool = False
    apart: bool = False

    @property
    def x_values(self) -> list[float]:
        return sorted({x for curve in self.curves.values() for x in curve})

    def x_name(self, x: float) -> str:
        return self.names.get(x, f"{x:g}" if x < 1e5 else f"{x:,.0f}")


@dataclass(frozen=True, slots=True)
class Verdict:
    claim: str
    judged: Judged


@dataclass(frozen=True, slots=True)
class Experiment:
    number: int
    title: str
    charts: Sequence[Chart]
    verdicts: Sequence[Verdict]
    notes: Sequence[str] = ()
