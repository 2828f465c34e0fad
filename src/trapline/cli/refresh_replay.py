"""Behind `trapline refresh replay`: every policy, level and capacity on the same worlds; a table, JSON and a picture."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.compiling import compile_kernels
from trapline.cli.progress import Progress
from trapline.cli.refresh_plot import picture
from trapline.errors import ConfigError
from trapline.output import check_writable, write_bytes, write_json
from trapline.units import counted, duration

if TYPE_CHECKING:
    from trapline.refresh import Conditions, Estimate, Policy, Trace

_STDOUT = Path("-")
_DRAWN = ("poisson", "bursty")
_DAYS = 31.0
_FEW_SEEDS = 5  # Student's t is 2.8 there and 12.7 with two: the interval itself is then known to a factor of several
MEASURES = ("binary", "eq3", "binary_time", "eq3_time")


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command, by the names of their fields."""

    policy: str
    capacity: str
    level: tuple[str, ...]
    seeds: int
    option: tuple[str, ...]
    accesses: int
    zipf: float
    zipf_time: float
    precision: float
    recall: float
    last_modified: bool
    schedule_precision: float
    schedule_errors: str
    calibrated: bool
    cycle_s: float
    warm_up: float
    step_s: float
    whole: bool
    eq3: str
    eq3_weight: str
    t0_s: float

    def conditions(self, level: str) -> "Conditions":
        from trapline.refresh import Conditions, Measure

        same = {field.name: getattr(self, field.name) for field in fields(Conditions) if hasattr(self, field.name)}
        return Conditions(levels=_levels(level), measure=Measure(self.eq3, self.eq3_weight, self.t0_s), **same)


@dataclass(frozen=True, slots=True)
class Row:
    """One policy at one level and capacity: an estimate for each measure."""

    policy: str
    level: str
    capacity: float
    freshness: dict[str, "Estimate"]
    useful: float
    """share of crawls that found something new"""

    def for_machines(self) -> dict[str, Any]:
        estimates = {f"freshness_{name}": asdict(found) for name, found in self.freshness.items()}
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
    asked: Asked
    rows: list[Row]


def check_outputs(json_file: Path | None, plot_file: Path | None) -> None:
    if plot_file is not None and plot_file.suffix != ".png":
        raise ConfigError(f"{plot_file}: the picture is a PNG; its name must end in .png")
    for file in (json_file, plot_file):
        if file is not None and file != _STDOUT:
            check_writable(file)


def run_all(source: str, asked: Asked) -> Found:
    chosen, capacities = _policies(asked), _capacities(asked.capacity)
    for level in asked.level:
        asked.conditions(level)  # what is wrong with it is said before anything is compiled
    trace = read_trace(source, asked.whole, asked.step_s)
    compile_policies(chosen)
    wanted = len(chosen) * len(capacities) * len(asked.level)
    rows: list[Row] = []
    with Progress("replaying", plain_every_s=2.0) as progress:
        for level in asked.level:
            for row in _rows(trace, asked, level, chosen, capacities):
                rows.append(row)
                progress.update(len(rows), wanted, f"{row.policy}, {level}, {row.capacity:g}")
    return Found(trace, asked, rows)


def _rows(trace: "Trace", asked: Asked, level: str, chosen: list["Policy"], capacities: list[float]) -> Iterator[Row]:
    from trapline.refresh import draw_world, estimate, replay

    worlds = [draw_world(trace, asked.conditions(level), seed) for seed in range(asked.seeds)]
    for capacity in capacities:
        for policy in chosen:
            runs = [replay(world, policy, capacity) for world in worlds]
            freshness = {name: estimate([getattr(run, name) for run in runs]) for name in MEASURES}
            useful = sum(run.useful for run in runs) / sum(run.crawls for run in runs)
            yield Row(policy.name, level, capacity, freshness, useful)


# ---- what was asked for


def _policies(asked: Asked) -> list["Policy"]:
    from trapline.refresh import all_policies, policy_named

    names = list(all_policies()) if asked.policy == "all" else asked.policy.split(",")
    chosen = {name: policy_named(name) for name in names}
    for text in asked.option:
        owner, dot, rest = text.partition(".")
        name, equals, value = rest.partition("=")
        if not dot or not equals or owner not in chosen:
            raise ConfigError(f"--option {text}: not POLICY.NAME=X for one of the policies {', '.join(chosen)}")
        chosen[owner] = chosen[owner].with_options(**{name: value})
    return list(chosen.values())


def _capacities(text: str) -> list[float]:
    found = [_number(part, "--capacity") for part in text.split(",")]
    if min(found) <= 0.0 or max(found) > 100.0:
        raise ConfigError(f"--capacity {text}: crawls per update must be above 0 and at most 100")
    return found


def _levels(text: str) -> dict[str, float]:
    """
    >>> _levels("smart"), _levels("normal=.5,super=.5")
    ({'smart': 1.0}, {'normal': 0.5, 'super': 0.5})
    """
    if "=" not in text:
        return {text: 1.0}
    parts = [part.partition("=") for part in text.split(",")]
    return {name: _number(value, f"--level {text}") for name, _, value in parts}


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ConfigError(f"{where}: {text!r} is not a number") from None
    if not 0.0 <= number <= 1e9:
        raise ConfigError(f"{where}: {text} is not in 0..1e9")
    return number


def read_trace(source: str, whole: bool, step_s: float) -> "Trace":
    """A recorded trace by its file or folder, or a drawn one; in steps of so many seconds, if not 0."""
    from trapline.refresh import drawn_trace, in_steps, load_trace

    kind, *sizes = source.split(":")
    if kind in _DRAWN and not Path(source).exists():
        if len(sizes) not in (2, 3) or not all(size.isdecimal() and 0 < int(size) < 10**9 for size in sizes):
            raise ConfigError(f"{source}: a drawn trace is {kind}:PAGES:UPDATES[:DAYS], whole numbers above 0")
        trace = drawn_trace(kind, int(sizes[0]), int(sizes[1]), float(sizes[2]) if sizes[2:] else _DAYS, seed=0)
    else:
        trace = load_trace(Path(source), whole)
    return in_steps(trace, step_s) if step_s else trace


def compile_policies(chosen: Iterable["Policy"]) -> None:
    compile_kernels()
    with Progress("compiling policies", plain_every_s=2.0) as progress:
        every = list(chosen)
        for number, policy in enumerate(every):
            progress.update(number, len(every), policy.name)
            policy.compile()


# ---- what was found


def show(found: Found) -> None:
    trace = found.trace
    size = f"{counted(trace.pages, 'page')}, {counted(trace.updates, 'update')} in {duration(trace.horizon_s)}"
    click.echo(f"{trace.name}: {size}; {interval_of(found.asked.seeds)}\n")
    width = max(len(row.policy) for row in found.rows) + 2
    for level, capacity in dict.fromkeys((row.level, row.capacity) for row in found.rows):
        click.echo(f"{level}, {capacity:g} crawls per update")
        click.echo(f"  {'policy':{width}}{'binary':>16}{'Eq. 3':>17}{'useful crawls':>16}")
        rows = [row for row in found.rows if (row.level, row.capacity) == (level, capacity)]
        for row in sorted(rows, key=lambda row: -row.freshness["binary"].mean):
            binary, eq3 = row.freshness["binary"], row.freshness["eq3"]
            click.echo(f"  {row.policy:{width}}{binary!s:>16}{eq3!s:>17}{row.useful:>15.1%}")
        click.echo()


def interval_of(seeds: int) -> str:
    """What a ± is worth.

    >>> interval_of(1), interval_of(2)
    ('n = 1 seed', 'n = 2 seeds, ± 95 % by these few: take it for a hint')
    """
    told = f"n = {counted(seeds, 'seed')}"
    if seeds == 1:
        return told
    return f"{told}, ± 95 %" + (" by these few: take it for a hint" if seeds < _FEW_SEEDS else "")


def write(found: Found, json_file: Path | None, plot_file: Path | None) -> None:
    if json_file is not None:
        value = _for_machines(found)
        click.echo(json.dumps(value, indent=1)) if json_file == _STDOUT else write_json(json_file, value)
    if plot_file is not None:
        write_bytes(plot_file, _picture(found))


def _picture(found: Found) -> bytes:
    several = len(found.asked.level) > 1
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in found.rows:
        name = f"{row.policy}, {row.level}" if several else row.policy
        curves.setdefault(name, []).append((row.capacity, row.freshness["binary"].mean))
    conditions = f"{', '.join(found.asked.level)}; {counted(found.asked.seeds, 'seed')}"
    return picture(curves, f"Freshness of {found.trace.name}", conditions)


def _for_machines(found: Found) -> dict[str, Any]:
    from trapline import __version__

    trace, rows = found.trace, [row.for_machines() for row in found.rows]
    described = {"pages": trace.pages, "updates": trace.updates, "sites": trace.sites, "seconds": trace.horizon_s}
    return {
        "trapline": __version__,
        "trace": {"name": trace.name, **described, **trace.origin},
        "asked": asdict(found.asked),
        **(rows[0] if len(rows) == 1 else {}),
        "results": rows,
    }
