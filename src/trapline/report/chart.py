"""The contents of plots of one or several crawls, before they are drawn: lines, axes, and a number for each line.

This module reads records and draws nothing. `plot.py` draws charts as PNG, `svg.py` as SVG; neither of them knows what a crawl is.

Every quality chart has two references. The optimum fetches the best pages first; random order fetches pages of average
quality. Against time, both have at each moment as many pages as the crawl with the most pages by then, so that no crawl
can be above the optimum.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.report.record import CrawlRecord
from trapline.report.table import comparable
from trapline.units import TimeUnit, byte_rate, number, three_digits, time_unit

# ---- An axis from 0 to a round number, with few ticks.
#
# This part knows only numbers, not crawls and not the picture.

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MOST_STEPS = 6


class Axis(NamedTuple):
    """An axis of a chart. Values are in `unit`; `top` is a tick or, if the data end at a hard limit, that limit.

    With `names`, the values 0, 1, 2, ... stand for these.
    """

    label: str
    top: float
    unit: str = ""
    step: float = 1.0
    names: tuple[str, ...] = ()

    def text(self, tick: float) -> str:
        return self.names[round(tick)] if self.names else number(tick, self.unit)

    @property
    def ticks(self) -> list[float]:
        return [count * self.step for count in range(math.floor(self.top / self.step * (1 + 1e-9)) + 1)]


def axis(label: str, largest: float, unit: str = "", tight: bool = False) -> Axis:
    """Return an axis for values from 0 to `largest`. `tight`: the axis ends with the data instead of at the next tick.

    >>> axis("pages", 34_000.0).ticks
    [0.0, 10000.0, 20000.0, 30000.0, 40000.0]
    """
    largest = largest if largest > 0 else 1.0
    size = 10.0 ** math.floor(math.log10(largest / MOST_STEPS))
    step = next(size * factor for factor in (*_STEPS, 20.0) if size * factor * MOST_STEPS >= largest * (1 - 1e-9))
    return Axis(label, largest if tight else step * math.ceil(largest / step * (1 - 1e-9)), unit, step)


# ---- Charts.

Floats = NDArray[np.float64]
OPTIMUM, RANDOM = -1, -2  # the indices of the references; the line of a crawl has the crawl's number
_REFERENCE_POINTS = 300
_BINS = 40  # bins of a load chart: enough to see its course, and wide enough that a bin is not mere chance
_NEAR = 0.006  # the width of a line, as a share of the picture


@dataclass(frozen=True, slots=True)
class ChartLine:
    index: int
    name: str
    x: Floats
    y: Floats
    value: str = ""  # the number that sums up the line
    spread: Floats | None = None  # half of the interval of each point, for lines of a few measured points


@dataclass(frozen=True, slots=True)
class Chart:
    name: str  # for file names
    title: str
    value_label: str  # meaning of the lines' numbers
    x: Axis
    y: Axis
    lines: list[ChartLine]
    zooms: bool = True  # the page shows a part of its time axis on request

    @property
    def together(self) -> list[list[ChartLine]]:
        """Groups of two or more crawls whose lines coincide everywhere."""
        groups: list[list[ChartLine]] = []
        for line in self.lines:
            if line.index >= 0:
                found = next((group for group in groups if self._coincide(group[0], line)), None)
                groups.append([line]) if found is None else found.append(line)
        return [group for group in groups if len(group) > 1]

    def _coincide(self, line: ChartLine, other: ChartLine) -> bool:
        return self._covers(line, other) and self._covers(other, line)

    def _covers(self, line: ChartLine, other: ChartLine) -> bool:
        """Return whether every point of the other line lies on this line, within the width of a line."""
        if abs(line.x[-1] - other.x[-1]) > _NEAR * self.x.top:
            return False
        near = [np.interp(other.x + step * _NEAR * self.x.top, line.x, line.y) for step in (-1.0, -0.5, 0.0, 0.5, 1.0)]
        slack = _NEAR * self.y.top
        return bool(((np.min(near, 0) - slack <= other.y) & (other.y <= np.max(near, 0) + slack)).all())


@dataclass(frozen=True, slots=True)
class Whole:
    """The pages that count as 100 %: all reachable pages, if a crawl fetched all of them; otherwise all pages of the web."""

    pages: int
    quality: float  # their share of the web's quality
    best: Floats  # [points, 2] fraction of these pages, share of their quality; best pages first, so it is concave
    name: str

    def optimum(self, pages: Floats) -> Floats:
        """Return the share of the quality that the best pages have, for each number of pages."""
        return np.interp(pages / self.pages, self.best[:, 0], self.best[:, 1])


def whole_of(records: Sequence[CrawlRecord]) -> Whole:
    drained = [record for record in records if record.drained and record.pages_fetched]
    # With limits by depth or site, the reachable pages depend on the order, so drained crawls may have fetched different pages.
    if drained and len({(record.pages_fetched, round(record.quality_fetched, 9)) for record in drained}) == 1:
        record = drained[0]
        name = f"the {record.pages_fetched:,} pages that can be reached"
        return _with_best(
            Whole(record.pages_fetched, record.quality_fetched or 1.0, np.array(record.optimal_curve), name), records
        )
    record = records[0]
    return _with_best(Whole(record.pages, 1.0, np.array(record.web_curve), f"all {record.pages:,} pages"), records)


def _with_best(whole: Whole, records: Sequence[CrawlRecord]) -> Whole:
    """Return `whole` with a finer curve of the optimum.

    The optimum is concave and known at some points. At other points it is at least as good as each crawl was there.
    Straight lines between its own points alone would be below crawls that are nearly as good.
    """
    points = [whole.best]
    for record in records:
        points.append(
            np.array(record.curve) * (record.pages_fetched / whole.pages, record.quality_fetched / whole.quality)
        )
        moments = np.column_stack((record.progress.pages, record.progress.quality))
        points.append(moments / (whole.pages, whole.quality))
    every = np.concatenate(points)
    return replace(whole, best=_hull(every[(every <= 1).all(axis=1)]))


def _hull(points: Floats) -> Floats:
    """Return the lowest concave line that is below none of the points. The first point must be (0, 0).

    >>> _hull(np.array([[0, 0], [0.25, 0.5], [0.5, 0.25], [1, 1]])).tolist()
    [[0.0, 0.0], [0.25, 0.5], [1.0, 1.0]]
    """
    kept: list[list[float]] = []
    for x, y in np.unique(points, axis=0).tolist():
        while len(kept) > 1 and _is_left(kept[-2], kept[-1], x, y):
            kept.pop()
        kept.append([x, y])
    return np.array(kept)


def _is_left(one: list[float], two: list[float], x: float, y: float) -> bool:
    """Return whether the path from point `one` over point `two` to (x, y) does not turn right."""
    return (two[0] - one[0]) * (y - one[1]) >= (two[1] - one[1]) * (x - one[0])


def charts(records: Sequence[CrawlRecord]) -> list[Chart]:
    """Return the charts of quality, pages, connections and, if the link has a limit, wasted bandwidth. The records should be
    of crawls of the same web."""
    found = [quality_by_pages(records), quality_by_time(records), pages_by_time(records), connections_by_time(records)]
    if all(record.load.wasted_bandwidth is not None for record in records):
        found.append(waste_by_time(records))
    return found


def quality_by_pages(records: Sequence[CrawlRecord]) -> Chart:
    whole, quality = whole_of(records), records[0].quality
    most = max(1, *(record.pages_fetched for record in records))
    lines = []
    for index, record in enumerate(records):
        points = np.array(record.curve)
        x, y = points[:, 0] * record.pages_fetched / whole.pages, points[:, 1] * record.quality_fetched / whole.quality
        lines.append(ChartLine(index, record.name, x * 100, y * 100, f"{record.average_cumulative_quality:.3f}"))
    x = np.unique(np.append(np.minimum(whole.best[:, 0] * whole.pages, most), most))
    best, share = whole.optimum(x), x / whole.pages
    average = f"{records[0].optimal_average_cumulative_quality:.3f}" if whole.pages == most else ""
    lines.append(ChartLine(OPTIMUM, "optimum: best pages first", share * 100, best * 100, average))
    lines.append(ChartLine(RANDOM, "random order", share * 100, share * 100, "0.500" if average else ""))
    return Chart(
        "quality-pages",
        f"{quality} against pages",
        f"average cumulative {quality}\n(area under the curve)",
        axis(f"pages fetched (% of {whole.name})", share[-1] * 100, "%", tight=True),
        _quality_axis(quality, best[-1]),
        lines,
    )


def quality_by_time(records: Sequence[CrawlRecord]) -> Chart:
    whole, quality = whole_of(records), records[0].quality
    unit, unit_name, _ = records_unit(records)
    if comparable(records):
        meaning = f"{unit_name} until 80 % of the\n{quality} it fetched"
        values = [record.seconds_until["80%"] / unit for record in records]
    else:
        meaning = f"% of all {quality}\nthat it fetched"
        values = [record.quality_fetched * 100 for record in records]
    lines = [
        ChartLine(
            index,
            record.name,
            np.array(record.progress.time_s) / unit,
            np.array(record.progress.quality) / whole.quality * 100,
            three_digits(value),
        )
        for index, (record, value) in enumerate(zip(records, values, strict=True))
    ]
    seconds, pages = _fastest(records, whole)
    best, share = whole.optimum(pages), pages / whole.pages
    lines.append(ChartLine(OPTIMUM, "optimum, at the fastest pace", seconds / unit, best * 100))
    lines.append(ChartLine(RANDOM, "random order, at the fastest pace", seconds / unit, share * 100))
    return Chart(
        "quality-time",
        f"{quality} against time",
        meaning,
        time_axis(records, unit_name),
        _quality_axis(quality, best[-1]),
        lines,
    )


def pages_by_time(records: Sequence[CrawlRecord]) -> Chart:
    unit, unit_name, _ = records_unit(records)
    lines = []
    for index, record in enumerate(records):
        x, y = np.array(record.progress.time_s) / unit, np.array(record.progress.pages, np.float64)
        lines.append(ChartLine(index, record.name, x, y, three_digits(record.rate)))
    most = max(records, key=lambda record: record.pages_fetched)
    if most.optimal_seconds:
        x, y = np.array([0.0, most.optimal_seconds / unit]), np.array([0.0, most.pages_fetched])
        lines.append(ChartLine(OPTIMUM, "T*: the link always full", x, y))
    return Chart(
        "pages-time",
        "Pages against time",
        "pages per second,\non average",
        time_axis(records, unit_name),
        axis("pages fetched", float(most.pages_fetched)),
        lines,
    )


def connections_by_time(records: Sequence[CrawlRecord]) -> Chart:
    unit, unit_name, _ = records_unit(records)
    lines = []
    for index, record in enumerate(records):
        x, y = averages(record.load.edges_s, record.load.active_connections)
        y = np.minimum(y, record.connections)  # times are rounded to the microsecond, so y can be slightly too high
        lines.append(ChartLine(index, record.name, x / unit, y, three_digits(record.active_connections)))
    top = max(float(line.y.max()) for line in lines)
    connections = {record.connections for record in records}
    label = f"connections at work (of {connections.pop():,})" if len(connections) == 1 else "connections at work"
    return Chart(
        "connections-time",
        "Connections at work",
        "connections at work,\non average",
        time_axis(records, unit_name),
        axis(label, top),
        lines,
    )


def waste_by_time(records: Sequence[CrawlRecord]) -> Chart:
    """Return the chart of the bandwidth wasted since the beginning.

    Values at each moment would be unreadable, because one large page fills the link for a while. A line ends at 100 %
    minus its number.
    """
    unit, unit_name, _ = records_unit(records)
    lines = []
    for index, record in enumerate(records):
        x, y = _so_far(record.load.edges_s, record.load.wasted_bandwidth or [])
        closeness = f"{three_digits((record.closeness or 0.0) * 100)} %"
        lines.append(ChartLine(index, record.name, x / unit, np.clip(y, 0, 1) * 100, closeness))
    links = {record.bandwidth or 0.0 for record in records}
    link = byte_rate(links.pop()) if len(links) == 1 else "the link"
    return Chart(
        "waste-time",
        "Wasted bandwidth",
        "T* / T: how close to\na link that is always full",
        time_axis(records, unit_name),
        axis(f"bandwidth not used so far (% of {link})", 100.0, "%"),
        lines,
    )


def _quality_axis(quality: str, top: float) -> Axis:
    return axis(f"{quality} of the pages fetched so far (% of the sum)", min(100.0, top * 100), "%")


def _longest(records: Sequence[CrawlRecord]) -> float:
    return max(record.simulated_seconds for record in records)


def records_unit(records: Sequence[CrawlRecord]) -> TimeUnit:
    """Return the unit of time that suits the longest crawl."""
    return time_unit(_longest(records))


def time_axis(records: Sequence[CrawlRecord], unit: str) -> Axis:
    return axis(f"{records[0].of_time}time ({unit})", _longest(records) / records_unit(records).seconds, tight=True)


def _fastest(records: Sequence[CrawlRecord], whole: Whole) -> tuple[Floats, Floats]:
    """Return moments in seconds, and the most pages that any crawl had fetched by then.

    There are few moments, plus those at which a crawl would otherwise be above the optimum.
    """
    times = [np.array(record.progress.time_s) for record in records]
    every = np.unique(np.concatenate(times))
    pages = np.max([np.interp(every, time, r.progress.pages) for time, r in zip(times, records, strict=True)], axis=0)
    most = np.max([np.interp(every, time, r.progress.quality) for time, r in zip(times, records, strict=True)], axis=0)
    best, most = whole.optimum(pages), most / whole.quality
    kept = np.zeros(len(every), np.bool_)
    kept[np.linspace(0, len(every) - 1, min(len(every), _REFERENCE_POINTS)).astype(int)] = True
    while (above := ~kept & (np.interp(every, every[kept], best[kept]) < most)).any():
        kept |= above
    return every[kept], pages[kept]


def averages(edges: Sequence[float], values: Sequence[float]) -> tuple[Floats, Floats]:
    """Return averages over few wide bins, each at the middle of its bin; the first and last also at the ends.

    >>> [column.tolist() for column in averages([0.0, 1.0, 4.0], [8.0, 2.0])]
    [[0.0, 0.5, 2.5, 4.0], [8.0, 8.0, 2.0, 2.0]]
    """
    if not values:
        return np.zeros(1), np.zeros(1)
    sums = np.concatenate(([0.0], np.cumsum(np.array(values) * np.diff(edges))))
    kept = np.unique(np.linspace(0, len(values), min(len(values), _BINS) + 1).round().astype(int))
    edge = np.array(edges)[kept]
    y = np.diff(sums[kept]) / np.diff(edge)
    x = (edge[1:] + edge[:-1]) / 2
    return np.concatenate(([edge[0]], x, [edge[-1]])), np.concatenate((y[:1], y, y[-1:]))


def _so_far(edges: Sequence[float], values: Sequence[float]) -> tuple[Floats, Floats]:
    """Return the averages from the beginning to the end of each bin.

    >>> [column.tolist() for column in _so_far([0.0, 1.0, 4.0], [8.0, 2.0])]
    [[0.0, 1.0, 4.0], [8.0, 8.0, 3.5]]
    """
    if not values:
        return np.zeros(1), np.zeros(1)
    average = np.cumsum(np.array(values) * np.diff(edges)) / np.array(edges[1:])
    return np.array(edges), np.concatenate((average[:1], average))
