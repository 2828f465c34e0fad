"""`trapline reproduce cao` and `castillo`: the papers on scheduling, in simulated crawls of generated webs or of the user's graphs."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from trapline.cli.options.sections import Many, Section, SectionedCommand, bundled
from trapline.cli.options.values import count
from trapline.cli.reproduce.command import check_outputs
from trapline.cli.terminal.progress import Progress, compile_kernels
from trapline.errors import ConfigError
from trapline.terminal import say

if TYPE_CHECKING:
    from trapline.lab.orders import WebSource
    from trapline.lab.paper import PaperItem
    from trapline.lab.study import Result, StudyRun

_LEAST_PAGES, _LEAST_SITES = 2_000, 20


class Experiments(Protocol):
    def runs(self) -> "list[StudyRun]": ...

    def judged(self, results: "dict[str, Result]") -> "list[PaperItem]": ...


def _what(pages: int, quick_pages: int, minutes: str) -> Section:
    defaults = f"[{pages}]" if pages == quick_pages else f"[{pages}; with --quick {quick_pages}]"
    return Section(
        "What to run",
        (
            ("--graph", "graph", Many("PATH"), (), "Graph to use instead of generated webs. Repeatable."),
            ("--pages", "pages", count(_LEAST_PAGES), None, f"Number of pages of each generated web. {defaults}"),
            ("--webs", "webs", count(1, 1000), 8, "Number of generated webs, with seeds 1, 2, ..."),
            ("--quick", "quick", None, False, f"Run the short form, which takes {minutes}."),
        ),
    )


def _output(paper: str) -> Section:
    text = "Folder for the HTML page, plots, JSON, and the results of finished runs."
    kind = (click.Path(path_type=Path), "DIR")
    return Section("Output", (("-o --output", "folder", kind, Path(f"trapline-{paper}"), text),))


@dataclass(frozen=True, slots=True)
class PaperOptions:
    graph: tuple[str, ...]
    pages: int | None
    webs: int
    quick: bool

    def __post_init__(self) -> None:
        if self.graph and self.pages is not None:
            raise ConfigError("--pages sets the size of generated webs and excludes --graph; give only one of them")

    @property
    def seeds(self) -> range:
        return range(1, self.webs + 1)


# ---- castillo: 3.5 M pages on 53,000 sites, as in its table II.

_PAGES_PER_SITE = 66
_SPEED_PAGES = 1_000_000  # of webs for speed, of which a tenth is fetched
_HISTORY_PAGES = 200_000  # of evolving webs
_CASTILLO_PAGES, _CASTILLO_QUICK = 3_500_000, 20_000


@click.command(cls=SectionedCommand)
@bundled("options", PaperOptions, _what(_CASTILLO_PAGES, _CASTILLO_QUICK, "one to two minutes"))
@_output("castillo")
def castillo(options: PaperOptions, folder: Path) -> None:
    """Reproduce Castillo et al. and the thesis: orders, speed-up, batches, historical PageRank.

    Simulates the crawls on generated webs, the orders also on yours with --graph, and judges every claim over all webs. If you interrupt
    the command, repeat it: it continues where it stopped. See docs/reproduce-castillo.md.
    """
    title = (
        "Castillo, Marin, Rodriguez, Baeza-Yates: Scheduling Algorithms for Web Crawling; Castillo: thesis, chapter 4"
    )
    _reproduce("castillo", title, options, folder, lambda: _castillo(options))


def _castillo(options: PaperOptions) -> "tuple[Experiments, list[WebSource]]":
    from trapline.lab.castillo import DAYS, Castillo, CastilloWebs
    from trapline.lab.orders import evolved, generated

    pages = options.pages or (_CASTILLO_QUICK if options.quick else _CASTILLO_PAGES)
    orders = _graphs(options.graph) or [generated(pages, _sites(pages), seed) for seed in options.seeds]
    fast, old = 5 * pages if options.quick else min(pages, _SPEED_PAGES), min(pages, _HISTORY_PAGES)
    histories = [evolved(old, _sites(old), seed, DAYS) for seed in options.seeds]
    speeds = [generated(fast, _sites(fast), seed) for seed in options.seeds]
    return Castillo(CastilloWebs(orders, histories, speeds)), [*orders, *histories, *speeds]


def _sites(pages: int) -> int:
    return max(_LEAST_SITES, pages // _PAGES_PER_SITE)


# ---- cao: 30,000 pages on 500 servers.

_CAO_PAGES, _CAO_PAGES_PER_SITE = 30_000, 60


@click.command(cls=SectionedCommand)
@bundled("options", PaperOptions, _what(_CAO_PAGES, _CAO_PAGES, "about a minute"))
@_output("cao")
def cao(options: PaperOptions, folder: Path) -> None:
    """Reproduce Cao, Jiang and Singh: crawl scheduling by performance, quality and both.

    Simulates the crawls on generated webs, or on yours with --graph, and judges every claim over all webs. If you interrupt the command,
    repeat it: it continues where it stopped. See docs/reproduce-cao.md.
    """
    _reproduce(
        "cao",
        "Cao, Jiang and Singh: Scheduling Web Crawl for Better Performance and Quality",
        options,
        folder,
        lambda: _cao(options),
    )


def _cao(options: PaperOptions) -> "tuple[Experiments, list[WebSource]]":
    from trapline.lab.cao import Cao
    from trapline.lab.orders import generated

    pages = options.pages or _CAO_PAGES
    sites = max(_LEAST_SITES, pages // _CAO_PAGES_PER_SITE)
    webs = _graphs(options.graph) or [generated(pages, sites, seed) for seed in options.seeds]
    return Cao(webs), webs


# ---- both


def _reproduce(
    name: str,
    title: str,
    options: PaperOptions,
    folder: Path,
    prepared: "Callable[[], tuple[Experiments, Sequence[WebSource]]]",
) -> None:
    """Run the experiments, judge them, and write and show the results."""
    from trapline import __version__
    from trapline.cli.reproduce.paper_results import show, write
    from trapline.lab.paper import Paper
    from trapline.lab.study import Study

    check_outputs(folder, f"{name}.html", None)
    experiments, webs = prepared()
    study = Study(folder, __version__)
    compile_kernels()
    with Progress(f"reproducing {name}", plain_every_s=5.0) as progress:
        results = study.results(experiments.runs(), progress.update)
    if study.repeated:
        say(f"{study.repeated} runs were done before and not repeated; delete {folder} to repeat them", err=True)
    paper = Paper(name, title, experiments.judged(results), list(dict.fromkeys(web.name for web in webs)))
    given: dict[str, Any] = asdict(options)
    write(paper, folder, given)
    show(paper)
    say(f"wrote {folder / name}.html, {name}.json and plots (.png)", err=True)


def _graphs(paths: tuple[str, ...]) -> "list[WebSource]":
    from trapline.graph import LoadOptions, load_graph
    from trapline.lab.orders import recorded

    with Progress("loading", plain_every_s=2.0) as progress:
        loading = LoadOptions(False, None, progress.update)
        return [recorded(Path(path).name, load_graph(Path(path), loading)) for path in paths]
