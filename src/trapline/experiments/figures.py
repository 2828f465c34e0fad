"""What a figure of a paper is made of: settings, curves, the expected shape, and what is claimed of it. Knows no paper."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trapline.experiments.judgement import Judged, Values
from trapline.refresh import Conditions

Numbers = Callable[[str, float], Values]  # of one curve, by group and x


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: where it stands in the figure, the world, and how many times the calibrated capacity it has."""

    group: str
    x: float
    conditions: Conditions
    times: float = 1.0


@dataclass(frozen=True, slots=True)
class Claim:
    """`ours`: of our policy, not of the paper's."""

    text: str
    judge: Callable[[Numbers], Judged]
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """`expected`: by group, points whose heights show the shape and no numbers. `names`: of values of x that are no numbers."""

    name: str
    title: str
    x_label: str
    cells: Sequence[Cell]
    claims: Sequence[Claim]
    expected: Mapping[str, Sequence[tuple[float, float]]]
    more: Sequence[str] = ()
    """curves beside those that every figure has"""
    falling: bool = False
    """x falls from left to right, as the paper has it"""
    names: Mapping[float, str] = field(default_factory=dict)

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(cell.group for cell in self.cells))

    def x_name(self, x: float) -> str:
        return self.names.get(x, f"{x:g}")
