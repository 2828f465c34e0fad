"""What the plots of one or several crawls show, before anyone draws them: lines, axes, and a number for each line.

It reads records. `plot.py` draws charts as PNG, `svg.py` as SVG; neither of them knows what a crawl is.

Every quality chart has two references. The optimum: the best pages first. Random order: pages of average worth. Against time both
go at the pace of whichever crawl had the most pages by then, so that no crawl can be above the optimum.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trapline.report.axis import Axis, axis
from trapline.report.record import CrawlRecord
from trapline.units import TimeUnit, byte_rate, three_digits, time_unit

Floats = NDArray[np.float64]
OPTIMUM, RANDOM = -1, -2  # numbers of the references; a crawl's line has the crawl's number
_REFERENCE_POINTS = 300
_BINS = 40  # in which a load is drawn: enough to see its course, wide enough that a bin is no longer chance
_NEAR = 0.006  # of the picture: a line's width


@dataclass(frozen=True, slots=True)
class Line:
    index: int
    name: str
    x: Floats
    y: Floats
    value: str = ""  # the number by which the chart is summed up
    spread: Floats | None = None  # half of each point's interval, for lines of a few measured points


@dataclass(frozen=True, slots=True)
class Chart:
    name: str  # for files
    title: str
    value_label: str  # what the lines' numbers are
    x: Axis
    y: Axis
    lines: list[Line]

    @property
    def together(self) -> list[list[Line]]:
        """Crawls whose lines cannot be told apart anywhere, as groups of two or more."""
        groups: list[list[Line]] = []
        for line in self.lines:
            if line.index >= 0:
                found = next((group for group in groups if self._coincide(group[0], line)), None)
                groups.append([line]) if found is None else found.append(line)
        return [group for group in groups if len(group) > 1]

    def _coincide(self, one: Line, other: Line) -> bool:
        return self._covers(one, other) and self._covers(other, one)

    def _covers(self, one: Line, other: Line) -> bool:
        """Whether every point of the other line lies on this one, give or take the width of a line."""
        if abs(one.x[-1] - other.x[-1]) > _NEAR * self.x.top:
            return False
        near = [np.interp(other.x + step * _NEAR * self.x.top, one.x, one.y) for step in (-1.0, -0.5, 0.0, 0.5, 1.0)]
        slack = _NEAR * self.y.top
        return bool(((np.min(near, 0) - slack <= other.y) & (other.y <= np.max(near, 0) + slack)).all())


@dataclass(frozen=True, slots=True)
class Whole:
    """What makes 100 %: the pages that can be reached, if a crawl fetched all of them, else all pages of the web."""

    pages: int
    quality: float  # share of the web's
    best: Floats  # [points, 2] fraction of these pages, share of their quality, best pages first; concave
    name: str

    def optimum(self, pages: Floats) -> Floats:
        """Share of the quality that the best so many pages hold."""
        return np.interp(pages / self.pages, self.best[:, 0], self.best[:, 1])


def whole_of(records: Sequence[CrawlRecord]) -> Whole:
    drained = [record for record in records if record.drained and record.pages_fetched]
    # With limits by depth or site, what can be reached depends on the order, and crawls that fetched all of it differ.
    if drained and len({(record.pages_fetched, round(record.quality_fetched, 9)) for record in drained}) == 1:
        one = drained[0]
        name = f"the {one.pages_fetched:,} pages that can be reached"
        return _with_best(
            Whole(one.pages_fetched, one.quality_fetched or 1.0, np.array(one.optimal_curve), name), records
        )
    one = records[0]
    return _with_best(Whole(one.pages, 1.0, np.array(one.web_curve), f"all {one.pages:,} pages"), records)


def _with_best(whole: Whole, records: Sequence[CrawlRecord]) -> Whole:
    """The optimum is concave and known at some points; where a crawl was at others, it is at least that good. Straight
    lines between its own points alone would run below crawls that are nearly as good."""
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
    """The lowest concave line that is below none of the points; the first must be at 0, 0.

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
    """Whether the way from one point over another to (x, y) does not turn right."""
    return (two[0] - one[0]) * (y - one[1]) >= (two[1] - one[1]) * (x - one[0])


def charts(records: Sequence[CrawlRecord]) -> list[Chart]:
    """All charts of crawls of the same web; that of the link only where it has a limit."""
    found = [quality_by_pages(records), quality_by_time(records), pages_by_time(records), robots_by_time(records)]
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
        lines.append(Line(index, record.strategy, x * 100, y * 100, f"{record.average_cumulative_quality:.3f}"))
    x = np.unique(np.append(np.minimum(whole.best[:, 0] * whole.pages, most), most))
    best, share = whole.optimum(x), x / whole.pages
    average = f"{records[0].optimal_average_cumulative_quality:.3f}" if whole.pages == most else ""
    lines.append(Line(OPTIMUM, "optimum: best pages first", share * 100, best * 100, average))
    lines.append(Line(RANDOM, "random order", share * 100, share * 100, "0.500" if average else ""))
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
    unit, unit_name, _ = _time_unit(records)
    lines = [
        Line(
            index,
            record.strategy,
            np.array(record.progress.time_s) / unit,
            np.array(record.progress.quality) / whole.quality * 100,
            three_digits(record.seconds_until["80%"] / unit),
        )
        for index, record in enumerate(records)
    ]
    seconds, pages = _fastest(records, whole)
    best, share = whole.optimum(pages), pages / whole.pages
    lines.append(Line(OPTIMUM, "optimum, at the fastest pace", seconds / unit, best * 100))
    lines.append(Line(RANDOM, "random order, at the fastest pace", seconds / unit, share * 100))
    return Chart(
        "quality-time",
        f"{quality} against time",
        f"{unit_name} until 80 % of the\n{quality} it fetched",
        _time_axis(records, unit_name),
        _quality_axis(quality, best[-1]),
        lines,
    )


def pages_by_time(records: Sequence[CrawlRecord]) -> Chart:
    unit, unit_name, _ = _time_unit(records)
    lines = []
    for index, record in enumerate(records):
        x, y = np.array(record.progress.time_s) / unit, np.array(record.progress.pages, np.float64)
        lines.append(Line(index, record.strategy, x, y, three_digits(record.rate)))
    most = max(records, key=lambda record: record.pages_fetched)
    if most.optimal_seconds:
        x, y = np.array([0.0, most.optimal_seconds / unit]), np.array([0.0, most.pages_fetched])
        lines.append(Line(OPTIMUM, "T*: the link always full", x, y))
    return Chart(
        "pages-time",
        "Pages against time",
        "pages per second,\non average",
        _time_axis(records, unit_name),
        axis("pages fetched", float(most.pages_fetched)),
        lines,
    )


def robots_by_time(records: Sequence[CrawlRecord]) -> Chart:
    unit, unit_name, _ = _time_unit(records)
    lines = []
    for index, record in enumerate(records):
        x, y = _averages(record.load.edges_s, record.load.active_robots)
        y = np.minimum(y, record.robots)  # times are kept to the microsecond
        lines.append(Line(index, record.strategy, x / unit, y, three_digits(record.active_robots)))
    top = max(float(line.y.max()) for line in lines)
    robots = {record.robots for record in records}
    label = f"robots at work (of {robots.pop():,})" if len(robots) == 1 else "robots at work"
    return Chart(
        "robots-time",
        "Robots at work",
        "robots at work,\non average",
        _time_axis(records, unit_name),
        axis(label, top),
        lines,
    )


def waste_by_time(records: Sequence[CrawlRecord]) -> Chart:
    """Since the beginning, not at each moment: one large page fills a link, and the crawls would be a tangle. A line ends
    at what its number leaves of 100 %."""
    unit, unit_name, _ = _time_unit(records)
    lines = []
    for index, record in enumerate(records):
        x, y = _so_far(record.load.edges_s, record.load.wasted_bandwidth or [])
        closeness = f"{three_digits((record.closeness or 0.0) * 100)} %"
        lines.append(Line(index, record.strategy, x / unit, np.clip(y, 0, 1) * 100, closeness))
    links = {record.bandwidth or 0.0 for record in records}
    link = byte_rate(links.pop()) if len(links) == 1 else "the link"
    return Chart(
        "waste-time",
        "Wasted bandwidth",
        "T* / T: how close to\na link that is always full",
        _time_axis(records, unit_name),
        axis(f"bandwidth not used so far (% of {link})", 100.0, "%"),
        lines,
    )


def _quality_axis(quality: str, top: float) -> Axis:
    return axis(f"{quality} of the pages fetched so far (% of the sum)", min(100.0, top * 100), "%")


def _longest(records: Sequence[CrawlRecord]) -> float:
    return max(record.simulated_seconds for record in records)


def _time_unit(records: Sequence[CrawlRecord]) -> TimeUnit:
    return time_unit(_longest(records))


def _time_axis(records: Sequence[CrawlRecord], unit: str) -> Axis:
    return axis(f"{records[0].of_time}time ({unit})", _longest(records) / _time_unit(records).seconds, tight=True)


def _fastest(records: Sequence[CrawlRecord], whole: Whole) -> tuple[Floats, Floats]:
    """Moments in seconds, and the most pages that any of the crawls had by then: few moments, and those more at which a
    crawl would else be above the optimum."""
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


def _averages(edges: Sequence[float], values: Sequence[float]) -> tuple[Floats, Floats]:
    """Averages over few wide bins, each at the middle of its bin; the first and last also at the ends.

    >>> [column.tolist() for column in _averages([0.0, 1.0, 4.0], [8.0, 2.0])]
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
    """The average from the beginning to the end of each bin.

    >>> [column.tolist() for column in _so_far([0.0, 1.0, 4.0], [8.0, 2.0])]
    [[0.0, 1.0, 4.0], [8.0, 8.0, 3.5]]
    """
    if not values:
        return np.zeros(1), np.zeros(1)
    average = np.cumsum(np.array(values) * np.diff(edges)) / np.array(edges[1:])
    return np.array(edges), np.concatenate((average[:1], average))
