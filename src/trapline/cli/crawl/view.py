"""The display of a running crawl: a live view on a terminal, a line now and then in a log. Its only input is `CrawlStatus`.

Functions that know no terminal make the text. The context managers at the end write it to a stream.
"""

import math
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING, TextIO

from trapline.terminal import escaped, redraw, say_to
from trapline.units import byte_rate, bytes_shown, counted, duration, number, three_digits

if TYPE_CHECKING:
    from trapline.crawler.engine.run import Show, View
    from trapline.crawler.engine.status import CrawlStatus

_RECENT_S = 5.0  # rates cover this time, as the rates in CrawlStatus do

_FIRST_LINE_S, _EVERY_S = 2.0, 10.0
_PACE_EVERY_S = 60.0
_HINT = "Ctrl-C stops cleanly; --resume continues the crawl"
_WIDTHS = (8, 16, 12, 10, 0)  # minimum widths of the columns of numbers
_BESIDE = 44  # column where the second table begins


def view(plain: bool, quiet: bool) -> "View":
    """Return the display of the crawl: none, plain lines, or a live view that is redrawn in place."""
    if quiet:
        return _nothing()
    return _lines(sys.stderr) if plain or not sys.stderr.isatty() else _live(sys.stderr)


# ---- Text.


def line(status: "CrawlStatus", refetches_per_s: float = 0.0) -> str:
    """Return the state of a crawl in one line. `refetches_per_s`: recent number of refetched pages per second."""
    now, abandoned = status.progress, sum(sites for _, sites in status.abandoned_sites)
    sites = f"{counted(now.sites, 'site')}{f' ({abandoned:,} abandoned)' if abandoned else ''}"
    refetched = (
        f", {status.refetches.fetched:,} refetched ({three_digits(refetches_per_s)}/s)" if status.refetches else ""
    )
    handled = f", {status.handled.pages:,} handled{_handler_errors(status)}" if status.handled else ""
    return (
        f"{duration(now.seconds)}: {counted(now.pages, 'page')} ({three_digits(status.pages_per_s)}/s){refetched}{handled},"
        f" {bytes_shown(now.bytes)} ({byte_rate(status.bytes_per_s)}), {counted(now.errors, 'error')},"
        f" {now.waiting:,} waiting of {now.known:,} known on {sites}, {counted(now.active, 'active visit')}"
        f"{status.doing and f'; {status.doing}'}"
    )


def drawn(status: "CrawlStatus", columns: int, rows: int, refetches_per_s: float = 0.0) -> list[str]:
    """Return the lines of the live view: no more than a terminal with this many rows can show, and none so long that it would wrap."""
    parts = f", {status.partitions} partitions" if status.partitions > 1 else ""
    top = [f"trapline: {status.strategy}{parts}, into {status.folder}", *_numbers(status, refetches_per_s)]
    top += wrap(f"pace    {status.pace.text}", max(columns - 1, 20), subsequent_indent=" " * 8) if status.pace else []
    top += (
        wrap(f"speed   {status.answer.sentence}", max(columns - 1, 20), subsequent_indent=" " * 8)
        if status.answer
        else []
    )
    tables = list(_beside(_busiest(status), [*_errors(status), *_elsewhere(status)]))
    # The last row holds the cursor. The row before it holds the current activity or the hint.
    room = max(rows - 1 - len(top) - 1, 0)
    if room > 2:
        top += ["", *tables[: room - 1]] if tables else []
    lines = [*top, status.doing or _HINT]
    return [escaped(text)[: max(columns - 1, 0)].rstrip() for text in lines[: max(rows - 1, 1)]]


def _numbers(status: "CrawlStatus", refetches_per_s: float) -> list[str]:
    now = status.progress
    goal = f" of {status.goal:,.0f}" if status.goal < math.inf else ""
    known = f"{now.known:,} on {counted(now.sites, 'site')}"
    failed = f"{now.errors / max(now.pages + now.errors, 1):.1%}"
    quality = number(now.quality) if now.quality else "not measured"
    rows = (
        (
            "pages",
            f"{now.pages:,}{goal}",
            f"{three_digits(status.pages_per_s)}/s",
            "frontier",
            f"{now.waiting:,} waiting",
        ),
        ("bytes", bytes_shown(now.bytes), byte_rate(status.bytes_per_s), "known", known),
        ("errors", f"{now.errors:,}", failed, "visits", f"{now.active:,} of {status.connections:,}"),
        ("time", duration(now.seconds), _time_left(status), "quality", quality),
    )
    return _columns((*rows, *_refetched(status, refetches_per_s), *_handled(status)))


def _handler_errors(status: "CrawlStatus") -> str:
    errors = status.handled.errors if status.handled else 0
    return f" ({counted(errors, 'handler error')})" if errors else ""


def _handled(status: "CrawlStatus") -> Iterator[tuple[str, str, str, str, str]]:
    if status.handled is not None:
        yield ("handled", f"{status.handled.pages:,}", "", "handler", counted(status.handled.errors, "error"))


def _refetched(status: "CrawlStatus", per_s: float) -> Iterator[tuple[str, str, str, str, str]]:
    refetched = status.refetches
    if refetched is not None:
        changed = f"{refetched.changed / max(refetched.fetched, 1):.0%} of refetched pages"
        hours = counted(refetched.signals.access_counts, "hourly access count")
        accesses = "no accesses" if refetched.by_quality else f"{hours} of pages"
        received = f"{counted(refetched.signals.signals, 'signal')}, {accesses}"
        yield ("refetched", f"{refetched.fetched:,}", f"{three_digits(per_s)}/s", "changed", f"{changed}; {received}")


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    cells = zip(*rows, strict=True)
    widths = [max(least, *(len(text) + 2 for text in column)) for least, column in zip(_WIDTHS, cells, strict=True)]
    return ["".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)) for row in rows]


def _time_left(status: "CrawlStatus") -> str:
    pages = status.goal - status.progress.pages
    is_known = 0 < pages < math.inf and status.pages_per_s and status.pace is None  # otherwise the pace says it
    return f"{duration(pages / status.pages_per_s)} left" if is_known else ""


def _busiest(status: "CrawlStatus") -> list[str]:
    return _table("busiest sites, pages in 5 s", status.busiest(), _BESIDE - 4)


def _errors(status: "CrawlStatus") -> list[str]:
    return _table("errors", status.errors, 24)


def _elsewhere(status: "CrawlStatus") -> list[str]:
    """Return the tables of abandoned sites and rejected links."""
    return [
        *_table("abandoned sites", status.abandoned_sites, 24),
        *_table("rejected links", status.rejected_links, 24),
    ]


def _table(title: str, rows: Sequence[tuple[str, int]], width: int) -> list[str]:
    if not rows:
        return []
    widest = max(len(f"{amount:,}") for _, amount in rows)
    names = width - widest - 2
    return [title, *(f"  {_cut(name, names - 2):{names - 2}}  {amount:>{widest},}" for name, amount in rows)]


def _cut(name: str, width: int) -> str:
    """
    >>> _cut("http://a.org", 20), _cut("http://a-long-name.example.org", 14)
    ('http://a.org', 'http://a-lo...')
    """
    name = escaped(name)  # before cutting: an escape is longer than the character that it stands for
    return name if len(name) <= width else f"{name[: width - 3]}..."


def _beside(first: list[str], second: list[str]) -> Iterator[str]:
    width = _BESIDE if first else 0
    for left, right in zip_longest(first, second, fillvalue=""):
        yield f"{left:{width}}{right}"


# ---- Output to a stream.


class RecentRefetches:
    """Rate of refetched pages over the last seconds. Each display calls `note` with every status that it shows."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()  # (time, pages refetched so far)

    def note(self, status: "CrawlStatus") -> float:
        if status.refetches is None:
            return 0.0
        now = status.progress.at
        self._marks.append((now, status.refetches.fetched))
        while len(self._marks) > 2 and self._marks[1][0] <= now - _RECENT_S:
            self._marks.popleft()
        since, fetched = self._marks[0]
        return (status.refetches.fetched - fetched) / (now - since) if now > since else 0.0


def _new_notes(status: "CrawlStatus", shown: set[str]) -> list[str]:
    """Return the notes that were not shown yet, as lines in the format of the notes before a crawl (ready.py)."""
    new = [text for text in status.notes if text not in shown]
    shown.update(new)
    return [f"trapline: note: {text}" for text in new]


@contextmanager
def _nothing() -> "Iterator[Show]":
    yield lambda status: None


@contextmanager
def _lines(stream: TextIO) -> "Iterator[Show]":
    """Write a line after two seconds and then every ten; also two seconds after the activity changes, if it still goes on.
    The pace follows once a minute, and when something else limits the crawl; so does the sentence that says why it is not faster."""
    due_at, doing, recent = time.monotonic() + _FIRST_LINE_S, "", RecentRefetches()
    pace_at, limit, answered = 0.0, "", ""
    notes_shown: set[str] = set()

    def show(status: "CrawlStatus") -> None:
        nonlocal due_at, doing, pace_at, limit, answered
        now = time.monotonic()
        activity = status.doing.partition(" ")[0]
        if activity != doing:
            due_at, doing = min(due_at, now + _FIRST_LINE_S), activity
        refetches_per_s, lines = recent.note(status), _new_notes(status, notes_shown)
        if now >= due_at:
            due_at = now + _EVERY_S
            lines.append(line(status, refetches_per_s))
            if status.pace and status.pace.pages and (now >= pace_at or status.pace.limit != limit):
                pace_at, limit = now + _PACE_EVERY_S, status.pace.limit
                lines.append(f"pace: {status.pace.text}")
                answered = ""
            if status.answer and status.answer.limit != answered:
                answered = status.answer.limit
                lines.append(f"speed: {status.answer.sentence}")
        if lines:
            with suppress(OSError):  # the reader of the stream is gone; the crawl continues
                say_to(stream, *lines)

    yield show


@contextmanager
def _live(stream: TextIO) -> "Iterator[Show]":
    """Draw each view over the previous one, in one write, and erase it at the end. Notes remain above the view."""
    height, recent = 0, RecentRefetches()
    notes_shown: set[str] = set()

    def write(lines: list[str], notes: Sequence[str] = ()) -> None:
        nonlocal height
        with suppress(OSError):
            redraw(stream, (*notes, *lines), height)
        height = len(lines)

    try:
        yield lambda status: write(
            drawn(status, *shutil.get_terminal_size(), recent.note(status)), _new_notes(status, notes_shown)
        )
    finally:
        write([])
