"""One line of progress on stderr, for every command that can take more than two seconds.

On a terminal the line is rewritten in place and gone at the end. Elsewhere (a log, CI) it is a plain line now and then.
Results never go through here: they belong to stdout.
"""

import math
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self, TextIO

from trapline.terminal import rewrite_line, say_to
from trapline.units import duration

_REDRAW_S = 0.1  # faster than the eye needs, slow enough to cost nothing
_SETTLED_S = 1.0  # before that, a rate is a guess
_LONG_S = 2.0  # what a user waits for without a word
_RECENT_S = 5.0  # a rate is that of the last five to ten seconds: many a crawl slows down towards its end


class Progress:
    """Shows `label: done/total note`; use it as a context manager and call `update` as often as convenient.

    With `unit` (pages, say) it also shows how many a second, and when it will be done.
    """

    def __init__(
        self,
        label: str,
        *,
        unit: str = "",
        stream: TextIO | None = None,
        plain_every_s: float = 10.0,
        quiet: bool = False,
    ) -> None:
        self._label = label
        self._unit = unit
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._in_place = self._stream.isatty() and not quiet
        plain_every_s = math.inf if quiet else plain_every_s
        self._every_s = _REDRAW_S if self._in_place else plain_every_s
        now = time.monotonic()
        self._marks = ((now, 0), (now, 0))  # when, and how much was done: the older one, then the newer
        # A terminal shows the first update at once; a log only hears of what takes long.
        self._next_at = now + (0.0 if self._in_place else plain_every_s)
        self._note = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._in_place:
            rewrite_line(self._stream)

    def update(self, done: int, total: int, note: str = "") -> None:
        now = time.monotonic()
        # A new step is always shown, or the old one would seem to last.
        new_step = self._in_place and note != self._note
        if now < self._next_at and not new_step:
            return
        self._note = note
        self._next_at = now + self._every_s
        line = f"{self._label}: {done:,}/{total:,} {note}{self._pace(done, total, now)}".rstrip()
        self._show(line)

    def say(self, line: str) -> None:
        """One line at once, also in a log: of what is waited for, and nobody knows how long."""
        if not self._quiet:
            self._show(line)

    def _show(self, line: str) -> None:
        if self._in_place:
            width = shutil.get_terminal_size().columns - 1  # a full last column would wrap the line
            rewrite_line(self._stream, line, width)
        else:
            say_to(self._stream, line)

    def _pace(self, done: int, total: int, now: float) -> str:
        if not self._unit:
            return ""
        if now - self._marks[1][0] >= _RECENT_S:
            self._marks = (self._marks[1], (now, done))
        since, before = self._marks[0]
        if now - since < _SETTLED_S or done <= before:
            return self._unit
        per_second = (done - before) / (now - since)
        return f"{self._unit}, {per_second:,.0f} {self._unit}/s, {duration((total - done) / per_second)} left"


@contextmanager
def said_if_long(what: str, quiet: bool = False) -> Iterator[None]:
    """One line, after two seconds, of work that cannot say how far it is."""
    with Progress(what, quiet=quiet) as progress:
        timer = threading.Timer(_LONG_S, progress.say, (f"{what} ...",))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
