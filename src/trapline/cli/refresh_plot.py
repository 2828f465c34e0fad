"""The picture of `trapline refresh replay`: binary freshness against capacity, a line for each policy and level."""

from collections.abc import Mapping, Sequence

Points = Sequence[tuple[float, float]]


def picture(curves: Mapping[str, Points], title: str, conditions: str) -> bytes:
    """A PNG. `curves`: of each name, capacities with the share of fresh accesses."""
    import numpy as np

    from trapline.report.axis import axis
    from trapline.report.chart import Chart, Line
    from trapline.report.plot import chart_png

    lines = []
    for index, (name, points) in enumerate(curves.items()):
        x, y = np.array(sorted(points)).T
        lines.append(Line(index, name, x, 100.0 * y, f"{100.0 * y.mean():.1f} %"))
    x_axis = axis("crawls per update", max(capacity for points in curves.values() for capacity, _ in points))
    y_axis = axis("accesses that find a fresh copy", 100.0, "%", tight=True)
    return chart_png(Chart("freshness", "Freshness", "mean", x_axis, y_axis, lines), title, conditions)
