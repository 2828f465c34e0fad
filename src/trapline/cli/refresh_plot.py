"""The picture of `trapline refresh replay`: binary freshness with its intervals. Against capacity, a line for each policy and level; at one
capacity, a point for each. It knows estimates, and nothing of traces."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trapline.refresh import Estimate

Points = Sequence[tuple[float, "Estimate"]]
_LABEL = "accesses that find a fresh copy"
_ROW, _FRAME = 0.34, 2.2  # inches: of a policy, and of what stands above and below them all


def picture(curves: Mapping[str, Points], title: str, conditions: str) -> bytes:
    """A PNG. `curves`: of each name, capacities with the share of fresh accesses."""
    capacities = {capacity for points in curves.values() for capacity, _ in points}
    if len(capacities) > 1:
        return _lines(curves, max(capacities), title, conditions)
    (capacity,) = capacities
    return _dots(
        {name: points[0][1] for name, points in curves.items()}, title, f"{conditions}; {capacity:g} crawls per update"
    )


def _lines(curves: Mapping[str, Points], most: float, title: str, conditions: str) -> bytes:
    import numpy as np

    from trapline.report.axis import axis
    from trapline.report.chart import Chart, Line
    from trapline.report.plot import chart_png

    lines = []
    for index, (name, points) in enumerate(curves.items()):
        rows = sorted((capacity, 100.0 * one.mean, 100.0 * (one.ci or 0.0)) for capacity, one in points)
        x, y, spread = np.array(rows).T
        lines.append(Line(index, name, x, y, f"{y.mean():.1f} %", spread))
    y_axis = axis(_LABEL, 100.0, "%", tight=True)
    return chart_png(
        Chart("freshness", "Freshness", "mean", axis("crawls per update", most), y_axis, lines), title, conditions
    )


def _dots(found: Mapping[str, "Estimate"], title: str, conditions: str) -> bytes:
    """The best on top, with its number beside it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    size = (10.5, _FRAME + _ROW * len(found))
    figure = Figure(figsize=size, dpi=150, layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.15))
    FigureCanvasAgg(figure)
    _draw(figure.add_subplot(), sorted(found.items(), key=lambda pair: pair[1].mean))
    figure.suptitle(title.replace("$", r"\$"), fontsize=15, fontweight="bold", x=0.02, ha="left")
    figure.axes[0].set_title(conditions.replace("$", r"\$"), fontsize=10.5, loc="left", color="#404040")
    png = BytesIO()
    figure.savefig(png, format="png")
    return png.getvalue()


def _draw(axes: Any, rows: Sequence[tuple[str, "Estimate"]]) -> None:
    from trapline.report.style import COLOURS

    means, spreads = [100.0 * one.mean for _, one in rows], [100.0 * (one.ci or 0.0) for _, one in rows]
    axes.errorbar(
        means, range(len(rows)), xerr=spreads, fmt="o", color=COLOURS[0], markersize=7, elinewidth=1.4, capsize=4
    )
    axes.set_yticks(
        range(len(rows)), labels=[f"{name}  {mean:.1f} %" for (name, _), mean in zip(rows, means, strict=True)]
    )
    axes.set_xlim(0.0, 100.0)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel(f"{_LABEL} (%)", fontsize=12)
    axes.grid(color="#E4E4E4", linewidth=0.8, axis="x")
    axes.spines[["top", "right"]].set_visible(False)
