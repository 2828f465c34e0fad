"""`trapline reproduce xu`: the five figures of the paper, on recorded traces, compared with the paper's claims."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options.sections import Many, Section, SectionedCommand, bundled, refuse
from trapline.cli.options.values import count, seconds
from trapline.cli.refresh.replay_options import read_trace
from trapline.cli.reproduce.command import check_outputs, put_out
from trapline.cli.reproduce.xu_results import show
from trapline.cli.terminal.progress import Progress, compile_kernels, compile_policies
from trapline.errors import ConfigError, nearest
from trapline.output import write_bytes

if TYPE_CHECKING:
    from trapline.lab.xu import Drawn, XuReproduction
    from trapline.lab.xu_figures import TraceStudy

FIGURES = ("2", "3", "4a", "4b", "5")
_PATH = click.Path(path_type=Path)

_WHAT = Section(
    "What to run",
    (
        ("--figure", "figure", (str, "F[,F...]"), ",".join(FIGURES), "Numbers of the figures to reproduce."),
        (
            "--trace",
            "trace",
            Many("TRACE"),
            (),
            "Trace to use, as in `trapline refresh replay`. Repeatable. [wikipedia-edits and news-frontpages]",
        ),
        ("--shared", "shared", (_PATH, "DIR"), Path("../shared/data"), "Folder of the recorded traces."),
        (
            "--seeds",
            "seeds",
            count(1, 10_000),
            None,
            "Number of random worlds per setting. [wikipedia-edits 8, news-frontpages 24]",
        ),
    ),
)
_HOW = Section(
    "How",
    (
        ("--accesses", "accesses", count(1), 20_000, "Number of accesses; figure 2 sets its own."),
        ("--cycle", "cycle_s", seconds(1.0), 1800.0, "Length of a cycle, and T0 of Eq. 3."),
        (
            "--schedule-errors",
            "schedule_errors",
            click.Choice(["moved", "added"]),
            "moved",
            "Figure 5: kind of schedule errors, updates moved or extra ones added.",
        ),
        (
            "--calibrated",
            "calibrated",
            None,
            False,
            "Figure 5: publish scheduled times with their precision as probability, instead of 1.",
        ),
    ),
)
_OUTPUT = Section(
    "Output",
    (
        ("-o --output", "folder", (_PATH, "DIR"), None, "Folder for one plot per figure: DIR/xu-2.png. [no plots]"),
        (
            "--json",
            "json_file",
            (_PATH, "FILE"),
            None,
            "Write numbers and verdicts as JSON to this file; -: to stdout, instead of the tables.",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class XuOptions:
    """Values of the options of the command, by field."""

    figure: str
    trace: tuple[str, ...]
    shared: Path
    seeds: int | None
    accesses: int
    cycle_s: float
    schedule_errors: str
    calibrated: bool

    def __post_init__(self) -> None:
        if self.trace:
            refuse(("shared",), "has no effect with --trace, which names the file itself; give only one of them")
        if "5" not in self.figures:
            refuse(("schedule_errors", "calibrated"), "has an effect only in figure 5; add 5 to --figure, or omit it")
        if self.figures == ("2",):
            refuse(("accesses",), "has no effect in figure 2, which sets its own; add another --figure, or omit it")

    @property
    def figures(self) -> tuple[str, ...]:
        names = tuple(self.figure.split(","))
        for name in names:
            if name not in FIGURES:
                raise ConfigError(f"--figure {self.figure}: no figure {name!r}; {nearest(name, FIGURES)}")
        return names


@click.command(cls=SectionedCommand)
@bundled("options", XuOptions, _WHAT, _HOW)
@_OUTPUT
def xu(options: XuOptions, folder: Path | None, json_file: Path | None) -> None:
    """Reproduce Xu, Li, Qu and Labrinidis: freshness by the collaboration level of providers.

    Runs the paper's policy in three forms: corrected, with scores from the start of each cycle, and as printed. Runs Trapline's own
    policy too, where it should do better. Capacity is set so that freshness with smart providers is .86, as in the paper. See
    docs/reproduce-xu.md.
    """
    figures = options.figures
    check_outputs(folder, "xu-2.png", json_file)
    studies = _studies(options)
    found = [_reproduced(study, options, figures) for study in studies]
    put_out(found, show, json_file, lambda: _for_machines(found, options))
    if folder is not None:
        _draw(found, folder)


def _studies(options: XuOptions) -> list["TraceStudy"]:
    """Return the traces. All of them are read before any figure is computed."""
    from trapline.lab.xu import OTHER, SOURCES
    from trapline.lab.xu_figures import TraceStudy

    names = options.trace or tuple(SOURCES)
    places = [name if options.trace else str(_recorded(options.shared / name)) for name in names]
    found = []
    with Progress("reading traces", plain_every_s=2.0) as progress:
        for number, (name, place) in enumerate(zip(names, places, strict=True)):
            progress.update(number, len(names), name)
            source = SOURCES.get(Path(name).name, OTHER)
            trace = read_trace(place, False, source.step_s)
            found.append(TraceStudy(trace, options.seeds or source.seeds, source.stretch_s))
    return found


def _recorded(folder: Path) -> Path:
    if not folder.is_dir():
        raise ConfigError(
            f"{folder}: no such trace; give the folder of the traces by --shared DIR, or another trace by --trace"
        )
    return folder


def _reproduced(study: "TraceStudy", options: XuOptions, figures: tuple[str, ...]) -> "XuReproduction":
    from trapline.lab.xu import policies, reproduce
    from trapline.refresh import ReplayConditions

    compile_kernels()
    compile_policies(list(policies().values()))
    base = ReplayConditions(
        accesses=options.accesses,
        cycle_s=options.cycle_s,
        schedule_errors=options.schedule_errors,
        calibrated=options.calibrated,
    )
    with Progress(f"reproducing on {study.trace.name}", plain_every_s=2.0) as progress:
        return reproduce(study, base, figures, progress.update)


def _draw(found: list["XuReproduction"], folder: Path) -> None:
    from trapline.cli.reproduce.xu_results import picture

    for together in zip(*(one.figures for one in found), strict=True):
        columns = [(one.study.trace.name, drawn) for one, drawn in zip(found, together, strict=True)]
        write_bytes(folder / f"xu-{together[0].figure.name}.png", picture(columns))


# ---- JSON.


def _for_machines(found: list["XuReproduction"], options: XuOptions) -> dict[str, Any]:
    from trapline import __version__

    values = {**asdict(options), "shared": str(options.shared)}
    return {"trapline": __version__, "paper": "xu", "options": values, "traces": [_one_trace(one) for one in found]}


def _one_trace(found: "XuReproduction") -> dict[str, Any]:
    study, trace = found.study, found.study.trace
    return {
        "trace": {
            "name": trace.name,
            "pages": trace.pages,
            "updates": trace.updates,
            "seconds": trace.horizon_s,
            **trace.origin,
        },
        "stretch_s": study.stretch_s,
        "seeds": study.seeds,
        "capacity": found.capacity,
        "smart_freshness_eq3": found.reached,
        "figures": {
            drawn.figure.name: {
                "title": drawn.figure.title,
                "cells": list(_cells(drawn)),
                "orderings": list(_orderings(drawn)),
            }
            for drawn in found.figures
        },
    }


def _cells(drawn: "Drawn") -> Iterator[dict[str, Any]]:
    from trapline.refresh import estimate

    for (curve, group, x), samples in drawn.samples.items():
        estimates = {f"freshness_{name}": asdict(estimate(values)) for name, values in samples.items()}
        yield {"policy": curve, "group": group, "x": x, **estimates}


def _orderings(drawn: "Drawn") -> Iterator[dict[str, str]]:
    for verdict in drawn.verdicts:
        judged = {"verdict": verdict.judged.verdict, "difference": verdict.judged.why}
        yield {"ordering": verdict.claim, "policy": verdict.curve, "measure": verdict.measure, **judged}
