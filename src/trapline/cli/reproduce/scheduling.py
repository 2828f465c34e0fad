"""`trapline reproduce cao`, `castillo` and `thesis`: the papers on scheduling, on generated webs or on the user's graphs."""

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.options.sections import Many, Section, SectionedCommand, bundled
from trapline.cli.options.values import count
from trapline.cli.reproduce.command import JOBS_WITH_LIVE, output_section, refuse_same_names, reproduce_plan
from trapline.cli.terminal.progress import Progress
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.lab.castillo.plan import CastilloWebs
    from trapline.lab.paper import PaperPlan
    from trapline.lab.webs import WebSource

_LEAST_PAGES, _LEAST_SITES = 2_000, 20


def _what(pages: int, quick_pages: int) -> Section:
    defaults = f"[{pages}]" if pages == quick_pages else f"[{pages}; with --quick {quick_pages}]"
    return Section(
        "What to run",
        (
            (
                "--graph",
                "graph",
                Many("PATH"),
                (),
                "Graph for simulated crawls, instead of generated webs. Repeatable.",
            ),
            ("--pages", "pages", count(_LEAST_PAGES), None, f"Number of pages of each generated web. {defaults}"),
            ("--webs", "webs", count(1, 1000), 8, "Number of generated webs, with seeds 1, 2, ..."),
            ("--quick", "quick", None, False, "Run the short form: smaller webs and crawls."),
        ),
    )


@dataclass(frozen=True, slots=True)
class PaperOptions:
    graph: tuple[str, ...] = ()
    pages: int | None = None
    webs: int = 8
    quick: bool = False

    def __post_init__(self) -> None:
        if self.graph and self.pages is not None:
            raise ConfigError("--pages sets the size of generated webs and excludes --graph; give only one of them")

    @property
    def seeds(self) -> range:
        return range(1, self.webs + 1)


# ---- castillo and thesis: 3.5 M pages on 53,000 sites, as in castillo's table II.

_PAGES_PER_SITE = 66
_SPEED_PAGES = 1_000_000  # of webs for speed, of which a tenth is fetched
_HISTORY_PAGES = 200_000  # of evolving webs
_CASTILLO_PAGES, _CASTILLO_QUICK = 3_500_000, 20_000
_LIVE_PAGES, _LIVE_QUICK, _LIVE_PAGES_PER_SITE = 10_000, 1_500, 10  # of webs on loopback
_TIMED = (1_000, 100)  # pages and sites of webs on loopback with slow servers
# With --quick there are fewer of them. Smaller ones would be another comparison: their crawls take eight seconds, and a single page
# that is late by milliseconds moves the largest difference.
_TIMED_QUICK_WEBS = 4
_CASTILLO = _what(_CASTILLO_PAGES, _CASTILLO_QUICK)


@click.command(cls=SectionedCommand)
@bundled("options", PaperOptions, _CASTILLO)
@JOBS_WITH_LIVE
@output_section("castillo")
def castillo(options: PaperOptions, jobs: int, folder: Path, as_json: bool) -> None:
    """Reproduce Castillo et al.: crawl orders, connections, speed-up and batches.

    Simulates the crawls on several generated webs, and judges every claim by the results of all of them. With --graph, compares the crawl
    orders on your graphs instead. If you interrupt the command, repeat it: it continues where it stopped. See docs/reproduce-castillo.md.
    """
    reproduce_plan(partial(castillo_plan, options), "castillo", asdict(options), jobs, folder, as_json)


@click.command(cls=SectionedCommand)
@bundled("options", PaperOptions, _CASTILLO)
@JOBS_WITH_LIVE
@output_section("thesis")
def thesis(options: PaperOptions, jobs: int, folder: Path, as_json: bool) -> None:
    """Reproduce chapter 4 of Castillo's thesis: crawl orders, historical PageRank, connections, speed-up and batches.

    Simulates the crawls on several generated webs, and judges every claim by the results of all of them. With --graph, compares the crawl
    orders on your graphs instead. If you interrupt the command, repeat it: it continues where it stopped. See docs/reproduce-thesis.md.
    """
    reproduce_plan(partial(thesis_plan, options), "thesis", asdict(options), jobs, folder, as_json)


def castillo_plan(options: PaperOptions) -> "PaperPlan":
    from trapline.lab.castillo.plan import castillo

    return castillo(_castillo_webs(options))


def thesis_plan(options: PaperOptions) -> "PaperPlan":
    from trapline.lab.castillo.plan import thesis

    return thesis(_castillo_webs(options))


def _castillo_webs(options: PaperOptions) -> "CastilloWebs":
    from trapline.lab.castillo.orders import DAYS
    from trapline.lab.castillo.plan import CastilloWebs
    from trapline.lab.webs import evolved, generated

    pages = options.pages or (_CASTILLO_QUICK if options.quick else _CASTILLO_PAGES)
    orders = _graphs(options.graph) or [generated(pages, _sites(pages), seed) for seed in options.seeds]
    fast, old = 5 * pages if options.quick else min(pages, _SPEED_PAGES), min(pages, _HISTORY_PAGES)
    histories = [evolved(old, _sites(old), seed, DAYS) for seed in options.seeds]
    speeds = [generated(fast, _sites(fast), seed) for seed in options.seeds]
    live_pages = min(pages, _LIVE_QUICK if options.quick else _LIVE_PAGES)
    live = [generated(live_pages, live_pages // _LIVE_PAGES_PER_SITE, seed) for seed in options.seeds]
    timed = [generated(*_TIMED, seed) for seed in options.seeds[: _TIMED_QUICK_WEBS if options.quick else None]]
    return CastilloWebs(orders, histories, speeds, live, timed)


def _sites(pages: int) -> int:
    return max(_LEAST_SITES, pages // _PAGES_PER_SITE)


# ---- cao: 30,000 pages on 500 servers.

_CAO_PAGES, _CAO_PAGES_PER_SITE = 30_000, 60
# Live crawls, with --quick and without: pages and sites of webs, sites and pages of a site, and pages of a crawl of fast servers.
_LIVE = ((200, 80), (500, 50))  # pages and sites of webs for batches by protocol
_PROBED = ((30, 220), (500, 220))
_FAST = ((20, 40), (20, 300))
_FAST_PAGES = (200, 4_000)


@click.command(cls=SectionedCommand)
@bundled("options", PaperOptions, _what(_CAO_PAGES, _CAO_PAGES))
@JOBS_WITH_LIVE
@output_section("cao")
def cao(options: PaperOptions, jobs: int, folder: Path, as_json: bool) -> None:
    """Reproduce Cao, Jiang and Singh: crawl scheduling by performance, quality and both.

    Simulates the crawls on several generated webs (with --graph: on your graphs), and judges every claim by the results of all of them.
    If you interrupt the command, repeat it: it continues where it stopped. See docs/reproduce-cao.md.
    """
    reproduce_plan(partial(cao_plan, options), "cao", asdict(options), jobs, folder, as_json)


def cao_plan(options: PaperOptions) -> "PaperPlan":
    from trapline.lab.cao.plan import CaoWebs, cao
    from trapline.lab.webs import equal_sites, generated

    pages = options.pages or _CAO_PAGES
    sites = max(_LEAST_SITES, pages // _CAO_PAGES_PER_SITE)
    webs = _graphs(options.graph) or [generated(pages, sites, seed) for seed in options.seeds]
    probed, fast = (equal_sites(*(quick if options.quick else whole)) for quick, whole in (_PROBED, _FAST))
    live = [generated(*_LIVE[not options.quick], seed) for seed in options.seeds]
    return cao(CaoWebs(webs, live, probed, fast, _FAST_PAGES[not options.quick], options.seeds))


def _graphs(paths: tuple[str, ...]) -> "list[WebSource]":
    from trapline.graph import LoadOptions, load_graph
    from trapline.lab.webs import recorded

    if not paths:
        return []
    with Progress("loading", plain_every_s=2.0) as progress:
        loading = LoadOptions(False, None, progress.update)
        found = [recorded(Path(path).name, load_graph(Path(path), loading)) for path in paths]
    refuse_same_names("--graph", "graph", (web.name for web in found))
    return found
