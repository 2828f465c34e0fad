"""The functions that long work calls to report its progress. This module does not know how progress is shown."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

ProgressCallback = Callable[[int, int, str], None]
"""Takes what is done so far, the total, and the name of what is being done or counted."""

CountCallback = Callable[[int, int], None]
"""Takes what is done so far, and the total."""


def no_progress(done: int, total: int, what: str) -> None:
    """Ignore progress."""


class ProgressSteps(Protocol):
    """Shows long work that consists of several steps. Each method is a context manager around one step."""

    def counted(self, what: str, unit: str) -> AbstractContextManager[CountCallback]:
        """A step that reports how far it is."""

    def single(self, what: str, number: int, unit: str) -> AbstractContextManager[None]:
        """A step that is one call, which processes this number of units."""


class CalledSteps:
    """Passes the steps to a function, or to none."""

    def __init__(self, progress: ProgressCallback = no_progress) -> None:
        self._progress = progress

    def counted(self, what: str, unit: str) -> AbstractContextManager[CountCallback]:
        return nullcontext(lambda done, total: self._progress(done, total, what))

    @contextmanager
    def single(self, what: str, number: int, unit: str) -> Iterator[None]:
        self._progress(0, number, what)
        yield
        self._progress(number, number, what)
