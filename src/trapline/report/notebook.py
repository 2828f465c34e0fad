"""Results in notebooks, which show the HTML that `_repr_html_` of an object returns: tables, and charts as images.

Tables have no style of their own, so that they look like all tables of the notebook, light or dark. A chart is an image: its style
cannot reach the notebook, and no script in it would run. All text is escaped.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from trapline.crawler.files.layout import DATABASE, connect
from trapline.parallel.folder.folder_status import status_of_folder
from trapline.report.chart import Chart, quality_by_pages
from trapline.report.html import line_styles
from trapline.report.live_page import pages_over_time
from trapline.report.live_record import moments_of
from trapline.report.record import CrawlRecord
from trapline.report.svg import HEIGHT, LEFT, WIDTH, chart_svg, swatch_svg
from trapline.report.table import WALL, Column, columns
from trapline.units import bytes_shown, duration, number

_HEAD, _GAP, _ROW, _MARGIN = 40, 14, 24, 24  # pixels above, below and right of a chart, and of a line of its legend
_WIDTH = WIDTH + _MARGIN
_LEGEND_COLUMNS, _MOST_NAME = 2, 36
_NOT_SHOWN = ("sites", "locality (%)", "processor (%)")  # groups of columns that would make a table too wide
_STYLED = (".chart", ".grid", ".line", ".marker", ".optimum", ".random")
_FONT = 'text { font: 15px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; fill: var(--ink); }'
_OWN_STYLE = f"{_FONT} .paper {{ fill: var(--paper); }} .title {{ font-weight: 600; }}"
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def pairs_table(rows: Iterable[tuple[str, str]], caption: str) -> str:
    """Return a table with a name and a value in each row."""
    cells = "".join(
        f'<tr><th scope="row" style="text-align: left">{_text(name)}</th><td style="text-align: right">{_text(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table>{_caption(caption)}<tbody>{cells}</tbody></table>"


def chart_image(chart: Chart) -> str:
    """Return a chart as an image. It follows the colours that the reader prefers, light or dark."""
    picture = base64.b64encode(image_svg(chart).encode("utf-8")).decode("ascii")
    alt = _text(f"{chart.title}: {chart.y.label} against {chart.x.label}")
    return f'<img alt="{alt}" width="{_WIDTH}" style="max-width: 100%" src="data:image/svg+xml;base64,{picture}">'


def image_svg(chart: Chart) -> str:
    """Return a chart with its title and a legend as a file of its own."""
    rows = -(-len(chart.lines) // _LEGEND_COLUMNS) if len(chart.lines) > 1 else 0
    height = _HEAD + HEIGHT + _GAP + rows * _ROW
    parts = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">',
        f"<style>{_style()}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
        f'<text class="title" x="{LEFT}" y="26">{_text(chart.title)}</text>',
        f'<svg y="{_HEAD}" width="{WIDTH}" height="{HEIGHT}" overflow="visible">{chart_svg(chart)}</svg>',
        *(_legend(chart) if rows else ()),
        "</svg>",
    )
    return _NOT_IN_XML.sub("\ufffd", "".join(parts))


def _legend(chart: Chart) -> Iterator[str]:
    for at, line in enumerate(chart.lines):
        row, column = divmod(at, _LEGEND_COLUMNS)
        x, y = LEFT + column * (WIDTH - LEFT) // _LEGEND_COLUMNS, _HEAD + HEIGHT + _GAP + row * _ROW
        name = line.name if len(line.name) <= _MOST_NAME else f"{line.name[: _MOST_NAME - 1]}\u2026"
        yield f'<svg x="{x}" y="{y}" width="44" height="14">{swatch_svg(line.index)}</svg>'
        yield f'<text x="{x + 52}" y="{y + 12}">{_text(name)}</text>'


def _style() -> str:
    """Return the rules of reports that concern charts: the colours of both schemes, and the looks of lines."""
    rules = files("trapline.report").joinpath("page.css").read_text(encoding="utf-8")
    colours, others = rules.split("* {", 1)
    looks = "\n".join(line for line in others.splitlines() if line.startswith(_STYLED))
    return f"{colours}{looks}\n{line_styles()}{_OWN_STYLE}"


# ---- Simulated crawls.


def result_html(record: CrawlRecord, web: str) -> str:
    """Return the numbers of a crawl, and its quality against pages."""
    rows = [(_name(column), column.texts[0]) for column in _shown([record])]
    return pairs_table(rows, f"{record.name} on {web}: {record.web_size}") + chart_image(quality_by_pages([record]))


def comparison_html(records: Sequence[CrawlRecord], web: str, failed: Sequence[str]) -> str:
    """Return one row per crawl with its numbers, the best ones marked, and a chart with one curve per crawl."""
    if not records:
        return f"<p>{_text(f'no crawl of {web} was finished')}</p>"
    shown = _shown(records)
    head = "".join(f'<th scope="col" title="{_text(column.about)}">{_text(_name(column))}</th>' for column in shown)
    body = "".join(f"<tr>{_crawl_cells(at, record, shown)}</tr>" for at, record in enumerate(records))
    caption = f"Crawls of {web}: {records[0].web_size}; the best values are bold"
    table = f"<table>{_caption(caption)}<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"
    failures = f"<p>{_text('failed: ' + ', '.join(failed))}</p>" if failed else ""
    return f'<div style="overflow-x: auto">{table}</div>{failures}{chart_image(quality_by_pages(records))}'


def _crawl_cells(at: int, record: CrawlRecord, shown: Sequence[Column]) -> str:
    name = f'<th scope="row" style="text-align: left; white-space: nowrap">{_text(record.name)}</th>'
    return name + "".join(f"<td>{_marked(column, at)}</td>" for column in shown)


def _marked(column: Column, at: int) -> str:
    text = _text(column.texts[at])
    return f"<strong>{text}</strong>" if at in column.best else text


def _shown(records: Sequence[CrawlRecord]) -> list[Column]:
    every = [column for column in columns(records) if column.group not in _NOT_SHOWN and column.name != WALL]
    return [column for column in every if not column.group.startswith("pages until") and "\u00b1" not in column.name]


def _name(column: Column) -> str:
    """Return the name of a column with its group, if the group has a gap for it."""
    if "\u2026" not in column.group:
        return column.name
    return column.group.replace("\u2026", column.name) if "%" in column.name else column.group.partition(" until")[0]


# ---- Live crawls.


def folder_html(folder: Path) -> str:
    """Return the numbers of a crawl in a folder as of its last commit, and its pages over time."""
    found = status_of_folder(folder)
    rows = [
        ("state", f"{found.state} ({found.stopped_by})" if found.stopped_by else found.state),
        ("pages", f"{found.pages:,} of {found.known:,} known"),
        ("waiting pages", f"{found.waiting:,}"),
        ("sites", f"{found.sites:,}"),
        ("errors", f"{found.errors:,}"),
        ("received", bytes_shown(found.bytes)),
        ("time of crawling", duration(found.seconds)),
        ("pages per second", number(found.pages_per_second)),
        ("strategy", found.strategy),
    ]
    return pairs_table(rows, str(folder)) + _progress_image(folder)


def _progress_image(folder: Path) -> str:
    """Return the pages over time. A crawl of several processes has them when its database is merged."""
    if not (folder / DATABASE).is_file():
        return ""
    with closing(connect(folder)) as database:
        moments = moments_of(database)
    return chart_image(pages_over_time(moments)) if moments.pages[-1] else ""


def summary_html(summary: Mapping[str, Any], caption: str) -> str:
    """Return the numbers of a crawl without a folder, from its summary."""
    rows = [
        ("stopped by", str(summary["stopped_by"])),
        ("pages", f"{summary['pages_fetched']:,} of {summary['urls_known']:,} known"),
        ("sites", f"{summary['sites']:,}"),
        ("errors", f"{summary['errors']:,}"),
        ("received", bytes_shown(summary["bytes"])),
        ("time of crawling", duration(summary["seconds"])),
        ("pages per second", number(summary["pages_per_second"])),
        ("strategy", str(summary["strategy"])),
    ]
    return pairs_table(rows, caption)


def _caption(text: str) -> str:
    return f'<caption style="text-align: left">{_text(text)}</caption>'


def _text(text: str) -> str:
    return escape(_NOT_IN_XML.sub("\ufffd", text))
