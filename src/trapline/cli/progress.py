"""One line of progress on stderr, for every command that can take more than two seconds.

On a terminal the line is rewritten in place and gone at the end. Elsewhere (a log, CI) it is a plain line now and then.
Results never go through here: they belong to stdout.
"""

import shutil
import sys
import time
from typing import Self, TextIO

_REDRAW_S = 0.1  # faster than the eye needs, slow enough to cost nothing


class Progress:
    """Shows `label: done/total note`; use it as a context manager and call `update` as often as convenient."""

    def __init__(self, label: str, *, stream: TextIO | None = None, plain_every_s: float = 10.0) -> None:
        self._label = label
        self._stream = stream or sys.stderr
        self._in_place = self._stream.isatty()
        self._every_s = _REDRAW_S if self._in_place else plain_every_s
        # A terminal shows the first update at once; a log only hears of what takes long.
        self._next_at = time.monotonic() + (0.0 if self._in_place else plain_every_s)
        self._note = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._in_place:
            self._write("\r\x1b[K")

    def update(self, done: int, total: int, note: str = "") -> None:
        now = time.monotonic()
        new_step = (
            self._in_place and note != self._note
        )  # a new step is always shown, or the old one would seem to last
        if now < self._next_at and not new_step:
            return
        self._note = note
        self._next_at = now + self._every_s
        line = f"{self._label}: {done:,}/{total:,} {note}".rstrip()
        if self._in_place:
            width = shutil.get_terminal_size().columns - 1  # a full last column would wrap the line
            self._write(f"\r{line[:width]}\x1b[K")
        else:
            self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
