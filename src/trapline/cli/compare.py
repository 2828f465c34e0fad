"""`trapline compare`: several strategies on the same web, side by side."""

from collections import Counter
from pathlib import Path

import click

from trapline.cli.arena import opened
from trapline.cli.comparison import check_folder, close, compare_all, log_name
from trapline.cli.compiling import compile_crawl, compile_ranks
from trapline.cli.conditions import SECTIONS, Conditions, condition_options
from trapline.cli.scoreboard import web_name
from trapline.cli.sections import Section, SectionedCommand
from trapline.cli.strategy import Chosen, named, named_strategies, ready
from trapline.errors import ConfigError

_OUTPUT = Section(
    "Output",
    (
        ("-o --output", "output", click.Path(path_type=Path), Path("trapline-compare"), "Folder to write."),
        ("--logs", "logs", None, False, "Also write every fetch, as Parquet."),
    ),
)


@click.command(cls=SectionedCommand)
@click.argument("graph", type=click.Path(path_type=Path, exists=True))
@click.argument("strategies", nargs=-1, metavar="[STRATEGY]...")
@condition_options(*SECTIONS)
@_OUTPUT
def compare(graph: Path, strategies: tuple[str, ...], conditions: Conditions, output: Path, logs: bool) -> int:
    """Crawl GRAPH by each STRATEGY, under the same conditions, and compare what came when.

    A STRATEGY is a name, a Python file (.py), or a pair of ranks, PAGE+SITE, such as opic+crawl-ability. Without any,
    all are compared that can be: those that need an old crawl only with --history.

    It prints a table and writes compare.html, its pictures and compare.json. A TIME is in seconds, or with a unit:
    250ms, 2min, 1h. A SHARE is 0.05 or 5%; "model": what was measured. Brackets hold the default.
    """
    every = _chosen(strategies or named_strategies(conditions.quality, conditions.history is not None), conditions)
    check_folder(output, [chosen.name for chosen in every] if logs else [])
    compile_ranks(every)
    compile_crawl()
    arena = opened(graph, conditions)
    found = compare_all(arena, every, output if logs else None)
    return close(found, arena, output, web_name(graph))


def _chosen(names: tuple[str, ...] | list[str], conditions: Conditions) -> list[Chosen]:
    every = [ready(named(name), conditions.quality, conditions.history is not None) for name in dict.fromkeys(names)]
    times = Counter(log_name(chosen.name) for chosen in every)
    for chosen in every:
        if times[log_name(chosen.name)] > 1:
            raise ConfigError(f"two of the strategies are called {chosen.name!r}; each needs a name of its own")
    return every
