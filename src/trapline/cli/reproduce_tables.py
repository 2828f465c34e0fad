"""A reproduction on the terminal: a table a figure, and below it what was expected, with a verdict for each reading of the policy."""

from typing import TYPE_CHECKING

from trapline.cli.refresh_found import interval_of
from trapline.terminal import say
from trapline.units import counted, duration

if TYPE_CHECKING:
    from trapline.experiments.xu import Drawn, Reproduction, Verdict

MEASURE_NAMES = {"eq3": "Eq. 3", "binary": "binary"}
_ROW, _NUMBER = 34, 17


def show(found: "Reproduction") -> None:
    study, trace = found.study, found.study.trace
    size = f"{counted(trace.pages, 'page')}, {counted(trace.updates, 'update')} in {duration(trace.horizon_s)}"
    cut = f", in stretches of {duration(study.stretch_s)}" if study.stretch_s else ""
    say(f"{trace.name}: {size}{cut}; {interval_of(study.seeds)}")
    say(f"{found.capacity:.3f} crawls per update: smart xu has {found.reached:.3f} by Eq. 3 (the paper: around .86)\n")
    for drawn in found.figures:
        _show_figure(drawn)


def _show_figure(drawn: "Drawn") -> None:
    from trapline.refresh import estimate

    figure = drawn.figure
    say(f"Figure {figure.name}. {figure.title}: freshness by {figure.x_label}")
    say(f"  {'':{_ROW}}{''.join(f'{curve:>{_NUMBER}}' for curve in drawn.curves)}")
    for measure, name in MEASURE_NAMES.items():
        for cell in figure.cells:
            row = f"{name:8}{cell.group if len(figure.groups) > 1 else '':17}{figure.x_name(cell.x)}"
            values = [estimate(drawn.samples[curve, cell.group, cell.x][measure]) for curve in drawn.curves]
            say(f"  {row:{_ROW}}{''.join(f'{value!s:>{_NUMBER}}' for value in values)}")
    say("")
    _show_verdicts(drawn.verdicts)


def _show_verdicts(verdicts: list["Verdict"]) -> None:
    """A line for each curve that it is claimed of, both measures side by side."""
    by_claim: dict[tuple[str, str], list[Verdict]] = {}
    for one in verdicts:
        by_claim.setdefault((one.claim, one.curve), []).append(one)
    told = ""
    for (claim, curve), found in by_claim.items():
        if claim != told:
            say(f"  {claim}")
            told = claim
        sides = (f"{MEASURE_NAMES[one.measure]}: {one.judged.verdict} ({one.judged.why})" for one in found)
        say(f"    {curve:15}{'; '.join(sides)}")
    say("")
