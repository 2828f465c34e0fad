"""Charts as SVG for the HTML page: lines, ticks, labels. Colours and strokes are CSS classes, which the page's style sheet defines.

This module draws the charts of `chart.py`, and escapes all text.
"""

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

import numpy as np

from trapline.report.chart import OPTIMUM, RANDOM, Axis, Chart, ChartLine, Floats

# ---- The looks of curves: colour, stroke and marker together distinguish the curves of one picture, for any eyes and in any print.
#
# This part knows the numbers of curves, and not what they show. The PNG and the HTML page use the same looks.

# Okabe and Ito's colours, which can be distinguished with any colour vision, without their yellow, which is invisible on white paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#1A1A1A")
# The colours on a dark page: lighter, in the same order.
COLOURS_ON_DARK = ("#4C9BE8", "#F0814A", "#2FC49A", "#E39AC2", "#F2B632", "#A3DCFF", "#F0F0F0")
STROKES: tuple[tuple[float, ...], ...] = ((), (7, 2.5), (7, 2.5, 1.5, 2.5), (2.5, 2))  # lengths on, off, in points
MARKERS = "osD^vPX*"  # matplotlib's names


class Look(NamedTuple):
    """Numbers of a colour, a stroke and a marker."""

    colour: int
    stroke: int
    marker: int


def look(index: int) -> Look:
    """Return the look of the curve with this number. 28 curves differ in colour or stroke, 56 at least in the marker.

    >>> look(0), look(7)
    (Look(colour=0, stroke=0, marker=0), Look(colour=0, stroke=1, marker=7))
    """
    rounds, colour = divmod(index, len(COLOURS))
    return Look(colour, (colour + rounds) % len(STROKES), index % len(MARKERS))


# ---- Drawing.

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 84, 20, 14, 62
_REFERENCES = {OPTIMUM: "optimum", RANDOM: "random"}
_MARKER_GAP = 110.0  # pixels of a line between two markers
# In the order of MARKERS: circle, square, diamond, triangles, plus, cross, star; about 8 pixels wide.
_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.6-3.6h7.2v7.2h-7.2z",
    "M0-5L5 0L0 5L-5 0z",
    "M0-4.8L4.6 3.6H-4.6z",
    "M0 4.8L4.6-3.6H-4.6z",
    "M-1.6-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
    "M-4.4-2.2L-2.2-4.4L0-2.2L2.2-4.4L4.4-2.2L2.2 0L4.4 2.2L2.2 4.4L0 2.2L-2.2 4.4L-4.4 2.2L-2.2 0z",
    "M0-5.4L1.6-1.8L5.2-1.7L2.4.7L3.3 4.4L0 2.3L-3.3 4.4L-2.4.7L-5.2-1.7L-1.6-1.8z",
)


def chart_svg(chart: Chart) -> str:
    """Draw a chart. The lines of crawls have the classes k0, k1 and so on, by which the page hides them."""
    label = escape(f"{chart.title}: {chart.y.label} against {chart.x.label}")
    references = (line for line in chart.lines if line.index < 0)
    crawls = (line for line in chart.lines if line.index >= 0)
    return "\n".join(
        [
            f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}" data-name="{chart.name}">',
            '<g class="x-axis">',
            *_x_axis(chart.x),
            "</g>",
            *_y_axis(chart.y),
            *(_reference(line, chart) for line in references),
            *(_crawl(line, chart) for line in crawls),
            f'<line class="cursor" y1="{TOP}" y2="{HEIGHT - BOTTOM}" visibility="hidden"/>',
            "</svg>",
        ]
    )


def swatch_svg(index: int) -> str:
    """Draw a piece of a line, for the legend and the table."""
    marker = _marker(22, 7, index) if index >= 0 else ""
    line = f'<path class="line" d="M1 7H43"/>{marker}'
    return f'<svg class="swatch {classes(index)}" viewBox="0 0 44 14" aria-hidden="true">{line}</svg>'


def classes(index: int) -> str:
    """Return the CSS classes of a line: its colour and stroke."""
    if index in _REFERENCES:
        return _REFERENCES[index]
    colour, stroke, _ = look(index)
    return f"c{colour} d{stroke}"


def _x_axis(axis: Axis) -> Iterable[str]:
    bottom = HEIGHT - BOTTOM
    for tick in axis.ticks:
        x = _x(tick, axis)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="{bottom + 22}" text-anchor="middle">{escape(axis.text(tick))}</text>'
    middle = (LEFT + WIDTH - RIGHT) // 2
    yield f'<text class="label" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(axis.label)}</text>'


def _y_axis(axis: Axis) -> Iterable[str]:
    for tick in axis.ticks:
        y = _y(tick, axis)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="tick" x="{LEFT - 9}" y="{y:.1f}" dy=".35em" text-anchor="end">{escape(axis.text(tick))}</text>'


def _x(value: float, axis: Axis) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value / axis.top


def _y(value: float, axis: Axis) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / axis.top


def _reference(line: ChartLine, chart: Chart) -> str:
    path = f'<path class="line" d="{_path(*_pixels(line, chart))}"/>'
    return f'<g data-index="{line.index}" class="{classes(line.index)}">{path}</g>'


def _crawl(line: ChartLine, chart: Chart) -> str:
    x, y = _pixels(line, chart)
    markers = "".join(_marker(*place, line.index) for place in _marker_places(x, y, line.index))
    return f'<g data-index="{line.index}" class="k{line.index} {classes(line.index)}"><path class="line" d="{_path(x, y)}"/>{markers}</g>'


def _pixels(line: ChartLine, chart: Chart) -> tuple[Floats, Floats]:
    x = LEFT + (WIDTH - LEFT - RIGHT) * line.x / chart.x.top
    return x, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * line.y / chart.y.top


def _path(x: Floats, y: Floats) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def _marker(x: float, y: float, index: int) -> str:
    return f'<path class="marker" d="{_SHAPES[look(index).marker]}" transform="translate({x:.1f} {y:.1f})"/>'


def _marker_places(x: Floats, y: Floats, index: int) -> Iterable[tuple[float, float]]:
    """Return places at equal distances along the line; each line has its own."""
    along = np.concatenate(([0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))))
    first = 14.0 + index * 37 % _MARKER_GAP
    at = np.arange(first, along[-1], max(_MARKER_GAP, along[-1] / 9)) if along[-1] else np.zeros(1)
    return zip(np.interp(at, along, x).tolist(), np.interp(at, along, y).tolist(), strict=True)
