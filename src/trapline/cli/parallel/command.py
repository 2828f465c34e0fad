"""`trapline parallel`, with `status` and `resize`: commands for a running crawl of several partitions, from a second terminal.

Both commands talk to the crawl's coordinator.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from trapline.cli.lazy import Lazy, LazyGroup
from trapline.cli.options.values import count
from trapline.errors import ConfigError
from trapline.parallel import EXCHANGE, MOST_PROCESSES
from trapline.terminal import say, say_json
from trapline.units import counted, duration, three_digits

# ---- `trapline parallel resize`: a running crawl continues with more partitions. This command asks; the crawl's own process resizes.


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("processes", metavar="N", type=count(1, MOST_PROCESSES))
def resize(folder: Path, processes: int) -> None:
    """Increase the number of partitions of the crawl that runs in DIR to N.

    The partitions stop cleanly and hand over the sites that get a new owner. Then N partitions start.
    """
    from trapline.parallel.live.control import NotRunningError, ask

    try:
        ask(folder, resize=processes)
    except NotRunningError:
        raise ConfigError(
            f"{folder}: the crawl is not running; to continue it with {processes} partitions:"
            f" trapline crawl --resume {folder} --processes {processes}"
        ) from None
    say(f"{folder}: restarting with {processes} partitions; see: trapline parallel status {folder}")


# ---- `trapline parallel status`

_HEADS = ("", "pages", "pages/s", "refetched", "waiting", "batches made", "received", "host", "")


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(folder: Path, as_json: bool) -> None:
    """Show the mode, the partition function and the status of every partition of the crawl that runs in DIR.

    `trapline status DIR` shows the whole crawl, whether it runs or not.
    """
    from trapline.parallel.folder.manifest import read
    from trapline.parallel.live.control import ask

    answer, manifest = ask(folder, status=True), read(folder)
    every = manifest.policy.every_pages if manifest.policy.mode == EXCHANGE else None
    found = {"mode": manifest.policy.mode, "partition": manifest.kind, "exchange_every": every} | answer
    if as_json:
        say_json(found)
    else:
        say(*_lines(folder, found, time.time()))


def _lines(folder: Path, found: dict[str, Any], now: float) -> Iterator[str]:
    parts = found["partitions"]
    doing = f"; {found['doing']}" if found["doing"] else ""
    pages = sum(part["pages"] for part in parts)
    yield f"{folder}: {counted(len(parts), 'partition')}, {counted(pages, 'page')} in {duration(found['seconds'])}{doing}"
    yield f"mode {found['mode']}, partition function {found['partition']}{_interval(found['exchange_every'])}"
    yield from _table([_HEADS, *(_row(part, now) for part in parts)])


def _interval(pages: int | None) -> str:
    """Return when a partition sends links. `pages`: between two exchanges; 0: no limit was given; None: it sends none."""
    if pages is None:
        return ""
    return f", exchanges links every {counted(pages, 'page')}" if pages else ", exchanges links with every batch"


def _row(part: dict[str, Any], now: float) -> tuple[str, ...]:
    refetched, waiting = f"{part['pages_refetched']:,}", f"{part['waiting']:,}"
    numbers = (f"{part['pages']:,}", three_digits(part["pages_per_second"]), refetched, waiting)
    message_batches = f"{part['batches_made']:,}", f"{part['batches_received']:,}"
    state = f"{'connected' if part['alive'] else 'disconnected'} for {duration(max(now - part['since'], 0.0))}"
    return str(part["partition"]), *numbers, *message_batches, part["host"], state


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table: numbers aligned to the right, the last two columns to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(row[:-2], widths, strict=False)]
        yield "  ".join((*cells, f"{row[-2]:<{widths[-2]}}", row[-1])).rstrip()


# ---- `trapline parallel`: crawls of several partitions. A new command is a new line in this table.

_COMMANDS = {
    "simulate": Lazy(
        "trapline.cli.parallel.simulate:simulate", "Crawl a graph with several partitions in simulated time."
    ),
    "plan": Lazy("trapline.cli.parallel.plan:plan", "Plan how many processes a crawl needs, and how they cooperate."),
    "status": Lazy("trapline.cli.parallel.command:status", "Show the status of every partition of a running crawl."),
    "resize": Lazy("trapline.cli.parallel.command:resize", "Increase the number of partitions of a running crawl."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def parallel() -> None:
    """Simulate, plan, watch and resize crawls of several partitions."""
