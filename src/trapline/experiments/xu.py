"""`xu`: Towards a Content-Provider-Friendly Web Page Crawler. Its figures, by its own policy in several readings and by ours.

    xu            the scores as repaired, always as of now
    xu, frozen    the same as of the beginning of each cycle, when the paper fills its slots
    xu, literal   the equations as printed, of the beginning of each cycle
    xu, c = 0     as xu, without the constant in Eq. 5, which decides between normal pages and others: in figure 3
    residual-life ours, where the figure is about what it should do better

The paper gives no capacity. It is chosen so that, if all are smart, `xu` is as fresh as the paper says, by the paper's measure as repaired.
Cost: 100 settings or so, each replayed by three or four policies for each seed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from trapline.experiments.figures import Cell, Figure, Numbers
from trapline.experiments.judgement import Judged
from trapline.experiments.study import MEASURES, Samples, Study, capacity_for
from trapline.experiments.xu_figures import OURS, SMART, WITHOUT_C, figures
from trapline.refresh import Conditions, Policy, estimate, policy_named
from trapline.refresh.policies.xu import LITERAL_OPTIONS

PAPERS = ("xu", "xu, frozen", "xu, literal")
Tell = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Source:
    """How a recorded trace is taken: polled so often, in stretches (0: whole), with so many seeds."""

    step_s: float
    stretch_s: float
    seeds: int


# The paper's own trace was polled every half hour for 61 days. Front pages are: hourly, and 24 times 61 days.
SOURCES = {
    "wikipedia-edits": Source(step_s=1_800.0, stretch_s=0.0, seeds=8),
    "news-frontpages": Source(step_s=3_600.0, stretch_s=61 * 86_400.0, seeds=24),
}
OTHER = Source(step_s=1_800.0, stretch_s=0.0, seeds=8)


@dataclass(frozen=True, slots=True)
class Verdict:
    claim: str
    curve: str
    measure: str
    judged: Judged


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure with its numbers: by curve and cell."""

    figure: Figure
    curves: Sequence[str]
    samples: dict[tuple[str, str, float], Samples]
    verdicts: list[Verdict]


@dataclass(frozen=True, slots=True)
class Reproduction:
    study: Study
    capacity: float
    reached: float
    """freshness of smart `xu` by Eq. 3 with that capacity"""
    figures: list[Drawn]


def policies() -> dict[str, Policy]:
    xu = policy_named("xu")
    readings = (xu, xu.with_options(frozen=1.0), xu.with_options(**LITERAL_OPTIONS))
    by_name = dict(zip(PAPERS, readings, strict=True))
    return {**by_name, WITHOUT_C: xu.with_options(c=0.0), OURS: policy_named(OURS)}


def reproduce(study: Study, base: Conditions, names: Sequence[str], tell: Tell) -> Reproduction:
    """The figures of these names. `tell` hears how many replayed settings there are by now, of how many."""
    wanted = [figure for name, figure in figures(base).items() if name in names]
    total = sum(len(figure.cells) * len(_curves(figure)) for figure in wanted)
    smart = replace(base, levels={"smart": 1.0})
    capacity = capacity_for(
        SMART, study, smart, policies()["xu"], lambda tried: tell(0, total, f"capacity, {tried:.3g} crawls per update")
    )
    reached = estimate(study.samples(smart, policies()["xu"], capacity)["eq3"]).mean
    found, done = [], 0
    for figure in wanted:
        samples: dict[tuple[str, str, float], Samples] = {}
        for cell, curve, values in _replayed(study, figure, capacity):
            samples[curve, cell.group, cell.x] = values
            done += 1
            tell(done, total, f"figure {figure.name}, {curve}")
        found.append(Drawn(figure, _curves(figure), samples, judge(figure, samples)))
    return Reproduction(study, capacity, reached, found)


def _curves(figure: Figure) -> tuple[str, ...]:
    return (*PAPERS, *figure.more)


def _replayed(study: Study, figure: Figure, capacity: float) -> Iterator[tuple[Cell, str, Samples]]:
    by_name = policies()
    for cell in figure.cells:
        for curve in _curves(figure):
            yield cell, curve, study.samples(cell.conditions, by_name[curve], cell.times * capacity)


def judge(figure: Figure, samples: dict[tuple[str, str, float], Samples]) -> list[Verdict]:
    """What is claimed of the figure, for each of the curves that it is claimed of, by each measure."""

    def numbers(curve: str, measure: str) -> Numbers:
        return lambda group, x: samples[curve, group, x][measure]

    return [
        Verdict(claim.text, curve, measure, claim.judge(numbers(curve, measure)))
        for claim in figure.claims
        for curve in _curves(figure)
        if claim.ours == (curve == OURS)
        for measure in MEASURES
    ]
