"""The errors that Trapline raises, divided by who must act, and the hint for an unknown name.

Every module raises these errors, and no module prints them: only the command line turns them into a line and an exit code.
"""

from collections.abc import Iterable


class TraplineError(Exception):
    """Base class of all errors that Trapline raises on purpose."""


class ConfigError(TraplineError):
    """The user must act: a wrong name, value, file or strategy.

    The message is one line that names the file and row, the option, or the nearest valid name.
    """


class OtherVersionError(ConfigError):
    """A file was written by another version of Trapline.

    The file is intact. A caller must not fall back on an older file instead, which would only hide the reason.
    """


class RankError(ConfigError):
    """A rank of the user's strategy is not a finite number, or raised an error."""

    page = -1  # whose rank it is; -1: it is the rank of a site, or the page is not known


class FetchError(TraplineError):
    """The remote side failed. Every crawl expects this, so the error is passed as a value in an outcome and not raised."""


class InvariantError(TraplineError):
    """The developers must act: the program is in a state that its own rules exclude."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return the hint for an unknown name: the closest valid name, or all valid names if none is close.

    >>> nearest("larger-site-first", ["opic", "larger-sites-first"])
    "did you mean 'larger-sites-first'?"
    >>> nearest("xyz", ["opic", "fifo"])
    'valid: fifo, opic'
    """
    from difflib import get_close_matches  # imported here so that only a failing command pays for it

    by_folded = {v.casefold(): v for v in sorted(valid)}
    close = get_close_matches(name.casefold(), by_folded, n=1)
    if close:
        return f"did you mean {by_folded[close[0]]!r}?"
    return f"valid: {', '.join(by_folded.values())}"
