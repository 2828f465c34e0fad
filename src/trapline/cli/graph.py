"""`trapline graph`: make, inspect and convert web graphs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.progress import Progress

if TYPE_CHECKING:
    from trapline.graph import Graph, Measures

_FOLDER = click.Path(path_type=Path)

SHAPE = {
    "links_per_page": (14.3, "Mean number of links on a page."),
    "inside": (0.9, "Share of links within a site."),
    "home_links": (0.8, "Share of pages that link to their home page."),
    "dangling": (0.3, "Share of pages without links."),
    "dynamic": (0.1, "Share of pages with a query string."),
    "deep": (0.02, "Share of pages in deep static chains."),
    "size_exponent": (1.8, "Power law of pages per site."),
    "degree_exponent": (2.1, "Power law of links to a page."),
    "sites_per_ip": (1.0, "Mean number of sites that share an address."),
}
"""Options of `generate` beyond pages, sites and seed, with the defaults of graph.WebModel.

Repeated here because importing the model would load numba for --help; a test compares the two.
"""


@click.group()
def graph() -> None:
    """Make, inspect and convert web graphs."""


def _shape_options(command: Callable[..., None]) -> Callable[..., None]:
    for name, (default, text) in reversed(SHAPE.items()):
        flag = f"--{name.replace('_', '-')}"
        command = click.option(flag, name, type=float, default=default, show_default=True, help=text)(command)
    return command


@graph.command()
@click.option("--pages", type=click.IntRange(min=1), required=True, help="Number of pages.")
@click.option("--sites", type=click.IntRange(min=1), required=True, help="Number of sites.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed gives another web.")
@_shape_options
@click.option("-o", "--output", type=_FOLDER, required=True, help="Folder to write; must not exist or be empty.")
@click.option("--replace", is_flag=True, help="Replace the folder if it holds a saved graph.")
def generate(pages: int, sites: int, seed: int, output: Path, replace: bool, **shape: float) -> None:
    """Generate a web and save it."""
    from trapline.graph import WebModel, build, check_output, measure, save
    from trapline.jit import ready

    model = WebModel(pages, sites, seed, **shape)
    check_output(output, replace)
    with Progress("compiling", plain_every_s=2.0) as progress:
        ready(progress.update)
    steps = iter(range(4))
    with Progress("generating", plain_every_s=2.0) as progress:

        def note(what: str) -> None:
            progress.update(next(steps), 4, what)

        web = build(model, note)
        note("measuring")
        measures = measure(web)
        note("writing")
        save(web, output, replace)
    click.echo(f"wrote {output}: {_summary(measures)}")


def _summary(measures: "Measures") -> str:
    return (
        f"{measures.pages:,} pages, {measures.links:,} links, {measures.sites:,} sites;"
        f" {measures.intra_site_share:.0%} of links within a site, {measures.dangling_share:.0%} of pages dangling,"
        f" {measures.reachable_share:.0%} reachable, depth up to {measures.depth_max}"
    )


def _source_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "--pages-per-site",
            type=click.IntRange(min=1),
            help="If pages have no URLs: so many in a row are a site.  [default: all are one]",
        ),
        click.option("--dangling", is_flag=True, help="Also the pages that a crawl saw links to and did not fetch."),
    ):
        command = option(command)
    return command


@graph.command()
@click.argument("path", type=_FOLDER)
@_source_options
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def info(path: Path, dangling: bool, pages_per_site: int | None, as_json: bool) -> None:
    """Count and measure the graph in PATH, a folder or file."""
    from dataclasses import asdict

    from trapline.graph import measure
    from trapline.jit import ready

    with Progress("compiling", plain_every_s=2.0) as progress:
        ready(progress.update)
    web, seconds = _loaded(path, dangling, pages_per_site)
    with Progress("measuring", plain_every_s=2.0) as progress:
        progress.update(0, web.pages, "pages")
        measures = asdict(measure(web))
    odd = {"urls_without_host": web.origin["urls_without_host"]} if "urls_without_host" in web.origin else {}
    measures = {"format": web.origin.get("format"), "load_seconds": round(seconds, 4), **measures, **odd}
    click.echo(json.dumps(measures, indent=1) if as_json else _table(measures))


def _loaded(path: Path, dangling: bool, pages_per_site: int | None) -> "tuple[Graph, float]":
    """The graph, and the seconds that it took to load."""
    from time import perf_counter

    from trapline.graph import LoadOptions, load_graph

    started = perf_counter()
    with Progress("loading", plain_every_s=2.0) as progress:
        web = load_graph(path, LoadOptions(dangling, pages_per_site, progress.update))
    return web, perf_counter() - started


@graph.command()
@click.argument("source", type=_FOLDER)
@click.option("-o", "--output", type=_FOLDER, required=True, help="Folder to write; must not exist or be empty.")
@click.option(
    "--to",
    "form",
    type=click.Choice(["saved", "edges", "snap"]),
    default="saved",
    show_default=True,
    help="saved: Trapline's own, opens fastest. edges: urls.txt + edges.tsv. snap: edges.txt, no URLs.",
)
@click.option("--replace", is_flag=True, help="Replace the folder if it holds such a graph.")
@_source_options
def convert(source: Path, output: Path, form: str, replace: bool, dangling: bool, pages_per_site: int | None) -> None:
    """Write the graph in SOURCE, a folder or file of any known format, in another one."""
    from trapline.graph import check_output, check_text_output, save, save_edges, save_snap
    from trapline.jit import ready

    if form == "saved":
        check_output(output, replace)
    else:
        check_text_output(form, output, replace)
    with Progress("compiling", plain_every_s=2.0) as progress:
        ready(progress.update)
    web, _ = _loaded(source, dangling, pages_per_site)
    with Progress("writing", plain_every_s=2.0) as progress:
        progress.update(0, web.links, "links")
        if form == "saved":
            save(web, output, replace)
        else:
            (save_edges if form == "edges" else save_snap)(web, output, replace, progress.update)
    click.echo(f"wrote {output}: {web.pages:,} pages, {web.links:,} links, {web.sites:,} sites")


def _table(measures: dict[str, Any]) -> str:
    width = max(map(len, measures)) + 2
    return "\n".join(f"{name.replace('_', ' '):{width}}{_shown(value)}" for name, value in measures.items())


def _shown(value: object) -> str:
    match value:
        case dict():
            return ", ".join(f"{name} {_shown(part)}" for name, part in value.items())
        case float():
            return f"{value:.4g}"
        case int():
            return f"{value:,}"
        case None:
            return "-"
        case _:
            return str(value)
