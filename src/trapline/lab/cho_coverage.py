"""Experiment 1 of `cho`: the coverage of partitions that drop all links between them (firewall mode)."""

from collections.abc import Mapping
from itertools import pairwise

from trapline.lab.cho_web import PUBLISHED, ChoStudy, Setting, coverage, minus
from trapline.lab.judgement import (
    ClaimVerdict,
    Curve,
    Experiment,
    ExperimentChart,
    JudgedClaim,
    above,
    all_hold,
    larger,
    near,
)

ALL, HALF = "all sites", "half of the sites"
SEEDED = (2, 8, 32, 64)
# A small number of partitions; margin of "enough" below the coverage of one process; margin of "retain roughly"; both
# margins are ours
FEW, ENOUGH, SAME = 4, 0.1, 0.05


def experiment(study: ChoStudy) -> Experiment:
    """Run the experiment."""
    by_size = {
        name: {
            float(n): study.values(Setting("firewall", n, half=name == HALF), coverage) for n in study.scale.partitions
        }
        for name in (ALL, HALF)
    }
    by_seeds = {f"{n} partitions": _by_seeds(study, n) for n in SEEDED}
    charts = [
        ExperimentChart("1a", "Firewall mode", "partitions", "coverage", by_size, doubling=True),
        ExperimentChart("1b", "Firewall mode, by seeds", "seeds in all", "coverage", by_seeds, doubling=True),
    ]
    verdicts = [*_of_sizes(by_size), *_of_seeds(by_seeds)]
    return Experiment(1, "Coverage without exchange", charts, verdicts, _notes(study))


def _totals(study: ChoStudy) -> list[int]:
    return [total for total in study.scale.seeds if total <= study.pages]


def _by_seeds(study: ChoStudy, n: int) -> Curve:
    return {float(total): study.values(Setting("firewall", n, seeds=total), coverage) for total in _totals(study)}


def _notes(study: ChoStudy) -> list[str]:
    totals = _totals(study)
    if len(totals) > 1:
        return []
    return [f"what more seeds bring is not judged: with so few pages, {totals[0]} were tried alone"]


def _of_sizes(by_size: Mapping[str, Curve]) -> list[ClaimVerdict]:
    whole, half = by_size[ALL], by_size[HALF]
    every = [1.0] * len(whole[1.0])
    falls = [(f"{a:g} to {b:g}", above(whole[a], whole[b])) for a, b in pairwise(whole)]
    doubled = [(f"{n:g} and {2 * n:g}", near(whole[2 * n], half[n], SAME)) for n in half if 2 * n in whole]
    return [
        ClaimVerdict("one process does not reach all pages: some no seed leads to", larger(every, whole[1.0])),
        ClaimVerdict("coverage falls as partitions are more", all_hold(falls)),
        ClaimVerdict(
            f"{FEW} partitions reach what one does, to {ENOUGH:g} ({PUBLISHED})",
            near(whole[1.0], whole[float(FEW)], ENOUGH),
        ),
        ClaimVerdict("64 partitions reach less than 4", above(whole[float(FEW)], whole[64.0])),
        ClaimVerdict(f"twice the web and twice the partitions: the same coverage, to {SAME:g}", all_hold(doubled)),
    ]


def _of_seeds(by_seeds: Mapping[str, Curve]) -> list[ClaimVerdict]:
    """Judge the effect of more seeds. There is no verdict if only one number of seeds was used."""
    if any(len(curve) < 2 for curve in by_seeds.values()):
        return []
    gains = {name: minus(curve[max(curve)], curve[min(curve)]) for name, curve in by_seeds.items()}
    few, many = gains["2 partitions"], gains["64 partitions"]
    nothing = [0.0] * len(few)
    flat: JudgedClaim = near(few, nothing, SAME)
    return [
        ClaimVerdict("with 64 partitions more seeds reach more", larger(many, nothing)),
        ClaimVerdict("with 64 they matter more than with 2", larger(many, few)),
        ClaimVerdict(f"with 2 they hardly matter: {SAME:g} at most", flat),
    ]
