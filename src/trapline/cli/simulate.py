"""`trapline simulate`: one crawl of a graph in simulated time."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options import (
    blaming,
    check_inputs,
    chosen_strategy,
    compile_kernels,
    compile_ranks,
    constant_time_rules,
    count,
    rule_options,
    seconds,
    step,
    strategy_options,
)
from trapline.cli.progress import Progress
from trapline.errors import ConfigError
from trapline.output import check_writable, write_bytes, write_json

if TYPE_CHECKING:
    from trapline.frontier import Rules
    from trapline.report import OrderRecord
    from trapline.strategies import Strategy

_FILE = click.Path(path_type=Path)
_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
_STDOUT = Path("-")


@click.command()
@click.argument("graph", type=_FOLDER)
@strategy_options
@click.option("--connections", type=count(1), default=1, show_default=True, help="r: robots at work at once.")
@rule_options
@click.option("--page-seconds", type=seconds(least=1e-6), default=1.0, show_default=True, help="Time of a page.")
@click.option("--max-pages", type=count(1), help="Stop after this many pages.")
@click.option("--quality", type=click.Choice(["pagerank"]), default="pagerank", help="What a page is worth.")
@click.option("--seed", type=count(0), default=0, show_default=True, help="For strategies that throw dice.")
@click.option("--json", "json_file", type=_FILE, metavar="FILE", help="Write the result for machines; -: to stdout.")
@click.option("--plot", "plot_file", type=_FILE, metavar="FILE.png", help="Draw PageRank against pages fetched.")
def simulate(
    graph: Path,
    strategy: str | None,
    page_rank: str | None,
    site_rank: str | None,
    connections: int,
    page_seconds: float,
    max_pages: int | None,
    quality: str,
    seed: int,
    json_file: Path | None,
    plot_file: Path | None,
    **rules: Any,
) -> None:
    """Crawl the graph in folder GRAPH in simulated time, and say how early its important pages came.

    Every page takes --page-seconds. The crawl begins at the home pages of all sites.
    """
    _check_outputs(json_file, plot_file)
    limits = constant_time_rules(page_seconds, **rules)
    chosen = chosen_strategy(strategy, page_rank, site_rank)
    with blaming(strategy):
        check_inputs(chosen, ("quality",))
        compile_ranks(chosen)
    parameters: dict[str, Any] = {
        "connections": connections,
        "page_seconds": page_seconds,
        "max_pages": max_pages,
        "seed": seed,
    }
    record = _crawl(graph, chosen, limits, strategy, **parameters)
    if json_file:
        _write_json(json_file, _for_machines(graph, record, {**parameters, "quality": quality, **rules}))
    else:
        click.echo(_table(record))
    if plot_file:
        _write_plot(plot_file, graph, record)


def _check_outputs(json_file: Path | None, plot_file: Path | None) -> None:
    """Before the crawl, so that it is not crawled in vain."""
    if plot_file and plot_file.suffix.lower() != ".png":
        raise ConfigError(f"--plot {plot_file}: the picture is a PNG, so its name must end in .png")
    for file in (json_file, plot_file):
        if file and file != _STDOUT:
            check_writable(file)


def _crawl(
    folder: Path,
    chosen: "Strategy",
    limits: "Rules",
    strategy: str | None,
    *,
    connections: int,
    page_seconds: float,
    max_pages: int | None,
    seed: int,
) -> "OrderRecord":
    from trapline.graph import load_graph, pagerank
    from trapline.report import record_of
    from trapline.simulate import constant_servers
    from trapline.simulate import simulate as crawl_in_virtual_time

    compile_kernels()
    web = load_graph(folder)
    with step("PageRank", web.pages):
        rank = pagerank(web)
    robots = min(connections, web.sites)  # no site has two; a slot for each of 10^9 robots would fill the memory
    with Progress("crawling") as progress, blaming(strategy):
        crawl = crawl_in_virtual_time(
            web,
            chosen,
            limits,
            robots=robots,
            servers=constant_servers(page_seconds),
            most=max_pages,
            inputs={"quality": rank},
            seed=seed,
            progress=lambda done, most: progress.update(done, most, "pages"),
        )
    with step("judging", web.pages):
        return record_of(crawl, web, rank)


def _for_machines(graph: Path, record: "OrderRecord", parameters: dict[str, Any]) -> dict[str, Any]:
    from trapline import __version__

    return {"trapline": __version__, "graph": str(graph), **asdict(record), "parameters": parameters}


def _write_json(file: Path, value: dict[str, Any]) -> None:
    if file == _STDOUT:
        click.echo(json.dumps(value, allow_nan=False, indent=1))
    else:
        write_json(file, value)
        _say_written(file)


def _write_plot(file: Path, graph: Path, record: "OrderRecord") -> None:
    from trapline.report import orders_png

    title = f"How early {record.strategy} collects PageRank"
    subtitle = f"{graph.resolve().name}: {record.pages:,} pages, {record.links:,} links, {record.sites:,} sites"
    write_bytes(file, orders_png([record], title, subtitle))
    _say_written(file)


def _say_written(file: Path) -> None:
    click.echo(f"wrote {file}", err=True)  # stdout is for the result, which may go into a pipe


def _table(record: "OrderRecord") -> str:
    reached = "all that can be reached" if record.drained else "stopped before the end"
    rows = {
        "strategy": f"{record.strategy} (page rank {record.page_rank}, site rank {record.site_rank})",
        "web": f"{record.pages:,} pages, {record.links:,} links, {record.sites:,} sites",
        "pages fetched": f"{record.pages_fetched:,} ({reached})",
        "average cumulative PageRank": f"{record.average_cumulative_pagerank:.4f}"
        f" (random order 0.5, optimum {record.optimal_average_cumulative_pagerank:.4f})",
        "Kendall's tau": f"{record.kendall_tau:.4f}",
        "simulated time": f"{record.simulated_seconds:,.0f} s ({record.simulated_seconds / 86_400:,.2f} days)",
        "time of the loop": f"{record.wall_seconds:.3f} s ({record.pages_per_second:,.0f} pages/s)",
        "politeness violations": f"{record.politeness_violations}",
    }
    return "\n".join(f"{name:29}{value}" for name, value in rows.items())
