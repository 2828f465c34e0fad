"""`trapline reproduce cho`: the paper's experiments with parallel crawlers, on any graph, beside what the paper says of them."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.compiling import compile_kernels
from trapline.cli.numbers import count
from trapline.cli.progress import Progress
from trapline.cli.reproduce_cho_tables import show
from trapline.cli.reproduce_outputs import check_outputs, put_out
from trapline.cli.sections import Many, Section, SectionedCommand, bundled
from trapline.errors import ConfigError
from trapline.output import write_bytes

if TYPE_CHECKING:
    from trapline.experiments.charts import Chart, Experiment
    from trapline.experiments.cho import Reproduction
    from trapline.experiments.cho_web import CrawledWeb
    from trapline.graph import Graph

EXPERIMENTS = (1, 2, 3, 4, 5, 6)
_LEAST_PAGES, _LEAST_SITES = 1000, 16
_PATH = click.Path(path_type=Path)

_WHAT = Section(
    "What to run",
    (
        ("--experiment", "experiment", (str, "N[,N...]"), "1,2,3,4,5,6", "Experiments by their numbers."),
        ("--graph", "graph", Many("PATH"), (), "A graph instead of a generated web; may be given again."),
        ("--ids-per-site", "ids_per_site", count(1), None, "If pages have no URLs: so many numbers in a row are a site."),
        ("--pages", "pages", count(_LEAST_PAGES), None, "Of the generated web. [200000; with --quick 20000]"),
        ("--draws", "draws", count(2, 1000), None, "Draws of the seeds. [3]"),
        ("--quick", "quick", None, False, "A smaller web, fewer numbers of partitions and exchanges."),
    ),
)  # fmt: skip
_OUTPUT = Section(
    "Output",
    (
        ("--plots", "folder", (_PATH, "DIR"), None, "A picture an experiment: DIR/cho-1.png and so on."),
        ("--json", "json_file", (_PATH, "FILE"), None, "All numbers and verdicts; -: to stdout, instead of tables."),
    ),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command, by the names of their fields."""

    experiment: str
    graph: tuple[str, ...]
    ids_per_site: int | None
    pages: int | None
    draws: int | None
    quick: bool

    def __post_init__(self) -> None:
        if self.graph and self.pages is not None:
            raise ConfigError("--pages is for a generated web; leave it away, or --graph")
        if self.ids_per_site is not None and not self.graph:
            raise ConfigError("--ids-per-site is of a graph; give --graph, or leave it away")
        _ = self.numbers

    @property
    def numbers(self) -> tuple[int, ...]:
        for one in self.experiment.split(","):
            if one not in map(str, EXPERIMENTS):
                raise ConfigError(
                    f"--experiment {self.experiment}: no experiment {one!r}; give some of 1 to 6, as in 1,3"
                )
        return tuple(int(one) for one in self.experiment.split(","))


@click.command(cls=SectionedCommand)
@bundled("asked", Asked, _WHAT)
@_OUTPUT
def cho(asked: Asked, folder: Path | None, json_file: Path | None) -> None:
    """The experiments of Cho and Garcia-Molina: what parallel crawls reach, fetch twice, and tell each other.

    Up to 64 partitions of a graph, in simulated time, each with five random pages to begin with; every claim of the paper with a
    verdict by the 95 % interval over draws of these. docs/reproduce-cho.md says more.
    """
    check_outputs("--plots", folder, "cho-1.png", json_file)
    compile_kernels()
    found = [_reproduced(web, asked) for web in _webs(asked)]
    put_out(found, show, json_file, lambda: _for_machines(found, asked))
    if folder is not None:
        _draw(found, folder)


def _webs(asked: Asked) -> list["CrawledWeb"]:
    """All of them read before anything is run."""
    from trapline.experiments.cho_web import CrawledWeb
    from trapline.graph import LoadOptions, WebModel, build, load_graph

    if not asked.graph:
        pages = asked.pages or (20_000 if asked.quick else 200_000)
        return [CrawledWeb("generated", build(WebModel(pages, max(_LEAST_SITES, pages // 40))))]
    with Progress("loading", plain_every_s=2.0) as progress:
        options = LoadOptions(False, asked.ids_per_site, progress.update)
        return [CrawledWeb(Path(path).name, _fit(path, load_graph(Path(path), options))) for path in asked.graph]


def _fit(path: str, graph: "Graph") -> "Graph":
    if graph.sites < _LEAST_SITES:
        hint = "; give --ids-per-site" if graph.urls is None else ""
        raise ConfigError(
            f"{path}: {graph.sites} sites are too few to be divided; at least {_LEAST_SITES} are needed{hint}"
        )
    if graph.pages < _LEAST_PAGES:
        raise ConfigError(f"{path}: {graph.pages} pages are too few; at least {_LEAST_PAGES} are needed")
    return graph


def _reproduced(web: "CrawledWeb", asked: Asked) -> "Reproduction":
    from trapline.experiments.cho import reproduce
    from trapline.experiments.cho_study import QUICK, WHOLE

    compile_kernels()
    with Progress(f"reproducing on {web.name}", plain_every_s=5.0) as progress:
        return reproduce(web, asked.draws or 3, QUICK if asked.quick else WHOLE, asked.numbers, progress.update)


def _draw(found: list["Reproduction"], folder: Path) -> None:
    from trapline.cli.reproduce_cho_plot import picture

    for together in zip(*(one.experiments for one in found), strict=True):
        rows = [(one.web.name, experiment) for one, experiment in zip(found, together, strict=True)]
        write_bytes(folder / f"cho-{together[0].number}.png", picture(rows))


# ---- for machines


def _for_machines(found: list["Reproduction"], asked: Asked) -> dict[str, Any]:
    from trapline import __version__

    return {
        "trapline": __version__,
        "paper": "cho",
        "asked": asdict(asked),
        "graphs": [_one_graph(one) for one in found],
    }


def _one_graph(found: "Reproduction") -> dict[str, Any]:
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


def _one_chart(chart: "Chart") -> dict[str, Any]:
    from trapline.refresh import estimate

    points = [
        {"curve": name, "x": x, "x_name": chart.x_name(x), **asdict(estimate(values)), "values": list(values)}
        for name, curve in chart.curves.items()
        for x, values in curve.items()
    ]
    return {"title": chart.title, "x": chart.x_label, "y": chart.y_label, "points": points}
