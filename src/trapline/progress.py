"""The functions that long work calls to report its progress. This module does not know how progress is shown."""

from collections.abc import Callable

ProgressCallback = Callable[[int, int, str], None]
"""Takes what is done so far, the total, and the name of what is being done or counted."""

CountCallback = Callable[[int, int], None]
"""Takes what is done so far, and the total."""


def no_progress(done: int, total: int, what: str) -> None:
    """Ignore progress."""
