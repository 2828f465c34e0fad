"""The results of `trapline refresh replay`, and their output as a table, JSON and a plot. This module replays nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trapline.errors import ConfigError
from trapline.output import check_writable, write_bytes
from trapline.terminal import say, say_text
from trapline.units import counted, duration

if TYPE_CHECKING:
    from trapline.cli.refresh.replay_options import ReplayOptions
    from trapline.confidence import Estimate
    from trapline.refresh import Trace

# ---- The plot of `trapline refresh replay`: freshness with confidence intervals, one panel per measure. With several capacities, one line
# per policy and level; with one capacity, one point each. This part knows estimates, not traces.

Points = Sequence[tuple[float, "Estimate"]]
Curves = Mapping[str, Points]  # by name: capacities, each with its estimate
_ROW, _FRAME = 0.34, 2.2  # inches: height of one policy, and of title and axis together
_WIDTH, _HEIGHT = 13.0, 6.2  # inches
_NARROW = 40.0  # per cent: data within a range of this size get an axis cut to the data
_GREY = "#404040"


def picture(panels: Mapping[str, Curves], title: str, conditions: str) -> bytes:
    """Return the plot as PNG. `panels`: the same curves by measure."""
    first = next(iter(panels.values()))
    capacities = {capacity for points in first.values() for capacity, _ in points}
    if len(capacities) > 1:
        return _lines(panels, title, conditions)
    return _dots(panels, title, f"{conditions}; {max(capacities):g} crawls per update")


def limits(low: float, high: float) -> tuple[float, float]:
    """Return the limits of an axis in per cent: 0 to 100, unless the data lie within a narrow range.

    >>> limits(5.0, 90.0), limits(50.0, 60.0), limits(99.0, 100.0)
    ((0.0, 100.0), (48.0, 62.0), (98.0, 100.0))
    """
    if high - low > _NARROW:
        return 0.0, 100.0
    margin = max(1.0, 0.2 * (high - low))
    return max(0.0, low - margin), min(100.0, high + margin)


def _lines(panels: Mapping[str, Curves], title: str, conditions: str) -> bytes:
    from trapline.report.plot import dress, line_style, png_of

    figure = _figure(_HEIGHT, title, conditions)
    subplots = figure.subplots(1, len(panels))
    for axes, (measured, curves) in zip(subplots, panels.items(), strict=True):
        for index, (name, points) in enumerate(curves.items()):
            x, means, spreads = _columns(sorted(points, key=lambda point: point[0]))
            style = line_style(index)
            axes.errorbar(x, means, spreads, label=name, linewidth=1.8, elinewidth=1.1, capsize=3, **style)
        axes.set_xlim(left=0.0)
        axes.set_ylim(*limits(*_ends(curves)))
        axes.set_xlabel("crawls per update", fontsize=12)
        axes.set_ylabel(_label(measured, axes.get_ylim()), fontsize=12)
        dress(axes)
    figure.legend(*subplots[0].get_legend_handles_labels(), loc="outside right upper", frameon=False, handlelength=3.2)
    return png_of(figure)


def _dots(panels: Mapping[str, Curves], title: str, conditions: str) -> bytes:
    """Return a plot with one point per policy, its value beside it, and the best policy by the first measure on top."""
    from trapline.report.plot import dress, png_of
    from trapline.report.svg import COLOURS

    first = next(iter(panels.values()))
    names = sorted(first, key=lambda name: first[name][0][1].mean)
    figure = _figure(_FRAME + _ROW * len(names), title, conditions)
    subplots = figure.subplots(1, len(panels))
    for place, (axes, (measured, curves)) in enumerate(zip(subplots, panels.items(), strict=True)):
        _, means, spreads = _columns([curves[name][0] for name in names])
        rows = range(len(names))
        axes.errorbar(means, rows, xerr=spreads, fmt="o", color=COLOURS[0], markersize=7, elinewidth=1.4, capsize=4)
        shown = [f"{name}  " if place == 0 else "" for name in names]
        axes.set_yticks(rows, labels=[f"{name}{mean:.1f} %" for name, mean in zip(shown, means, strict=True)])
        axes.set_xlim(*limits(*_ends(curves)))
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.set_xlabel(_label(measured, axes.get_xlim()), fontsize=12)
        dress(axes)
    return png_of(figure)


def _columns(points: Points) -> tuple[list[float], list[float], list[float]]:
    """Return the capacities, the means and half the width of each interval, the last two in per cent."""
    capacities, estimates = [capacity for capacity, _ in points], [estimate for _, estimate in points]
    means = [100.0 * estimate.mean for estimate in estimates]
    return capacities, means, [100.0 * (estimate.ci or 0.0) for estimate in estimates]


def _ends(curves: Curves) -> tuple[float, float]:
    _, means, spreads = _columns([point for points in curves.values() for point in points])
    ends = [mean + side * spread for mean, spread in zip(means, spreads, strict=True) for side in (-1.0, 1.0)]
    return min(ends), max(ends)


def _label(measured: str, shown: tuple[float, float]) -> str:
    return f"{measured} (%)" + ("; axis does not begin at 0" if shown[0] > 0.0 else "")


def _figure(height: float, title: str, conditions: str) -> Any:
    from trapline.report.plot import new_figure, plain

    figure = new_figure(_WIDTH, height, dpi=130)
    figure.suptitle(f"{plain(title)}\n", fontsize=15, fontweight="bold", x=0.02, ha="left")
    figure.text(0.02, 1.0 - 0.55 / height, plain(conditions), fontsize=10.5, color=_GREY, va="top")
    return figure


# ---- The results.

_LEAST_SEEDS = 3  # for an interval: with two seeds, Student's t is 12.7, and the interval is too wide to say anything
_MEASURED = {"binary": "accesses that find a fresh copy", "eq3": "mean F of accesses, Eq. 3"}
_FEW_SEEDS = 5  # Student's t is 2.8 there; with fewer seeds the width of the interval itself is known only to a factor of several


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """The result of one policy at one level and capacity: an estimate for each measure."""

    policy: str
    level: str
    capacity: float
    freshness: dict[str, "Estimate"]
    useful: float
    """Share of crawls that found a change."""

    def for_machines(self, seeds: int) -> dict[str, Any]:
        estimates = {f"freshness_{name}": asdict(shown(found, seeds)) for name, found in self.freshness.items()}
        return {
            "policy": self.policy,
            "level": self.level,
            "capacity": self.capacity,
            **estimates,
            "useful": self.useful,
        }


@dataclass(frozen=True, slots=True)
class ReplayResults:
    trace: "Trace"
    options: "ReplayOptions"
    rows: list[ReplayRow]
    wanted: int

    @property
    def interrupted(self) -> bool:
        return len(self.rows) < self.wanted


def check_output(plot_file: Path | None) -> None:
    if plot_file is not None and plot_file.suffix != ".png":
        raise ConfigError(f"--plot {plot_file}: the plot is a PNG file; give a name that ends in .png")
    if plot_file is not None:
        check_writable(plot_file)


def show(found: ReplayResults) -> None:
    trace = found.trace
    size = f"{counted(trace.pages, 'page')}, {counted(trace.updates, 'update')} in {duration(trace.horizon_s)}"
    say_text(f"{trace.name}: {size}; {interval_of(found.options.seeds)}\n")
    width = max(len("policy"), *(len(row.policy) for row in found.rows)) + 2
    for level, capacity in dict.fromkeys((row.level, row.capacity) for row in found.rows):
        say(f"{level}, {capacity:g} crawls per update")
        say(f"  {'policy':{width}}{'binary':>16}{'Eq. 3':>17}{'useful crawls':>15}")
        rows = [row for row in found.rows if (row.level, row.capacity) == (level, capacity)]
        for row in sorted(rows, key=lambda row: -row.freshness["binary"].mean):
            binary, eq3 = (shown(row.freshness[name], found.options.seeds) for name in ("binary", "eq3"))
            say(f"  {row.policy:{width}}{binary!s:>16}{eq3!s:>17}{row.useful:>15.1%}")
        say("")


def shown(estimate: "Estimate", seeds: int) -> "Estimate":
    """Return the estimate, without its interval if there are too few seeds for one."""
    return replace(estimate, ci=None) if seeds < _LEAST_SEEDS else estimate


def interval_of(seeds: int) -> str:
    """Return what the ± in the results means.

    >>> interval_of(1), interval_of(2)
    ('n = 1 seed, too few for an interval', 'n = 2 seeds, too few for an interval')
    >>> interval_of(3)
    'n = 3 seeds, ± 95 % interval, only a hint with so few seeds'
    """
    number = f"n = {counted(seeds, 'seed')}"
    if seeds < _LEAST_SEEDS:
        return f"{number}, too few for an interval"
    return f"{number}, ± 95 % interval" + (", only a hint with so few seeds" if seeds < _FEW_SEEDS else "")


def say_interrupted(found: ReplayResults) -> None:
    rows = f"{len(found.rows):,} of {counted(found.wanted, 'row')}"
    say(f"trapline: interrupted after {rows}; no file was written", err=True)


def write_plot(found: ReplayResults, plot_file: Path | None) -> None:
    if plot_file is not None:
        write_bytes(plot_file, _picture(found))
        say(f"wrote {plot_file}", err=True)


def _picture(found: ReplayResults) -> bytes:
    panels = {label: _curves(found, measure) for measure, label in _MEASURED.items()}
    conditions = f"{', '.join(found.options.level)}; {interval_of(found.options.seeds)}"
    return picture(panels, f"Freshness of {found.trace.name}", conditions)


def _curves(found: ReplayResults, measure: str) -> dict[str, list[tuple[float, "Estimate"]]]:
    several = len(found.options.level) > 1
    curves: dict[str, list[tuple[float, Estimate]]] = {}
    for row in found.rows:
        name = f"{row.policy}, {row.level}" if several else row.policy
        curves.setdefault(name, []).append((row.capacity, shown(row.freshness[measure], found.options.seeds)))
    return curves


def for_machines(found: ReplayResults) -> dict[str, Any]:
    from trapline import __version__

    trace, rows = found.trace, [row.for_machines(found.options.seeds) for row in found.rows]
    policies, capacities = (list(dict.fromkeys(row[name] for row in rows)) for name in ("policy", "capacity"))
    described = {"pages": trace.pages, "updates": trace.updates, "sites": trace.sites, "seconds": trace.horizon_s}
    return {
        "trapline": __version__,
        "trace": {"name": trace.name, **described, **trace.origin},
        "options": {**asdict(found.options), "policy": policies, "capacity": capacities},
        **(rows[0] if len(rows) == 1 else {}),
        "results": rows,
    }
