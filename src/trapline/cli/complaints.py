"""How an error becomes a line and an exit code. The one place that decides whose it is to mend.

Exit codes: 2 the user must act, 70 a defect of Trapline (EX_SOFTWARE), 130 interrupted (as shells have it).
"""

import os

import click

from trapline.errors import ConfigError
from trapline.terminal import say, say_text

USER, DEFECT, INTERRUPTED = 2, 70, 130


def complain(error: Exception, about: str = "") -> int:
    """Say what is wrong on stderr, in one line; the exit code. `about` names what it happened to."""
    match error:
        case click.ClickException():
            return _say(f"{about}{error.format_message()}{_where_to_look(error)}")
        case ConfigError():
            return _say(f"{about}{error}")
        case OSError():  # a full disk, a pipe that ended: not ours to mend
            return _say(f"{about}{_without_number(error)}")
        case _ if _is_damage(error):
            return _say(f"{about}the crawl's database cannot be read: {error}; restore crawl.db from a copy")
        case _:
            return _own_up(error, about)


def _is_damage(error: Exception) -> bool:
    """What SQLite says of a damaged file. By name: most commands never need SQLite, and it takes time to import."""
    kind = type(error)
    return kind.__module__ == "sqlite3" and kind.__name__ in ("DatabaseError", "OperationalError")


def _without_number(error: OSError) -> str:
    """What the system says, and of which file; not the number that it has for it.

    >>> _without_number(FileNotFoundError(2, "No such file or directory", "a.txt"))
    'a.txt: No such file or directory'
    """
    named = "" if error.filename is None else f"{error.filename}: "
    return f"{named}{error.strerror}" if error.strerror else str(error)


def _say(message: str) -> int:
    say(f"trapline: error: {_one_line(message)}", err=True)
    return USER


def _own_up(error: Exception, about: str) -> int:
    """Say that this is ours to mend: an `InvariantError`, or anything else that nobody below expected."""
    if os.environ.get("TRAPLINE_DEBUG") == "1":
        import traceback

        say_text("".join(traceback.format_exception(error)).rstrip(), err=True)
    say(
        f"trapline: {about}{type(error).__name__}: {_one_line(str(error))}",
        "this is a defect of Trapline, please report it (TRAPLINE_DEBUG=1 shows the traceback)",
        err=True,
    )
    return DEFECT


def _where_to_look(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f" (see: {context.command_path} --help)" if context else ""


def _one_line(message: str) -> str:
    return " ".join(line.strip() for line in message.splitlines())
