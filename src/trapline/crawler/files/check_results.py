"""The results of the checks of a crawl folder: what was checked, and the problems. A problem carries its own repair.

This module checks nothing; verify.py, database_check.py and archive_check.py do, for the folder of a crawl, and parallel/folder/verify.py
for the folder of several partitions.
"""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    place: str  # a file or folder
    what: str
    url: str = ""  # of the page whose record has the problem
    offset: int | None = None  # in an archive
    lost: bool = False  # contents are lost, even after a repair
    repair: Callable[[], object] | None = field(default=None, repr=False)  # None: it cannot be repaired

    def __str__(self) -> str:
        at = "" if self.offset is None else f" at byte {self.offset:,}"
        return f"{self.place}{at}: {self.what}" + (f" ({self.url})" if self.url else "")


@dataclass(slots=True)
class Verified:
    """The result of a verification: how much was checked, and the problems."""

    problems: list[Problem] = field(default_factory=list)  # found in all rounds
    remaining: list[Problem] = field(default_factory=list)  # found in the last round
    archives: int = 0
    records: int = 0
    bytes: int = 0
    snapshots: int = 0

    def add(self, other: "Verified") -> None:
        """Add the results of another folder."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def is_sound(self) -> bool:
        return not self.remaining and not any(problem.lost for problem in self.problems)
