"""`xu`: the figures of Towards a Content-Provider-Friendly Web Page Crawler, with several readings of its policy and with ours.

    xu            the repaired scores, always as of now
    xu, frozen    the same as of the beginning of each cycle, when the paper fills its slots
    xu, literal   the equations as printed, as of the beginning of each cycle
    xu, c = 0     as xu, without the constant in Eq. 5, which decides between normal pages and others; in figure 3
    residual-life ours, in the figures that are about what it should do better

The paper gives no capacity. Ours is chosen so that, if all providers are smart, `xu` is as fresh as the paper says, by the
repaired form of the paper's measure. Cost: about 100 settings, each replayed by three or four policies for each seed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from trapline.lab.judgement import Cell, Figure, JudgedClaim, Numbers
from trapline.lab.xu_figures import MEASURES, OURS, SMART, WITHOUT_C, Samples, TraceStudy, capacity_for, figures
from trapline.progress import ProgressCallback
from trapline.refresh import Policy, ReplayConditions, estimate, policy_named
from trapline.refresh.policies.xu import LITERAL_OPTIONS

PAPERS = ("xu", "xu, frozen", "xu, literal")


@dataclass(frozen=True, slots=True)
class Source:
    """How a recorded trace is used: the interval of polls, the length of its pieces (0: the whole trace), and the number of seeds."""

    step_s: float
    stretch_s: float
    seeds: int


# The paper's own trace was polled every half hour for 61 days. The front pages were polled hourly, for 24 times 61 days.
SOURCES = {
    "wikipedia-edits": Source(step_s=1_800.0, stretch_s=0.0, seeds=8),
    "news-frontpages": Source(step_s=3_600.0, stretch_s=61 * 86_400.0, seeds=24),
}
OTHER = Source(step_s=1_800.0, stretch_s=0.0, seeds=8)


@dataclass(frozen=True, slots=True)
class XuVerdict:
    """The verdict on a claim for one curve by one measure."""

    claim: str
    curve: str
    measure: str
    judged: JudgedClaim


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure with its numbers by curve, group and x."""

    figure: Figure
    curves: Sequence[str]
    samples: dict[tuple[str, str, float], Samples]
    verdicts: list[XuVerdict]


@dataclass(frozen=True, slots=True)
class XuReproduction:
    """The figures for one trace."""

    study: TraceStudy
    capacity: float
    reached: float
    """freshness of `xu` by Eq. 3 with that capacity, if all providers are smart"""
    figures: list[Drawn]


def policies() -> dict[str, Policy]:
    """Return the policies of the curves by name."""
    xu = policy_named("xu")
    readings = (xu, xu.with_options(frozen=1.0), xu.with_options(**LITERAL_OPTIONS))
    by_name = dict(zip(PAPERS, readings, strict=True))
    return {**by_name, WITHOUT_C: xu.with_options(c=0.0), OURS: policy_named(OURS)}


def reproduce(
    study: TraceStudy, base: ReplayConditions, names: Sequence[str], progress: ProgressCallback
) -> XuReproduction:
    """Reproduce the figures of these names. `progress` is called with the number of settings replayed so far, their total, and a note."""
    wanted = [figure for name, figure in figures(base).items() if name in names]
    total = sum(len(figure.cells) * len(_curves(figure)) for figure in wanted)
    smart = replace(base, levels={"smart": 1.0})
    capacity = capacity_for(
        SMART,
        study,
        smart,
        policies()["xu"],
        lambda tried: progress(0, total, f"capacity, {tried:.3g} crawls per update"),
    )
    reached = estimate(study.samples(smart, policies()["xu"], capacity)["eq3"]).mean
    found, done = [], 0
    for figure in wanted:
        samples: dict[tuple[str, str, float], Samples] = {}
        for cell, curve, values in _replayed(study, figure, capacity):
            samples[curve, cell.group, cell.x] = values
            done += 1
            progress(done, total, f"figure {figure.name}, {curve}")
        found.append(Drawn(figure, _curves(figure), samples, judge(figure, samples)))
    return XuReproduction(study, capacity, reached, found)


def _curves(figure: Figure) -> tuple[str, ...]:
    return (*PAPERS, *figure.more)


def _replayed(study: TraceStudy, figure: Figure, capacity: float) -> Iterator[tuple[Cell, str, Samples]]:
    by_name = policies()
    for cell in figure.cells:
        for curve in _curves(figure):
            yield cell, curve, study.samples(cell.conditions, by_name[curve], cell.times * capacity)


def judge(figure: Figure, samples: dict[tuple[str, str, float], Samples]) -> list[XuVerdict]:
    """Judge the claims about the figure, for each curve that a claim is about, by each measure."""

    def numbers(curve: str, measure: str) -> Numbers:
        return lambda group, x: samples[curve, group, x][measure]

    return [
        XuVerdict(claim.text, curve, measure, claim.judge(numbers(curve, measure)))
        for claim in figure.claims
        for curve in _curves(figure)
        if claim.ours == (curve == OURS)
        for measure in MEASURES
    ]
