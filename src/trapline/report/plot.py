"""Crawl orders as a picture: the PageRank collected against the pages fetched. It reads records and knows no files.

Between two lines that every order can be held against: the optimum (pages sorted by PageRank) and the diagonal
(random).
"""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trapline.report.record import CrawlRecord

# Okabe and Ito's colours, told apart with any colour vision; the strokes differ too, for prints without colour.
_STYLES: Sequence[tuple[str, Any]] = (
    ("#0072B2", "-"),
    ("#D55E00", (0, (6, 2))),
    ("#009E73", (0, (6, 2, 1.5, 2))),
    ("#CC79A7", (0, (3, 1.5))),
    ("#E69F00", "-"),
    ("#56B4E9", (0, (6, 2))),
)
_REFERENCE = "#707070"


def orders_png(records: Sequence["CrawlRecord"], title: str, subtitle: str = "") -> bytes:
    """A PNG with a curve for each record, which should be crawls of the same web."""
    # Late: it takes longer than a small crawl. The Agg canvas needs no display, and pyplot's global state is avoided.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(10.5, 6.2), dpi=150, layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.15))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    best, diagonal = records[0].optimal_curve, ((0, 0), (1, 1))
    optimum = f"{records[0].optimal_average_cumulative_pagerank:.3f}  optimum: sorted by PageRank"
    _line(axes, best, optimum, color=_REFERENCE, linewidth=1.4)
    for index, record in enumerate(records):
        colour, stroke = _STYLES[index % len(_STYLES)]
        label = f"{record.average_cumulative_pagerank:.3f}  {_plain(record.strategy)}"
        _line(axes, record.curve, label, color=colour, linestyle=stroke, linewidth=2.2)
    _line(axes, diagonal, "0.500  random order", color=_REFERENCE, linewidth=1.4, linestyle=":")
    _dress(axes, _pages_label(records))
    _head(axes, title, subtitle)
    png = BytesIO()
    figure.savefig(png, format="png")
    return png.getvalue()


def _line(axes: Any, points: Sequence[Sequence[float]], label: str, **style: Any) -> None:
    axes.plot(*zip(*points, strict=True), label=label, **style)


def _plain(text: str) -> str:
    """Names of strategies and folders are the user's; two dollar signs in one would be taken for a formula."""
    return text.replace("$", r"\$")


def _head(axes: Any, title: str, subtitle: str) -> None:
    lines = subtitle.count("\n") + 1 if subtitle else 0
    axes.set_title(_plain(title), fontsize=15, fontweight="bold", loc="left", pad=14 + 15 * lines)
    axes.annotate(
        _plain(subtitle),
        (0, 1),
        (0, 10),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=10.5,
        color="#404040",
        linespacing=1.3,
    )


def _dress(axes: Any, pages_label: str) -> None:
    from matplotlib.ticker import MultipleLocator, PercentFormatter

    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=pages_label, ylabel="PageRank of the pages fetched so far (% of the sum)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(0.1))
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axis.label.set_size(12)
    axes.grid(color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    for line in axes.lines:
        line.set_clip_on(False)  # else the frame cuts a line that ends at 100 % in half
    # Beside the axes, where no curve can be: an order worse than random runs through the lower right corner.
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(1.02, 1.0),
        frameon=False,
        fontsize=11,
        labelspacing=0.9,
        handlelength=2.8,
        title="average cumulative PageRank\n(area under the curve)",
        title_fontsize=11,
        alignment="left",
    )


def _pages_label(records: Sequence["CrawlRecord"]) -> str:
    counts = {record.pages_fetched for record in records}
    return f"pages fetched (% of {counts.pop():,})" if len(counts) == 1 else "pages fetched (% of all fetched)"
