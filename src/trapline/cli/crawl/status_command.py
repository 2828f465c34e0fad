"""`trapline status`: the status of a crawl, from a second terminal. Only reads the crawl's folder; a running crawl is not disturbed."""

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.crawl.end import counts, stopped_by
from trapline.terminal import clear, say, say_json
from trapline.units import byte_rate, bytes_shown, counted, duration, number, three_digits

if TYPE_CHECKING:
    from trapline.crawler.inspect.folder_status import FolderStatus

_EVERY_S = 1.0
_WIDTH = 22


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --watch, one object per line.")
@click.option("--watch", is_flag=True, help="Repeat every second until the crawl ends.")
def status(folder: Path, as_json: bool, watch: bool) -> None:
    """Show the status of the crawl in DIR, while it runs or afterwards."""
    from trapline.crawler.inspect.folder_status import RUNNING
    from trapline.parallel.folder.folder_status import status_of_folder

    while True:
        found = status_of_folder(folder)
        _show(found, folder, as_json, watch)
        if not watch or found.state != RUNNING:
            return
        time.sleep(_EVERY_S)


def _show(found: "FolderStatus", folder: Path, as_json: bool, watch: bool) -> None:
    if as_json:
        say_json(asdict(found), one_line=watch)
        return
    if watch and sys.stdout.isatty():
        clear(sys.stdout)
    say(*_lines(found, folder))


def _lines(found: "FolderStatus", folder: Path) -> Iterator[str]:
    from trapline.crawler.inspect.summary import ABANDONED, REJECTED

    yield f"{folder}: {_state(found, folder)}"
    rows = {
        "strategy": found.strategy,
        "pages": f"{found.pages:,} in {duration(found.seconds)}",
        "pages/s": _speed(found),
        "pace": found.pace["text"] if found.pace else "",
        "refetches": _refetches(found),
        "signals": _signals(found),
        "received": f"{bytes_shown(found.bytes)} ({byte_rate(found.bytes_per_second_now)} {_lately(found)})",
        "errors": f"{found.errors:,}{_share(found.errors, found.pages + found.errors)}",
        "known": f"{counted(found.known, 'page')} on {counted(found.sites, 'site')}; {found.waiting:,} waiting{_rest(found)}",
        "abandoned sites": counts(found.abandoned_sites, ABANDONED),
        "rejected links": counts(found.rejected_links, REJECTED),
        "active visits": f"{found.active:,} of {found.connections:,}",
        "quality so far": f"{number(found.quality)}, the sum over the fetched pages (--quality {found.quality_source})"
        if found.quality
        else "",
    }
    yield from (f"{name:{_WIDTH}}{value}" for name, value in rows.items() if value)
    yield from _speed_answer(found)
    if found.busiest:
        yield from ("", f"busiest sites, {_lately(found)}")
        yield from (f"{pages:>{_WIDTH - 2},}  {origin}" for origin, pages in found.busiest)
    if found.last_errors:
        yield from ("", "last errors")
        for error in found.last_errors:
            kind = f"{error.kind} {error.status}" if error.status else error.kind
            yield f"{kind:>{_WIDTH - 2}}  {error.url}"


def _rest(found: "FolderStatus") -> str:
    """Return the number of pages that neither wait nor were fetched: visits hold them, or they brought no page."""
    from trapline.crawler.inspect.folder_status import BROKEN_OFF, RUNNING

    rest = found.known - found.pages - found.waiting
    held = {RUNNING: "held by visits under way, or ", BROKEN_OFF: "held by visits that broke off, or "}.get(
        found.state, ""
    )
    return f", {rest:,} {held}without a page" if rest > 0 else ""


def _speed_answer(found: "FolderStatus") -> Iterator[str]:
    """Yield why the crawl is not faster, and what would help."""
    yield from ("", f"why not faster: {found.why_not_faster['sentence']}")
    for one in found.why_not_faster["help"]:
        factor = f"{one['factor']:.1f} times as fast" if one["factor"] else ""
        yield f"{factor:>{_WIDTH - 2}}  {one['text']}" if factor else f"{'':{_WIDTH}}{one['text']}"


def _state(found: "FolderStatus", folder: Path) -> str:
    from trapline.crawler.inspect.folder_status import ENDED, RUNNING

    if found.state == RUNNING:
        return f"running (process {found.process}), as of {duration(found.age_s)} ago"
    ago = f"{duration(found.age_s)} ago" if found.at else "before the first fetch"
    if found.state == ENDED:
        return f"ended {ago}; stopped by: {stopped_by(found.stopped_by)}"
    return f"broken off {ago}; continue with: trapline crawl --resume {folder}"


def _refetches(found: "FolderStatus") -> str:
    if found.refresh is None:
        return ""
    return f"{three_digits(found.refetches_per_second_now)} pages/s {_lately(found)}; {found.refresh}"


def _signals(found: "FolderStatus") -> str:
    if found.refresh is None:
        return ""
    accesses = (
        f"{counted(found.access_counts, 'hourly access count')} of pages" if found.access_counts else "no accesses"
    )
    return f"{found.signals:,} received; {accesses}"


def _speed(found: "FolderStatus") -> str:
    return f"{three_digits(found.pages_per_second_now)} {_lately(found)}, {three_digits(found.pages_per_second)} on average"


def _lately(found: "FolderStatus") -> str:
    from trapline.crawler.inspect.folder_status import LATELY_S, RUNNING

    return f"in {'the' if found.state == RUNNING else 'its'} last {LATELY_S:.0f} s"


def _share(part: int, whole: int) -> str:
    return f" ({three_digits(part / whole * 100)} %)" if whole else ""
