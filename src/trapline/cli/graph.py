"""`trapline graph`: make, inspect and convert web graphs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.compiling import compile_kernels
from trapline.cli.generate import generate
from trapline.cli.numbers import count
from trapline.cli.progress import Progress
from trapline.terminal import say, say_text
from trapline.units import counted

if TYPE_CHECKING:
    from trapline.graph import Graph

_FOLDER = click.Path(path_type=Path)


@click.group()
def graph() -> None:
    """Make, inspect and convert web graphs."""


graph.add_command(generate)


def _source_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "--ids-per-site",
            type=count(1),
            help="If pages have no URLs: so many numbers in a row are a site.  [default: all are one]",
        ),
        click.option("--dangling", is_flag=True, help="Also the pages that a crawl saw links to and did not fetch."),
    ):
        command = option(command)
    return command


@graph.command()
@click.argument("path", type=_FOLDER)
@_source_options
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def info(path: Path, dangling: bool, ids_per_site: int | None, as_json: bool) -> None:
    """Count and measure the graph in PATH, a folder or file."""
    from dataclasses import asdict

    from trapline.graph import measure

    compile_kernels()
    web, seconds = _loaded(path, dangling, ids_per_site)
    with Progress("measuring", plain_every_s=2.0) as progress:
        progress.update(0, web.pages, "pages")
        measures = asdict(measure(web))
    odd = {"urls_without_host": web.origin["urls_without_host"]} if "urls_without_host" in web.origin else {}
    measures = {"format": web.origin.get("format"), "load_seconds": round(seconds, 4), **measures, **odd}
    say_text(json.dumps(measures, indent=1) if as_json else _table(measures))


def _loaded(path: Path, dangling: bool, ids_per_site: int | None) -> "tuple[Graph, float]":
    """The graph, and the seconds that it took to load."""
    from time import perf_counter

    from trapline.graph import LoadOptions, load_graph

    started = perf_counter()
    with Progress("loading", plain_every_s=2.0) as progress:
        web = load_graph(path, LoadOptions(dangling, ids_per_site, progress.update))
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
def convert(source: Path, output: Path, form: str, replace: bool, dangling: bool, ids_per_site: int | None) -> None:
    """Write the graph in SOURCE, a folder or file of any known format, in another one."""
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
