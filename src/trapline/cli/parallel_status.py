"""`trapline parallel status`: how every partition of a running crawl stands, from a second terminal. It asks the crawl's coordinator."""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from trapline.terminal import say, say_text
from trapline.units import counted, duration, three_digits

_HEADS = ("", "pages", "pages/s", "again", "waiting", "parcels made", "arrived", "host", "")


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def status(folder: Path, as_json: bool) -> None:
    """Say how every partition of the crawl that runs in DIR stands.

    Of all of them together, also when it does not run: trapline status DIR.
    """
    from trapline.parallel.watching import ask

    found = ask(folder, status=True)
    if as_json:
        say_text(json.dumps(found, indent=1))
    else:
        say(*_lines(folder, found, time.time()))


def _lines(folder: Path, found: dict[str, Any], now: float) -> Iterator[str]:
    parts = found["partitions"]
    doing = f"; {found['doing']}" if found["doing"] else ""
    pages = sum(one["pages"] for one in parts)
    yield f"{folder}: {counted(len(parts), 'partition')}, {counted(pages, 'page')} in {duration(found['seconds'])}{doing}"
    yield from _table([_HEADS, *(_row(one, now) for one in parts)])


def _row(one: dict[str, Any], now: float) -> tuple[str, ...]:
    again, waiting = f"{one['pages_refetched']:,}", f"{one['waiting']:,}"
    numbers = (f"{one['pages']:,}", three_digits(one["pages_per_second"]), again, waiting)
    parcels = f"{one['parcels_made']:,}", f"{one['parcels_arrived']:,}"
    since = f" for {duration(max(now - one['since'], 0.0))}"
    return str(one["partition"]), *numbers, *parcels, one["host"], ("here" if one["alive"] else "away") + since


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Numbers to the right, what follows them to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(row[:-2], widths, strict=False)]
        yield "  ".join((*cells, f"{row[-2]:<{widths[-2]}}", row[-1])).rstrip()
