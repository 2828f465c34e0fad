"""What the plots of pages fetched again show, before anyone draws them. It reads a refresh record; drawing is `svg.py`'s business."""

import numpy as np

from trapline.report.axis import Axis, axis
from trapline.report.chart import Chart, Floats, Line
from trapline.report.refresh_record import Fetches, Fresh, RefreshRecord
from trapline.units import time_unit

_MINUTE_S = 60.0


def refresh_charts(record: RefreshRecord) -> list[Chart]:
    return [_fresh(record.fresh), _new_and_again(record.fetches), _found(record.fetches)]


def _fresh(fresh: Fresh) -> Chart:
    x = fresh.seconds / time_unit(fresh.seconds[-1]).seconds
    known = fresh.looked_at > 0
    lines = [
        Line(0, "fresh", x, fresh.fresh * 100) if known.any() else _nothing("fresh"),
        Line(1, "copies that were looked at again", x, fresh.looked_at * 100),
    ]
    label = "fresh, as far as was found out (% of the copies)"
    return Chart("fresh-time", "Freshness, as seen", "", _time(fresh.seconds[-1]), axis(label, 100.0, "%"), lines)


def _new_and_again(fetches: Fetches) -> Chart:
    minutes = np.diff(fetches.edges) / _MINUTE_S
    x, rates = _middles(fetches.edges), (fetches.new / minutes, fetches.again / minutes)
    lines = [Line(at, name, x, y) for at, (name, y) in enumerate(zip(("new", "again"), rates, strict=True))]
    top = axis("pages per minute", max(float(y.max()) for y in rates))
    return Chart("again-time", "New pages and pages fetched again", "", _time(fetches.edges[-1]), top, lines)


def _found(fetches: Fetches) -> Chart:
    some = fetches.again > 0
    x, share = _middles(fetches.edges)[some], fetches.changed[some] / fetches.again[some] * 100
    line = Line(0, "changed", x, share) if some.any() else _nothing("changed")
    label = "changed (% of the pages fetched again)"
    return Chart("changed-time", "Changes found", "", _time(fetches.edges[-1]), axis(label, 100.0, "%"), [line])


def _nothing(name: str) -> Line:
    return Line(0, name, np.zeros(1), np.zeros(1))


def _middles(edges: Floats) -> Floats:
    """Of the bins, in the unit of the axis."""
    return (edges[1:] + edges[:-1]) / 2 / time_unit(edges[-1]).seconds


def _time(end_s: float) -> Axis:
    unit = time_unit(end_s)
    return axis(f"time ({unit.name})", end_s / unit.seconds, tight=True)
