"""Experiment 1 of `cho`: the coverage of partitions that drop all links between them (firewall mode)."""

from collections.abc import Mapping
from itertools import pairwise

from trapline.lab.cho.crawled_web import Setting
from trapline.lab.cho.measures import ChoStudy, Curve, Measured, coverage, item
from trapline.lab.paper import PaperClaim, PaperItem, at_least, at_most, close, differences, every, more

ALL, HALF = "all sites", "half of the sites"
SEEDED = (2, 8, 32, 64)
# A small number of partitions; margin of "enough" below the coverage of one process; margin of "retain roughly"; both
# margins are ours
FEW, ENOUGH, SAME = 4, 0.1, 0.05


def experiment(study: ChoStudy) -> PaperItem:
    """Run the experiment."""
    by_size = {
        name: {
            float(n): study.values(Setting("firewall", n, half=name == HALF), coverage) for n in study.scale.partitions
        }
        for name in (ALL, HALF)
    }
    by_seeds = {f"{n} partitions": _by_seeds(study, n) for n in SEEDED}
    charts = [
        Measured("1a", "Firewall mode", "partitions", "coverage", by_size),
        Measured("1b", "Firewall mode, by seeds", "seeds in all", "coverage", by_seeds),
    ]
    verdicts = [*_of_sizes(by_size), *_of_seeds(by_seeds)]
    return item(1, "Coverage without exchange", study, charts, verdicts, _notes(study))


def _totals(study: ChoStudy) -> list[int]:
    return [total for total in study.scale.seeds if total <= study.pages]


def _by_seeds(study: ChoStudy, n: int) -> Curve:
    return {float(total): study.values(Setting("firewall", n, seeds=total), coverage) for total in _totals(study)}


def _notes(study: ChoStudy) -> list[str]:
    totals = _totals(study)
    if len(totals) > 1:
        return []
    return [f"The effect of more seeds is not judged: the web is so small that only {totals[0]} seeds were tried."]


def _of_sizes(by_size: Mapping[str, Curve]) -> list[PaperClaim]:
    whole, half = by_size[ALL], by_size[HALF]
    one, few, many = whole[1.0], whole[float(FEW)], whole[64.0]
    falls = {f"{a:g} to {b:g}": more(whole[a], whole[b]) for a, b in pairwise(whole)}
    doubled = {f"{n:g} and {2 * n:g}": close(whole[2 * n], half[n], SAME) for n in half if 2 * n in whole}
    missed = [1.0 - value for value in one]
    return [
        at_least("One process does not reach all pages: share that no seed leads to", "some are not reached", missed),
        every("Coverage falls with the number of partitions", "falls", falls),
        at_most(f"{FEW} partitions reach what one process does: at most {ENOUGH:g} less", "enough", differences(one, few), ENOUGH),
        at_least(f"64 partitions reach less than {FEW}", "less", differences(few, many)),
        every(f"Twice the web and twice the partitions have the same coverage, within {SAME:g}", "retained", doubled),
    ]  # fmt: skip


def _of_seeds(by_seeds: Mapping[str, Curve]) -> list[PaperClaim]:
    """Judge the effect of more seeds. There is no verdict if only one number of seeds was used."""
    if any(len(curve) < 2 for curve in by_seeds.values()):
        return []
    gains = {name: differences(curve[max(curve)], curve[min(curve)]) for name, curve in by_seeds.items()}
    few, many = gains["2 partitions"], gains["64 partitions"]
    return [
        at_least("With 64 partitions more seeds reach more pages", "more", many),
        at_least("More seeds gain more with 64 partitions than with 2", "more", differences(many, few)),
        at_most(f"With 2 partitions more seeds hardly matter: at most {SAME:g}", "hardly", few, SAME),
    ]
