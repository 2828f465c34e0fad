"""`trapline refresh`: the group of commands on refreshing, and `replay`. The other commands have modules of their own."""

from pathlib import Path

import click

from trapline.cli.lazy import Lazy, LazyGroup
from trapline.cli.options.sections import Many, Section, SectionedCommand, bundled
from trapline.cli.options.values import count, real, seconds, share
from trapline.cli.refresh.replay import run_all
from trapline.cli.refresh.replay_options import ReplayOptions
from trapline.cli.refresh.results import check_outputs, say_interrupted, show, write
from trapline.cli.terminal.errors import INTERRUPTED

_FILE = click.Path(path_type=Path)

_WHAT = Section(
    "What to compare",
    (
        ("--policy", "policy", (str, "P[,P...]"), "residual-life", "Names of the policies to replay, or all."),
        ("--capacity", "capacity", (str, "C[,C...]"), "0.1", "Crawls per update of the trace: 0.1 or 10%."),
        (
            "--level",
            "level",
            Many("LEVEL"),
            ("smart",),
            "Provider level: normal, smart, super, or shares: normal=.4,super=.6. Repeatable. [smart]",
        ),
        ("--seeds", "seeds", count(1, 10_000), 5, "Number of random worlds; confidence intervals are 95 %."),
        (
            "--option",
            "option",
            Many("P.NAME=X"),
            (),
            "Option of a policy, such as cgm.estimator=mle, see docs/refresh.md. Repeatable.",
        ),
    ),
)
_WORLD = Section(
    "The world",
    (
        ("--accesses", "accesses", count(1), 20_000, "Total number of accesses."),
        ("--zipf", "zipf", real(10.0), 0.85, "Skew of accesses over pages."),
        ("--zipf-time", "zipf_time", real(10.0), 0.0, "Skew of accesses over cycles; 0: Poisson."),
        ("--precision", "precision", share(), 1.0, "Share of signals that announce a real update."),
        ("--recall", "recall", share(), 1.0, "Share of updates that are signalled."),
        (
            "--last-modified",
            "last_modified",
            None,
            False,
            "Let crawls see Last-Modified, for estimators that use it.",
        ),
        ("--schedule-precision", "schedule_precision", share(), 1.0, "Share of scheduled times that are real updates."),
        (
            "--schedule-errors",
            "schedule_errors",
            click.Choice(["moved", "added"]),
            "moved",
            "Kind of schedule errors: updates moved in time, or extra ones added.",
        ),
        (
            "--calibrated",
            "calibrated",
            None,
            False,
            "Publish scheduled times with the schedule's precision instead of p = 1.",
        ),
        ("--cycle", "cycle_s", seconds(1.0), 1800.0, "Length of a cycle."),
        ("--warm-up", "warm_up", share(), 0.2, "Share of the time that passes before measuring starts."),
        ("--step", "step_s", seconds(), 0.0, "Round update times up to this step; 0: no rounding."),
        ("--whole", "whole", None, False, "Replay histories from their start, when few of the pages existed."),
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
            "Form of Eq. 3: 1 / (1 + sum), or min(1, 1 / sum).",
        ),
        (
            "--eq3-weight",
            "eq3_weight",
            click.Choice(["index", "count"]),
            "index",
            "Weight of a missed update: m for the m-th one, or the number of missed ones.",
        ),
        ("--t0", "t0_s", seconds(), 0.0, "Time unit of Eq. 3; 0: one cycle."),
    ),
)
_OUTPUT = Section(
    "Output",
    (
        ("--json", "json_file", (_FILE, "FILE"), None, "Write the result as JSON; -: to stdout."),
        ("--plot", "plot_file", (_FILE, "FILE.png"), None, "Plot freshness against capacity."),
    ),
)


_COMMANDS = {
    "replay": Lazy("trapline.cli.refresh.command:replay", "Replay an update trace with several policies."),
    "serve": Lazy("trapline.cli.refresh.serve:serve", "Receive pings and WebSub deliveries for a crawl."),
    "subscribe": Lazy(
        "trapline.cli.refresh.subscribe:subscribe", "Subscribe to changes of a page or feed with its WebSub hub."
    ),
    "accesses": Lazy("trapline.cli.refresh.accesses:accesses", "Read from access logs how often people access pages."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def refresh() -> None:
    """Receive signals for a crawl that refreshes pages, and compare refresh policies.

    `trapline crawl --continuous` refreshes pages. These commands bring it pings, feeds and access logs, and replay policies on recorded
    updates. See docs/how-to/keep-pages-fresh.md for an example.
    """


@click.command(cls=SectionedCommand)
@click.argument("trace")
@bundled("asked", ReplayOptions, _WHAT, _WORLD, _MEASURE)
@_OUTPUT
def replay(trace: str, asked: ReplayOptions, json_file: Path | None, plot_file: Path | None) -> int:
    """Replay the updates in TRACE and measure how fresh each policy keeps the copies.

    TRACE is a file or folder (see docs/refresh.md), or a random trace: poisson:PAGES:UPDATES[:DAYS] or bursty:PAGES:UPDATES[:DAYS].
    Freshness is measured at accesses: the share that finds an up-to-date copy (binary), and the mean of the paper's measure, corrected
    (Eq. 3). A SHARE is 0.05 or 5%. Defaults are in brackets.
    """
    check_outputs(json_file, plot_file)
    found = run_all(trace, asked)
    if found.rows and json_file != Path("-"):
        show(found)
    if found.interrupted:
        say_interrupted(found)
        return INTERRUPTED
    write(found, json_file, plot_file)
    return 0
