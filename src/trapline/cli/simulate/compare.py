"""`trapline compare`: crawls the same web with several strategies and compares them."""

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options.scheduling import Chosen, named, named_strategies, ready
from trapline.cli.options.sections import Section, SectionedCommand
from trapline.cli.options.simulated import SECTIONS, CrawlConditions, condition_options
from trapline.cli.simulate.arena import Arena, opened
from trapline.cli.terminal.errors import INTERRUPTED, complain
from trapline.cli.terminal.progress import compile_crawl, compile_ranks, step
from trapline.cli.terminal.scoreboard import say_if_few, scoreboard, web_name, web_size
from trapline.errors import ConfigError
from trapline.output import check_writable, write_bytes, write_json, write_text
from trapline.terminal import say, say_text
from trapline.units import duration

if TYPE_CHECKING:
    from trapline.report import CrawlRecord

_OUTPUT = Section(
    "Output",
    (
        ("-o --output", "output", click.Path(path_type=Path), Path("trapline-compare"), "Folder to write."),
        ("--logs", "logs", None, False, "Also write every fetch of each crawl as Parquet."),
    ),
)


@click.command(cls=SectionedCommand)
@click.argument("graph", type=click.Path(path_type=Path, exists=True))
@click.argument("strategies", nargs=-1, metavar="[STRATEGY]...")
@condition_options(*SECTIONS)
@_OUTPUT
def compare(graph: Path, strategies: tuple[str, ...], conditions: CrawlConditions, output: Path, logs: bool) -> int:
    """Crawl GRAPH with each STRATEGY under the same conditions, and compare how early each one fetches good pages.

    A STRATEGY is a name, a Python file (.py), or a pair of ranks, PAGE+SITE, such as opic+crawl-ability. If you
    name none, all strategies are compared, except those that need an old crawl if you give no --history.

    Prints a table and writes compare.html, plots and compare.json. A TIME is in seconds or has a unit: 250ms, 2min, 1h. A SHARE is 0.05
    or 5%, or "model" for the measured value. Defaults are in brackets.
    """
    every = _chosen(strategies or named_strategies(conditions.quality, conditions.history is not None), conditions)
    check_folder(output, [chosen.name for chosen in every] if logs else [])
    compile_ranks(every)
    compile_crawl()
    arena = opened(graph, conditions)
    found = compare_all(arena, every, output if logs else None)
    return close(found, arena, output, web_name(graph))


def _chosen(names: tuple[str, ...] | list[str], conditions: CrawlConditions) -> list[Chosen]:
    every = [ready(named(name), conditions.quality, conditions.history is not None) for name in dict.fromkeys(names)]
    times = Counter(log_name(chosen.name) for chosen in every)
    for chosen in every:
        if times[log_name(chosen.name)] > 1:
            raise ConfigError(f"two strategies have the name {chosen.name!r}; give each one only once, or rename one")
    return every


# ---- Several strategies on one arena: run one after the other, shown as a table, written as HTML, plots and JSON.
#
# Finished crawls are kept in any case: a strategy that fails is reported along with the results of the others, and Ctrl-C ends the
# comparison but keeps its results so far.

PAGE, JSON = "compare.html", "compare.json"


@dataclass(slots=True)
class Comparison:
    """The results so far."""

    wanted: int
    records: list["CrawlRecord"] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)
    interrupted: bool = False
    seconds: float = 0.0


def compare_all(arena: Arena, every: Sequence[Chosen], logs: Path | None = None) -> Comparison:
    """Crawl with each strategy in turn. `logs`: folder for the logs of the crawls."""
    found, started = Comparison(len(every)), time.perf_counter()
    for number, chosen in enumerate(every, 1):
        try:
            label = f"{chosen.name} ({number} of {len(every)})"
            crawl = arena.crawl(chosen, label)
            found.records.append(arena.judge(crawl, arena.reference_rate(chosen, label)))
            if logs:
                arena.write_log(crawl, logs / log_name(chosen.name))
        except KeyboardInterrupt:
            found.interrupted = True
            break
        except Exception as error:  # any error of one strategy; the others go on
            found.failures[chosen.name] = error
    found.seconds = time.perf_counter() - started
    return found


def log_name(strategy: str) -> str:
    """
    >>> log_name("opic x crawl-ability")
    'log-opic-x-crawl-ability.parquet'
    """
    plain = re.sub(r"[^\w.-]+", "-", strategy)
    return f"log-{plain}.parquet"


def check_folder(folder: Path, logs: Sequence[str] = ()) -> None:
    """Create the folder, and check before the first crawl that all files can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error.strerror or error}") from error
    for name in (PAGE, JSON, *map(log_name, logs)):
        check_writable(folder / name)


def _write(found: Comparison, arena: Arena, folder: Path, web: str) -> None:
    from trapline.report import compare_page, plots_png

    write_json(folder / JSON, _for_machines(found, web, arena.conditions.parameters()))
    title, subtitle = f"Crawl orders of {web}", f"{web_size(found.records[0])}; {arena.conditions.summary()}"
    with step("drawing", len(found.records), "crawls"):
        write_text(folder / PAGE, compare_page(found.records, title, subtitle, arena.conditions.options()))
        pictures = plots_png(found.records, f"{web}: {web_size(found.records[0])}\n{arena.conditions.heading()}")
        for name, png in pictures.items():
            write_bytes(folder / f"{name}.png", png)
    say(f"wrote {folder / PAGE}, {JSON} and {len(pictures)} plots (.png)", err=True)


def _for_machines(found: Comparison, web: str, parameters: dict[str, Any]) -> dict[str, Any]:
    from trapline import __version__

    return {
        "trapline": __version__,
        "web": web,
        "parameters": parameters,
        "crawls": [asdict(record) for record in found.records],
        "failures": {name: str(error) for name, error in found.failures.items()},
        "interrupted": found.interrupted,
    }


def close(found: Comparison, arena: Arena, folder: Path, web: str) -> int:
    """Write and show the results, report the failures, and return the exit code."""
    done = len(found.records)
    if done:
        _write(found, arena, folder, web)  # files come first: the reader of stdout may be gone
        say_text(f"{web}: {web_size(found.records[0])}\n{arena.conditions.heading()}\n")
        say_text(f"{scoreboard(found.records)}\n{done} crawl{'' if done == 1 else 's'} in {duration(found.seconds)}.")
        say_if_few(found.records)
    codes = [complain(error, f"{name}: ") for name, error in found.failures.items()]
    if found.interrupted:
        kept = "was" if done == 1 else "were"
        say(f"interrupted; {done} of {found.wanted} crawls {kept} finished and kept", err=True)
        return INTERRUPTED
    return max(codes, default=0)
