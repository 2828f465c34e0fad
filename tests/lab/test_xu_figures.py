"""The figures of the paper: each has the settings that the paper names. A claim holds for numbers as in the paper and
fails for others."""

from collections.abc import Callable

import pytest

from trapline.lab.paper import FAILS, HOLDS, IN_PART
from trapline.lab.xu.figures import LEVELS, XuFigure, figures
from trapline.refresh import ReplayConditions

FIGURES = figures(ReplayConditions())
JITTER = (-0.0004, -0.0001, 0.0, 0.0001, 0.0004)
PUBLISHED = (0.78, 0.86, 0.99)  # of the three levels: "around 86 %", "+10 %", "+15 %"


def verdicts(figure: XuFigure, height: Callable[[str, float], float]) -> list[str]:
    """The verdict of each claim if a curve has these heights."""
    places = {(cell.group, cell.x) for cell in figure.cells}

    def numbers(group: str, x: float) -> list[float]:
        assert (group, x) in places
        return [height(group, x) + jitter for jitter in JITTER]

    return [claim.judged(numbers).verdict for claim in figure.claims]


def test_figure_2_has_both_sizes_and_all_levels() -> None:
    cells = FIGURES["2"].cells
    assert {(cell.conditions.accesses, *cell.conditions.levels) for cell in cells} == {
        (accesses, level) for accesses in (20_000, 50_000) for level in LEVELS
    }
    assert [FIGURES["2"].x_name(cell.x) for cell in cells] == [*LEVELS, *LEVELS]
    assert verdicts(FIGURES["2"], lambda _, x: PUBLISHED[int(x)]) == [HOLDS] * 3
    assert verdicts(FIGURES["2"], lambda _, x: 1.0 - PUBLISHED[int(x)]) == [FAILS, FAILS, HOLDS]


def test_a_lead_is_relative() -> None:
    smart, lead, _ = FIGURES["2"].claims
    height = {0.0: 0.5, 1.0: 0.6, 2.0: 0.54}
    assert smart.worst(lambda _, x: [height[x]]) == pytest.approx(20.0)
    assert lead.worst(lambda _, x: [height[x]]) == pytest.approx(-10.0)


def test_the_worst_difference_of_a_flat_claim_is_the_largest_one() -> None:
    [claim] = FIGURES["4a"].claims
    height = {"normal": 0.0, "smart": 0.01, "super": -0.1}
    assert claim.worst(lambda level, x: [0.5 + x * height[level]]) == pytest.approx(-0.045)


def test_figure_3_splits_the_other_pages_into_halves() -> None:
    by_share = {cell.x: cell.conditions.levels for cell in FIGURES["3"].cells}
    assert by_share[0.3] == pytest.approx({"normal": 0.35, "smart": 0.35, "super": 0.3})
    assert by_share[1.0] == {"super": 1.0} and len(by_share) == 11


def test_figure_3_falls_in_the_paper_and_rises_in_ours() -> None:
    def plateau(group: str, x: float) -> float:
        return 0.9 if 0.3 <= x <= 0.6 or x == 1.0 else 0.8 + 0.1 * x if x < 0.3 else 0.85

    assert verdicts(FIGURES["3"], plateau) == [HOLDS, HOLDS, HOLDS, HOLDS, IN_PART]
    assert verdicts(FIGURES["3"], lambda _, x: 0.5 + 0.3 * x) == [HOLDS, FAILS, FAILS, FAILS, HOLDS]


def test_figure_4() -> None:
    assert [cell.conditions.zipf_time for cell in FIGURES["4a"].cells] == [0.85, 0.6, 0.4] * 3
    assert verdicts(FIGURES["4a"], lambda *_: 0.8) == [HOLDS]
    assert verdicts(FIGURES["4a"], lambda _, x: 0.2 * x) == [FAILS]
    assert [cell.times for cell in FIGURES["4b"].cells] == [1.0, 2.0, 4.0] * 3

    def with_capacity(level: str, times: float) -> float:
        return {"normal": 0.1, "smart": 0.2, "super": 0.3}[level] * times**0.5

    assert verdicts(FIGURES["4b"], with_capacity) == [HOLDS] * 3
    assert verdicts(FIGURES["4b"], lambda _, times: 0.1 * times**2) == [HOLDS, FAILS, FAILS]


def test_figure_5() -> None:
    assert [cell.conditions.schedule_precision for cell in FIGURES["5"].cells] == [1.0, 0.75, 0.5, 0.25, 1.0]

    def steep_first(group: str, q: float) -> float:
        return {1.0: 0.9, 0.75: 0.8, 0.5: 0.78, 0.25: 0.75}[q] if group == "super" else 0.75

    def steep_last(group: str, q: float) -> float:
        return {1.0: 0.9, 0.75: 0.88, 0.5: 0.85, 0.25: 0.7}[q] if group == "super" else 0.75

    assert verdicts(FIGURES["5"], steep_first) == [HOLDS] * 4
    assert verdicts(FIGURES["5"], steep_last) == [HOLDS, FAILS, HOLDS, FAILS]


def test_a_figure_keeps_the_conditions_that_it_does_not_set() -> None:
    base = ReplayConditions(schedule_errors="added", calibrated=True, warm_up=0.3, cycle_s=7.0)
    for figure in figures(base).values():
        for cell in figure.cells:
            given = cell.conditions
            assert (given.calibrated, given.warm_up, given.cycle_s) == (True, 0.3, 7.0)
