"""`trapline graph`: make and inspect web graphs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.progress import Progress

if TYPE_CHECKING:
    from trapline.graph import Measures

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
    """Make and inspect web graphs."""


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


@graph.command()
@click.argument("path", type=_FOLDER)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def info(path: Path, as_json: bool) -> None:
    """Count and measure the graph in PATH."""
    from dataclasses import asdict

    from trapline.graph import load_graph, measure
    from trapline.jit import ready

    with Progress("compiling", plain_every_s=2.0) as progress:
        ready(progress.update)
    with Progress("measuring", plain_every_s=2.0) as progress:
        progress.update(0, 2, "loading")
        web = load_graph(path)
        progress.update(1, 2)
        measures = asdict(measure(web))
    measures = {"format": web.origin.get("format"), **measures}
    click.echo(json.dumps(measures, indent=1) if as_json else _table(measures))


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
