"""Behind `trapline refresh replay`: every policy, level and capacity on the same worlds. What comes of it is shown elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from trapline.cli.compiling import compile_kernels, compile_policies
from trapline.cli.histories import DRAWN
from trapline.cli.progress import Progress
from trapline.cli.refresh_found import Found, Row
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.refresh import Conditions, Policy, Trace, World

Step = Callable[[str], None]
_DAYS = 31.0
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


def run_all(source: str, asked: Asked) -> Found:
    chosen, capacities = _policies(asked), _capacities(asked.capacity)
    for level in asked.level:
        asked.conditions(level)  # what is wrong with it is said before anything is compiled
    with Progress("reading the trace", plain_every_s=2.0) as progress:
        progress.update(0, 1, source)
        trace = read_trace(source, asked.whole, asked.step_s)
    compile_kernels()
    compile_policies(chosen)
    rows: list[Row] = []
    wanted = len(chosen) * len(capacities) * len(asked.level)
    with Progress("replaying", plain_every_s=2.0) as progress, suppress(KeyboardInterrupt):
        step = _counted_steps(progress, (wanted + len(asked.level)) * asked.seeds)
        for level in asked.level:
            for row in _rows(trace, asked, level, chosen, capacities, step):
                rows.append(row)
    return Found(trace, asked, rows, wanted)


def _counted_steps(progress: Progress, total: int) -> Step:
    """A step is a world drawn or replayed once."""
    done = 0

    def step(what: str) -> None:
        nonlocal done
        progress.update(done, total, what)
        done += 1

    return step


def _rows(
    trace: "Trace", asked: Asked, level: str, chosen: list["Policy"], capacities: list[float], step: Step
) -> Iterator[Row]:
    worlds = list(_worlds(trace, asked, level, step))
    for capacity in capacities:
        for policy in chosen:
            yield _row(policy, level, capacity, worlds, step)


def _worlds(trace: "Trace", asked: Asked, level: str, step: Step) -> Iterator["World"]:
    from trapline.refresh import draw_world

    for seed in range(asked.seeds):
        step(f"{level}: drawing world {seed}")
        yield draw_world(trace, asked.conditions(level), seed)


def _row(policy: "Policy", level: str, capacity: float, worlds: list["World"], step: Step) -> Row:
    from trapline.refresh import estimate, replay

    runs = []
    for seed, world in enumerate(worlds):
        step(f"{policy.name}, {level}, {capacity:g}, seed {seed}")
        runs.append(replay(world, policy, capacity))
    freshness = {name: estimate([getattr(run, name) for run in runs]) for name in MEASURES}
    return Row(
        policy.name, level, capacity, freshness, sum(run.useful for run in runs) / sum(run.crawls for run in runs)
    )


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
    """
    >>> _number("0.1", "--capacity"), _number("35%", "--capacity")
    (0.1, 0.35)
    """
    try:
        number = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        raise ConfigError(f"{where}: {text!r} is not a number") from None
    if not 0.0 <= number <= 1e9:
        raise ConfigError(f"{where}: {text} is not in 0..1e9")
    return number


def read_trace(source: str, whole: bool, step_s: float) -> "Trace":
    """A recorded trace by its file or folder, or a drawn one; in steps of so many seconds, if not 0."""
    from trapline.refresh import drawn_trace, in_steps, load_trace

    kind, *sizes = source.split(":")
    if kind in DRAWN and not Path(source).exists():
        if len(sizes) not in (2, 3) or not all(size.isdecimal() and 0 < int(size) < 10**9 for size in sizes):
            raise ConfigError(f"{source}: a drawn trace is {kind}:PAGES:UPDATES[:DAYS], whole numbers above 0")
        trace = drawn_trace(kind, int(sizes[0]), int(sizes[1]), float(sizes[2]) if sizes[2:] else _DAYS, seed=0)
    else:
        trace = load_trace(Path(source), whole)
    return in_steps(trace, step_s) if step_s else trace
