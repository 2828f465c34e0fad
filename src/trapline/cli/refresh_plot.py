"""The picture of `trapline refresh replay`: binary freshness against capacity, a line for each policy and level."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trapline.cli.refresh_replay import Found


def picture(found: "Found") -> bytes:
    import numpy as np

    from trapline.report.axis import axis
    from trapline.report.chart import Chart, Line
    from trapline.report.plot import chart_png

    several = len(found.asked.level) > 1
    groups: dict[str, list[tuple[float, float]]] = {}
    for row in found.rows:
        name = f"{row.policy}, {row.level}" if several else row.policy
        groups.setdefault(name, []).append((row.capacity, 100.0 * row.freshness["binary"].mean))
    lines = []
    for index, (name, points) in enumerate(groups.items()):
        x, y = np.array(sorted(points)).T
        lines.append(Line(index, name, x, y, f"{y.mean():.1f} %"))
    x_axis = axis("crawls per update", max(row.capacity for row in found.rows))
    y_axis = axis("accesses that find a fresh copy", 100.0, "%", tight=True)
    chart = Chart("freshness", "Freshness", "mean", x_axis, y_axis, lines)
    seeds = "seed" if found.asked.seeds == 1 else "seeds"
    return chart_png(
        chart, f"Freshness of {found.trace.name}", f"{', '.join(found.asked.level)}; {found.asked.seeds} {seeds}"
    )
