"""The figures of the paper: each has the settings that the paper names. A claim holds for numbers as in the paper and
fails for others."""

from collections.abc import Callable

import pytest

from trapline.lab.judgement import FAILS, HOLDS, Figure
from trapline.lab.xu import judge, policies
from trapline.lab.xu_figures import EXPECTED, LEVELS, MEASURES, figures
from trapline.refresh import ReplayConditions

FIGURES = figures(ReplayConditions())
JITTER = (-0.0004, -0.0001, 0.0, 0.0001, 0.0004)


def verdicts(figure: Figure, height: Callable[[str, float], float]) -> dict[str, str]:
    """The verdict of each claim if all curves have these heights."""
    samples = {
        (curve, cell.group, cell.x): {
            name: [height(cell.group, cell.x) + jitter for jitter in JITTER] for name in MEASURES
        }
        for curve in policies()
        for cell in figure.cells
    }
    found = judge(figure, samples)
    assert len({(one.claim, one.judged.verdict) for one in found}) == len(figure.claims)
    return {one.claim: one.judged.verdict for one in found}


def as_the_paper_has_it(group: str, x: float) -> float:
    return EXPECTED[LEVELS[int(x)]]


def test_figure_2_has_both_sizes_and_all_levels() -> None:
    cells = FIGURES["2"].cells
    assert {(cell.conditions.accesses, *cell.conditions.levels) for cell in cells} == {
        (accesses, level) for accesses in (20_000, 50_000) for level in LEVELS
    }
    assert set(verdicts(FIGURES["2"], as_the_paper_has_it).values()) == {HOLDS}
    upside_down = verdicts(FIGURES["2"], lambda group, x: 1.0 - as_the_paper_has_it(group, x))
    assert list(upside_down.values()) == [FAILS] * 4 + [HOLDS]


def test_figure_3_splits_the_other_pages_into_halves() -> None:
    by_share = {cell.x: cell.conditions.levels for cell in FIGURES["3"].cells}
    assert by_share[0.3] == pytest.approx({"normal": 0.35, "smart": 0.35, "super": 0.3})
    assert by_share[1.0] == {"super": 1.0} and len(by_share) == 11


def test_figure_3_falls_in_the_paper_and_rises_in_ours() -> None:
    def plateau(group: str, x: float) -> float:
        return 0.9 if 0.3 <= x <= 0.6 or x == 1.0 else 0.8 + 0.1 * x if x < 0.3 else 0.85

    assert list(verdicts(FIGURES["3"], plateau).values()) == [HOLDS, HOLDS, HOLDS, HOLDS, FAILS]
    assert list(verdicts(FIGURES["3"], lambda _, x: 0.5 + 0.3 * x).values()) == [HOLDS, FAILS, FAILS, FAILS, HOLDS]


def test_figure_4() -> None:
    assert [cell.conditions.zipf_time for cell in FIGURES["4a"].cells] == [0.85, 0.6, 0.4] * 3
    assert set(verdicts(FIGURES["4a"], lambda *_: 0.8).values()) == {HOLDS}
    assert set(verdicts(FIGURES["4a"], lambda _, x: 0.1 * x).values()) == {FAILS}
    assert [cell.times for cell in FIGURES["4b"].cells] == [1.0, 2.0, 4.0] * 3

    def with_capacity(level: str, times: float) -> float:
        return {"normal": 0.1, "smart": 0.2, "super": 0.3}[level] * times**0.5

    assert set(verdicts(FIGURES["4b"], with_capacity).values()) == {HOLDS}
    assert list(verdicts(FIGURES["4b"], lambda _, times: 0.1 * times**2).values()) == [HOLDS] * 3 + [FAILS] * 4


def test_figure_5() -> None:
    assert [cell.conditions.schedule_precision for cell in FIGURES["5"].cells] == [1.0, 0.75, 0.5, 0.25, 1.0, 1.0]

    def steep_first(group: str, q: float) -> float:
        return {1.0: 0.9, 0.75: 0.8, 0.5: 0.78, 0.25: 0.75}[q] if group == "super" else 0.75

    def steep_last(group: str, q: float) -> float:
        return {1.0: 0.9, 0.75: 0.88, 0.5: 0.85, 0.25: 0.7}[q] if group == "super" else 0.75

    assert list(verdicts(FIGURES["5"], steep_first).values()) == [HOLDS] * 4
    assert list(verdicts(FIGURES["5"], steep_last).values()) == [HOLDS, FAILS, HOLDS, FAILS]


def test_a_figure_keeps_the_conditions_that_it_does_not_set() -> None:
    base = ReplayConditions(schedule_errors="added", calibrated=True, warm_up=0.3)
    for figure in figures(base).values():
        for cell in figure.cells:
            assert (cell.conditions.calibrated, cell.conditions.warm_up) == (True, 0.3)
