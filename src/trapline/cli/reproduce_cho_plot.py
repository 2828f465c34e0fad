"""The pictures of `trapline reproduce cho`: an experiment's charts, three in a row, graph after graph."""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from trapline.report.style import COLOURS, MARKERS, STROKES, look

if TYPE_CHECKING:
    from trapline.experiments.charts import Chart, Curve, Experiment

_COLUMNS = 3
_WIDTH, _HEIGHT = 5.2, 4.4  # inches of a chart
_TITLE = "Cho and Garcia-Molina, experiment {number}: {title}"
_SHARES = ("coverage", "quality")
_BARS = 0.8  # of the room between two kinds


def picture(found: Sequence[tuple[str, "Experiment"]]) -> bytes:
    """A PNG. `found`: by graph, the same experiment."""
    # Late: it takes longer than a small reproduction. The Agg canvas needs no display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    first = found[0][1]
    columns = min(_COLUMNS, len(first.charts))
    rows_each = -(-len(first.charts) // columns)
    size = (max(8.6, _WIDTH * columns), _HEIGHT * rows_each * len(found) + 0.5)
    canvas = Canvas(figsize=size, dpi=110, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
    FigureCanvasAgg(canvas)
    grid = canvas.add_gridspec(rows_each * len(found), columns)
    for above, (name, experiment) in enumerate(found):
        for number, chart in enumerate(experiment.charts):
            row, column = divmod(number, columns)
            _draw(canvas.add_subplot(grid[above * rows_each + row, column]), chart, name)
    title = _TITLE.format(number=first.number, title=first.title)
    canvas.suptitle(title, fontsize=14, fontweight="bold", x=0.01, ha="left")
    png = BytesIO()
    canvas.savefig(png, format="png")
    return png.getvalue()


def _draw(axes: Any, chart: "Chart", name: str) -> None:
    for number, (curve_name, curve) in enumerate(chart.curves.items()):
        if chart.apart:
            _draw_bars(axes, number, len(chart.curves), curve_name, curve)
        else:
            _draw_curve(axes, number, curve_name, curve)
    axes.set_title(f"{chart.name}. {chart.title}\n{name}", fontsize=10, loc="left")
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    # Intervals of shares may reach beyond what shares can be.
    axes.set_ylim(0.0, min(1.03, axes.get_ylim()[1]) if chart.y_label in _SHARES else None)
    _scale(axes, chart)
    axes.grid(color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=7.5, frameon=len(chart.curves) > 1, framealpha=0.7, edgecolor="none", handlelength=3.0)


def _draw_curve(axes: Any, number: int, name: str, curve: "Curve") -> None:
    from trapline.refresh import estimate

    own = look(number)
    lengths = STROKES[own.stroke]
    found = {x: estimate(values) for x, values in sorted(curve.items())}
    axes.errorbar(
        list(found), [one.mean for one in found.values()], [one.ci or 0.0 for one in found.values()],
        label=name, color=COLOURS[own.colour], marker=MARKERS[own.marker], markersize=4.5, linewidth=1.5,
        elinewidth=0.9, capsize=2.0, linestyle=(0, tuple(0.6 * one for one in lengths)) if lengths else "-",
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


def _scale(axes: Any, chart: "Chart") -> None:
    every = chart.x_values
    if chart.doubling:
        axes.set_xscale("log", base=2)
    if chart.doubling or chart.names:
        slanted = max(len(chart.x_name(x)) for x in every) > 8
        axes.set_xticks(every, labels=[chart.x_name(x) for x in every], rotation=20 if slanted else 0, fontsize=8)
        axes.minorticks_off()
