"""`trapline demo`: a generated web, crawled by a few strategies, as a table, pictures and a page."""

from pathlib import Path

import click

from trapline.cli.arena import prepared
from trapline.cli.comparison import PAGE, check_folder, close, compare_all
from trapline.cli.compiling import compile_crawl, compile_ranks, step
from trapline.cli.conditions import Conditions
from trapline.cli.numbers import count
from trapline.cli.strategy import named

STRATEGIES = ("breadth-first", "larger-sites-first", "opic", "crawl-ability")
ROBOTS = 64


@click.command()
@click.option("--pages", type=count(1), default=200_000, show_default=True, help="Number of pages.")
@click.option("--sites", type=count(1), default=2_000, show_default=True, help="Number of sites.")
@click.option("--seed", type=count(0), default=1, show_default=True, help="Another seed gives another web.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("trapline-demo"),
    show_default=True,
    help="Folder for the page and its pictures.",
)
def demo(pages: int, sites: int, seed: int, output: Path) -> int:
    """Crawl a generated web by a few strategies, in simulated time, and show what each collects when."""
    from trapline.frontier import Rules
    from trapline.graph import WebModel, build

    model = WebModel(pages, sites, seed)
    check_folder(output)
    every = [named(name) for name in STRATEGIES]
    compile_crawl()
    compile_ranks(every)
    with step("generating a web", model.pages):
        web = build(model)
    conditions = Conditions(Rules(lease_s=float("inf")), connections=ROBOTS, seed=seed)
    arena = prepared(web, conditions)
    code = close(compare_all(arena, every), arena, output, "A generated web")
    if not code:
        click.echo(f"Open {output / PAGE} in a browser.")
    return code
