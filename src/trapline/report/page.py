"""One HTML file that compares crawls: a table of all numbers, and plots. It needs no network, no font and no other file.

It reads records and writes text; what it says is decided in `table.py` and `chart.py`. The plots are SVG in the page, so that they are
there without JavaScript, and so is the hiding of a strategy, which is CSS; sorting and reading values under the pointer need it.
Every string of the user's (names, titles, settings) is escaped where it enters, and the page's own policy forbids any script but ours.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import groupby
from string import Template
from typing import Any

from trapline.report.chart import OPTIMUM, RANDOM, Chart, Floats, charts
from trapline.report.record import CrawlRecord
from trapline.report.style import COLOURS, COLOURS_ON_DARK, STROKES
from trapline.report.svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, chart_svg, swatch_svg
from trapline.report.table import HIGH, VIOLATIONS, Column, columns

_GREYS = {OPTIMUM: "Grey", RANDOM: "Dotted"}


def compare_page(
    records: Sequence[CrawlRecord], title: str, subtitle: str = "", settings: Mapping[str, object] | None = None
) -> str:
    """The page. The records should be of crawls of the same web; `settings` are what all of them were run with."""
    from trapline import __version__

    pictures, numbers, script = charts(records), columns(records), _file("page.js")
    return Template(_file("page.html")).substitute(
        title=escape(title),
        subtitle=escape(subtitle),
        version=escape(__version__),
        style=_file("page.css") + _style(len(records)),
        table=_table(records, [one for one in numbers if not _bland(one)]),
        same=_same(numbers),
        legend=_legend(records),
        charts="\n".join(map(_figure, pictures)),
        settings=_pairs(settings or {}),
        meanings="\n".join(f"<dt>{escape(one.name)}</dt><dd>{escape(one.about)}</dd>" for one in numbers),
        data=_json({chart.name: _readings(chart) for chart in pictures}),
        script=script,
        script_hash=_hash(script),
    )


def _file(name: str) -> str:
    return files("trapline.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _json(value: Any) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _style(crawls: int) -> str:
    """Colours, strokes, and the rule by which a crawl without a tick is hidden."""
    light = "".join(f".c{at} {{ --c: {colour}; }}\n" for at, colour in enumerate(COLOURS))
    dark = "".join(f".c{at} {{ --c: {colour}; }}\n" for at, colour in enumerate(COLOURS_ON_DARK))
    strokes = "".join(
        f".d{at} .line {{ stroke-dasharray: {' '.join(map(str, stroke)) or 'none'}; }}\n"
        for at, stroke in enumerate(STROKES)
    )
    hidden = "".join(f"body:has(#show{at}:not(:checked)) .k{at} {{ display: none; }}\n" for at in range(crawls))
    return f"{light}@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n{strokes}{hidden}"


def _table(records: Sequence[CrawlRecord], numbers: Sequence[Column]) -> str:
    rows = "\n".join(_row(at, record, numbers) for at, record in enumerate(records))
    groups = "".join(
        f'<th colspan="{len(list(members))}" scope="colgroup">{escape(group)}</th>'
        for group, members in groupby(numbers, key=lambda column: column.group)
    )
    names = "".join(map(_head, numbers, _begins(numbers)))
    strategy = '<th class="strategy" scope="col" data-first="ascending"><button type="button">strategy</button></th>'
    return (
        f'<table>\n<thead>\n<tr class="group"><th class="strategy"></th>{groups}</tr>\n'
        f'<tr class="names">{strategy}{names}</tr>\n</thead>\n<tbody>\n{rows}\n</tbody>\n</table>'
    )


def _bland(column: Column) -> bool:
    """Whether it tells nothing apart; broken rules are told all the same."""
    return column.same and not (column.name == VIOLATIONS and any(column.values))


def _same(numbers: Sequence[Column]) -> str:
    """The columns that tell nothing apart, in one line."""
    found = [f"{escape(one.name)} <b>{escape(one.texts[0])}</b>" for one in numbers if _bland(one)]
    return f'<p class="hint">The same for all: {", ".join(found)}.</p>' if found else ""


def _begins(numbers: Sequence[Column]) -> list[str]:
    """The class of each column: whether a group begins with it."""
    before = [""] + [column.group for column in numbers]
    return ["begins" if column.group != last else "" for column, last in zip(numbers, before, strict=False)]


def _head(column: Column, begins: str) -> str:
    first = "descending" if column.better == HIGH else "ascending"
    button = f'<button type="button" title="{escape(column.about)}">{escape(column.name)}</button>'
    return f'<th class="{begins}" scope="col" data-first="{first}">{button}</th>'


def _row(at: int, record: CrawlRecord, numbers: Sequence[Column]) -> str:
    name = escape(record.strategy)
    pair = f"{escape(record.page_rank)} × {escape(record.site_rank)}"
    cells = "".join(_cell(at, column, begins) for column, begins in zip(numbers, _begins(numbers), strict=True))
    named = f'<span title="{name}: {pair}">{name}<small>{pair}</small></span>'
    head = f'<th class="strategy" scope="row" data-value="{name}"><div>{swatch_svg(at)}{named}</div></th>'
    return f"<tr>{head}{cells}</tr>"


def _cell(at: int, column: Column, begins: str) -> str:
    value = column.values[at]
    best = "best" if at in column.best else ""
    bad = "bad" if column.name == VIOLATIONS and value else ""
    kept = "" if value is None else f"{value:.9g}"
    return (
        f'<td class="{" ".join(filter(None, (begins, best, bad)))}" data-value="{kept}">{escape(column.texts[at])}</td>'
    )


def _legend(records: Sequence[CrawlRecord]) -> str:
    crawls = [
        f'<label data-index="{at}"><input type="checkbox" id="show{at}" checked autocomplete="off">'
        f"{swatch_svg(at)}<span>{escape(record.strategy)}</span></label>"
        for at, record in enumerate(records)
    ]
    references = [
        f'<label class="fixed" data-index="{index}">{swatch_svg(index)}<span>{name}</span></label>'
        for index, name in ((OPTIMUM, "optimum"), (RANDOM, "random order"))
    ]
    return "\n".join(crawls + references)


def _figure(chart: Chart) -> str:
    references = {line.index: line.name for line in chart.lines if line.index < 0}
    grey = [f"{_GREYS[index]}: {name}" for index, name in references.items()]
    caption = ". ".join([chart.y.label[:1].upper() + chart.y.label[1:], *grey, *_one_curve(chart)])
    return f"<figure><figcaption>{escape(chart.title)}<small>{escape(caption)}</small></figcaption>\n{chart_svg(chart)}</figure>"


def _one_curve(chart: Chart) -> Iterable[str]:
    """Which crawls hide each other; if they are most of them, which do not."""
    crawls = [line for line in chart.lines if line.index >= 0]
    for group in chart.together:
        apart = [line.name for line in crawls if line not in group]
        names = [line.name for line in group]
        if len(apart) < len(group):
            yield f"One curve: all but {', '.join(apart)}" if apart else "One curve: all of them"
        else:
            yield f"One curve: {', '.join(names)}"


def _pairs(settings: Mapping[str, object]) -> str:
    return "\n".join(
        f"<div><dt>{escape(str(name))}</dt><dd>{escape(str(value))}</dd></div>" for name, value in settings.items()
    )


def _readings(chart: Chart) -> dict[str, Any]:
    """What the script needs to say which value is under the pointer."""
    return {
        "frame": [LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM],
        "width": WIDTH,
        "top": [chart.x.top, chart.y.top],
        "overTime": not chart.x.unit,
        "xName": chart.x.label.partition(" (")[0] if chart.x.unit else chart.x.label,
        "xUnit": chart.x.unit,
        "yUnit": chart.y.unit,
        "lines": [
            {"index": line.index, "name": line.name, "x": _short(line.x), "y": _short(line.y)} for line in chart.lines
        ],
    }


def _short(values: Floats) -> Iterable[float]:
    """Six digits are more than a plot shows."""
    return [float(f"{value:.6g}") for value in values.tolist()]
