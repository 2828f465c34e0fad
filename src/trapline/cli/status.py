"""`trapline status`: how a crawl stands, from a second terminal. It reads the crawl's folder and disturbs nobody."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.crawl_end import counts, stopped_by
from trapline.terminal import clear, say, say_text
from trapline.units import byte_rate, bytes_shown, counted, duration, number, three_digits

if TYPE_CHECKING:
    from trapline.crawl.glance import Glance

_EVERY_S = 1.0
_WIDTH = 22


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="For machines; with --watch an object a line.")
@click.option("--watch", is_flag=True, help="Again every second, until the crawl ends.")
def status(folder: Path, as_json: bool, watch: bool) -> None:
    """Say how the crawl in DIR stands, while it runs or afterwards."""
    from trapline.crawl.glance import RUNNING
    from trapline.parallel.glance import glance_of

    while True:
        found = glance_of(folder)
        _show(found, folder, as_json, watch)
        if not watch or found.state != RUNNING:
            return
        time.sleep(_EVERY_S)


def _show(found: "Glance", folder: Path, as_json: bool, watch: bool) -> None:
    if as_json:
        say_text(json.dumps(asdict(found), indent=None if watch else 1))
        return
    if watch and sys.stdout.isatty():
        clear(sys.stdout)
    say(*_lines(found, folder))


def _lines(found: "Glance", folder: Path) -> Iterator[str]:
    from trapline.crawl.summary import GIVEN_UP, LEFT_OUT

    yield f"{folder}: {_state(found, folder)}"
    rows = {
        "strategy": found.strategy,
        "pages": f"{found.pages:,} in {duration(found.seconds)}",
        "pages/s": _pace(found),
        "fetched again": _again(found),
        "heard": _heard(found),
        "received": f"{bytes_shown(found.bytes)} ({byte_rate(found.bytes_per_second_now)} {_lately(found)})",
        "errors": f"{found.errors:,}{_share(found.errors, found.pages + found.errors)}",
        "known": f"{found.known:,} pages on {counted(found.sites, 'site')}; {found.waiting:,} wait",
        "sites given up": counts(found.given_up, GIVEN_UP),
        "links left out": counts(found.left_out, LEFT_OUT),
        "visits under way": f"{found.active:,} of {found.connections:,}",
        "quality so far": number(found.quality) if found.quality else "",
    }
    yield from (f"{name:{_WIDTH}}{value}" for name, value in rows.items() if value)
    if found.busiest:
        yield from ("", f"busiest sites, {_lately(found)}")
        yield from (f"{pages:>{_WIDTH - 2},}  {origin}" for origin, pages in found.busiest)
    if found.last_errors:
        yield from ("", "last errors")
        for one in found.last_errors:
            kind = f"{one.kind} {one.status}" if one.status else one.kind
            yield f"{kind:>{_WIDTH - 2}}  {one.url}"


def _state(found: "Glance", folder: Path) -> str:
    from trapline.crawl.glance import ENDED, RUNNING

    if found.state == RUNNING:
        return f"running (process {found.process}), as of {duration(found.age_s)} ago"
    ago = f"{duration(found.age_s)} ago" if found.at else "before it had done anything"
    if found.state == ENDED:
        return f"ended {ago}: {stopped_by(found.stopped_by)}"
    return f"broken off {ago}; go on with: trapline crawl --resume {folder}"


def _again(found: "Glance") -> str:
    if found.refresh is None:
        return ""
    return f"{three_digits(found.again_per_second_now)} a second {_lately(found)}; {found.refresh}"


def _heard(found: "Glance") -> str:
    if found.refresh is None:
        return ""
    accesses = f"accesses in {counted(found.access_counts, 'page-hour')}" if found.access_counts else "no accesses"
    return f"{counted(found.signals, 'signal')}, {accesses}"


def _pace(found: "Glance") -> str:
    return f"{three_digits(found.pages_per_second_now)} {_lately(found)}, {three_digits(found.pages_per_second)} in all"


def _lately(found: "Glance") -> str:
    from trapline.crawl.glance import LATELY_S, RUNNING

    return f"in the last {LATELY_S:.0f} s" + ("" if found.state == RUNNING else " of it")


def _share(part: int, whole: int) -> str:
    return f" ({three_digits(part / whole * 100)} %)" if whole else ""
