"""The picture of `trapline refresh replay`: freshness with its intervals, a panel for each measure. Against capacity, a line for each
policy and level; at one capacity, a point for each. It knows estimates, and nothing of traces."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trapline.refresh import Estimate

Points = Sequence[tuple[float, "Estimate"]]
Curves = Mapping[str, Points]  # by name, capacities with the estimate there
_ROW, _FRAME = 0.34, 2.2  # inches: of a policy, and of what stands above and below them all
_WIDTH, _HEIGHT = 13.0, 6.2  # inches
_NARROW = 40.0  # per cent: data within so much have an axis of their own
_GREY = "#404040"


def picture(panels: Mapping[str, Curves], title: str, conditions: str) -> bytes:
    """A PNG. `panels`: by what is measured, the same curves."""
    first = next(iter(panels.values()))
    capacities = {capacity for points in first.values() for capacity, _ in points}
    if len(capacities) > 1:
        return _lines(panels, title, conditions)
    return _dots(panels, title, f"{conditions}; {max(capacities):g} crawls per update")


def limits(low: float, high: float) -> tuple[float, float]:
    """Of an axis in per cent: all of it, unless the data lie within a narrow band.

    >>> limits(5.0, 90.0), limits(50.0, 60.0), limits(99.0, 100.0)
    ((0.0, 100.0), (48.0, 62.0), (98.0, 100.0))
    """
    if high - low > _NARROW:
        return 0.0, 100.0
    margin = max(1.0, 0.2 * (high - low))
    return max(0.0, low - margin), min(100.0, high + margin)


def _lines(panels: Mapping[str, Curves], title: str, conditions: str) -> bytes:
    from trapline.report.style import COLOURS, MARKERS, STROKES, look

    figure = _figure(_HEIGHT, title, conditions)
    every = figure.subplots(1, len(panels))
    for axes, (measured, curves) in zip(every, panels.items(), strict=True):
        for index, (name, points) in enumerate(curves.items()):
            colour, stroke, marker = look(index)
            lengths = tuple(0.6 * one for one in STROKES[stroke])
            x, means, spreads = _columns(sorted(points, key=lambda point: point[0]))
            axes.errorbar(
                x, means, spreads, label=name, color=COLOURS[colour], marker=MARKERS[marker],
                linestyle=(0, lengths) if lengths else "-", linewidth=1.8, elinewidth=1.1, capsize=3,
            )  # fmt: skip
        axes.set_xlim(left=0.0)
        axes.set_ylim(*limits(*_ends(curves)))
        axes.set_xlabel("crawls per update", fontsize=12)
        axes.set_ylabel(_label(measured, axes.get_ylim()), fontsize=12)
        _dress(axes)
    figure.legend(*every[0].get_legend_handles_labels(), loc="outside right upper", frameon=False, handlelength=3.2)
    return _png(figure)


def _dots(panels: Mapping[str, Curves], title: str, conditions: str) -> bytes:
    """The best by the first measure on top, with its number beside it."""
    from trapline.report.style import COLOURS

    first = next(iter(panels.values()))
    names = sorted(first, key=lambda name: first[name][0][1].mean)
    figure = _figure(_FRAME + _ROW * len(names), title, conditions)
    every = figure.subplots(1, len(panels))
    for place, (axes, (measured, curves)) in enumerate(zip(every, panels.items(), strict=True)):
        _, means, spreads = _columns([curves[name][0] for name in names])
        rows = range(len(names))
        axes.errorbar(means, rows, xerr=spreads, fmt="o", color=COLOURS[0], markersize=7, elinewidth=1.4, capsize=4)
        shown = [f"{name}  " if place == 0 else "" for name in names]
        axes.set_yticks(rows, labels=[f"{name}{mean:.1f} %" for name, mean in zip(shown, means, strict=True)])
        axes.set_xlim(*limits(*_ends(curves)))
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.set_xlabel(_label(measured, axes.get_xlim()), fontsize=12)
        _dress(axes)
    return _png(figure)


def _columns(points: Points) -> tuple[list[float], list[float], list[float]]:
    """Capacities, means, and half of each interval, the last two in per cent."""
    capacities, found = [capacity for capacity, _ in points], [one for _, one in points]
    return capacities, [100.0 * one.mean for one in found], [100.0 * (one.ci or 0.0) for one in found]


def _ends(curves: Curves) -> tuple[float, float]:
    _, means, spreads = _columns([point for points in curves.values() for point in points])
    ends = [mean + side * spread for mean, spread in zip(means, spreads, strict=True) for side in (-1.0, 1.0)]
    return min(ends), max(ends)


def _label(measured: str, shown: tuple[float, float]) -> str:
    return f"{measured} (%)" + ("; does not begin at 0" if shown[0] > 0.0 else "")


def _figure(height: float, title: str, conditions: str) -> Any:
    # Late: it takes longer than a small replay. The Agg canvas needs no display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.15)
    figure = Figure(figsize=(_WIDTH, height), dpi=130, layout=layout)
    FigureCanvasAgg(figure)
    # Names of traces are the user's; two dollar signs in one would be taken for a formula.
    plain, below = (text.replace("$", r"\$") for text in (title, conditions))
    figure.suptitle(f"{plain}\n", fontsize=15, fontweight="bold", x=0.02, ha="left")
    figure.text(0.02, 1.0 - 0.55 / height, below, fontsize=10.5, color=_GREY, va="top")
    return figure


def _dress(axes: Any) -> None:
    axes.grid(color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _png(figure: Any) -> bytes:
    png = BytesIO()
    figure.savefig(png, format="png")
    return png.getvalue()
