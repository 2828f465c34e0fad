"""`trapline reproduce cho`: the paper's experiments with parallel crawlers, on any graph, compared with the paper's claims."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options.sections import Many, Section, SectionedCommand, bundled
from trapline.cli.options.values import count
from trapline.cli.reproduce.cho_results import show
from trapline.cli.reproduce.command import check_outputs, put_out
from trapline.cli.terminal.progress import Progress, compile_kernels
from trapline.errors import ConfigError
from trapline.output import write_bytes

if TYPE_CHECKING:
    from trapline.graph import Graph
    from trapline.lab.cho import ChoReproduction
    from trapline.lab.cho_web import CrawledWeb
    from trapline.lab.judgement import Experiment, ExperimentChart

EXPERIMENTS = (1, 2, 3, 4, 5, 6)
_LEAST_PAGES, _LEAST_SITES = 1000, 16
_PATH = click.Path(path_type=Path)

_WHAT = Section(
    "What to run",
    (
        ("--experiment", "experiment", (str, "N[,N...]"), "1,2,3,4,5,6", "Numbers of the experiments to run."),
        ("--graph", "graph", Many("PATH"), (), "Graph to use instead of a generated web. Repeatable."),
        (
            "--ids-per-site", "ids_per_site", count(1), None,
            "For a graph without URLs: number of consecutive pages per site. [all pages are one site]",
        ),
        ("--pages", "pages", count(_LEAST_PAGES), None, "Number of pages of the generated web. [200000; with --quick 20000]"),
        ("--draws", "draws", count(2, 1000), None, "Number of repetitions, each with other random seed pages. [3]"),
        ("--quick", "quick", None, False, "Use a smaller web and fewer settings."),
    ),
)  # fmt: skip
_OUTPUT = Section(
    "Output",
    (
        (
            "-o --output",
            "folder",
            (_PATH, "DIR"),
            None,
            "Folder for one plot per experiment: DIR/cho-1.png. [no plots]",
        ),
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
class ChoOptions:
    """Values of the options of the command, by field."""

    experiment: str
    graph: tuple[str, ...]
    ids_per_site: int | None
    pages: int | None
    draws: int | None
    quick: bool

    def __post_init__(self) -> None:
        if self.graph and self.pages is not None:
            raise ConfigError("--pages sets the size of a generated web and excludes --graph; give only one of them")
        if self.ids_per_site is not None and not self.graph:
            raise ConfigError("--ids-per-site has no effect without a graph; also give --graph, or omit it")
        _ = self.numbers

    @property
    def numbers(self) -> tuple[int, ...]:
        for text in self.experiment.split(","):
            if text not in map(str, EXPERIMENTS):
                raise ConfigError(
                    f"--experiment {self.experiment}: no experiment {text!r}; give numbers from 1 to 6, such as 1,3"
                )
        return tuple(int(text) for text in self.experiment.split(","))


@click.command(cls=SectionedCommand)
@bundled("options", ChoOptions, _WHAT)
@_OUTPUT
def cho(options: ChoOptions, folder: Path | None, json_file: Path | None) -> None:
    """Reproduce Cho and Garcia-Molina: coverage, overlap, quality and communication of parallel crawls.

    Simulates up to 64 partitions of a graph. Each starts from five random pages, and everything is repeated --draws times. Judges every
    claim of the paper by the 95 % interval over these repetitions. See docs/reproduce-cho.md.
    """
    check_outputs(folder, "cho-1.png", json_file)
    compile_kernels()
    found = [_reproduced(web, options) for web in _webs(options)]
    put_out(found, show, json_file, lambda: _for_machines(found, options))
    if folder is not None:
        _draw(found, folder)


def _webs(options: ChoOptions) -> list["CrawledWeb"]:
    """Return all webs. All graphs are read before any experiment runs."""
    from trapline.graph import LoadOptions, WebModel, build, load_graph
    from trapline.lab.cho_web import CrawledWeb

    if not options.graph:
        pages = options.pages or (20_000 if options.quick else 200_000)
        return [CrawledWeb("generated", build(WebModel(pages, max(_LEAST_SITES, pages // 40))))]
    with Progress("loading", plain_every_s=2.0) as progress:
        loading = LoadOptions(False, options.ids_per_site, progress.update)
        return [CrawledWeb(Path(path).name, _fit(path, load_graph(Path(path), loading))) for path in options.graph]


def _fit(path: str, graph: "Graph") -> "Graph":
    if graph.sites < _LEAST_SITES:
        hint = "; give --ids-per-site" if graph.urls is None else ""
        raise ConfigError(
            f"{path}: {graph.sites} sites are too few to divide among partitions; at least {_LEAST_SITES} are needed{hint}"
        )
    if graph.pages < _LEAST_PAGES:
        raise ConfigError(f"{path}: {graph.pages} pages are too few; give a graph with at least {_LEAST_PAGES}")
    return graph


def _reproduced(web: "CrawledWeb", options: ChoOptions) -> "ChoReproduction":
    from trapline.lab.cho import reproduce
    from trapline.lab.cho_web import QUICK, WHOLE

    compile_kernels()
    with Progress(f"reproducing on {web.name}", plain_every_s=5.0) as progress:
        return reproduce(web, options.draws or 3, QUICK if options.quick else WHOLE, options.numbers, progress.update)


def _draw(found: list["ChoReproduction"], folder: Path) -> None:
    from trapline.cli.reproduce.cho_results import picture

    for together in zip(*(one.experiments for one in found), strict=True):
        rows = [(one.web.name, experiment) for one, experiment in zip(found, together, strict=True)]
        write_bytes(folder / f"cho-{together[0].number}.png", picture(rows))


# ---- JSON.


def _for_machines(found: list["ChoReproduction"], options: ChoOptions) -> dict[str, Any]:
    from trapline import __version__

    return {
        "trapline": __version__,
        "paper": "cho",
        "options": asdict(options),
        "graphs": [_one_graph(one) for one in found],
    }


def _one_graph(found: "ChoReproduction") -> dict[str, Any]:
    graph = found.web.graph
    return {
        "name": found.web.name,
        "pages": graph.pages,
        "links": graph.links,
        "sites": graph.sites,
        "draws": found.draws,
        "experiments": {str(one.number): _one_experiment(one) for one in found.experiments},
    }


def _one_experiment(experiment: "Experiment") -> dict[str, Any]:
    return {
        "title": experiment.title,
        "charts": {chart.name: _one_chart(chart) for chart in experiment.charts},
        "claims": [
            {"claim": one.claim, "verdict": one.judged.verdict, "difference": one.judged.why}
            for one in experiment.verdicts
        ],
        "notes": list(experiment.notes),
    }


def _one_chart(chart: "ExperimentChart") -> dict[str, Any]:
    from trapline.refresh import estimate

    points = [
        {"curve": name, "x": x, "x_name": chart.x_name(x), **asdict(estimate(values)), "values": list(values)}
        for name, curve in chart.curves.items()
        for x, values in curve.items()
    ]
    return {"title": chart.title, "x": chart.x_label, "y": chart.y_label, "points": points}
