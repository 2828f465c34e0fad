"""The runs of `trapline refresh replay`: every policy, level and capacity on the same worlds. results.py shows the results."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from trapline.cli.refresh.replay_options import ReplayOptions, capacities, policies, read_trace
from trapline.cli.refresh.results import ReplayResults, ReplayRow
from trapline.cli.terminal.progress import Progress, compile_kernels, compile_policies

if TYPE_CHECKING:
    from trapline.refresh import Policy, ReplayWorld, Trace

Step = Callable[[str], None]
MEASURES = ("binary", "eq3", "binary_time", "eq3_time")


def run_all(source: str, asked: ReplayOptions) -> ReplayResults:
    chosen, rates = policies(asked), capacities(asked.capacity)
    for level in asked.level:
        asked.conditions(level)  # reports errors in the options before anything is compiled
    with Progress("reading the trace", plain_every_s=2.0) as progress:
        progress.update(0, 1, source)
        trace = read_trace(source, asked.whole, asked.step_s)
    compile_kernels()
    compile_policies(chosen)
    rows: list[ReplayRow] = []
    wanted = len(chosen) * len(rates) * len(asked.level)
    with Progress("replaying", plain_every_s=2.0) as progress, suppress(KeyboardInterrupt):
        step = _counted_steps(progress, (wanted + len(asked.level)) * asked.seeds)
        for level in asked.level:
            for row in _rows(trace, asked, level, chosen, rates, step):
                rows.append(row)
    return ReplayResults(trace, asked, rows, wanted)


def _counted_steps(progress: Progress, total: int) -> Step:
    """Return a function that counts steps and shows them. A step is one sampling or one replay of a world."""
    done = 0

    def step(name: str) -> None:
        nonlocal done
        progress.update(done, total, name)
        done += 1

    return step


def _rows(
    trace: "Trace", asked: ReplayOptions, level: str, chosen: list["Policy"], rates: list[float], step: Step
) -> Iterator[ReplayRow]:
    worlds = list(_worlds(trace, asked, level, step))
    for capacity in rates:
        for policy in chosen:
            yield _row(policy, level, capacity, worlds, step)


def _worlds(trace: "Trace", asked: ReplayOptions, level: str, step: Step) -> Iterator["ReplayWorld"]:
    from trapline.refresh import draw_world

    for seed in range(asked.seeds):
        step(f"{level}: sampling world {seed}")
        yield draw_world(trace, asked.conditions(level), seed)


def _row(policy: "Policy", level: str, capacity: float, worlds: list["ReplayWorld"], step: Step) -> ReplayRow:
    from trapline.refresh import estimate, replay_world

    runs = []
    for seed, world in enumerate(worlds):
        step(f"{policy.name}, {level}, {capacity:g}, seed {seed}")
        runs.append(replay_world(world, policy, capacity))
    freshness = {name: estimate([getattr(run, name) for run in runs]) for name in MEASURES}
    return ReplayRow(
        policy.name, level, capacity, freshness, sum(run.useful for run in runs) / sum(run.crawls for run in runs)
    )
