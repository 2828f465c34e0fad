"""The options of `trapline refresh replay` as values: policies, levels, capacities, the trace. This module replays nothing."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from trapline.cli.options.sections import refuse
from trapline.cli.options.values import DRAWN
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.refresh import Policy, ReplayConditions, Trace

_DAYS = 31.0


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Values of the options of the command, by field."""

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

    def __post_init__(self) -> None:
        levels = {name for text in self.level for name in _levels(text)}
        if not levels & {"smart", "super"}:
            refuse(("precision", "recall"), "has no effect if no provider sends signals; also give --level smart")
        if "super" not in levels:
            fields = ("schedule_precision", "schedule_errors", "calibrated")
            refuse(fields, "has no effect if no provider has a schedule; also give --level super")
        if self.schedule_precision == 1.0:
            refuse(
                ("schedule_errors", "calibrated"),
                "has no effect on a schedule without errors; also give a --schedule-precision below 1",
            )

    def conditions(self, level: str) -> "ReplayConditions":
        from trapline.refresh import Measure, ReplayConditions

        same = {
            field.name: getattr(self, field.name) for field in fields(ReplayConditions) if hasattr(self, field.name)
        }
        return ReplayConditions(levels=_levels(level), measure=Measure(self.eq3, self.eq3_weight, self.t0_s), **same)


def policies(options: ReplayOptions) -> list["Policy"]:
    from trapline.refresh import all_policies, policy_named

    names = list(all_policies()) if options.policy == "all" else options.policy.split(",")
    chosen = {name: policy_named(name) for name in names}
    for text in options.option:
        owner, dot, rest = text.partition(".")
        name, equals, value = rest.partition("=")
        if not dot or not equals:
            raise ConfigError(f"--option {text}: not of the form POLICY.NAME=X; give for example cgm.estimator=mle")
        if owner not in chosen:
            raise ConfigError(
                f"--option {text}: --policy does not name {owner}; add {owner} to --policy, or give an option of: {', '.join(chosen)}"
            )
        chosen[owner] = chosen[owner].with_options(**{name: value})
    return list(chosen.values())


def capacities(text: str) -> list[float]:
    found = [_number(part, "--capacity") for part in text.split(",")]
    if min(found) <= 0.0 or max(found) > 100.0:
        raise ConfigError(
            f"--capacity {text}: the number of fetches per update must be above 0 and at most 100; give one such as 0.1"
        )
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
        raise ConfigError(f"{where}: {text!r} is not a number; give one such as 0.1 or 10%") from None
    if not 0.0 <= number <= 1e9:
        raise ConfigError(f"{where}: {text} is not between 0 and 1e9")
    return number


def read_trace(source: str, whole: bool, step_s: float) -> "Trace":
    """Return a recorded trace, by its file or folder, or a random one. `step_s`: round update times up to it, unless it is 0."""
    from trapline.refresh import drawn_trace, in_steps, load_trace

    kind, *sizes = source.split(":")
    if kind in DRAWN and not Path(source).exists():
        if len(sizes) not in (2, 3) or not all(size.isdecimal() and 0 < int(size) < 10**9 for size in sizes):
            raise ConfigError(f"{source}: not of the form {kind}:PAGES:UPDATES[:DAYS]; give whole numbers above 0")
        trace = drawn_trace(kind, int(sizes[0]), int(sizes[1]), float(sizes[2]) if sizes[2:] else _DAYS, seed=0)
    else:
        trace = load_trace(Path(source), whole)
    return in_steps(trace, step_s) if step_s else trace
