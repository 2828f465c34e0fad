"""How a crawl looks while it runs: a live view on a terminal, a line now and then in a log. It reads `Standing`, and nothing else.

What is shown is plain text, made by functions that know no terminal; two short classes at the end bring it there.
"""

import math
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, TextIO

from trapline.terminal import escaped, redraw, say_to
from trapline.units import byte_rate, bytes_shown, counted, duration, number, three_digits

if TYPE_CHECKING:
    from trapline.crawl.run import Show, View
    from trapline.crawl.standing import Standing

_RECENT_S = 5.0  # what "now" means in a rate; as in the rates that a crawl tells

_FIRST_LINE_S, _EVERY_S = 2.0, 10.0
_HINT = "Ctrl-C ends the crawl and leaves a whole folder"
_WIDTHS = (8, 16, 12, 10, 0)  # of the columns of numbers, at least
_BESIDE = 44  # where the second table begins


def view(plain: bool, quiet: bool) -> "View":
    """What shows the crawl: nothing, lines, or a view that is drawn anew in place."""
    if quiet:
        return _nothing()
    return _lines(sys.stderr) if plain or not sys.stderr.isatty() else _live(sys.stderr)


# ---- what is shown


def line(standing: "Standing", again_per_s: float = 0.0) -> str:
    """The state of a crawl in one line. `again_per_s`: pages fetched again, of late."""
    now, lost = standing.progress, sum(sites for _, sites in standing.given_up)
    sites = f"{counted(now.sites, 'site')}{f' ({lost:,} given up)' if lost else ''}"
    again = f", {standing.again.fetched:,} fetched again ({three_digits(again_per_s)}/s)" if standing.again else ""
    return (
        f"{duration(now.seconds)}: {now.pages:,} pages ({three_digits(standing.pages_per_s)}/s){again}, {bytes_shown(now.bytes)}"
        f" ({byte_rate(standing.bytes_per_s)}), {counted(now.errors, 'error')}, {now.waiting:,} waiting of {now.known:,} known"
        f" on {sites}, {counted(now.active, 'robot')} out{standing.doing and f'; {standing.doing}'}"
    )


def drawn(standing: "Standing", columns: int, rows: int, again_per_s: float = 0.0) -> list[str]:
    """The lines of the live view: as many as a terminal of so many rows can show, and none so long that it would wrap."""
    parts = f", {standing.partitions} partitions" if standing.partitions > 1 else ""
    top = [f"trapline: {standing.strategy}{parts}, into {standing.folder}", *_numbers(standing, again_per_s)]
    tables = list(_beside(_busiest(standing), [*_errors(standing), *_elsewhere(standing)]))
    room = max(rows - 1 - len(top) - 1, 0)  # the last row is the cursor's, the one before it says what goes on
    if room > 2:
        top += ["", *tables[: room - 1]] if tables else []
    lines = [*top, standing.doing or _HINT]
    return [escaped(text)[: max(columns - 1, 0)].rstrip() for text in lines[: max(rows - 1, 1)]]


def _numbers(standing: "Standing", again_per_s: float) -> list[str]:
    now = standing.progress
    goal = f" of {standing.goal:,.0f}" if standing.goal < math.inf else ""
    known = f"{now.known:,} on {counted(now.sites, 'site')}"
    failed = f"{now.errors / max(now.pages + now.errors, 1):.1%}"
    quality = number(now.quality) if now.quality else "not measured"
    rows = (
        (
            "pages",
            f"{now.pages:,}{goal}",
            f"{three_digits(standing.pages_per_s)}/s",
            "frontier",
            f"{now.waiting:,} waiting",
        ),
        ("bytes", bytes_shown(now.bytes), byte_rate(standing.bytes_per_s), "known", known),
        ("errors", f"{now.errors:,}", failed, "robots", f"{now.active:,} out of {standing.robots:,}"),
        ("time", duration(now.seconds), _time_left(standing), "quality", quality),
    )
    return _columns((*rows, *_again(standing, again_per_s)))


def _again(standing: "Standing", per_s: float) -> Iterator[tuple[str, str, str, str, str]]:
    again = standing.again
    if again is not None:
        changed = f"{again.changed / max(again.fetched, 1):.0%} of them"
        hours = counted(again.heard.access_counts, "page-hour")
        accesses = "no accesses" if again.by_quality else f"accesses in {hours}"
        heard = f"{counted(again.heard.signals, 'signal')} heard, {accesses}"
        yield ("again", f"{again.fetched:,}", f"{three_digits(per_s)}/s", "changed", f"{changed}; {heard}")


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    cells = zip(*rows, strict=True)
    widths = [max(least, *(len(text) + 2 for text in column)) for least, column in zip(_WIDTHS, cells, strict=True)]
    return ["".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)) for row in rows]


def _time_left(standing: "Standing") -> str:
    pages = standing.goal - standing.progress.pages
    return f"{duration(pages / standing.pages_per_s)} left" if 0 < pages < math.inf and standing.pages_per_s else ""


def _busiest(standing: "Standing") -> list[str]:
    return _table("busiest sites, pages in 5 s", standing.busiest(), _BESIDE - 4)


def _errors(standing: "Standing") -> list[str]:
    return _table("errors", standing.errors, 24)


def _elsewhere(standing: "Standing") -> list[str]:
    """Where the crawl does not go."""
    return [*_table("sites given up", standing.given_up, 24), *_table("links left out", standing.left_out, 24)]


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
    name = escaped(name)  # before it is cut: an escape is longer than what it stands for
    return name if len(name) <= width else f"{name[: width - 3]}..."


def _beside(one: list[str], other: list[str]) -> Iterator[str]:
    width = _BESIDE if one else 0
    for left, right in zip_longest(one, other, fillvalue=""):
        yield f"{left:{width}}{right}"


# ---- how it gets there


class RecentlyAgain:
    """How many pages a second were fetched again, in the last seconds. Who fills it: whoever shows a crawl, each time."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()  # moment, pages so far

    def note(self, standing: "Standing") -> float:
        if standing.again is None:
            return 0.0
        now = standing.progress.at
        self._marks.append((now, standing.again.fetched))
        while len(self._marks) > 2 and self._marks[1][0] <= now - _RECENT_S:
            self._marks.popleft()
        since, fetched = self._marks[0]
        return (standing.again.fetched - fetched) / (now - since) if now > since else 0.0


def _new_notes(standing: "Standing", said: set[str]) -> list[str]:
    """In lines of their own, as those that are said before a crawl begins (crawl_ready.py)."""
    new = [one for one in standing.notes if one not in said]
    said.update(new)
    return [f"trapline: note: {one}" for one in new]


@contextmanager
def _nothing() -> "Iterator[Show]":
    yield lambda standing: None


@contextmanager
def _lines(stream: TextIO) -> "Iterator[Show]":
    """A line after two seconds and then every ten; two seconds after something else begins, if it still goes on."""
    due_at, doing, recent = time.monotonic() + _FIRST_LINE_S, "", RecentlyAgain()
    said: set[str] = set()

    def show(standing: "Standing") -> None:
        nonlocal due_at, doing
        now = time.monotonic()
        what = standing.doing.partition(" ")[0]
        if what != doing:
            due_at, doing = min(due_at, now + _FIRST_LINE_S), what
        again_per_s, lines = recent.note(standing), _new_notes(standing, said)
        if now >= due_at:
            due_at = now + _EVERY_S
            lines.append(line(standing, again_per_s))
        if lines:
            with suppress(OSError):  # whoever read it is gone; the crawl goes on
                say_to(stream, *lines)

    yield show


@contextmanager
def _live(stream: TextIO) -> "Iterator[Show]":
    """Drawn over what was drawn before, in one write, and gone at the end. Notes stay, above it."""
    height, recent = 0, RecentlyAgain()
    said: set[str] = set()

    def write(lines: list[str], notes: Sequence[str] = ()) -> None:
        nonlocal height
        with suppress(OSError):
            redraw(stream, (*notes, *lines), height)
        height = len(lines)

    try:
        yield lambda standing: write(
            drawn(standing, *shutil.get_terminal_size(), recent.note(standing)), _new_notes(standing, said)
        )
    finally:
        write([])
