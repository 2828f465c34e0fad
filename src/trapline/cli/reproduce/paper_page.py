"""The HTML page of a reproduced paper, the index page of several, and the line that says how many claims hold."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from trapline.units import counted

if TYPE_CHECKING:
    from trapline.lab.paper import Paper, PaperChart, PaperClaim, PaperItem, PaperTable
    from trapline.report.chart import Chart

HOW_JUDGED = (
    "A claim is judged by one value per web or seed. It holds if the 95 % interval of the mean is on the claimed side, does not "
    "hold if it is on the other side, and is undecided if it includes both. A single value decides nothing. A claim of several "
    "parts holds in part if only some of them hold."
)


def paper_page(paper: "Paper", options: Mapping[str, Any]) -> str:
    from trapline.report.html import PageFrame, filled

    settings = {**options, **{f"web {number}": name for number, name in enumerate(paper.webs, 1)}}
    frame = PageFrame(paper.title, summary(paper), settings, "As given or by default.", [])
    charts = [drawn_chart(chart) for item in paper.items for chart in item.charts]
    rows = [_row(claim, escape(item.name)) for item, claim in paper.claims]
    return filled(
        "paper.html", frame, [], 0, charts,
        how_judged=escape(HOW_JUDGED),
        claims=_claims(rows),
        items="\n".join(map(_section, paper.items)),
    )  # fmt: skip


def index_page(papers: "Sequence[Paper]", options: Mapping[str, Any]) -> str:
    """Return a page with all claims of the papers, each with a link to its item on the page of the paper."""
    from trapline.report.html import PageFrame, filled

    frame = PageFrame("Reproduced papers", verdicts(papers), options, "As given or by default.", [])
    rows = [
        _row(claim, f'<a href="{paper.name}.html#{_anchor(item)}">{escape(f"{paper.name}, {item.name}")}</a>')
        for paper in papers
        for item, claim in paper.claims
    ]
    return filled(
        "paper.html", frame, [], 0, [],
        how_judged=escape(HOW_JUDGED),
        claims=_claims(rows),
        items="\n".join(map(_about, papers)),
    )  # fmt: skip


def _about(paper: "Paper") -> str:
    """Return the section of a paper on the index page: how many claims hold, and what was not run."""
    omitted = [f"{item.name} ({' '.join(item.notes)})" for item in paper.items if not item.claims]
    missing = f'<p class="hint">Not run: {escape("; ".join(omitted))}</p>' if omitted else ""
    link = f'<a href="{paper.name}.html">{escape(paper.title)}</a>'
    return f"<section>\n<h2>{link}</h2>\n<p>{escape(verdicts([paper]))}</p>\n{missing}</section>"


def _claims(rows: Sequence[str]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in ("verdict", "item", "claim", "published", "ours"))
    body = "\n".join(rows)
    return f'<table class="claims">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>'


def _row(claim: "PaperClaim", item: str) -> str:
    return (
        f'<tr><td class="{claim.verdict.replace(" ", "-")}">{escape(claim.verdict)}</td><td class="text">{item}</td>'
        f'<td class="text">{escape(claim.text)}<small>{escape(claim.reason)}</small></td>'
        f'<td class="text" data-name="published">{escape(claim.published)}</td>'
        f'<td class="text" data-name="ours">{escape(claim.ours)}</td></tr>'
    )


def _anchor(item: "PaperItem") -> str:
    return re.sub(r"[^a-z0-9]+", "-", f"{item.name} {item.title}".lower()).strip("-")


def _section(item: "PaperItem") -> str:
    from trapline.report.html import figure

    tables = "\n".join(map(_table, item.tables))
    figures = "\n".join(figure(drawn_chart(chart), key=True) for chart in item.charts)
    notes = "".join(f'<p class="hint">{escape(note)}</p>' for note in item.notes)
    plots = f'<div class="charts">\n{figures}\n</div>' if figures else ""
    head = f'<h2>{escape(item.name)}: {escape(item.title)}</h2>\n<p class="hint">{escape(item.setting)}</p>'
    return f'<section id="{_anchor(item)}">\n{head}\n{tables}\n{plots}\n{notes}</section>'


def _table(table: "PaperTable") -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        first, *others = cells
        return f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in others)}</tr>'

    head, rows = row(table.head, "th"), "\n".join(row(cells, "td") for cells in table.rows)
    return (
        f'<div class="scroll" tabindex="0"><table class="grid">\n<caption>{escape(table.title)}</caption>\n'
        f"<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def drawn_chart(chart: "PaperChart") -> "Chart":
    import numpy as np

    from trapline.report.chart import OPTIMUM, Axis, Chart, ChartLine, axis

    spreads = {name: np.asarray(values, np.float64) for name, values in chart.spreads.items()}
    lines = [
        ChartLine(
            OPTIMUM if name == chart.reference else index,
            name,
            np.asarray(x, np.float64),
            np.asarray(y, np.float64),
            spread=spreads.get(name),
        )
        for index, (name, (x, y)) in enumerate(chart.curves.items())
    ]
    top_x, top_y = (max(float(np.max(side)) for side in sides) for sides in zip(*chart.curves.values(), strict=True))

    def named(label: str, names: Sequence[str]) -> Axis:
        return Axis(label, len(names) - 1.0, names=tuple(names))

    return Chart(
        chart.name,
        chart.title,
        "",
        named(chart.x_label, chart.x_names) if chart.x_names else axis(chart.x_label, top_x, chart.x_unit, tight=True),
        named(chart.y_label, chart.y_names) if chart.y_names else axis(chart.y_label, top_y, chart.y_unit),
        lines,
    )


# ---- how many claims hold


def summary(paper: "Paper") -> str:
    """Return how many claims hold, in part or not, in one line."""
    return f"{paper.name}: {verdicts([paper])}"


def verdicts(papers: "Sequence[Paper]") -> str:
    """Return how many claims of the papers there are, and how many hold, in part or not."""
    found = Counter(claim.verdict for paper in papers for _, claim in paper.claims)
    parts = ", ".join(f"{found[verdict]} {text}" for verdict, text in _COUNTED.items() if found[verdict])
    return f"{counted(sum(found.values()), 'claim')}: {parts}."


_COUNTED = {
    "holds": "hold",
    "holds in part": "hold in part",
    "does not hold": "do not hold",
    "undecided": "undecided",
}
