"""The one way to the terminal. Nothing else in this package prints; `tests/test_terminal.py` sees to that.

Much of what a crawler says was written by strangers: URLs, replies of hubs and servers, names of files, notes of other partitions. A
terminal obeys some characters in place of showing them: they move its cursor, retitle its window, turn text round, or fill its
clipboard. So whatever does not print is escaped here, whoever wrote it, and only this module sends a terminal control characters.

`say` takes lines, and a line stays one: a stranger's line break cannot make a second one that looks like ours.
"""

import io
import sys
from collections.abc import Sequence
from typing import TextIO

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ERASE_LINE, _ERASE_BELOW, _ERASE_ALL = "\x1b[K", "\x1b[J", "\x1b[H\x1b[J"


def escaped(text: str) -> str:
    """Text in which all prints: no control character, no change of direction, no line break, no half of a character.

    What prints is what `str.isprintable` says. JSON stays the same JSON: it has the same escapes.

    >>> escaped("caf\\u00e9"), escaped("a\\x1b[2Jb\\x9b\\u202e\\n")
    ('café', 'a\\\\u001b[2Jb\\\\u009b\\\\u202e\\\\n')
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escape(one) for one in text)


def _escape(character: str) -> str:
    return _SHORT.get(character) or "".join(f"\\u{unit:04x}" for unit in _utf16_units(ord(character)))


def _utf16_units(code: int) -> tuple[int, ...]:
    """Above U+FFFF a surrogate pair, which is all that JSON has for it."""
    return (code,) if code < 0x10000 else (0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF))


def say(*lines: str, err: bool = False) -> None:
    """Print lines to stdout, or to stderr."""
    say_to(sys.stderr if err else sys.stdout, *lines)


def say_text(text: str, err: bool = False) -> None:
    """Print text whose line breaks are all ours: a table of numbers, JSON."""
    say(*text.split("\n"), err=err)


def say_to(stream: TextIO, *lines: str) -> None:
    _send(stream, "".join(f"{escaped(line)}\n" for line in lines))


def rewrite_line(stream: TextIO, line: str = "", width: int | None = None) -> None:
    """Show a line in place of the one that the cursor is in, cut to `width` characters."""
    _send(stream, f"\r{escaped(line)[:width]}{_ERASE_LINE}")


def redraw(stream: TextIO, lines: Sequence[str], height: int) -> None:
    """Show lines in place of the last `height` ones, in one write."""
    up = f"\x1b[{height}A" if height else ""
    shown = "".join(f"{escaped(line)}{_ERASE_LINE}\n" for line in lines)
    _send(stream, f"\r{up}{shown}{_ERASE_BELOW}")


def clear(stream: TextIO) -> None:
    """Empty the screen."""
    _send(stream, _ERASE_ALL)


def _send(stream: TextIO, text: str) -> None:
    if isinstance(stream, _Guarded):
        stream.send(text)
    else:
        stream.write(text)
    stream.flush()


class _Guarded(io.TextIOWrapper):
    """A stream on which only `_send` can write control characters."""

    def write(self, text: str) -> int:
        self.send("\n".join(map(escaped, text.split("\n"))))
        return len(text)

    def send(self, text: str) -> None:
        super().write(text)


def guard_stderr() -> None:
    """Escape also what Python itself prints: an exception that nobody caught, a warning, a line of a library's log."""
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.flush()
        sys.stderr = _Guarded(sys.stderr.buffer, sys.stderr.encoding, "backslashreplace", line_buffering=True)
