"""`trapline demo`: a generated web, ordered by three strategies, as a table and a picture."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.options import compile_kernels, compile_ranks, constant_time_rules, count, step
from trapline.errors import ConfigError
from trapline.output import check_writable, write_bytes

if TYPE_CHECKING:
    from trapline.graph import WebModel
    from trapline.report import OrderRecord

STRATEGIES = ("breadth-first", "larger-sites-first", "opic")
DELAY_S = 15.0
PAGE_SECONDS = 1.0


@click.command()
@click.option("--pages", type=count(1), default=200_000, show_default=True, help="Number of pages.")
@click.option("--sites", type=count(1), default=2_000, show_default=True, help="Number of sites.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed gives another web.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("trapline-demo"),
    show_default=True,
    help="Folder for the picture.",
)
def demo(pages: int, sites: int, seed: int, output: Path) -> None:
    """Order a generated web by three strategies, and plot how early each collects PageRank."""
    from trapline.graph import WebModel
    from trapline.report import orders_png

    model = WebModel(pages, sites, seed)
    picture = _place_for_picture(output)
    records = list(_crawls(model))
    settings = f"one robot, {DELAY_S:.0f} s between visits to a site, {PAGE_SECONDS:.0f} s a page"
    click.echo(f"A generated web of {_size(records[0])}; {settings}.\n\n{_table(records)}\n")
    title = "How early three crawl orders collect PageRank"
    write_bytes(picture, orders_png(records, title, f"Generated web of {_size(records[0])};\n{settings}"))
    click.echo(f"The picture is {picture}")


def _place_for_picture(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error.strerror or error}") from error
    picture = folder / "crawl-orders.png"
    check_writable(picture)
    return picture


def _crawls(model: "WebModel") -> Iterator["OrderRecord"]:
    from trapline.graph import build, pagerank
    from trapline.report import record_of
    from trapline.simulate import constant_servers, simulate
    from trapline.strategies import load_strategy

    compile_kernels()
    with step("generating a web", model.pages):
        web = build(model)
        rank = pagerank(web)
    rules = constant_time_rules(PAGE_SECONDS, delay_s=DELAY_S)
    for name in STRATEGIES:
        strategy = load_strategy(name)
        compile_ranks(strategy)
        with step(name, web.pages):
            record = record_of(simulate(web, strategy, rules, servers=constant_servers(PAGE_SECONDS)), web, rank)
        yield record


def _size(record: "OrderRecord") -> str:
    return f"{record.pages:,} pages, {record.links:,} links, {record.sites:,} sites"


def _table(records: list["OrderRecord"]) -> str:
    row = "{:20}{:>28}{:>15}{:>16}{:>12}".format
    lines = [row("order", "average cumulative PageRank", "Kendall's tau", "simulated days", "pages/s")]
    for r in records:
        numbers = f"{r.average_cumulative_pagerank:.3f}", f"{r.kendall_tau:.3f}", f"{r.simulated_seconds / 86_400:.2f}"
        lines.append(row(r.strategy, *numbers, f"{r.pages_per_second:,.0f}"))
    lines.append(row("random", "0.500", "0.000", "", "").rstrip())
    best = records[0].optimal_average_cumulative_pagerank
    lines.append(row("optimum", f"{best:.3f}", "1.000", "", "").rstrip())
    return "\n".join(lines)
