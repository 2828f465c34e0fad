"""Crawls side by side on a terminal: the columns of the report's table that fit there, the best value of each marked.

What a column means and which value is the best is decided in `report.table`; it knows how wide a terminal is.
"""

import shutil
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trapline.report import CrawlRecord
    from trapline.report.table import Column

BEST = "*"
_HEADING = 9  # letters a line: the columns below it need as many


def scoreboard(records: Sequence["CrawlRecord"]) -> str:
    """A row for each crawl, with as many columns as fit, and below it what they mean."""
    from trapline.report.table import columns

    shown = [column for column in columns(records) if _is_shown(column, records)]
    while len(shown) > 1 and _too_wide(records, shown):
        shown.pop()  # they stand in order of importance; compare.html has them all
    return "\n".join((*_lines(records, shown), "", *_notes(records, shown)))


def _too_wide(records: Sequence["CrawlRecord"], shown: Sequence["Column"]) -> bool:
    return max(map(len, _lines(records, shown))) >= shutil.get_terminal_size().columns


def web_size(record: "CrawlRecord") -> str:
    return f"{record.pages:,} pages, {record.links:,} links, {record.sites:,} sites"


def _is_shown(column: "Column", records: Sequence["CrawlRecord"]) -> bool:
    """What matters most; what should be the same for all, or nothing, only if it is not."""
    from trapline.report.table import VIOLATIONS

    if column.name in ("pages", "refused"):
        return len(set(column.values)) > 1
    if column.name == VIOLATIONS:
        return any(column.values)
    quality = records[0].quality
    always = ("avg. cum. PageRank", f"avg. cum. {quality}", "Kendall's tau", f"50 % of {quality}", "whole crawl")
    return column.name in (*always, "T* / T", "wall s")


def _heading(column: "Column") -> list[str]:
    unit = column.group.removeprefix("time ") if column.group.startswith("time ") else ""
    return wrap(f"{column.name} {unit}", _HEADING, break_long_words=False)


def _cells(column: "Column") -> list[str]:
    best = column.best
    return [text + (BEST if row in best else " ") for row, text in enumerate(column.texts)]


def _notes(records: Sequence["CrawlRecord"], shown: Sequence["Column"]) -> Iterator[str]:
    if any(column.best for column in shown):
        yield f"{BEST} the best of its column."
    optimum = records[0].optimal_average_cumulative_pagerank
    yield f"avg. cum. PageRank: random order 0.5, optimum {optimum:.4f}."
    if records[0].optimal_seconds is not None:
        yield "T* / T: 1 if the link was always full."


def _lines(records: Sequence["CrawlRecord"], shown: Sequence["Column"]) -> Iterator[str]:
    """Headings stand at the bottom of their column; names to the left, numbers to the right."""
    columns = [(["strategy"], [record.strategy for record in records])]
    columns += [(_heading(column), _cells(column)) for column in shown]
    height = max(len(heading) for heading, _ in columns)
    filled = [[*[""] * (height - len(heading)), *heading, *cells] for heading, cells in columns]
    widths = [max(map(len, cells)) for cells in filled]
    for row in zip(*filled, strict=True):
        name, *numbers = row
        padded = (f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:], strict=True))
        yield " ".join((f"{name:{widths[0]}}", *padded)).rstrip()
