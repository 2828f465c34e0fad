"""`trapline refresh`: what to fetch again. Here `replay`, an update trace against policies; the others in files of their own."""

from pathlib import Path

import click

from trapline.cli.complaints import INTERRUPTED
from trapline.cli.lazy import Lazy, LazyGroup
from trapline.cli.numbers import count, real, seconds, share
from trapline.cli.refresh_found import check_outputs, say_interrupted, show, write
from trapline.cli.refresh_replay import Asked, run_all
from trapline.cli.sections import Many, Section, SectionedCommand, bundled

_FILE = click.Path(path_type=Path)

_WHAT = Section(
    "What to compare",
    (
        ("--policy", "policy", (str, "P[,P...]"), "residual-life", "Policies by name; all: every one."),
        ("--capacity", "capacity", (str, "C[,C...]"), "0.1", "Crawls per update of the trace: 0.1 or 10%."),
        (
            "--level",
            "level",
            Many("LEVEL"),
            ("smart",),
            "normal, smart, super, or shares: normal=.35,smart=.35,super=.3. [smart]",
        ),
        ("--seeds", "seeds", count(1, 10_000), 5, "So many worlds are drawn; intervals are of 95 %."),
        (
            "--option",
            "option",
            Many("P.NAME=X"),
            (),
            "An option of a policy, such as cgm.estimator=mle: docs/refresh.md.",
        ),
    ),
)
_WORLD = Section(
    "The world",
    (
        ("--accesses", "accesses", count(1), 20_000, "Accesses in all."),
        ("--zipf", "zipf", real(10.0), 0.85, "Skew of accesses over pages."),
        ("--zipf-time", "zipf_time", real(10.0), 0.0, "Skew of accesses over cycles; 0: Poisson."),
        ("--precision", "precision", share(), 1.0, "Share of signals behind which there is an update."),
        ("--recall", "recall", share(), 1.0, "Share of updates that are signalled."),
        (
            "--last-modified",
            "last_modified",
            None,
            False,
            "Crawls see when a page last changed, as estimators may use.",
        ),
        ("--schedule-precision", "schedule_precision", share(), 1.0, "Share of published points that are updates."),
        (
            "--schedule-errors",
            "schedule_errors",
            click.Choice(["moved", "added"]),
            "moved",
            "Wrong points: updates at wrong times, or added to all updates.",
        ),
        (
            "--calibrated",
            "calibrated",
            None,
            False,
            "Points are published with the schedule's precision, not with p = 1.",
        ),
        ("--cycle", "cycle_s", seconds(1.0), 1800.0, "Length of a cycle."),
        ("--warm-up", "warm_up", share(), 0.2, "Share of the time that is not measured."),
        ("--step", "step_s", seconds(), 0.0, "Times of updates are rounded up to steps of this; 0: not."),
        ("--whole", "whole", None, False, "Of histories: also the time when few of the pages existed."),
    ),
)
_MEASURE = Section(
    "The measure",
    (
        ("--eq3", "eq3", click.Choice(["repaired", "literal"]), "repaired", "1 / (1 + sum), or min(1, 1 / sum)."),
        (
            "--eq3-weight",
            "eq3_weight",
            click.Choice(["index", "count"]),
            "index",
            "The m-th missed update counts m times, or each as often as there are.",
        ),
        ("--t0", "t0_s", seconds(), 0.0, "The unit of time in Eq. 3; 0: a cycle."),
    ),
)
_OUTPUT = Section(
    "Output",
    (
        ("--json", "json_file", (_FILE, "FILE"), None, "The result for machines; -: to stdout."),
        ("--plot", "plot_file", (_FILE, "FILE.png"), None, "Freshness by both measures, against capacity."),
    ),
)


_COMMANDS = {
    "replay": Lazy("trapline.cli.refresh:replay", "Replay an update trace by several policies."),
    "serve": Lazy("trapline.cli.refresh_serve:serve", "Take pings and deliveries from providers, for a crawl."),
    "subscribe": Lazy("trapline.cli.refresh_subscribe:subscribe", "Be told of changes by a topic's WebSub hub."),
    "accesses": Lazy("trapline.cli.refresh_accesses:accesses", "Read from logs which pages people access."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def refresh() -> None:
    """What to fetch again, and when.

    `trapline crawl --continuous` does it. These commands tell such a crawl what its providers and readers know, and compare policies
    on recorded updates. docs/how-to/keep-pages-fresh.md has an example to copy.
    """


@click.command(cls=SectionedCommand)
@click.argument("trace")
@bundled("asked", Asked, _WHAT, _WORLD, _MEASURE)
@_OUTPUT
def replay(trace: str, asked: Asked, json_file: Path | None, plot_file: Path | None) -> int:
    """Replay the updates in TRACE, and say how fresh each policy kept the copies.

    TRACE is a file or folder (docs/refresh.md has the forms), or a drawn one: poisson:PAGES:UPDATES[:DAYS] or
    bursty:PAGES:UPDATES[:DAYS]. Freshness is counted where accesses fall: the share that finds a copy without missed
    updates (binary), and the mean of the paper's measure as repaired (Eq. 3). A SHARE is 0.05 or 5%. Brackets hold the default.
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
