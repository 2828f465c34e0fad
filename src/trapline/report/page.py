"""The HTML page that compares crawls: a table of all numbers, and plots.

This module turns records into text. `table.py` and `chart.py` decide what the page says; `html.py` has its parts.
Strategies are hidden by CSS.
"""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby

from trapline.report.breakdown_chart import every_chart
from trapline.report.chart import OPTIMUM, RANDOM
from trapline.report.html import Headline, PageFrame, filled, head_cell, headline, number_cell
from trapline.report.record import CrawlRecord
from trapline.report.svg import swatch_svg
from trapline.report.table import VIOLATIONS, Column, Grid, columns, comparable, grids
from trapline.units import duration, three_digits

_MOST_HEADLINES = 6


def compare_page(
    records: Sequence[CrawlRecord],
    title: str,
    subtitle: str = "",
    settings: Mapping[str, object] | None = None,
    settings_hint: str = "As options that can be typed.",
) -> str:
    """Return the page. The records should be of crawls of the same web; `settings` are the settings that all of them share."""
    numbers = columns(records)
    return filled(
        "page.html",
        PageFrame(title, subtitle, settings or {}, settings_hint, numbers),
        every_chart(records),
        len(records),
        headlines=_headlines(records),
        grids="\n".join(map(_grid, grids(records))),
        table=_table(records, [column for column in numbers if not _bland(column)]),
        same=_same(numbers),
        legend=_legend(records),
    )


def _headlines(records: Sequence[CrawlRecord]) -> str:
    """Return a headline for each crawl with what it fetched, if the crawls differ in that and are few."""
    if comparable(records) or len(records) > _MOST_HEADLINES:
        return ""
    shown = (
        Headline(
            f"{three_digits(record.quality_fetched * 100)} %",
            f"of the {record.quality}",
            f"{record.name}: {record.pages_fetched:,} pages in {duration(record.simulated_seconds)}",
        )
        for record in records
    )
    items = "\n".join(map(headline, shown))
    return f'<ul class="headlines">\n{items}\n</ul>'


def _table(records: Sequence[CrawlRecord], numbers: Sequence[Column]) -> str:
    rows = "\n".join(_row(at, record, numbers) for at, record in enumerate(records))
    groups = "".join(
        f'<th colspan="{len(list(members))}" scope="colgroup">{escape(group)}</th>'
        for group, members in groupby(numbers, key=lambda column: column.group)
    )
    names = "".join(map(head_cell, numbers, _begins(numbers)))
    strategy = '<th class="strategy" scope="col" data-first="ascending"><button type="button">'
    strategy += f"{'crawl' if records[0].variant else 'strategy'}</button></th>"
    return (
        f'<table>\n<thead>\n<tr class="group"><th class="strategy"></th>{groups}</tr>\n'
        f'<tr class="names">{strategy}{names}</tr>\n</thead>\n<tbody>\n{rows}\n</tbody>\n</table>'
    )


def _grid(grid: Grid) -> str:
    """Return a table of one measure by two options."""
    heads = "".join(f'<th scope="col">{escape(text)}</th>' for text in grid.columns)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(head)}</th>{"".join(f"<td>{escape(text)}</td>" for text in cells)}</tr>'
        for head, cells in zip(grid.rows, grid.cells, strict=True)
    )
    corner = f"{escape(grid.row_option)} \\ {escape(grid.column_option)}"
    return (
        f'<div class="scroll"><table class="grid">\n<caption>{escape(grid.title)}</caption>\n'
        f"<thead><tr><th>{corner}</th>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def _bland(column: Column) -> bool:
    """Return whether a column has the same value for all crawls. A column of broken rules is never bland."""
    return column.same and not (column.name == VIOLATIONS and any(column.values))


def _same(numbers: Sequence[Column]) -> str:
    """Return one line with the columns that have the same value for all crawls."""
    found = [f"{escape(column.name)} <b>{escape(column.texts[0])}</b>" for column in numbers if _bland(column)]
    return f'<p class="hint">The same for all: {", ".join(found)}.</p>' if found else ""


def _begins(numbers: Sequence[Column]) -> list[str]:
    """Return the CSS class of each column, which marks the first column of a group."""
    before = [""] + [column.group for column in numbers]
    return ["begins" if column.group != last else "" for column, last in zip(numbers, before, strict=False)]


def _row(at: int, record: CrawlRecord, numbers: Sequence[Column]) -> str:
    name = escape(record.name)
    pair = f"{escape(record.page_rank)} × {escape(record.site_rank)}" if record.page_rank else ""
    cells = "".join(
        number_cell(at, column, begins, column.name == VIOLATIONS and bool(column.values[at]))
        for column, begins in zip(numbers, _begins(numbers), strict=True)
    )
    named = f'<span title="{name} {pair}">{name}<small>{pair}</small></span>'
    head = f'<th class="strategy" scope="row" data-value="{name}"><div>{swatch_svg(at)}{named}</div></th>'
    return f"<tr>{head}{cells}</tr>"


def _legend(records: Sequence[CrawlRecord]) -> str:
    crawls = [
        f'<label data-index="{at}"><input type="checkbox" id="show{at}" checked autocomplete="off">'
        f"{swatch_svg(at)}<span>{escape(record.name)}</span></label>"
        for at, record in enumerate(records)
    ]
    references = [
        f'<label class="fixed" data-index="{index}">{swatch_svg(index)}<span>{name}</span></label>'
        for index, name in ((OPTIMUM, "optimum"), (RANDOM, "random order"))
    ]
    return "\n".join(crawls + references)
