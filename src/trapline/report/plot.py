"""Plots as PNG. This module draws the charts of `chart.py`, and is the only one that sets up matplotlib: figure, axes, looks, bytes.

It knows neither files nor crawls. Commands with plots of their own kind (panels, bars) draw them on a `new_figure`.
"""

import textwrap
from collections.abc import Sequence
from io import BytesIO
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from trapline import __version__
from trapline.report.breakdown_chart import every_chart
from trapline.report.chart import OPTIMUM, RANDOM, Chart, ChartLine, quality_by_pages
from trapline.report.svg import COLOURS, MARKERS, STROKES, look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from trapline.report.chart import Axis
    from trapline.report.record import CrawlRecord

_REFERENCE = "#707070"
_MARKER_SIZES = {"P": 7.5, "X": 7.5, "*": 10.0}  # markers with arms look smaller, so they are drawn larger
_MARKER_EVERY = 0.16  # distance between markers, as a share of the picture's diagonal
_GOLDEN = 0.618034  # golden ratio: multiples of it, modulo 1, are evenly spread, however many there are
_HEIGHT, _ROW = 6.2, 0.245  # inches: least height of a picture, height of a row of its legend
_FONT = 10.5
_UPRIGHT = 56  # characters of a line beside the vertical axis


def orders_png(records: Sequence["CrawlRecord"], title: str, subtitle: str = "") -> bytes:
    """Draw quality against pages, with a curve for each record. The records should be of crawls of the same web."""
    return chart_png(quality_by_pages(records), title, subtitle)


def plots_png(records: Sequence["CrawlRecord"], subtitle: str = "") -> dict[str, bytes]:
    """Draw all charts of the records. The keys can be used as file names: quality-pages, quality-time and so on."""
    return {chart.name: chart_png(chart, chart.title, subtitle) for chart in every_chart(records)}


def new_figure(width: float, height: float, dpi: int, padding: float = 0.15) -> "Figure":
    """Return an empty figure. `width`, `height` and `padding` are in inches."""
    # Imported late, because this takes longer than a small crawl. The Agg canvas needs no display and avoids pyplot's global state.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=padding, h_pad=padding)
    figure = Figure(figsize=(width, height), dpi=dpi, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def png_of(figure: "Figure") -> bytes:
    """Return the picture. `savefig` would draw it twice, once to find out its size."""
    png = BytesIO()
    canvas: Any = figure.canvas
    canvas.print_png(png, metadata={"Software": f"Trapline {__version__}"})
    return png.getvalue()


def plain(text: str) -> str:
    """Escape dollar signs: users name strategies and folders, and matplotlib takes text between two dollar signs for a formula."""
    return text.replace("$", r"\$")


def dress(axes: Any) -> None:
    """Give axes a light grid and no frame at the top and on the right."""
    axes.grid(color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def dashes(stroke: int) -> Any:
    """Return matplotlib's line style for the stroke with this number."""
    return (0, tuple(0.6 * length for length in STROKES[stroke])) if STROKES[stroke] else "-"


def line_style(index: int) -> dict[str, Any]:
    """Return colour, stroke and marker of the curve with this number."""
    colour, stroke, marker = look(index)
    return {"color": COLOURS[colour], "linestyle": dashes(stroke), "marker": MARKERS[marker]}


def chart_png(chart: Chart, title: str, subtitle: str = "") -> bytes:
    return png_of(chart_figure(chart, title, subtitle))


def chart_figure(chart: Chart, title: str, subtitle: str = "") -> "Figure":
    """Draw a chart, with a picture high enough for its legend."""
    legend_title = _legend_title(chart)
    height = max(_HEIGHT, _ROW * (len(chart.lines) + legend_title.count("\n") + 3))
    figure = new_figure(10.5, height, dpi=150)
    axes = figure.add_subplot()
    letters = _letters(chart)
    for line in chart.lines:
        _draw(axes, line, letters.get(line.index, ""))
    _scale(axes, axes.xaxis, chart.x)
    _scale(axes, axes.yaxis, chart.y)
    dress(axes)
    _add_legend(figure, legend_title)
    _head(axes, title, subtitle)
    return figure


def _letters(chart: Chart) -> dict[int, str]:
    """Return a letter for each line that coincides with others; they share the letter."""
    return {
        line.index: letter for letter, group in zip(ascii_uppercase, chart.together, strict=False) for line in group
    }


def _legend_title(chart: Chart) -> str:
    return f"{chart.value_label}\n(same letter: same curve)" if chart.together else chart.value_label


def _draw(axes: Any, line: ChartLine, letter: str) -> None:
    name = f"{line.name} ({letter})" if letter else line.name
    label = plain(f"{line.value}  {name}" if line.value else name)
    style = _look_of(line)
    # Without clipping, because the frame would cut off half of a line that runs along 100 %.
    axes.plot(line.x, line.y, label=label, clip_on=False, **style)
    if line.spread is not None:
        axes.errorbar(line.x, line.y, line.spread, fmt="none", ecolor=style["color"], elinewidth=1.1, capsize=3)


def _look_of(line: ChartLine) -> dict[str, Any]:
    if line.index in (OPTIMUM, RANDOM):
        return {"color": _REFERENCE, "linewidth": 1.4, "linestyle": "-" if line.index == OPTIMUM else ":", "zorder": 1}
    style = line_style(line.index)
    return {
        **style,
        "linewidth": 1.9,
        "markersize": _MARKER_SIZES.get(style["marker"], 6.0),
        "markeredgecolor": "white",
        "markeredgewidth": 0.6,
        # Each line has its markers at other places; lines of measured points have a marker at each point.
        "markevery": ((line.index * _GOLDEN % 1) * _MARKER_EVERY, _MARKER_EVERY) if line.spread is None else 1,
    }


def _scale(axes: Any, side: Any, axis: "Axis") -> None:
    side.set_ticks(axis.ticks, labels=[plain(axis.text(tick)) for tick in axis.ticks])
    lines = axis.label.split("\n")
    if side is axes.yaxis:
        lines = [part for line in lines for part in textwrap.wrap(line, _UPRIGHT)]
    side.set_label_text(plain("\n".join(lines)))
    side.label.set_size(12)
    (axes.set_xlim if side is axes.xaxis else axes.set_ylim)(0, axis.top)


def _head(axes: Any, title: str, subtitle: str) -> None:
    lines = subtitle.count("\n") + 1 if subtitle else 0
    axes.set_title(plain(title), fontsize=15, fontweight="bold", loc="left", pad=14 + 15 * lines)
    axes.annotate(
        plain(subtitle),
        (0, 1),
        (0, 10),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=10.5,
        color="#404040",
        linespacing=1.3,
    )


def _add_legend(figure: Any, title: str) -> None:
    # The legend is beside the axes, where no curve can be: an order worse than random runs through the lower right corner.
    figure.legend(
        loc="outside right upper",
        frameon=False,
        fontsize=_FONT,
        labelspacing=0.6,
        handlelength=3.2,
        title=plain(title),
        title_fontsize=_FONT,
        alignment="left",
    )
