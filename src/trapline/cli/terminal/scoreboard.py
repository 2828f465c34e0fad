"""A table of crawls for the terminal: a few numbers per crawl, one unit per column, the best value marked.

The report's `Column` decides which value is the best. This module knows the width of the terminal. The HTML report shows all numbers.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trapline.terminal import say
from trapline.units import three_digits, time_unit

if TYPE_CHECKING:
    from trapline.report import CrawlRecord
    from trapline.report.table import Column, Grid

    Records = Sequence[CrawlRecord]

BEST = "*"
_HARVEST = "harvest"  # begins the heading of a harvest rate
_FEW = 0.01  # share of the pages
_ALL = 0.9995  # shown as 100.0 %


def scoreboard(records: "Records") -> str:
    """Return a table with one row per crawl and as many columns as fit, followed by notes on the columns."""
    shown = _columns(records)
    while len(shown) > 1 and max(map(len, _lines(records, shown))) >= shutil.get_terminal_size().columns:
        shown.pop()  # the last column is the least important
    return "\n".join((*_lines(records, shown), "", *_notes(records, shown)))


def _columns(records: "Records") -> list["Column"]:
    """Return all columns, the most important first. If the crawls fetched different pages, that is what they fetched."""
    from trapline.report.table import comparable

    order, share, odd, cost = (list(some(records)) for some in (_order, _share, _odd, _cost))
    if comparable(records):
        return [*order, *share, _half_time(records), *_time(records), *odd, *cost]
    others = [replace(column, better=0) for column in (*_time(records), *order)]
    return [*share, *odd, *(column for column in others if not column.same), *cost]


def grid_text(grid: "Grid") -> str:
    """Return a table of one measure by two options: rows of one, columns of the other."""
    corner = f"{grid.row_option} \\ {grid.column_option}"
    lines = [(corner, *grid.columns), *((head, *cells) for head, cells in zip(grid.rows, grid.cells, strict=True))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = (" ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join((grid.title, *rows))


def web_name(graph: Path) -> str:
    """Return the name of a graph for headings.

    >>> web_name(Path("/webs/uk-2002")), web_name(Path("/webs/evo/1"))
    ('uk-2002', 'evo/1')
    """
    # A file name may contain any bytes; pictures and JSON need valid text.
    parts = [os.fsencode(part).decode(errors="replace") for part in graph.resolve().parts]
    return "/".join(parts[-2:]) if parts[-1].isdecimal() and len(parts) > 2 else parts[-1]


def say_if_few(records: "Records") -> None:
    """Warn of a crawl that ended almost at once: that is rarely intended, and the numbers do not show it."""
    for record in records:
        if not record.drained and record.pages_fetched == 0:
            say(f"{record.name} fetched no page in its time; give it more: --max-time TIME", err=True)
            return
        if record.drained and record.pages_fetched < _FEW * record.pages:
            end = f"{record.name} ended after {record.pages_fetched:,} of {record.pages:,} pages"
            say(
                f"{end}: no other page can be reached from its seeds within its limits; give other seeds: --seeds FILE",
                err=True,
            )
            return


def _quality_name(records: "Records") -> str:
    return "PageRank" if records[0].quality == "PageRank" else "quality"


def _same_pages(records: "Records") -> bool:
    """Return whether the crawls fetched the same pages, judged by number and total quality."""
    return len({(record.pages_fetched, round(record.quality_fetched, 9)) for record in records}) == 1


def _column(heading: str, values: Sequence[float | None], text: Callable[[float], str], better: int = 0) -> "Column":
    """Return a column. `heading`: lines separated by line breaks; `better`: 1 if more is better, -1 if less is better."""
    from trapline.report.table import Column

    # Values are compared as shown: of two values that look the same, neither is better.
    texts = ["-" if value is None else text(value) for value in values]
    of_text = dict(zip(texts, values, strict=True))
    return Column("", heading, "", [of_text[text] for text in texts], texts, better)


def _order(records: "Records") -> Iterator["Column"]:
    values = [record.average_cumulative_pagerank for record in records]
    pagerank = _column("average\ncumul.\nPageRank", values, "{:.3f}".format, 1)
    if not _has_harvest(records):
        yield pagerank
    if records[0].quality != "PageRank":
        yield _column("average\ncumul.\nquality", [r.average_cumulative_quality for r in records], "{:.3f}".format, 1)
    if _has_harvest(records):  # the user asked for a quality, so that PageRank is less important
        yield from _harvest(records)
        yield pagerank
    yield _column("Kendall's\ntau", [r.kendall_tau for r in records], "{:.3f}".format, 1)


def _has_harvest(records: "Records") -> bool:
    """Return whether the pages have qualities of their own, by which the harvest rate is counted."""
    return records[0].harvest_quality is not None and records[0].harvest_share is not None


def _harvest(records: "Records") -> Iterator["Column"]:
    for share in records[0].harvest_rate:
        heading = f"{_HARVEST}\nrate at\n{share.replace('%', ' %')}"
        yield _column(heading, [r.harvest_rate[share] * 100 for r in records], "{:.1f}".format, 1)


def _share(records: "Records") -> Iterator["Column"]:
    if not _same_pages(records) or records[0].quality_fetched < _ALL:
        heading = f"% of all\n{_quality_name(records)}\nfetched"
        yield _column(heading, [r.quality_fetched * 100 for r in records], "{:.1f}".format, 1)


def _half_time(records: "Records") -> "Column":
    half = [record.seconds_until["50%"] for record in records]
    return _time_column(f"time to\n50 % of\n{_quality_name(records)}\n({{}})", half)


def _time(records: "Records") -> Iterator["Column"]:
    yield _time_column("time to\nthe end\nof crawl\n({})", [record.simulated_seconds for record in records])
    if any(record.closeness is not None for record in records):
        yield _column("T* / T", [record.closeness for record in records], "{:.3f}".format, 1)
    if any(record.speed_up is not None for record in records):
        yield _column("speed-\nup", [record.speed_up for record in records], "{:,.1f}".format, 1)


def _time_column(heading: str, seconds: Sequence[float]) -> "Column":
    """Return a column in the unit that fits the median: in the unit of the longest time, short times could be small fractions."""
    unit = time_unit(sorted(seconds)[len(seconds) // 2])
    return _column(heading.format(unit.sign), seconds, lambda time: three_digits(time / unit.seconds), -1)


def _odd(records: "Records") -> Iterator["Column"]:
    """Yield columns that are shown only if something is unusual."""
    if len({record.pages_fetched for record in records}) > 1:
        yield _column("pages\nfetched", [record.pages_fetched for record in records], "{:,}".format, 1)
    if any(record.politeness_violations for record in records):
        yield _column("rules\nbroken", [record.politeness_violations for record in records], "{:,}".format)


def _cost(records: "Records") -> Iterator["Column"]:
    yield _column("loop\n(s)", [record.wall_seconds for record in records], "{:.2f}".format)


def _notes(records: "Records", shown: Sequence["Column"]) -> Iterator[str]:
    from trapline.report.table import comparable

    if any(map(_marked, shown)):
        yield f"{BEST} best value of the column."
    if not comparable(records):
        yield "The crawls fetched different pages, so no best value is marked for order and time."
    elif any(record.quality_fetched < _ALL for record in records):
        yield f"Time to 50 %: until the crawl has half of the {_quality_name(records)} that it has at its end."
    whose = "" if _same_pages(records) else f" of the pages of {records[0].name}"
    optimum = records[0].optimal_average_cumulative_pagerank
    yield f"Average cumulative PageRank: random order 0.5, optimum{whose} {optimum:.3f}."
    if records[0].quality != "PageRank":
        best = records[0].optimal_average_cumulative_quality
        yield f"Average cumulative quality: by {records[0].quality}, optimum{whose} {best:.3f}."
    if any(column.name.startswith(_HARVEST) for column in shown):
        yield (
            f"Harvest rate: percent of the first pages fetched with a quality of at least {records[0].harvest_quality:.3g}; "
            f"of all pages, {records[0].harvest_share:.1%}."
        )
    if any(column.name == "T* / T" for column in shown):
        yield "T* / T: optimal time / time taken; 1 if the link was always saturated."
    if any(column.name == "speed-\nup" for column in shown):
        yield "Speed-up: pages per second, relative to one connection with unlimited bandwidth."


def _marked(column: "Column") -> set[int]:
    """Return the best rows, or none if these are more than half of the rows: a mark would then say little."""
    return column.best if 2 * len(column.best) <= len(column.texts) else set()


def _cells(column: "Column") -> list[str]:
    """Return the texts with their marks, aligned at the decimal point."""
    marked, tails = _marked(column), [len("".join(text.partition(".")[1:])) for text in column.texts]
    return [
        text + (BEST if row in marked else " ") + " " * (max(tails) - tails[row])
        for row, text in enumerate(column.texts)
    ]


def _lines(records: "Records", shown: Sequence["Column"]) -> Iterator[str]:
    """Yield the lines of the table: headings aligned at the bottom, names to the left, numbers to the right."""
    columns = [(["crawl" if records[0].variant else "strategy"], [record.name for record in records])]
    columns += [(column.name.split("\n"), _cells(column)) for column in shown]
    height = max(len(heading) for heading, _ in columns)
    filled = [[*[""] * (height - len(heading)), *heading, *cells] for heading, cells in columns]
    widths = [max(map(len, cells)) for cells in filled]
    for name, *numbers in zip(*filled, strict=True):
        padded = (f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:], strict=True))
        yield " ".join((f"{name:{widths[0]}}", *padded)).rstrip()
