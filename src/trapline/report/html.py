"""The parts of the HTML pages of reports: frame, figures, table cells, lists of pairs.

A page is one file, and needs no network, font or other file. This module knows charts and columns, and no crawl. The
plots are SVG in the page, so that they are visible without JavaScript; sorting and reading values under the pointer
need it. Every string from outside is escaped where it enters the page, and the page's Content-Security-Policy forbids
any script but ours.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

from trapline.report.chart import OPTIMUM, RANDOM, Chart, Floats
from trapline.report.svg import (
    BOTTOM,
    COLOURS,
    COLOURS_ON_DARK,
    HEIGHT,
    LEFT,
    RIGHT,
    STROKES,
    TOP,
    WIDTH,
    chart_svg,
    swatch_svg,
)
from trapline.report.table import HIGH, Column

GREYS = {OPTIMUM: "Grey", RANDOM: "Dotted"}


@dataclass(frozen=True, slots=True)
class PageFrame:
    """The parts that every page has around its own sections."""

    title: str
    subtitle: str
    settings: Mapping[str, object]
    settings_hint: str
    numbers: Sequence[Column]  # the columns of the page, which it explains


def filled(
    template: str, frame: PageFrame, charts: Sequence[Chart], crawls: int, others: Sequence[Chart] = (), **parts: str
) -> str:
    """Return a complete page: the sections of the template, filled with `parts` (HTML), inside the frame.

    `crawls`: the number of crawls that can be hidden. `others`: charts that are in the parts.
    """
    from trapline import __version__

    script = _file("page.js")
    return _substituted(
        "frame.html",
        title=escape(frame.title),
        subtitle=escape(frame.subtitle),
        version=escape(__version__),
        style=_file("page.css") + _style(crawls),
        sections=_substituted(template, charts=_figures(charts, crawls), **parts),
        settings_hint=escape(frame.settings_hint),
        settings=_pairs(frame.settings),
        meanings=_meanings(frame.numbers),
        data=_json({chart.name: _readings(chart) for chart in (*charts, *others)}),
        script=script,
        script_hash=_hash(script),
    )


def _figures(charts: Sequence[Chart], crawls: int) -> str:
    return _substituted(
        "charts.html",
        how_to_hide="Untick a strategy to hide it. " if crawls else "",
        figures="\n".join(figure(chart, key=not crawls) for chart in charts),
    )


def _substituted(template: str, **parts: str) -> str:
    return Template(_file(template).rstrip("\n")).substitute(parts)


def _file(name: str) -> str:
    return files("trapline.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _json(value: Any) -> str:
    """Return JSON that cannot close the element that contains it."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _style(crawls: int) -> str:
    """Return the CSS of colours and strokes, and the rules that hide a crawl whose box is not ticked."""
    hidden = "".join(f"body:has(#show{at}:not(:checked)) .k{at} {{ display: none; }}\n" for at in range(crawls))
    return line_styles() + hidden


def line_styles() -> str:
    """Return the CSS of the colours and strokes of lines."""
    light = "".join(f".c{at} {{ --c: {colour}; }}\n" for at, colour in enumerate(COLOURS))
    dark = "".join(f".c{at} {{ --c: {colour}; }}\n" for at, colour in enumerate(COLOURS_ON_DARK))
    strokes = "".join(
        f".d{at} .line {{ stroke-dasharray: {' '.join(map(str, stroke)) or 'none'}; }}\n"
        for at, stroke in enumerate(STROKES)
    )
    return f"{light}@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n{strokes}"


class Headline(NamedTuple):
    """A number that is shown large at the top of a page."""

    value: str
    name: str
    remark: str
    bad: bool = False


def headline(shown: Headline) -> str:
    bad = ' class="bad"' if shown.bad else ""
    return f"<li{bad}><b>{escape(shown.value)}</b> {escape(shown.name)}<small>{escape(shown.remark)}</small></li>"


class CountTile(NamedTuple):
    name: str
    about: str
    number: int


def counts_table(title: str, counts: Sequence[CountTile]) -> str:
    """Return a small table with a bar for each number, all to the same scale."""
    most = max((count.number for count in counts), default=1)
    rows = "\n".join(_bar(count, most) for count in counts) or '<tr><td class="name">none</td></tr>'
    return f'<table class="bars"><caption>{escape(title)}</caption>\n<tbody>\n{rows}\n</tbody></table>'


def _bar(count: CountTile, most: int) -> str:
    about = f"<small>{escape(count.about)}</small>" if count.about else ""
    bar = f'<div style="width: {count.number / most * 100:.1f}%"></div>'
    return f'<tr><td class="name">{escape(count.name)} {about}{bar}</td><td>{count.number:,}</td></tr>'


def head_cell(column: Column, begins: str = "") -> str:
    first = "descending" if column.better == HIGH else "ascending"
    button = f'<button type="button" title="{escape(column.about)}">{escape(column.name)}</button>'
    return f'<th class="{begins}" scope="col" data-first="{first}">{button}</th>'


def number_cell(at: int, column: Column, begins: str = "", bad: bool = False) -> str:
    value = column.values[at]
    best = "best" if at in column.best else ""
    kept = "" if value is None else f"{value:.9g}"
    return f'<td class="{" ".join(filter(None, (begins, best, "bad" if bad else "")))}" data-value="{kept}">{escape(column.texts[at])}</td>'


def figure(chart: Chart, key: bool = False) -> str:
    """Return a plot with its caption. `key`: also with a key of its lines, for a page without a legend of crawls."""
    caption = ". ".join([chart.y.label[:1].upper() + chart.y.label[1:], *([] if key else _remarks(chart))])
    named = f"{escape(chart.title)}<small>{escape(caption)}</small>{_key(chart) if key else ''}"
    return f"<figure><figcaption>{named}</figcaption>\n{chart_svg(chart)}</figure>"


def _key(chart: Chart) -> str:
    if len(chart.lines) < 2:
        return ""
    lines = (f'<span data-index="{one.index}">{swatch_svg(one.index)}{escape(one.name)}</span>' for one in chart.lines)
    return f'<div class="key">{"".join(lines)}</div>'


def _remarks(chart: Chart) -> Iterable[str]:
    for index, name in {line.index: line.name for line in chart.lines if line.index < 0}.items():
        yield f"{GREYS[index]}: {name}"
    yield from _one_curve(chart)


def _one_curve(chart: Chart) -> Iterable[str]:
    """Yield which crawls have the same curve; if these are most of the crawls, name the others instead."""
    crawls = [line for line in chart.lines if line.index >= 0]
    for group in chart.together:
        apart = [line.name for line in crawls if line not in group]
        names = [line.name for line in group]
        if len(apart) < len(group):
            yield f"One curve: all but {', '.join(apart)}" if apart else "One curve: all of them"
        else:
            yield f"One curve: {', '.join(names)}"


def _meanings(numbers: Iterable[Column]) -> str:
    return definitions((one.name, one.about) for one in numbers)


def definitions(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)


def _pairs(settings: Mapping[str, object]) -> str:
    return "\n".join(
        f"<div><dt>{escape(str(name))}</dt><dd>{escape(str(value))}</dd></div>" for name, value in settings.items()
    )


def _readings(chart: Chart) -> dict[str, Any]:
    """Return the data that the script needs to show the values under the pointer."""
    return {
        "frame": [LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM],
        "width": WIDTH,
        "top": [chart.x.top, chart.y.top],
        "overTime": chart.zooms and not chart.x.unit,
        "xName": chart.x.label.partition(" (")[0] if chart.x.unit else chart.x.label,
        "xUnit": chart.x.unit,
        "yUnit": chart.y.unit,
        "lines": [
            {"index": line.index, "name": line.name, "x": _short(line.x), "y": _short(line.y)} for line in chart.lines
        ],
    }


def _short(values: Floats) -> Iterable[float]:
    """Round to six digits, which is more than a plot shows."""
    return [float(f"{value:.6g}") for value in values.tolist()]
