"""`trapline reproduce xu`: the five figures of the paper, on recorded traces, beside what the paper says of them."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.compiling import compile_kernels, compile_policies
from trapline.cli.numbers import count, seconds
from trapline.cli.progress import Progress
from trapline.cli.refresh_replay import read_trace
from trapline.cli.reproduce_outputs import check_outputs, put_out
from trapline.cli.reproduce_tables import show
from trapline.cli.sections import Many, Section, SectionedCommand, bundled
from trapline.errors import ConfigError, nearest
from trapline.output import write_bytes

if TYPE_CHECKING:
    from trapline.experiments.study import Study
    from trapline.experiments.xu import Drawn, Reproduction

FIGURES = ("2", "3", "4a", "4b", "5")
_PATH = click.Path(path_type=Path)

_WHAT = Section(
    "What to run",
    (
        ("--figure", "figure", (str, "F[,F...]"), ",".join(FIGURES), "Figures by their numbers."),
        (
            "--trace",
            "trace",
            Many("TRACE"),
            (),
            "A trace of `refresh replay` instead of the recorded ones. [wikipedia-edits, news-frontpages]",
        ),
        ("--shared", "shared", (_PATH, "DIR"), Path("../shared/data"), "The folder of the recorded traces."),
        (
            "--seeds",
            "seeds",
            count(1, 10_000),
            None,
            "Worlds drawn for each setting. [wikipedia-edits 8, news-frontpages 24]",
        ),
    ),
)
_HOW = Section(
    "How",
    (
        ("--accesses", "accesses", count(1), 20_000, "Accesses; figure 2 has its own."),
        ("--cycle", "cycle_s", seconds(1.0), 1800.0, "Length of a cycle, and the T0 of Eq. 3."),
        (
            "--schedule-errors",
            "schedule_errors",
            click.Choice(["moved", "added"]),
            "moved",
            "Figure 5: what a wrong point is.",
        ),
        ("--calibrated", "calibrated", None, False, "Figure 5: points are published with p = precision instead of 1."),
    ),
)
_OUTPUT = Section(
    "Output",
    (
        ("--out", "folder", (_PATH, "DIR"), None, "A picture a figure: DIR/xu-2.png and so on."),
        ("--json", "json_file", (_PATH, "FILE"), None, "All numbers and verdicts; -: to stdout, instead of tables."),
    ),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command, by the names of their fields."""

    figure: str
    trace: tuple[str, ...]
    shared: Path
    seeds: int | None
    accesses: int
    cycle_s: float
    schedule_errors: str
    calibrated: bool

    @property
    def figures(self) -> tuple[str, ...]:
        names = tuple(self.figure.split(","))
        for name in names:
            if name not in FIGURES:
                raise ConfigError(f"--figure {self.figure}: no figure {name!r}; {nearest(name, FIGURES)}")
        return names


@click.command(cls=SectionedCommand)
@bundled("asked", Asked, _WHAT, _HOW)
@_OUTPUT
def xu(asked: Asked, folder: Path | None, json_file: Path | None) -> None:
    """The figures of Xu, Li, Qu, Labrinidis: freshness by how far providers collaborate.

    The paper's policy as repaired, the same with the scores of each cycle's beginning, and its equations as printed; ours where it
    should do better. Capacity is such that with smart providers freshness is .86, as the paper has it. docs/reproduce-xu.md says more.
    """
    figures = asked.figures
    check_outputs("--out", folder, "xu-2.png", json_file)
    studies = _studies(asked)
    found = [_reproduced(study, asked, figures) for study in studies]
    put_out(found, show, json_file, lambda: _for_machines(found, asked))
    if folder is not None:
        _draw(found, folder)


def _studies(asked: Asked) -> list["Study"]:
    """The traces, all of them read before anything is run."""
    from trapline.experiments.study import Study
    from trapline.experiments.xu import OTHER, SOURCES

    names = asked.trace or tuple(SOURCES)
    places = [name if asked.trace else str(_recorded(asked.shared / name)) for name in names]
    found = []
    with Progress("reading traces", plain_every_s=2.0) as progress:
        for number, (name, place) in enumerate(zip(names, places, strict=True)):
            progress.update(number, len(names), name)
            source = SOURCES.get(Path(name).name, OTHER)
            trace = read_trace(place, False, source.step_s)
            found.append(Study(trace, asked.seeds or source.seeds, source.stretch_s))
    return found


def _recorded(folder: Path) -> Path:
    if not folder.is_dir():
        raise ConfigError(f"{folder}: this trace is not here; give its folder by --shared DIR, or another by --trace")
    return folder


def _reproduced(study: "Study", asked: Asked, figures: tuple[str, ...]) -> "Reproduction":
    from trapline.experiments.xu import policies, reproduce
    from trapline.refresh import Conditions

    compile_kernels()
    compile_policies(list(policies().values()))
    base = Conditions(
        accesses=asked.accesses,
        cycle_s=asked.cycle_s,
        schedule_errors=asked.schedule_errors,
        calibrated=asked.calibrated,
    )
    with Progress(f"reproducing on {study.trace.name}", plain_every_s=2.0) as progress:
        return reproduce(study, base, figures, progress.update)


def _draw(found: list["Reproduction"], folder: Path) -> None:
    from trapline.cli.reproduce_plot import picture

    for together in zip(*(one.figures for one in found), strict=True):
        columns = [(one.study.trace.name, drawn) for one, drawn in zip(found, together, strict=True)]
        write_bytes(folder / f"xu-{together[0].figure.name}.png", picture(columns))


# ---- for machines


def _for_machines(found: list["Reproduction"], asked: Asked) -> dict[str, Any]:
    from trapline import __version__

    options = {**asdict(asked), "shared": str(asked.shared)}
    return {"trapline": __version__, "paper": "xu", "asked": options, "traces": [_one_trace(one) for one in found]}


def _one_trace(found: "Reproduction") -> dict[str, Any]:
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
    for one in drawn.verdicts:
        said = {"verdict": one.judged.verdict, "difference": one.judged.why}
        yield {"ordering": one.claim, "policy": one.curve, "measure": one.measure, **said}
