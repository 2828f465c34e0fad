"""`trapline compare`: crawls the same web with several strategies and compares them."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options.scheduling import STRATEGIES, check_history_used
from trapline.cli.options.sections import Section, SectionedCommand
from trapline.cli.options.simulated import common_options, heading, other_options, sweep_options
from trapline.cli.options.values import GRAPH_PATH, NameOrFile
from trapline.cli.simulate.arena import opened_arena
from trapline.cli.terminal.errors import INTERRUPTED, complain
from trapline.cli.terminal.progress import compile_crawl, compile_ranks, step
from trapline.cli.terminal.scoreboard import grid_text, say_if_few, scoreboard, web_name
from trapline.errors import ConfigError
from trapline.output import check_writable, write_bytes, write_json, write_text
from trapline.terminal import say, say_text
from trapline.units import duration

if TYPE_CHECKING:
    from trapline.api.simulation_result import Comparison
    from trapline.simulator.conditions import Variant

_OUTPUT = Section(
    "Output",
    (
        ("-o --output", "output", (click.Path(path_type=Path), "DIR"), Path("trapline-compare"), "Folder to write."),
        ("--logs", "logs", None, False, "Also write one Parquet file per crawl, with one row per fetch."),
    ),
)


@click.command(cls=SectionedCommand)
@click.argument("graph", type=GRAPH_PATH)
@click.argument("strategies", nargs=-1, metavar="[STRATEGY]...", type=NameOrFile(STRATEGIES))
@sweep_options()
@_OUTPUT
def compare(graph: Path, strategies: tuple[str, ...], variants: "list[Variant]", output: Path, logs: bool) -> int:
    """Crawl GRAPH with each STRATEGY under the same conditions, and compare how early each one fetches good pages.

    A STRATEGY is a name, a Python file (.py), or a pair of ranks, PAGE+SITE, such as opic+crawl-ability. If you
    name none, all strategies are compared. Strategies that need an old crawl take part only if you give --history.

    --connections, --delay, --per-connection, --bandwidth and --protocol accept lists, such as --connections 1,64,256. Each strategy
    then crawls once with every combination, which shows how many connections and how much bandwidth a crawl needs.

    Prints a table and writes compare.html, plots and compare.json. A TIME is in seconds or has a unit: 250ms, 2min, 1h. A SHARE is 0.05
    or 5%. Defaults are in brackets.
    """
    from trapline.api.simulation import chosen_strategies, compare_in, crawl_label

    conditions = variants[0].conditions
    every = chosen_strategies(strategies, conditions)
    check_history_used([chosen.strategy for chosen in every])
    logged = [crawl_label(chosen, variant) for chosen in every for variant in variants] if logs else []
    check_folder(output, logged)
    compile_ranks(every)
    compile_crawl()
    arena = opened_arena(graph, conditions)
    found = compare_in(arena, every, variants, web_name(graph), output if logs else None)
    return close(found, variants, output)


# ---- The results: shown as a table, written as HTML, plots and JSON.

PAGE, JSON = "compare.html", "compare.json"
# The charts of report.chart, repeated because the folder is checked before any crawl. A test compares the two.
PLOTS = (
    "quality-pages.png",
    "quality-time.png",
    "pages-time.png",
    "connections-time.png",
    "waste-time.png",
    "pagerank-depth.png",
    "pagerank-time.png",
    "batch-connections.png",
)


def check_folder(folder: Path, logs: Sequence[str] = ()) -> None:
    """Create the folder, and check before the first crawl that all files can be written there."""
    from trapline.api.simulation import log_name

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error.strerror or error}; choose another folder: -o DIR") from error
    for name in (PAGE, JSON, *PLOTS, *map(log_name, logs)):
        if (folder / name).is_file() and not _is_ours(folder):
            raise ConfigError(f"{folder / name} exists and is not from a comparison; choose another folder: -o DIR")
        check_writable(folder / name)


def _is_ours(folder: Path) -> bool:
    """Return whether the folder holds an earlier comparison, which may be replaced. Every comparison writes its JSON first."""
    try:
        found = json.loads((folder / JSON).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and {"trapline", "crawls"} <= found.keys()


def _write(found: "Comparison", variants: "Sequence[Variant]", folder: Path) -> None:
    from trapline.report import compare_page, plots_png
    from trapline.simulator.conditions import common_summary

    web, records = found.web, found.records
    for name in (PAGE, *PLOTS):  # of an earlier comparison: an interrupt must not leave a mixture
        (folder / name).unlink(missing_ok=True)
    write_json(folder / JSON, _for_machines(found, variants))
    title, subtitle = f"Crawl orders of {web}", f"{records[0].web_size}; {common_summary(variants)}"
    with step("drawing", len(records), "crawls"):
        write_text(folder / PAGE, compare_page(records, title, subtitle, common_options(variants)))
        pictures = plots_png(records, f"{web}: {records[0].web_size}\n{_heading(variants)}")
        for name, png in pictures.items():
            write_bytes(folder / f"{name}.png", png)
    say(f"wrote {folder / PAGE}, {JSON} and {len(pictures)} plots (.png)", err=True)


def _heading(variants: "Sequence[Variant]") -> str:
    """Return the conditions that all crawls share, and the values of those that differ."""
    from trapline.simulator.conditions import common_summary

    first = variants[0].conditions
    if len(variants) == 1:
        return heading(first)
    lines = (
        textwrap.wrap(text, 79, break_on_hyphens=False) for text in (common_summary(variants), other_options(first))
    )
    return "\n".join(chain.from_iterable(lines))


def _for_machines(found: "Comparison", variants: "Sequence[Variant]") -> dict[str, Any]:
    from trapline import __version__

    return {
        "trapline": __version__,
        "web": found.web,
        "parameters": variants[0].conditions.parameters(),
        "sweep": {option: list(dict.fromkeys(v.values[option] for v in variants)) for option in variants[0].values},
        "crawls": [asdict(record) for record in found.records],
        "failures": {name: str(error) for name, error in found.failures.items()},
        "interrupted": found.interrupted,
    }


def close(found: "Comparison", variants: "Sequence[Variant]", folder: Path) -> int:
    """Write and show the results, report the failures, and return the exit code."""
    from trapline.report.table import grids

    done = len(found.records)
    if done:
        _write(found, variants, folder)  # files come first: the reader of stdout may be gone
        say_text(f"{found.web}: {found.records[0].web_size}\n{_heading(variants)}\n")
        say_text(f"{scoreboard(found.records)}\n{done} crawl{'' if done == 1 else 's'} in {duration(found.seconds)}.")
        for grid in grids(found.records):
            say_text(f"\n{grid_text(grid)}")
        say_if_few(found.records)
    codes = [complain(error, f"{name}: ") for name, error in found.failures.items()]
    if found.interrupted:
        kept = "was" if done == 1 else "were"
        say(f"interrupted; {done} of {found.wanted} crawls {kept} finished and kept", err=True)
        return INTERRUPTED
    return max(codes, default=0)
