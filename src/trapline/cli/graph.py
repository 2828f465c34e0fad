"""`trapline graph`: make, inspect and convert web graphs."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.lazy import HintGroup
from trapline.cli.options.sections import refuse
from trapline.cli.options.values import count, real
from trapline.cli.terminal.progress import Progress, compile_kernels
from trapline.errors import ConfigError
from trapline.terminal import say, say_json, say_text
from trapline.units import counted

if TYPE_CHECKING:
    from trapline.graph import EvolutionRates, Graph, Measures, WebModel

# ---- `trapline graph generate`: generate a web, or snapshots of an evolving web, and save them.

_FOLDER = click.Path(path_type=Path)
_OUTPUT = click.option(
    "-o", "--output", type=_FOLDER, metavar="DIR", required=True, help="Folder to write; must be new or empty."
)

SHAPE = {
    "links_per_page": (14.3, "Mean number of links on a page."),
    "inside": (0.9, "Share of links that lead to a page of the same site."),
    "home_links": (
        0.1,
        "Share of pages that get an extra link to their home page. Menus and links to popular pages may also lead there.",
    ),
    "dangling": (0.3, "Share of pages that link to no page."),
    "dynamic": (0.1, "Share of pages with a query string."),
    "deep": (0.02, "Share of pages in deep chains of static pages."),
    "size_exponent": (1.8, "Power-law exponent of pages per site."),
    "degree_exponent": (1.85, "Power-law exponent of the number of links to a page."),
    "single_sites": (0.3, "Share of sites that get exactly one page; the power law makes more such sites."),
    "sites_per_ip": (1.0, "Mean number of sites that share an IP address."),
    "site_contrast": (
        1.0,
        "How much sites differ in links per page, dangling pages, and links from and to other sites: from 0 (not at all)"
        " to 1 (as on recorded webs).",
    ),
    "link_farms": (0.0, "Share of pages on link farms: sites whose pages have 40 links to random pages of the site."),
    "calendars": (
        0.0,
        "Share of pages on calendars: sites that are one chain of dynamic pages, each with 40 links to pages near it.",
    ),
}
"""Options of `generate` beyond pages, sites and seed, with the defaults of graph.WebModel.

The defaults are repeated here because importing the model would load numba for --help. A test compares the two.
"""


RATES = {
    "births_per_day": (0.005, "Mean number of new pages per day for each existing page, with --snapshots."),
    "deaths_per_day": (0.0067, "Mean number of pages that disappear per day for each existing page, with --snapshots."),
    "changes_per_day": (0.01, "Mean number of changes per page and day, with --snapshots."),
    "links_redrawn": (0.25, "Share of a page's links that a change replaces, with --snapshots."),
}
"""Options of an evolving web, with the defaults of graph.EvolutionRates, repeated for the same reason."""


def _number_options(table: dict[str, tuple[float, str]]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        for name, (default, text) in reversed(table.items()):
            flag = f"--{name.replace('_', '-')}"
            command = click.option(flag, name, type=real(), default=default, show_default=True, help=text)(command)
        return command

    return wrap


@click.command()
@click.option("--pages", type=count(1), required=True, help="Number of pages.")
@click.option("--sites", type=count(1), required=True, help="Number of sites.")
@click.option("--seed", type=count(0), default=1, show_default=True, help="Random seed of the web.")
@click.option(
    "--max-site-pages",
    type=count(1),
    help="Maximum number of pages per site.  [default: 0.7% of all pages, at most 25,000; a web of few sites gets"
    " a higher limit, see docs/generated-webs.md]",
)
@_number_options(SHAPE)
@click.option(
    "--snapshots", type=count(1), help="Generate this many snapshots of an evolving web, in DIR/0, DIR/1, ..."
)
@click.option("--days", type=real(), default=30.0, show_default=True, help="Days between two snapshots.")
@_number_options(RATES)
@_OUTPUT
@click.option("--replace", is_flag=True, help="Replace the folder if it holds a saved graph.")
def generate(
    pages: int,
    sites: int,
    seed: int,
    max_site_pages: int | None,
    snapshots: int | None,
    days: float,
    output: Path,
    replace: bool,
    **values: float,
) -> None:
    """Generate a web, or snapshots of an evolving web."""
    from trapline.graph import EvolutionRates, WebModel

    if snapshots is None:
        refuse(("days", *RATES), "is only for an evolving web; also give --snapshots")
    shape = {name: values[name] for name in SHAPE}
    model = WebModel(pages, sites, seed, max_site_pages=max_site_pages, **shape)
    rates = EvolutionRates(**{name: values[name] for name in RATES})
    folders = [output] if snapshots is None else _snapshot_folders(output, snapshots, days)
    _check_outputs(folders, replace)
    compile_kernels()
    if snapshots is None:
        _one_web(model, output, replace)
    else:
        _evolving_web(model, rates, days, folders, replace)


def _snapshot_folders(output: Path, snapshots: int, days: float) -> list[Path]:
    from trapline.graph.evolve import MOST_DAYS

    if not days > 0:
        raise ConfigError(f"--days {days:g} is not above 0; give the number of days between two snapshots")
    if not (last := (snapshots - 1) * days) < MOST_DAYS:
        raise ConfigError(
            f"--snapshots {snapshots} with --days {days:g}: the last snapshot would be on day {last:.10g};"
            f" give fewer --snapshots or a smaller --days, so that this day is before day {MOST_DAYS}"
        )
    if (output / "graph.json").exists() or (output / str(snapshots)).exists():
        raise ConfigError(f"{output}: holds another graph or more snapshots; remove this folder or choose another one")
    return [output / str(number) for number in range(snapshots)]


def _check_outputs(folders: list[Path], replace: bool) -> None:
    from trapline.graph import check_output

    for folder in folders:
        check_output(folder, replace)


def _one_web(model: "WebModel", output: Path, replace: bool) -> None:
    from trapline.graph import build, measure, save

    steps = iter(range(4))
    with Progress("generating", plain_every_s=2.0) as progress:

        def note(what: str) -> None:
            progress.update(next(steps), 4, what)

        web = build(model, note)
        note("measuring")
        measures = measure(web)
        note("writing")
        save(web, output, replace)
    say(f"wrote {output}: {_summary(measures)}")


def _evolving_web(model: "WebModel", rates: "EvolutionRates", days: float, folders: list[Path], replace: bool) -> None:
    from trapline.graph import evolve, measure, save

    moments = [number * days for number in range(len(folders))]
    with Progress("generating", plain_every_s=2.0) as progress:
        progress.update(0, len(folders), "day 0")
        for done, (folder, snapshot) in enumerate(zip(folders, evolve(model, moments, rates), strict=True), 1):
            save(snapshot.graph, folder, replace)
            progress.update(done, len(folders), f"day {snapshot.day:g}")
            new = float((snapshot.born_day > max(0.0, snapshot.day - days)).mean()) if snapshot.day else 0.0
            say(f"wrote {folder}: day {snapshot.day:g}, {new:.0%} of pages new; {_summary(measure(snapshot.graph))}")


def _summary(measures: "Measures") -> str:
    return (
        f"{counted(measures.pages, 'page')}, {counted(measures.links, 'link')}, {counted(measures.sites, 'site')};"
        f" {measures.intra_site_share:.0%} of links within a site, {measures.dangling_share:.0%} of pages dangling,"
        f" {measures.reachable_share:.0%} reachable, depth up to {measures.depth_max}"
    )


# ---- `trapline graph`, with `info` and `convert`.


@click.group(cls=HintGroup)
def graph() -> None:
    """Make, inspect and convert web graphs."""


graph.add_command(generate)


def _source_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "--ids-per-site",
            type=count(1),
            help="Treat every N consecutive pages of a graph without URLs as one site.  [default: all pages are one site]",
        ),
        click.option(
            "--dangling", is_flag=True, help="Include pages that a crawl did not fetch but found as link targets."
        ),
    ):
        command = option(command)
    return command


@graph.command()
@click.argument("path", type=_FOLDER)
@_source_options
@click.option(
    "--pagerank",
    "with_pagerank",
    is_flag=True,
    help="Also show how PageRank is distributed: how similar the pages of a site are, the share of the home pages, and"
    " the share of the best tenth of all pages.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(path: Path, dangling: bool, ids_per_site: int | None, with_pagerank: bool, as_json: bool) -> None:
    """Show the size and statistics of a graph.

    PATH is a folder or file.
    """
    from dataclasses import asdict

    from trapline.graph import measure, measure_ranks, pagerank

    compile_kernels()
    web, seconds = _loaded(path, dangling, ids_per_site)
    with Progress("measuring", plain_every_s=2.0) as progress:
        progress.update(0, web.pages, "pages")
        measures = asdict(measure(web))
        if with_pagerank:
            progress.update(0, web.pages, "PageRank")
            measures["pagerank"] = asdict(measure_ranks(web, pagerank(web)))
    odd = {"urls_without_host": web.origin["urls_without_host"]} if "urls_without_host" in web.origin else {}
    measures = {"format": web.origin.get("format"), "load_seconds": round(seconds, 4), **measures, **odd}
    if as_json:
        say_json(measures)
    else:
        say_text(_table(measures))


def _loaded(path: Path, dangling: bool, ids_per_site: int | None) -> "tuple[Graph, float]":
    """Load the graph; return it with the seconds that loading took."""
    from time import perf_counter

    from trapline.graph import LoadOptions, load_graph

    started = perf_counter()
    with Progress("loading", plain_every_s=2.0) as progress:
        web = load_graph(path, LoadOptions(dangling, ids_per_site, progress.update))
    return web, perf_counter() - started


@graph.command()
@click.argument("source", type=_FOLDER)
@_OUTPUT
@click.option(
    "--to",
    "form",
    type=click.Choice(["saved", "edges", "snap"]),
    default="saved",
    show_default=True,
    help="Format to write. saved: Trapline's own, which opens fastest; edges: urls.txt and edges.tsv; snap: edges.txt, without URLs.",
)
@click.option("--replace", is_flag=True, help="Replace the folder if it holds a graph in this format.")
@_source_options
def convert(source: Path, output: Path, form: str, replace: bool, dangling: bool, ids_per_site: int | None) -> None:
    """Convert a graph to another format.

    SOURCE is a folder or file of any known format.
    """
    from trapline.graph import check_output, check_text_output, save, save_edges, save_snap

    if form == "saved":
        check_output(output, replace)
    else:
        check_text_output(form, output, replace)
    compile_kernels()
    web, _ = _loaded(source, dangling, ids_per_site)
    with Progress("writing", plain_every_s=2.0) as progress:
        progress.update(0, web.links, "links")
        if form == "saved":
            save(web, output, replace)
        else:
            (save_edges if form == "edges" else save_snap)(web, output, replace, progress.update)
    size = f"{counted(web.pages, 'page')}, {counted(web.links, 'link')}, {counted(web.sites, 'site')}"
    say(f"wrote {output}: {size}")


def _table(measures: dict[str, Any]) -> str:
    width = max(map(len, measures)) + 2
    return "\n".join(f"{name.replace('_', ' '):{width}}{_shown(value)}" for name, value in measures.items())


def _shown(value: object) -> str:
    match value:
        case dict():
            return ", ".join(f"{name} {_shown(part)}" for name, part in value.items())
        case float():
            return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
        case int():
            return f"{value:,}"
        case None:
            return "-"
        case _:
            return str(value)
