"""What `trapline refresh replay` found: rows, and how they are shown as a table, JSON and a picture. It replays nothing."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trapline.cli.refresh_plot import picture
from trapline.errors import ConfigError
from trapline.output import check_writable, write_bytes, write_json
from trapline.terminal import say, say_text
from trapline.units import counted, duration

if TYPE_CHECKING:
    from trapline.cli.refresh_replay import Asked
    from trapline.refresh import Estimate, Trace

_STDOUT = Path("-")
_LEAST_SEEDS = 3  # for an interval: with two Student's t is 12.7, and what it says is that nothing is known
_MEASURED = {"binary": "accesses that find a fresh copy", "eq3": "mean F of accesses, Eq. 3"}
_FEW_SEEDS = 5  # t is 2.8 there: with fewer, the interval itself is known to a factor of several


@dataclass(frozen=True, slots=True)
class Row:
    """One policy at one level and capacity: an estimate for each measure."""

    policy: str
    level: str
    capacity: float
    freshness: dict[str, "Estimate"]
    useful: float
    """share of crawls that found something new"""

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
class Found:
    trace: "Trace"
    asked: "Asked"
    rows: list[Row]
    wanted: int

    @property
    def interrupted(self) -> bool:
        return len(self.rows) < self.wanted


def check_outputs(json_file: Path | None, plot_file: Path | None) -> None:
    if plot_file is not None and plot_file.suffix != ".png":
        raise ConfigError(f"{plot_file}: the picture is a PNG; its name must end in .png")
    for file in (json_file, plot_file):
        if file is not None and file != _STDOUT:
            check_writable(file)


def show(found: Found) -> None:
    trace = found.trace
    size = f"{counted(trace.pages, 'page')}, {counted(trace.updates, 'update')} in {duration(trace.horizon_s)}"
    say_text(f"{trace.name}: {size}; {interval_of(found.asked.seeds)}\n")
    width = max(len("policy"), *(len(row.policy) for row in found.rows)) + 2
    for level, capacity in dict.fromkeys((row.level, row.capacity) for row in found.rows):
        say(f"{level}, {capacity:g} crawls per update")
        say(f"  {'policy':{width}}{'binary':>16}{'Eq. 3':>17}{'useful crawls':>15}")
        rows = [row for row in found.rows if (row.level, row.capacity) == (level, capacity)]
        for row in sorted(rows, key=lambda row: -row.freshness["binary"].mean):
            binary, eq3 = (shown(row.freshness[name], found.asked.seeds) for name in ("binary", "eq3"))
            say(f"  {row.policy:{width}}{binary!s:>16}{eq3!s:>17}{row.useful:>15.1%}")
        say("")


def shown(one: "Estimate", seeds: int) -> "Estimate":
    """Without an interval, if it is by too few seeds to be one."""
    return replace(one, ci=None) if seeds < _LEAST_SEEDS else one


def interval_of(seeds: int) -> str:
    """What a ± is worth.

    >>> interval_of(1), interval_of(2)
    ('n = 1 seed, too few for an interval', 'n = 2 seeds, too few for an interval')
    >>> interval_of(3)
    'n = 3 seeds, ± 95 % by these few: take it for a hint'
    """
    told = f"n = {counted(seeds, 'seed')}"
    if seeds < _LEAST_SEEDS:
        return f"{told}, too few for an interval"
    return f"{told}, ± 95 %" + (" by these few: take it for a hint" if seeds < _FEW_SEEDS else "")


def say_interrupted(found: Found) -> None:
    rows = f"{len(found.rows):,} of {counted(found.wanted, 'row')}"
    say(f"trapline: interrupted after {rows}; no file is written", err=True)


def write(found: Found, json_file: Path | None, plot_file: Path | None) -> None:
    if json_file is not None:
        value = _for_machines(found)
        say_text(json.dumps(value, indent=1)) if json_file == _STDOUT else write_json(json_file, value)
    if plot_file is not None:
        write_bytes(plot_file, _picture(found))
    for file in (json_file, plot_file):
        if file is not None and file != _STDOUT:
            say(f"wrote {file}", err=True)


def _picture(found: Found) -> bytes:
    panels = {label: _curves(found, measure) for measure, label in _MEASURED.items()}
    conditions = f"{', '.join(found.asked.level)}; {interval_of(found.asked.seeds)}"
    return picture(panels, f"Freshness of {found.trace.name}", conditions)


def _curves(found: Found, measure: str) -> dict[str, list[tuple[float, "Estimate"]]]:
    several = len(found.asked.level) > 1
    curves: dict[str, list[tuple[float, Estimate]]] = {}
    for row in found.rows:
        name = f"{row.policy}, {row.level}" if several else row.policy
        curves.setdefault(name, []).append((row.capacity, shown(row.freshness[measure], found.asked.seeds)))
    return curves


def _for_machines(found: Found) -> dict[str, Any]:
    from trapline import __version__

    trace, rows = found.trace, [row.for_machines(found.asked.seeds) for row in found.rows]
    policies, capacities = (list(dict.fromkeys(row[name] for row in rows)) for name in ("policy", "capacity"))
    described = {"pages": trace.pages, "updates": trace.updates, "sites": trace.sites, "seconds": trace.horizon_s}
    return {
        "trapline": __version__,
        "trace": {"name": trace.name, **described, **trace.origin},
        "asked": {**asdict(found.asked), "policy": policies, "capacity": capacities},
        **(rows[0] if len(rows) == 1 else {}),
        "results": rows,
    }
