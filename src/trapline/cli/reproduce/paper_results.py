"""The output of a reproduced paper: a table of its claims in the terminal, an HTML page, one PNG per chart, and JSON."""

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trapline.output import write_bytes, write_json, write_text
from trapline.terminal import say, say_text
from trapline.units import counted

if TYPE_CHECKING:
    from trapline.lab.paper import Paper, PaperChart, PaperItem, PaperTable
    from trapline.report.chart import Chart

HOW_JUDGED = (
    "A claim is judged by one value per web or seed. It holds if the 95 % interval of the mean is on the claimed side, does not "
    "hold if it is on the other side, and holds in part if it includes both or if only some parts of the claim hold. A single web "
    "decides nothing."
)
_NARROW, _WIDE = 14, 100


def show(paper: "Paper") -> None:
    """Print the tables, then each claim with its verdict, and how many hold."""
    for item in paper.items:
        say(f"{item.name}. {item.title}")
        say_text(textwrap.fill(item.setting, _WIDE, initial_indent="  ", subsequent_indent="  "))
        for table in item.tables:
            _show_table(table)
        for claim in item.claims:
            say_text(
                _wrapped(
                    f"  {claim.verdict:{_NARROW}} ", f"{claim.text}. Published: {claim.published}. Ours: {claim.ours}"
                )
            )
            if claim.reason:
                say_text(_wrapped(" " * (_NARROW + 3), claim.reason))
        for note in item.notes:
            say_text(_wrapped("  ", note))
        say("")
    say(summary(paper))


def summary(paper: "Paper") -> str:
    """Return how many claims hold, in part or not, in one line."""
    found = Counter(claim.verdict for _, claim in paper.claims)
    parts = ", ".join(f"{found[verdict]} {text}" for verdict, text in _COUNTED.items() if found[verdict])
    return f"{paper.name}: {counted(len(paper.claims), 'claim')}: {parts}."


_COUNTED = {
    "holds": "hold",
    "holds in part": "hold in part",
    "does not hold": "do not hold",
    "undecided": "are undecided",
}


def _wrapped(head: str, text: str) -> str:
    return textwrap.fill(text, _WIDE, initial_indent=head, subsequent_indent=" " * len(head))


def _show_table(table: "PaperTable") -> None:
    say(f"  {table.title}")
    lines = [table.head, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = "".join(f"  {cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        say(f"  {first:{widths[0]}}{cells}")


def write(paper: "Paper", folder: Path, options: Mapping[str, Any]) -> None:
    """Write the page, the plots and the numbers into the folder."""
    from trapline import __version__
    from trapline.report.plot import chart_png

    body = {"trapline": __version__, "paper": paper.name, "options": dict(options), **asdict(paper)}
    write_json(folder / f"{paper.name}.json", body)
    write_text(folder / f"{paper.name}.html", _page(paper, options))
    for item in paper.items:
        for chart in item.charts:
            drawn = _chart(chart)
            write_bytes(
                folder / f"{paper.name}-{chart.name}.png",
                chart_png(drawn, drawn.title, f"{item.name}\n{_short(item.setting)}"),
            )


def _short(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 79))


def _page(paper: "Paper", options: Mapping[str, Any]) -> str:
    from trapline.report.html import PageFrame, filled

    settings = {**options, **{f"web {number}": name for number, name in enumerate(paper.webs, 1)}}
    frame = PageFrame(paper.title, summary(paper), settings, "As given or by default.", [])
    charts = [_chart(chart) for item in paper.items for chart in item.charts]
    return filled(
        "paper.html", frame, [], 0, charts,
        how_judged=escape(HOW_JUDGED),
        claims=_claims(paper),
        items="\n".join(map(_section, paper.items)),
    )  # fmt: skip


def _claims(paper: "Paper") -> str:
    rows = "\n".join(
        f'<tr><td class="{claim.verdict.replace(" ", "-")}">{escape(claim.verdict)}</td><td class="text">{escape(item.name)}</td>'
        f'<td class="text">{escape(claim.text)}<small>{escape(claim.reason)}</small></td>'
        f'<td class="text">{escape(claim.published)}</td><td class="text">{escape(claim.ours)}</td></tr>'
        for item, claim in paper.claims
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("verdict", "item", "claim", "published", "ours"))
    return f'<table class="claims">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>'


def _section(item: "PaperItem") -> str:
    from trapline.report.html import figure

    tables = "\n".join(map(_table, item.tables))
    figures = "\n".join(figure(_chart(chart), key=True) for chart in item.charts)
    notes = "".join(f'<p class="hint">{escape(note)}</p>' for note in item.notes)
    plots = f'<div class="charts">\n{figures}\n</div>' if figures else ""
    title = f"{escape(item.name)}: {escape(item.title)}"
    return (
        f'<section>\n<h2>{title}</h2>\n<p class="hint">{escape(item.setting)}</p>\n{tables}\n{plots}\n{notes}</section>'
    )


def _table(table: "PaperTable") -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        first, *others = cells
        return f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in others)}</tr>'

    head, rows = row(table.head, "th"), "\n".join(row(cells, "td") for cells in table.rows)
    return (
        f'<div class="scroll" tabindex="0"><table class="grid">\n<caption>{escape(table.title)}</caption>\n'
        f"<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def _chart(chart: "PaperChart") -> "Chart":
    import numpy as np

    from trapline.report.chart import OPTIMUM, Chart, ChartLine, axis

    lines = [
        ChartLine(
            OPTIMUM if name == chart.reference else index, name, np.asarray(x, np.float64), np.asarray(y, np.float64)
        )
        for index, (name, (x, y)) in enumerate(chart.curves.items())
    ]
    top_x, top_y = (max(float(np.max(side)) for side in sides) for sides in zip(*chart.curves.values(), strict=True))
    return Chart(
        chart.name,
        chart.title,
        "",
        axis(chart.x_label, top_x, chart.x_unit, tight=True),
        axis(chart.y_label, top_y, chart.y_unit),
        lines,
    )
