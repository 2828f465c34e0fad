"""Output to the terminal. No other module of this package prints; `tests/test_terminal.py` checks that.

Much of a crawler's output was written by strangers: URLs, replies of hubs and servers, file names, messages of other
partitions. A terminal obeys some characters instead of showing them: they move its cursor, change the title of its
window, reverse the direction of text, or fill its clipboard. This module therefore escapes every character that is not
printable, from any source, and only this module sends control characters to a terminal.

`say` takes lines, and each one stays a single line: a line break in foreign text cannot make a second line that looks
like ours.
"""

import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ERASE_LINE, _ERASE_BELOW, _ERASE_ALL = "\x1b[K", "\x1b[J", "\x1b[H\x1b[J"


def escaped(text: str) -> str:
    """Escape all that is not printable: control characters, changes of direction, line breaks, lone surrogates.

    `str.isprintable` decides what is printable. Escaped JSON is still the same JSON, because JSON has the same escapes.

    >>> escaped("caf\\u00e9"), escaped("a\\x1b[2Jb\\x9b\\u202e\\n")
    ('café', 'a\\\\u001b[2Jb\\\\u009b\\\\u202e\\\\n')
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def _escape(character: str) -> str:
    return _SHORT.get(character) or "".join(f"\\u{unit:04x}" for unit in _utf16_units(ord(character)))


def _utf16_units(code: int) -> tuple[int, ...]:
    """Return the UTF-16 code units of a code point: above U+FFFF a surrogate pair, the only form that JSON has."""
    return (code,) if code < 0x10000 else (0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF))


def say(*lines: str, err: bool = False) -> None:
    """Print lines to stdout, or to stderr."""
    say_to(sys.stderr if err else sys.stdout, *lines)


def say_text(text: str, err: bool = False) -> None:
    """Print text whose line breaks all come from us, such as a table of numbers or JSON."""
    say(*text.split("\n"), err=err)


def say_json(value: Mapping[str, Any], one_line: bool = False) -> None:
    """Print a result for other programs: an object that begins with the version of Trapline."""
    from trapline import __version__

    named = {"trapline": __version__, **value}
    say_text(json.dumps(named, allow_nan=False, indent=None if one_line else 1))


def say_to(stream: TextIO, *lines: str) -> None:
    _send(stream, "".join(f"{escaped(line)}\n" for line in lines))


def rewrite_line(stream: TextIO, line: str = "", width: int | None = None) -> None:
    """Replace the line at the cursor with this one, cut to `width` characters. Do nothing in the background (`command &`), where the
    user of the terminal is typing that line."""
    if not _is_in_background(stream):
        _send(stream, f"\r{escaped(line)[:width]}{_ERASE_LINE}")


def _is_in_background(stream: TextIO) -> bool:
    try:
        return os.tcgetpgrp(stream.fileno()) != os.getpgrp()
    except (OSError, ValueError):  # no terminal
        return False


def redraw(stream: TextIO, lines: Sequence[str], height: int) -> None:
    """Replace the last `height` lines with these, in one write."""
    up = f"\x1b[{height}A" if height else ""
    shown = "".join(f"{escaped(line)}{_ERASE_LINE}\n" for line in lines)
    _send(stream, f"\r{up}{shown}{_ERASE_BELOW}")


def clear(stream: TextIO) -> None:
    """Clear the screen."""
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


def open_closed_streams() -> None:
    """Let stdin, stdout and stderr lead nowhere if the parent process has closed them: otherwise files and sockets that are opened
    later would have their numbers, and messages would have no stream."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # has the lowest free number, which is this one
            os.set_inheritable(number, True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: SIM115 - for the life of the process
            setattr(sys, name, stream)
            setattr(
                sys, f"__{name}__", stream
            )  # `guard_stderr` replaces the other reference, and a stream without one is closed


def guard_stderr() -> None:
    """Escape what Python itself prints on stderr, too: uncaught exceptions, warnings, log lines of libraries."""
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.flush()
        sys.stderr = _Guarded(sys.stderr.buffer, sys.stderr.encoding, "backslashreplace", line_buffering=True)
