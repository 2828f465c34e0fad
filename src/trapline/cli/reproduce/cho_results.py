"""The output of `trapline reproduce cho`: tables with verdicts, and one plot per experiment, three charts per row, graph after graph."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trapline.report.plot import dress, line_style, new_figure, plain, png_of
from trapline.report.svg import COLOURS, look
from trapline.terminal import say, say_text
from trapline.units import counted

if TYPE_CHECKING:
    from trapline.lab.cho import ChoReproduction
    from trapline.lab.judgement import Curve, Experiment, ExperimentChart

# ---- The terminal: one table per chart, then the claims of the paper, each with a verdict.

_LEAST_WIDTH = 17


def show(found: "ChoReproduction") -> None:
    graph = found.web.graph
    size = f"{counted(graph.pages, 'page')}, {counted(graph.links, 'link')}, {counted(graph.sites, 'site')}"
    say_text(f"{found.web.name}: {size}; {counted(found.draws, 'draw')} of the seeds\n")
    for experiment in found.experiments:
        _show_experiment(experiment)


def _show_experiment(experiment: "Experiment") -> None:
    say(f"Experiment {experiment.number}. {experiment.title}")
    for chart in experiment.charts:
        _show_chart(chart)
    for one in experiment.verdicts:
        say(f"  {one.judged.verdict:14} {one.claim} ({one.judged.why})")
    for note in experiment.notes:
        say(f"  ({note})")
    say("")


def _show_chart(chart: "ExperimentChart") -> None:
    """Print a chart as a table: one row per x, with two or more blanks between columns."""
    from trapline.refresh import estimate

    widths = [
        max(_LEAST_WIDTH, len(name) + 2, *(len(str(estimate(one))) + 2 for one in curve.values()))
        for name, curve in chart.curves.items()
    ]
    first = max([len(chart.x_label), *(len(chart.x_name(x)) for x in chart.x_values)])
    say(f"  {chart.name}. {chart.title}: {chart.y_label}")
    heads = "".join(f"{name:>{width}}" for name, width in zip(chart.curves, widths, strict=True))
    say(f"  {chart.x_label:{first}}{heads}")
    for x in chart.x_values:
        cells = [str(estimate(curve[x])) if x in curve else "-" for curve in chart.curves.values()]
        row = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        say(f"  {chart.x_name(x):{first}}{row}")
    say("")


# ---- Plots.

_COLUMNS = 3
_WIDTH, _HEIGHT = 5.2, 4.4  # size of a chart, in inches
_TITLE = "Cho and Garcia-Molina, experiment {number}: {title}"
_SHARES = ("coverage", "quality")
_BARS = 0.8  # share of the space between two groups that the bars fill


def picture(found: Sequence[tuple[str, "Experiment"]]) -> bytes:
    """Return a plot of one experiment as PNG. `found`: the name of each graph, with the experiment on it."""
    first = found[0][1]
    columns = min(_COLUMNS, len(first.charts))
    rows_each = -(-len(first.charts) // columns)
    height = _HEIGHT * rows_each * len(found) + 0.5
    canvas = new_figure(max(8.6, _WIDTH * columns), height, dpi=110, padding=0.12)
    grid = canvas.add_gridspec(rows_each * len(found), columns)
    for above, (name, experiment) in enumerate(found):
        for number, chart in enumerate(experiment.charts):
            row, column = divmod(number, columns)
            _draw(canvas.add_subplot(grid[above * rows_each + row, column]), chart, name)
    title = _TITLE.format(number=first.number, title=first.title)
    canvas.suptitle(title, fontsize=14, fontweight="bold", x=0.01, ha="left")
    return png_of(canvas)


def _draw(axes: Any, chart: "ExperimentChart", name: str) -> None:
    for number, (curve_name, curve) in enumerate(chart.curves.items()):
        if chart.apart:
            _draw_bars(axes, number, len(chart.curves), curve_name, curve)
        else:
            _draw_curve(axes, number, curve_name, curve)
    axes.set_title(plain(f"{chart.name}. {chart.title}\n{name}"), fontsize=10, loc="left")
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    # Intervals of shares may reach above 1.
    axes.set_ylim(0.0, min(1.03, axes.get_ylim()[1]) if chart.y_label in _SHARES else None)
    _scale(axes, chart)
    dress(axes)
    axes.legend(fontsize=7.5, frameon=len(chart.curves) > 1, framealpha=0.7, edgecolor="none", handlelength=3.0)


def _draw_curve(axes: Any, number: int, name: str, curve: "Curve") -> None:
    from trapline.refresh import estimate

    found = {x: estimate(values) for x, values in sorted(curve.items())}
    axes.errorbar(
        list(found), [one.mean for one in found.values()], [one.ci or 0.0 for one in found.values()],
        label=name, markersize=4.5, linewidth=1.5, elinewidth=0.9, capsize=2.0, **line_style(number),
    )  # fmt: skip


def _draw_bars(axes: Any, number: int, many: int, name: str, curve: "Curve") -> None:
    from trapline.refresh import estimate

    width = _BARS / many
    shift = (number - 0.5 * (many - 1)) * width
    found = {x + shift: estimate(values) for x, values in sorted(curve.items())}
    axes.bar(
        list(found), [one.mean for one in found.values()], width, yerr=[one.ci or 0.0 for one in found.values()],
        label=name, color=COLOURS[look(number).colour], capsize=2.0, error_kw={"elinewidth": 0.9},
    )  # fmt: skip


def _scale(axes: Any, chart: "ExperimentChart") -> None:
    every = chart.x_values
    if chart.doubling:
        axes.set_xscale("log", base=2)
    if chart.doubling or chart.names:
        slanted = max(len(chart.x_name(x)) for x in every) > 8
        axes.set_xticks(every, labels=[chart.x_name(x) for x in every], rotation=20 if slanted else 0, fontsize=8)
        axes.minorticks_off()
