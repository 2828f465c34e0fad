"""`trapline refresh`: the group of commands on refreshing, and `replay`. The other commands have modules of their own."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.lazy import Lazy, LazyGroup
from trapline.cli.options.scheduling import POLICIES
from trapline.cli.options.sections import Many, Section, SectionedCommand, bundled
from trapline.cli.options.values import count, real, seconds, share
from trapline.cli.refresh.replay_options import ReplayOptions, capacities, policies, read_trace
from trapline.cli.refresh.results import (
    ReplayResults,
    ReplayRow,
    check_output,
    for_machines,
    say_interrupted,
    show,
    write_plot,
)
from trapline.cli.terminal.errors import INTERRUPTED
from trapline.cli.terminal.progress import Progress, compile_kernels, compile_policies
from trapline.terminal import say_json

if TYPE_CHECKING:
    from trapline.refresh import Policy, ReplayWorld, Trace

_FILE = click.Path(path_type=Path)

_WHAT = Section(
    "What to compare",
    (
        (
            "--policy",
            "policy",
            (str, "P[,P...]"),
            "residual-life",
            f"Policies to replay: {POLICIES}, or all. [residual-life]",
        ),
        ("--capacity", "capacity", (str, "C[,C...]"), "0.1", "Number of fetches per update of the trace: 0.1 or 10%."),
        (
            "--level",
            "level",
            Many("LEVEL"),
            ("smart",),
            "Level of all providers, or shares of levels: normal=.4,super=.6. A normal provider announces nothing, a smart one announces"
            " its updates, and a super one also announces its future updates. Repeatable. [smart]",
        ),
        ("--seeds", "seeds", count(1, 10_000), 5, "Number of random repetitions, for the 95 % confidence intervals."),
        (
            "--option",
            "option",
            Many("P.NAME=X"),
            (),
            "Option of a policy, such as cgm.estimator=mle (see docs/refresh.md). Repeatable.",
        ),
    ),
)
_WORLD = Section(
    "The world",
    (
        ("--accesses", "accesses", count(1), 20_000, "Total number of accesses."),
        ("--zipf", "zipf", real(10.0), 0.85, "Skew of accesses over pages: exponent of Zipf's law; 0: uniform."),
        (
            "--zipf-time",
            "zipf_time",
            real(10.0),
            0.0,
            "Skew of accesses over time (see --cycle): exponent of Zipf's law; 0: Poisson arrivals.",
        ),
        ("--precision", "precision", share(), 1.0, "Share of signals that announce a real update."),
        ("--recall", "recall", share(), 1.0, "Share of updates that are signalled."),
        (
            "--last-modified",
            "last_modified",
            None,
            False,
            "Show the crawler the Last-Modified date of pages, for estimators that use it.",
        ),
        ("--schedule-precision", "schedule_precision", share(), 1.0, "Share of published update times that are true."),
        (
            "--schedule-errors",
            "schedule_errors",
            click.Choice(["moved", "added"]),
            "moved",
            "Kind of schedule errors: updates moved in time, or updates added.",
        ),
        (
            "--calibrated",
            "calibrated",
            None,
            False,
            "Publish each update time with a probability, --schedule-precision, instead of as certain.",
        ),
        (
            "--cycle",
            "cycle_s",
            seconds(1.0),
            1800.0,
            "Length of the cycles into which --zipf-time and the policy xu divide time.",
        ),
        ("--warm-up", "warm_up", share(), 0.2, "Share of the trace, at its start, that is not measured."),
        ("--step", "step_s", seconds(), 0.0, "Round update times up to a multiple of this time; 0: no rounding."),
        ("--whole", "whole", None, False, "Also replay the early part of a history, in which few pages existed."),
    ),
)
_MEASURE = Section(
    "The measure",
    (
        (
            "--eq3",
            "eq3",
            click.Choice(["repaired", "literal"]),
            "repaired",
            "Form of Eq. 3: repaired is 1 / (1 + sum), literal is min(1, 1 / sum).",
        ),
        (
            "--eq3-weight",
            "eq3_weight",
            click.Choice(["index", "count"]),
            "index",
            "Weight of the m-th missed update in Eq. 3: m (index), or the number of missed updates (count).",
        ),
        (
            "--t0",
            "t0_s",
            seconds(),
            0.0,
            "Unit in which Eq. 3 measures the age of updates; 0: the length of a cycle (--cycle).",
        ),
    ),
)
_OUTPUT = Section(
    "Output",
    (
        ("--json", "as_json", None, False, "Print the result as JSON instead of a table."),
        ("--plot", "plot_file", (_FILE, "FILE.png"), None, "Write a plot of freshness against capacity."),
    ),
)


_COMMANDS = {
    "replay": Lazy("trapline.cli.refresh.command:replay", "Replay an update trace with several policies."),
    "serve": Lazy("trapline.cli.refresh.serve:serve", "Receive pings and WebSub deliveries for a crawl."),
    "subscribe": Lazy(
        "trapline.cli.refresh.subscribe:subscribe", "Subscribe to changes of a page or feed at its WebSub hub."
    ),
    "accesses": Lazy(
        "trapline.cli.refresh.accesses:accesses", "Read access logs, to learn how often people access pages."
    ),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def refresh() -> None:
    """Receive signals for a crawl that refreshes pages, and compare refresh policies.

    `trapline crawl --continuous` refreshes pages. `serve`, `subscribe` and `accesses` give such a crawl pings, WebSub deliveries and access
    logs; `replay` compares policies on recorded updates. docs/how-to/keep-pages-fresh.md has an example.
    """


@click.command(cls=SectionedCommand)
@click.argument("trace")
@bundled("options", ReplayOptions, _WHAT, _WORLD, _MEASURE)
@_OUTPUT
def replay(trace: str, options: ReplayOptions, as_json: bool, plot_file: Path | None) -> int:
    """Replay the updates in TRACE and measure how fresh each policy keeps the copies.

    TRACE is a file or folder (see docs/refresh.md), `peps` (a sample that comes with Trapline), or a random trace:
    poisson:PAGES:UPDATES[:DAYS] or bursty:PAGES:UPDATES[:DAYS]. Freshness is measured at each access, in two ways. Binary freshness
    is the share of accesses that find an up-to-date copy. Graded freshness (Eq. 3 of Xu et al., corrected) is the mean over all
    accesses of a value from 0 to 1. The value falls with the number of updates that the copy has missed, and with the age of these
    updates. A TIME is in seconds or has a unit: 2min, 1h. A SHARE is 0.05 or 5%. Defaults are in brackets.
    """
    check_output(plot_file)
    found = run_all(trace, options)
    if found.rows and not as_json:
        show(found)
    if found.interrupted:
        say_interrupted(found)
        return INTERRUPTED
    write_plot(found, plot_file)
    if as_json:
        say_json(for_machines(found))
    return 0


# ---- The runs of `trapline refresh replay`: every policy, level and capacity on the same worlds. results.py shows the results.

Step = Callable[[str], None]
MEASURES = ("binary", "eq3", "binary_time", "eq3_time")


def run_all(source: str, options: ReplayOptions) -> ReplayResults:
    chosen, rates = policies(options), capacities(options.capacity)
    for level in options.level:
        options.conditions(level)  # reports errors in the options before anything is compiled
    with Progress("reading the trace", plain_every_s=2.0) as progress:
        progress.update(0, 1, source)
        trace = read_trace(source, options.whole, options.step_s)
    compile_kernels()
    compile_policies(chosen)
    rows: list[ReplayRow] = []
    wanted = len(chosen) * len(rates) * len(options.level)
    with Progress("replaying", plain_every_s=2.0) as progress, suppress(KeyboardInterrupt):
        step = _counted_steps(progress, (wanted + len(options.level)) * options.seeds)
        for level in options.level:
            for row in _rows(trace, options, level, chosen, rates, step):
                rows.append(row)
    return ReplayResults(trace, options, rows, wanted)


def _counted_steps(progress: Progress, total: int) -> Step:
    """Return a function that counts steps and shows them. A step is one sampling or one replay of a world."""
    done = 0

    def step(name: str) -> None:
        nonlocal done
        progress.update(done, total, name)
        done += 1

    return step


def _rows(
    trace: "Trace", options: ReplayOptions, level: str, chosen: list["Policy"], rates: list[float], step: Step
) -> Iterator[ReplayRow]:
    worlds = list(_worlds(trace, options, level, step))
    for capacity in rates:
        for policy in chosen:
            yield _row(policy, level, capacity, worlds, step)


def _worlds(trace: "Trace", options: ReplayOptions, level: str, step: Step) -> Iterator["ReplayWorld"]:
    from trapline.refresh import draw_world

    for seed in range(options.seeds):
        step(f"{level}: sampling world {seed}")
        yield draw_world(trace, options.conditions(level), seed)


def _row(policy: "Policy", level: str, capacity: float, worlds: list["ReplayWorld"], step: Step) -> ReplayRow:
    from trapline.confidence import estimate
    from trapline.refresh import replay_world

    runs = []
    for seed, world in enumerate(worlds):
        step(f"{policy.name}, {level}, {capacity:g}, seed {seed}")
        runs.append(replay_world(world, policy, capacity))
    freshness = {name: estimate([getattr(run, name) for run in runs]) for name in MEASURES}
    return ReplayRow(
        policy.name, level, capacity, freshness, sum(run.useful for run in runs) / sum(run.crawls for run in runs)
    )
