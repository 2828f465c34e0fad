"""Several strategies on one arena: crawled one after the other, shown as a table, written as a page, pictures and JSON.

Whatever happens to one of them, those that are done are kept: a strategy that fails is reported beside the others, and
Ctrl-C ends the comparison, not what it found.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trapline.cli.arena import Arena
from trapline.cli.compiling import step
from trapline.cli.complaints import INTERRUPTED, complain
from trapline.cli.scoreboard import say_if_few, scoreboard, web_size
from trapline.cli.strategy import Chosen
from trapline.errors import ConfigError
from trapline.output import check_writable, write_bytes, write_json, write_text
from trapline.terminal import say, say_text
from trapline.units import duration

if TYPE_CHECKING:
    from trapline.report import CrawlRecord

PAGE, JSON = "compare.html", "compare.json"


@dataclass(slots=True)
class Comparison:
    """What has been found so far."""

    wanted: int
    records: list["CrawlRecord"] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)
    interrupted: bool = False
    seconds: float = 0.0


def compare_all(arena: Arena, every: Sequence[Chosen], logs: Path | None = None) -> Comparison:
    """Crawl with each strategy in turn. `logs`: a folder for the log of each."""
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
        except Exception as error:  # whatever it is, the others are not to blame
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
    """Before the first crawl: make the folder, and see that everything can be written there."""
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
    say(f"wrote {folder / PAGE}, {JSON} and {len(pictures)} pictures (.png)", err=True)


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
    """Show and write what was found, and complain of what was not; the exit code."""
    done = len(found.records)
    if done:
        _write(found, arena, folder, web)  # first: whoever reads stdout may have gone away
        say_text(f"{web}: {web_size(found.records[0])}\n{arena.conditions.heading()}\n")
        say_text(f"{scoreboard(found.records)}\n{done} crawl{'' if done == 1 else 's'} in {duration(found.seconds)}.")
        say_if_few(found.records)
    codes = [complain(error, f"{name}: ") for name, error in found.failures.items()]
    if found.interrupted:
        kept = "is" if done == 1 else "are"
        say(f"interrupted; {done} of {found.wanted} crawls {kept} kept", err=True)
        return INTERRUPTED
    return max(codes, default=0)
