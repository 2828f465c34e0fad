"""Turns an error into one line on stderr and an exit code. Only this module decides whether the user or Trapline must fix it.

Exit codes: 2 the user must act, 70 a defect of Trapline (EX_SOFTWARE), 130 and 143 ended by Ctrl-C and by SIGTERM (as in shells).
"""

import os

import click

from trapline.errors import ConfigError
from trapline.terminal import say, say_text

USER, DEFECT, INTERRUPTED, TERMINATED = 2, 70, 130, 143


def complain(error: Exception, about: str = "") -> int:
    """Print the error as one line on stderr and return the exit code. `about`: the object of the error, printed before it."""
    match error:
        case click.ClickException():
            return _say(f"{about}{error.format_message()}{_where_to_look(error)}")
        case ConfigError():
            return _say(f"{about}{error}")
        case OSError():  # a full disk or a closed pipe, for example: not a defect of Trapline
            return _say(f"{about}{_without_number(error)}")
        case MemoryError():
            why = str(error) or "the memory of this machine is used up"
            return _say(f"{about}not enough memory: {why}; ask for fewer pages, fewer changes or less time")
        case _ if _is_damage(error):
            return _say(f"{about}the crawl's database cannot be read: {error}; restore crawl.db from a backup")
        case _:
            return _own_up(error, about)


def _is_damage(error: Exception) -> bool:
    """Return whether SQLite raises this error for a damaged file. Compares names: most commands do not import SQLite, which takes time."""
    kind = type(error)
    return kind.__module__ == "sqlite3" and kind.__name__ in ("DatabaseError", "OperationalError")


def _without_number(error: OSError) -> str:
    """Return the file and the system's message, without the error number.

    >>> _without_number(FileNotFoundError(2, "No such file or directory", "a.txt"))
    'a.txt: No such file or directory'
    """
    named = "" if error.filename is None else f"{error.filename}: "
    return f"{named}{error.strerror}" if error.strerror else str(error)


def _say(message: str) -> int:
    say(f"trapline: error: {_one_line(message)}", err=True)
    return USER


def _own_up(error: Exception, about: str) -> int:
    """Report a defect of Trapline: an `InvariantError`, or any other error that no caller expected."""
    if os.environ.get("TRAPLINE_DEBUG") == "1":
        import traceback

        say_text("".join(traceback.format_exception(error)).rstrip(), err=True)
    say(
        f"trapline: {about}{type(error).__name__}: {_one_line(str(error))}",
        "this is a defect of Trapline; please report it (TRAPLINE_DEBUG=1 shows the traceback)",
        err=True,
    )
    return DEFECT


def _where_to_look(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return "" if context is None else f" (see: {context.command_path} --help)"


def _one_line(message: str) -> str:
    return " ".join(line.strip() for line in message.splitlines())
