"""`trapline reproduce cho`: the paper's experiments with parallel crawlers, on any graph, compared with the paper's claims."""

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.options.sections import Many, Section, SectionedCommand, bundled
from trapline.cli.options.values import count
from trapline.cli.reproduce.command import JOBS, output_section, refuse_same_names, reproduce_plan
from trapline.cli.terminal.progress import Progress
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.graph import Graph
    from trapline.lab.cho.crawled_web import CrawledWeb
    from trapline.lab.paper import PaperPlan

EXPERIMENTS = (1, 2, 3, 4, 5, 6)
_LEAST_PAGES, _LEAST_SITES = 1000, 16
_DRAWS = 8

_WHAT = Section(
    "What to run",
    (
        ("--experiment", "experiment", (str, "N[,N...]"), "1,2,3,4,5,6", "Numbers of the experiments to run."),
        ("--graph", "graph", Many("PATH"), (), "Graph to use instead of a generated web. Repeatable."),
        (
            "--ids-per-site", "ids_per_site", count(1), None,
            "Treat every N consecutive pages of a graph without URLs as one site. [all pages are one site]",
        ),
        ("--pages", "pages", count(_LEAST_PAGES), None, "Number of pages of the generated web. [200000; with --quick 20000]"),
        ("--draws", "draws", count(2, 1000), _DRAWS, "Number of random draws of the seeds."),
        ("--quick", "quick", None, False, "Use a smaller web and fewer settings."),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChoOptions:
    """Values of the options of the command, by field."""

    experiment: str = "1,2,3,4,5,6"
    graph: tuple[str, ...] = ()
    ids_per_site: int | None = None
    pages: int | None = None
    draws: int = _DRAWS
    quick: bool = False

    def __post_init__(self) -> None:
        if self.graph and self.pages is not None:
            raise ConfigError("--pages sets the size of a generated web and excludes --graph; give only one of them")
        if self.ids_per_site is not None and not self.graph:
            raise ConfigError("--ids-per-site has no effect without a graph; omit it, or also give --graph")
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
@JOBS
@output_section("cho")
def cho(options: ChoOptions, jobs: int, folder: Path, as_json: bool) -> None:
    """Reproduce Cho and Garcia-Molina: coverage, overlap, quality and communication of parallel crawls.

    Simulates up to 64 partitions of a graph. Each starts from five random pages, and everything is repeated --draws times. Judges every
    claim of the paper by the 95 % confidence interval over these repetitions. If you interrupt the command,
    repeat it: it continues where it stopped.
    See docs/reproduce-cho.md.
    """
    reproduce_plan(partial(cho_plan, options), "cho", asdict(options), jobs, folder, as_json)


def cho_plan(options: ChoOptions) -> "PaperPlan":
    from trapline.lab.cho.measures import QUICK, WHOLE
    from trapline.lab.cho.plan import cho

    return cho(_webs(options), options.draws, QUICK if options.quick else WHOLE, options.numbers)


def _webs(options: ChoOptions) -> list["CrawledWeb"]:
    """Return all webs. All graphs are read before any experiment runs."""
    from trapline.graph import LoadOptions, WebModel, build, load_graph
    from trapline.lab.cho.crawled_web import CrawledWeb
    from trapline.lab.webs import checksum

    if not options.graph:
        pages = options.pages or (20_000 if options.quick else 200_000)
        graph = build(WebModel(pages, max(_LEAST_SITES, pages // 40)))
        return [CrawledWeb(f"generated {pages:,} pages, {graph.sites:,} sites, seed 1", graph)]
    with Progress("loading", plain_every_s=2.0) as progress:
        loading = LoadOptions(False, options.ids_per_site, progress.update)
        graphs = [(path, _fit(path, load_graph(Path(path), loading))) for path in options.graph]
    webs = [
        CrawledWeb(
            f"{Path(path).name}, {graph.pages:,} pages, {graph.sites:,} sites, checksum {checksum(graph):08x}", graph
        )
        for path, graph in graphs
    ]
    refuse_same_names("--graph", "graph", (web.name for web in webs))
    return webs


def _fit(path: str, graph: "Graph") -> "Graph":
    if graph.sites < _LEAST_SITES:
        hint = "; give --ids-per-site" if graph.urls is None else ""
        raise ConfigError(
            f"{path}: {graph.sites} sites are too few to divide among partitions; at least {_LEAST_SITES} are needed{hint}"
        )
    if graph.pages < _LEAST_PAGES:
        raise ConfigError(f"{path}: {graph.pages} pages are too few; give a graph with at least {_LEAST_PAGES}")
    return graph
