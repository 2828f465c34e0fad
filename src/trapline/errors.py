"""Errors, split by who must act, and the hint that goes with a wrong name.

Every module raises these; none of them prints. The command line alone turns them into a line and an exit code.
"""

from collections.abc import Iterable


class TraplineError(Exception):
    """The base of all errors that Trapline raises on purpose."""


class ConfigError(TraplineError):
    """The user must act: a wrong name, value, file or strategy.

    The message is one line that names the file and row, the option, or the nearest valid name.
    """


class OtherVersionError(ConfigError):
    """A file of another version of Trapline: it is whole, and an older file in its place would only hide that."""


class FetchError(TraplineError):
    """The remote side failed. Expected in any crawl, so it travels as a value in an outcome and is not raised."""


class InvariantError(TraplineError):
    """We must act: the program is in a state that its own rules exclude."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """The hint for an unknown name: the valid name closest to it, or all of them if none is close.

    >>> nearest("larger-site-first", ["opic", "larger-sites-first"])
    "did you mean 'larger-sites-first'?"
    >>> nearest("xyz", ["opic", "fifo"])
    'valid: fifo, opic'
    """
    from difflib import get_close_matches  # late: only a failing command pays for it

    by_folded = {v.casefold(): v for v in sorted(valid)}
    close = get_close_matches(name.casefold(), by_folded, n=1)
    if close:
        return f"did you mean {by_folded[close[0]]!r}?"
    return f"valid: {', '.join(by_folded.values())}"
