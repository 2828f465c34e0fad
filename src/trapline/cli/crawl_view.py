"""How a crawl looks while it runs: a live view on a terminal, a line now and then in a log. It reads `Standing`, and nothing else."""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trapline.units import byte_rate, bytes_shown, counted, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from trapline.crawl.standing import Standing

    Show = Callable[[Standing], None]

_PLAIN_EVERY_S = 10.0


def view(plain: bool, quiet: bool, every_s: float = _PLAIN_EVERY_S) -> "AbstractContextManager[Show]":
    """What shows the crawl: nothing, a line every so often, or a view that is drawn anew in place."""
    if quiet:
        return _nothing()
    return _lines(every_s) if plain or not sys.stderr.isatty() else _live()


@contextmanager
def _nothing() -> "Iterator[Show]":
    yield lambda standing: None


@contextmanager
def _lines(every_s: float) -> "Iterator[Show]":
    shown_at = time.monotonic()

    def show(standing: "Standing") -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at >= every_s:
            shown_at = time.monotonic()
            print(line(standing), file=sys.stderr, flush=True)

    yield show


@contextmanager
def _live() -> "Iterator[Show]":
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield lambda standing: live.update(_drawn(standing), refresh=True)


def line(standing: "Standing") -> str:
    """The state of a crawl in one line."""
    now = standing.progress
    return (
        f"{duration(now.seconds)}: {now.pages:,} pages ({standing.pages_per_s:,.0f}/s), {bytes_shown(now.bytes)}"
        f" ({byte_rate(standing.bytes_per_s)}), {counted(now.errors, 'error')}, {now.waiting:,} waiting of {now.known:,} known"
        f" on {counted(now.sites, 'site')}, {now.active:,} robots out"
    )


def _drawn(standing: "Standing") -> "RenderableType":
    from rich.columns import Columns
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    numbers = Table.grid(padding=(0, 3))
    for row in _numbers(standing):
        numbers.add_row(*row)
    parts: list[RenderableType] = [Text(standing.heading, style="bold"), numbers]
    tables = [_table("busiest sites", "pages", standing.busiest), _table("errors", "", standing.errors)]
    parts.append(Columns([table for table in tables if table is not None], padding=(0, 6)))
    parts.append(Text(standing.hint, style="dim"))
    return Group(*parts)


def _numbers(standing: "Standing") -> list[tuple[str, ...]]:
    now = standing.progress
    goal = f" of {standing.goal:,.0f}" if standing.goal < float("inf") else ""
    return [
        ("pages", f"{now.pages:,}{goal}", f"{standing.pages_per_s:,.0f}/s", "frontier", f"{now.waiting:,} waiting"),
        ("bytes", bytes_shown(now.bytes), byte_rate(standing.bytes_per_s), "known", f"{now.known:,} URLs on {counted(now.sites, 'site')}"),
        ("errors", f"{now.errors:,}", _share(now.errors, now.pages + now.errors), "robots", f"{now.active:,} out of {standing.robots:,}"),
        ("time", duration(now.seconds), "", "quality", standing.quality),
    ]  # fmt: skip


def _table(title: str, unit: str, rows: list[tuple[str, int]]) -> "Any":
    from rich.table import Table

    if not rows:
        return None
    table = Table(title=title, title_justify="left", box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, number in rows:
        table.add_row(name[:48], f"{number:,} {unit}".rstrip())
    return table


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def closing_lines(summary: dict[str, Any], folder: Path) -> str:
    """What came of it, and where to look."""
    violations = summary["politeness_violations"]
    return "\n".join(
        (
            f"{summary['pages_fetched']:,} pages, {bytes_shown(summary['bytes'])}, {counted(summary['errors'], 'error')} in"
            f" {duration(summary['seconds'])}: {summary['pages_per_second']:,.0f} pages/s; stopped by: {summary['stopped_by']}",
            f"{summary['urls_known']:,} URLs known on {counted(summary['sites'], 'site')};"
            f" politeness violations: {violations}",
            f"in {folder}: crawl.db, warc/, index.cdxj, summary.json. See it: trapline report {folder}",
        )
    )
