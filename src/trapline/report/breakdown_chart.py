"""Charts of crawls broken down: average PageRank by depth and by period of time, and connections during one batch.

This module reads records and draws nothing, like `chart.py`.
"""

import math
from collections.abc import Sequence

import numpy as np

from trapline.report.chart import Axis, Chart, ChartLine, Floats, averages, axis, charts, records_unit, time_axis
from trapline.report.record import CrawlRecord
from trapline.units import duration, three_digits, time_unit

_NEAR_SEEDS = 4  # depths 0 to 3: beyond, depth says nothing about PageRank (castillo04 VII)


def every_chart(records: Sequence[CrawlRecord]) -> list[Chart]:
    """Return all charts of crawls of the same web."""
    return [*charts(records), *breakdown_charts(records)]


def breakdown_charts(records: Sequence[CrawlRecord]) -> list[Chart]:
    """Return the charts that have lines: none, for example, if all crawls ended within one period."""
    found = [pagerank_by_depth(records), pagerank_by_period(records), connections_in_batch(records)]
    return [chart for chart in found if any(len(line.x) > 1 for line in chart.lines)]


def pagerank_by_depth(records: Sequence[CrawlRecord]) -> Chart:
    lines = []
    for index, record in enumerate(records):
        found = record.pagerank_by_depth
        x, y = _known(found.depth, found.average_pagerank)
        lines.append(ChartLine(index, record.name, x, y, three_digits(float(np.sum(found.pages[:_NEAR_SEEDS])))))
    deepest = max(float(line.x.max()) for line in lines)
    return Chart(
        "pagerank-depth",
        "PageRank by depth",
        f"pages at most\n{_NEAR_SEEDS - 1} clicks deep",
        _whole_steps(axis("depth (clicks from the nearest seed)", deepest, tight=True)),
        _average_axis(lines, "at a depth"),
        lines,
        zooms=False,
    )


def pagerank_by_period(records: Sequence[CrawlRecord]) -> Chart:
    """Return the chart of the average PageRank of the pages of each period, at the middle of the period."""
    unit, unit_name, _ = records_unit(records)
    lines = []
    for index, record in enumerate(records):
        found = record.pagerank_by_period
        x, y = _known(found.begin_s, found.average_pagerank)
        x = np.minimum(x + found.period_s / 2, record.simulated_seconds)
        lines.append(ChartLine(index, record.name, x / unit, y, duration(found.period_s)))
    return Chart(
        "pagerank-time",
        "PageRank by period",
        "length of a period",
        time_axis(records, unit_name),
        _average_axis(lines, "of a period"),
        lines,
    )


def connections_in_batch(records: Sequence[CrawlRecord]) -> Chart:
    lines, batches = [], [record.batch_connections for record in records]
    longest = max(batch.edges_s[-1] - batch.edges_s[0] for batch in batches)
    unit, unit_name, _ = time_unit(longest)
    for index, (record, batch) in enumerate(zip(records, batches, strict=True)):
        x, y = averages(batch.edges_s, batch.active_connections)
        took = three_digits((batch.edges_s[-1] - batch.edges_s[0]) / unit)
        lines.append(
            ChartLine(index, record.name, (x - batch.edges_s[0]) / unit, np.minimum(y, record.connections), took)
        )
    return Chart(
        "batch-connections",
        "Connections during one batch",
        f"{unit_name} from the begin\nto the end of the batch",
        axis(f"{records[0].of_time}time since the batch began ({unit_name})", longest / unit, tight=True),
        axis(
            "connections at work during a batch in the middle of the crawl", max(float(line.y.max()) for line in lines)
        ),
        lines,
        zooms=False,
    )


def _whole_steps(axis: Axis) -> Axis:
    """Return the axis with ticks at whole numbers only."""
    return axis._replace(step=math.ceil(axis.step))


def _known(at: Sequence[float], values: Sequence[float | None]) -> tuple[Floats, Floats]:
    """Return the points whose value is known; a single point at 0 if there is none."""
    pairs = [(x, y) for x, y in zip(at, values, strict=True) if y is not None] or [(0.0, 0.0)]
    x, y = np.array(pairs, np.float64).T
    return x, y


def _average_axis(lines: Sequence[ChartLine], which: str) -> Axis:
    label = f"average PageRank of the pages {which}\n(average page of the web: 1)"
    return axis(label, max(float(line.y.max()) for line in lines))
