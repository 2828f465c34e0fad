"""Crawls side by side on a terminal: which numbers of a record are shown, in which unit, and which way is better."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trapline.cli.numbers import time_unit
from trapline.cli.table import BEST, Column, compared

if TYPE_CHECKING:
    from trapline.report import CrawlRecord


def scoreboard(records: Sequence["CrawlRecord"]) -> str:
    """A row for each crawl, and below it what the columns mean."""
    table = compared([record.strategy for record in records], records, _columns(records))
    optimum = records[0].optimal_average_cumulative_pagerank
    notes = [f"Average cumulative PageRank: random order 0.500, optimum {optimum:.3f}."]
    if len(records) > 1:
        notes.insert(0, f"{BEST} the best of its column.")
    if records[0].optimal_seconds is not None:
        notes.append("T*/T: the time in which the link could have carried it all, of the time it took.")
    return "\n".join((table, "", *notes))


def web_size(record: "CrawlRecord") -> str:
    return f"{record.pages:,} pages, {record.links:,} links, {record.sites:,} sites"


def _columns(records: Sequence["CrawlRecord"]) -> list[Column]:
    return [*_order_columns(records), *_time_columns(records), *_odd_columns(records)]


def _order_columns(records: Sequence["CrawlRecord"]) -> list[Column]:
    columns = [
        Column(("average", "cumul.", "PageRank"), lambda r: r.average_cumulative_pagerank, "{:.3f}".format, 1),
        Column(("Kendall's", "tau"), lambda r: r.kendall_tau, "{:.3f}".format, 1),
    ]
    if records[0].quality != "PageRank":
        heading = "average", "cumul.", "quality"
        columns.insert(1, Column(heading, lambda r: r.average_cumulative_quality, "{:.3f}".format, 1))
    return columns


def _time_columns(records: Sequence["CrawlRecord"]) -> list[Column]:
    unit, length = time_unit(max(record.simulated_seconds for record in records))

    def digits(value: float) -> str:
        return f"{value / length:,.0f}" if value >= 100 * length else f"{value / length:.3g}"

    return [
        Column(("half of", "quality", f"in ({unit})"), lambda r: r.seconds_until["50%"], digits, -1),
        Column(("all of", "it", f"in ({unit})"), lambda r: r.simulated_seconds, digits, -1),
        Column(("T*/T",), lambda r: r.closeness, "{:.1%}".format, 1),
        Column(("loop", "(s)"), lambda r: r.wall_seconds, "{:.2f}".format),
    ]


def _odd_columns(records: Sequence["CrawlRecord"]) -> list[Column]:
    """What is worth a column only if it is not as it should be."""
    columns = []
    if len({record.pages_fetched for record in records}) > 1:
        columns.append(Column(("pages", "fetched"), lambda r: r.pages_fetched, "{:,}".format, 1))
    if any(record.politeness_violations for record in records):
        columns.append(Column(("rules", "broken"), lambda r: r.politeness_violations, "{:,}".format))
    return columns
