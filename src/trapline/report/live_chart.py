"""What the plots of one live crawl show, before anyone draws them: how far it was, how fast, what went wrong and what waited.

It reads a live record; drawing is `svg.py`'s business, as for simulated crawls.
"""

import numpy as np

from trapline.report.axis import Axis, axis
from trapline.report.chart import RANDOM, Chart, Floats, Line, quality_by_pages, quality_by_time
from trapline.report.live_record import LiveRecord, Moments
from trapline.report.record import CrawlRecord
from trapline.units import byte_unit, three_digits, time_unit

_BINS = 60  # in which a rate is drawn: narrower ones show the network's whims, wider ones hide the crawl's


def live_charts(record: LiveRecord, judged: CrawlRecord | None = None) -> list[Chart]:
    """Those that have something to show. `judged`: the crawl by the PageRank of the web it found; without it quality is what the crawl
    itself took for it, if it took anything."""
    moments = record.moments
    found = [_pages(moments), _rate(moments), _frontier(moments), _bytes(moments), _errors(moments), _active(moments)]
    if judged is not None:
        found[2:2] = [quality_by_time([judged]), quality_by_pages([judged])]
    elif moments.quality[-1] > 0:
        found[2:2] = [_quality_by_time(record), _quality_by_pages(record)]
    return found


def _pages(moments: Moments) -> Chart:
    return _over_time(moments, "pages-time", "Pages", "pages fetched", {"pages": moments.pages})


def _rate(moments: Moments) -> Chart:
    x, y = rate(moments.seconds, moments.pages)
    unit = time_unit(moments.seconds[-1])
    line = Line(0, "pages/s", x / unit.seconds, y)
    top = axis("pages per second", float(y.max()))
    return Chart("rate-time", "Speed", "", _time_axis(moments), top, [line])


def rate(seconds: Floats, amount: Floats) -> tuple[Floats, Floats]:
    """Per second, on average over few bins of time: at the middle of each, and at both ends.

    >>> [column.tolist() for column in rate(np.array([0.0, 1.0, 3.0]), np.array([0.0, 10.0, 14.0]))]
    [[0.0, 0.5, 2.0, 3.0], [10.0, 10.0, 2.0, 2.0]]
    """
    edges = np.linspace(0.0, seconds[-1], min(len(seconds), _BINS + 1))
    if len(seconds) <= _BINS:
        edges = np.unique(seconds)
    if len(edges) < 2:
        return np.zeros(1), np.zeros(1)
    y = np.diff(np.interp(edges, seconds, amount)) / np.diff(edges)
    middle = (edges[1:] + edges[:-1]) / 2
    return np.concatenate((edges[:1], middle, edges[-1:])), np.concatenate((y[:1], y, y[-1:]))


def _frontier(moments: Moments) -> Chart:
    lines = {"known": moments.known, "waiting": moments.waiting, "fetched": moments.pages}
    return _over_time(moments, "frontier-time", "Frontier", "pages known, waiting and fetched", lines)


def _bytes(moments: Moments) -> Chart:
    size, unit = byte_unit(float(moments.bytes[-1]))
    return _over_time(
        moments, "bytes-time", "Bytes", f"{unit} of page bodies, as received", {unit: moments.bytes / size}
    )


def _errors(moments: Moments) -> Chart:
    return _over_time(
        moments,
        "errors-time",
        "Errors",
        "failed requests, answers of 400 and above, bodies not decoded",
        {"errors": moments.errors},
    )


def _active(moments: Moments) -> Chart:
    return _over_time(moments, "active-time", "Connections", "visits under way", {"visits": moments.active})


def _quality_by_time(record: LiveRecord) -> Chart:
    label = f"quality of the pages so far, by {record.summary['quality_source'] or 'the crawl'}"
    return _over_time(record.moments, "quality-time", "Quality", label, {"quality": record.moments.quality})


def _quality_by_pages(record: LiveRecord) -> Chart:
    moments = record.moments
    pages, quality = max(float(moments.pages[-1]), 1.0), float(moments.quality[-1])
    lines = [
        Line(0, "quality", moments.pages / pages * 100, moments.quality / quality * 100),
        Line(RANDOM, "in random order", np.array([0.0, 100.0]), np.array([0.0, 100.0])),
    ]
    return Chart(
        "quality-pages",
        "How early the quality came",
        "",
        axis(f"pages (% of the {three_digits(pages)} fetched)", 100.0, "%"),
        axis("quality so far (% of the sum)", 100.0, "%"),
        lines,
    )


def _over_time(moments: Moments, name: str, title: str, label: str, lines: dict[str, Floats]) -> Chart:
    x = moments.seconds / time_unit(moments.seconds[-1]).seconds
    top = max(float(y.max()) for y in lines.values())
    drawn = [Line(index, what, x, y) for index, (what, y) in enumerate(lines.items())]
    return Chart(name, title, "", _time_axis(moments), axis(label, top), drawn)


def _time_axis(moments: Moments) -> Axis:
    unit = time_unit(moments.seconds[-1])
    return axis(f"time ({unit.name})", moments.seconds[-1] / unit.seconds, tight=True)
