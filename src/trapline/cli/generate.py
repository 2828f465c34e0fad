"""`trapline graph generate`: make a web, or a web and what becomes of it, and save it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from trapline.cli.compiling import compile_kernels
from trapline.cli.numbers import count, real
from trapline.cli.progress import Progress
from trapline.errors import ConfigError
from trapline.terminal import say
from trapline.units import counted

if TYPE_CHECKING:
    from trapline.graph import Measures, Rates, WebModel

_FOLDER = click.Path(path_type=Path)

SHAPE = {
    "links_per_page": (14.3, "Mean number of links on a page."),
    "inside": (0.9, "Share of links within a site."),
    "home_links": (0.6, "Share of pages that link to their home page."),
    "dangling": (0.3, "Share of pages without links."),
    "dynamic": (0.1, "Share of pages with a query string."),
    "deep": (0.02, "Share of pages in deep static chains."),
    "size_exponent": (1.8, "Power law of pages per site."),
    "degree_exponent": (1.85, "Power law of links to a page."),
    "single_sites": (0.3, "Share of sites with one page, beyond the power law."),
    "sites_per_ip": (1.0, "Mean number of sites that share an address."),
}
"""Options of `generate` beyond pages, sites and seed, with the defaults of graph.WebModel.

Repeated here because importing the model would load numba for --help; a test compares the two.
"""


RATES = {
    "births_per_day": (0.005, "New pages per page and day, with --snapshots."),
    "deaths_per_day": (0.0067, "Mean rate at which pages disappear, with --snapshots."),
    "changes_per_day": (0.01, "Mean rate at which pages change, with --snapshots."),
    "links_redrawn": (0.25, "Share of a page's links that a change replaces, with --snapshots."),
}
"""Options of an evolving web, with the defaults of graph.Rates; repeated for the same reason."""


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
@click.option("--seed", type=count(0), default=1, show_default=True, help="Another seed gives another web.")
@_number_options(SHAPE)
@click.option("--snapshots", type=count(1), help="So many days of an evolving web: OUTPUT/0, OUTPUT/1, ...")
@click.option("--days", type=real(), default=30.0, show_default=True, help="Days from one snapshot to the next.")
@_number_options(RATES)
@click.option("-o", "--output", type=_FOLDER, required=True, help="Folder to write; must not exist or be empty.")
@click.option("--replace", is_flag=True, help="Replace the folder if it holds a saved graph.")
def generate(
    pages: int, sites: int, seed: int, snapshots: int | None, days: float, output: Path, replace: bool, **values: float
) -> None:
    """Generate a web and save it."""
    from trapline.graph import Rates, WebModel

    if snapshots is None:
        _refuse_rates()
    model = WebModel(pages, sites, seed, **{name: values[name] for name in SHAPE})
    rates = Rates(**{name: values[name] for name in RATES})
    folders = [output] if snapshots is None else _snapshot_folders(output, snapshots, days)
    _check_outputs(folders, replace)
    compile_kernels()
    if snapshots is None:
        _one_web(model, output, replace)
    else:
        _evolving_web(model, rates, days, folders, replace)


def _refuse_rates() -> None:
    """What a web that does not evolve would silently ignore."""
    source = click.get_current_context().get_parameter_source
    for name in ("days", *RATES):
        if source(name) is ParameterSource.COMMANDLINE:
            raise ConfigError(f"--{name.replace('_', '-')} is for an evolving web; give --snapshots too")


def _snapshot_folders(output: Path, snapshots: int, days: float) -> list[Path]:
    if not days > 0:
        raise ConfigError(f"--days is {days:g}, must be positive")
    if (output / "graph.json").exists() or (output / str(snapshots)).exists():
        raise ConfigError(f"{output}: holds another graph or more snapshots; remove it or choose another folder")
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


def _evolving_web(model: "WebModel", rates: "Rates", days: float, folders: list[Path], replace: bool) -> None:
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
