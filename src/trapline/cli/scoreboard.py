"""Crawls side by side on a terminal: which numbers of a record are shown, in which unit, and which way is better."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trapline.cli.numbers import time_unit
from trapline.cli.table import BEST, Column, compared

if TYPE_CHECKING:
    from trapline.report import CrawlRecord


def scoreboard(records: Sequence["CrawlRecord"]) -> str:
    """A row for each crawl, and below it what a mark and the first column mean."""
    optimum = records[0].optimal_average_cumulative_pagerank
    table = compared([record.strategy for record in records], records, _columns(records))
    mark = f"{BEST} best of its column. " if len(records) > 1 else ""
    return f"{table}\n\n{mark}Average cumulative PageRank: random order 0.500, optimum {optimum:.3f}."


def web_size(record: "CrawlRecord") -> str:
    return f"{record.pages:,} pages, {record.links:,} links, {record.sites:,} sites"


def _columns(records: Sequence["CrawlRecord"]) -> list[Column]:
    return [*_order_columns(records), *_time_columns(records), *_odd_columns(records)]


def _order_columns(records: Sequence["CrawlRecord"]) -> list[Column]:
    columns = [
        Column(("average", "cumulative", "PageRank"), lambda r: r.average_cumulative_pagerank, "{:.3f}".format, 1),
        Column(("Kendall's", "tau"), lambda r: r.kendall_tau, "{:.3f}".format, 1),
    ]
    if records[0].quality != "PageRank":
        heading = "average", "cumulative", "quality"
        columns.insert(1, Column(heading, lambda r: r.average_cumulative_quality, "{:.3f}".format, 1))
    return columns


def _time_columns(records: Sequence["CrawlRecord"]) -> list[Column]:
    unit, length = time_unit(max(record.simulated_seconds for record in records))

    def digits(value: float) -> str:
        return f"{value / length:,.0f}" if value >= 100 * length else f"{value / length:.3g}"

    return [
        Column(("half of the", "quality", f"after ({unit})"), lambda r: r.seconds_until["50%"], digits, -1),
        Column(("all", "pages", f"after ({unit})"), lambda r: r.simulated_seconds, digits, -1),
        Column(("of the", "optimal", "time T*"), lambda r: r.closeness, "{:.1%}".format, 1),
        Column(("computed", "in (s)"), lambda r: r.wall_seconds, "{:.2f}".format),
    ]


def _odd_columns(records: Sequence["CrawlRecord"]) -> list[Column]:
    """What is worth a column only if it is not as it should be."""
    columns = []
    if len({record.pages_fetched for record in records}) > 1:
        columns.append(Column(("pages", "fetched"), lambda r: r.pages_fetched, "{:,}".format, 1))
    if any(record.politeness_violations for record in records):
        columns.append(Column(("rules", "broken"), lambda r: r.politeness_violations, "{:,}".format))
    return columns
