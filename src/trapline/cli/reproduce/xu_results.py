"""The output of `trapline reproduce xu`: tables with verdicts, and one plot per figure, for each trace and both measures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trapline.cli.refresh.results import interval_of
from trapline.report.plot import dashes, dress, new_figure, plain, png_of
from trapline.report.svg import COLOURS, MARKERS
from trapline.terminal import say
from trapline.units import counted, duration

if TYPE_CHECKING:
    from trapline.lab.judgement import Figure
    from trapline.lab.xu import Drawn, XuReproduction, XuVerdict

# ---- The terminal: one table per figure, then the expected orderings, with a verdict for each reading of the policy.

MEASURE_NAMES = {"eq3": "Eq. 3", "binary": "binary"}
_ROW, _NUMBER = 34, 17


def show(found: "XuReproduction") -> None:
    study, trace = found.study, found.study.trace
    size = f"{counted(trace.pages, 'page')}, {counted(trace.updates, 'update')} in {duration(trace.horizon_s)}"
    cut = f", in stretches of {duration(study.stretch_s)}" if study.stretch_s else ""
    say(f"{trace.name}: {size}{cut}; {interval_of(study.seeds)}")
    smart = f"freshness of xu with smart providers is {found.reached:.3f} by Eq. 3 (in the paper: around .86)"
    say(f"{found.capacity:.3f} crawls per update: {smart}\n")
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


def _show_verdicts(verdicts: list["XuVerdict"]) -> None:
    """Print each claim, and below it one line per curve, with the verdicts by both measures side by side."""
    by_claim: dict[tuple[str, str], list[XuVerdict]] = {}
    for verdict in verdicts:
        by_claim.setdefault((verdict.claim, verdict.curve), []).append(verdict)
    last_claim = ""
    for (claim, curve), found in by_claim.items():
        if claim != last_claim:
            say(f"  {claim}")
            last_claim = claim
        sides = (f"{MEASURE_NAMES[one.measure]}: {one.judged.verdict} ({one.judged.why})" for one in found)
        say(f"    {curve:15}{'; '.join(sides)}")
    say("")


# ---- Plots.

_LABELS = {"eq3": "mean F of accesses, Eq. 3 (%)", "binary": "accesses that find a fresh copy (%)"}
_GREY = "#606060"
_NOTE = """Bars: 95 % interval of the mean over seeds.
All curves use the same seeds; the verdicts
compare curves and settings seed by seed."""
_APART = 0.012  # shift between curves as a share of the axis, so that their bars do not hide each other


def picture(columns: Sequence[tuple[str, "Drawn"]]) -> bytes:
    """Return a plot of one figure as PNG. `columns`: the name of each trace, with the figure on it."""
    figure = columns[0][1].figure
    canvas = new_figure(4.6 * (len(columns) + 1), 8.6, dpi=130, padding=0.11)
    grid = canvas.add_gridspec(2, len(columns) + 1)
    _draw_expected(canvas.add_subplot(grid[0, 0]), figure)
    _add_legend(canvas.add_subplot(grid[1, 0]), columns[0][1])
    for row, measure in enumerate(MEASURE_NAMES):
        for column, (name, drawn) in enumerate(columns, 1):
            place = canvas.add_subplot(grid[row, column])
            _draw(place, drawn, measure)
            place.set_title(plain(f"{name}, {MEASURE_NAMES[measure]}"), fontsize=11, loc="left")
            place.set_ylabel(_LABELS[measure])
    canvas.suptitle(
        f"Xu et al., figure {figure.name}: {figure.title}", fontsize=15, fontweight="bold", x=0.01, ha="left"
    )
    return png_of(canvas)


def _draw_expected(axes: Any, figure: "Figure") -> None:
    for number, group in enumerate(figure.expected):
        x, y = zip(*figure.expected[group], strict=True)
        axes.plot(x, y, color=_GREY, linewidth=1.8, **_stroke(number))
    axes.set_title("expected shape (from the paper's text)", fontsize=11, loc="left")
    axes.set_ylabel("freshness, without scale")
    axes.set_yticks([])
    low, high = (pick(y for points in figure.expected.values() for _, y in points) for pick in (min, max))
    axes.set_ylim(low - 0.08, high + 0.04)
    _scale(axes, figure)


def _draw(axes: Any, drawn: "Drawn", measure: str) -> None:
    from trapline.refresh import estimate

    figure = drawn.figure
    every = sorted({cell.x for cell in figure.cells})
    many = len(drawn.curves) * len(figure.groups)
    for number, curve in enumerate(drawn.curves):
        for group_number, group in enumerate(figure.groups):
            own = [cell.x for cell in figure.cells if cell.group == group]
            found = [estimate(drawn.samples[curve, group, x][measure]) for x in own]
            shift = (number * len(figure.groups) + group_number - 0.5 * (many - 1)) * _APART * (every[-1] - every[0])
            axes.errorbar(
                [x + shift for x in own],
                [100.0 * one.mean for one in found],
                [100.0 * (one.ci or 0.0) for one in found],
                color=COLOURS[number],
                linewidth=1.5,
                elinewidth=0.9,
                capsize=2.0,
                markersize=4.5,
                **_stroke(group_number),
            )
    _scale(axes, figure)


def _stroke(number: int) -> dict[str, Any]:
    return {"linestyle": dashes(number), "marker": MARKERS[number]}


def _scale(axes: Any, figure: "Figure") -> None:
    every = sorted({cell.x for cell in figure.cells})
    margin = 0.12 * (every[-1] - every[0])
    ends = (every[0] - margin, every[-1] + margin)
    axes.set_xlim(*(reversed(ends) if figure.falling else ends))
    shown = every[::2] if len(every) > 6 else every
    axes.set_xticks(shown, labels=[figure.x_name(x) for x in shown])
    axes.set_xlabel(figure.x_label)
    dress(axes)


def _add_legend(axes: Any, drawn: "Drawn") -> None:
    """Draw the legend in axes of its own, below the expected shape."""
    from matplotlib.lines import Line2D

    curves = [
        Line2D([], [], color=COLOURS[number], linewidth=3, label=curve) for number, curve in enumerate(drawn.curves)
    ]
    groups = [
        Line2D([], [], color=_GREY, linewidth=1.5, label=group, **_stroke(number))
        for number, group in enumerate(drawn.figure.groups)
    ]
    axes.set_axis_off()
    handles = curves + groups if len(groups) > 1 else curves
    axes.legend(
        handles=handles,
        loc="upper left",
        frameon=False,
        fontsize=11,
        handlelength=3.2,
        labelspacing=0.7,
        borderaxespad=0.0,
    )
    axes.text(0.0, 0.0, _NOTE, fontsize=9.5, color="#404040", va="bottom", linespacing=1.4)
