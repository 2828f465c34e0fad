"""The world of a crawler: what differs between the live web and virtual time. Names and no code; live.py has the one, tests the other."""

from collections.abc import Callable
from typing import Protocol

from trapline.crawl.sites import Site
from trapline.frontier import Visit


class Timer(Protocol):
    def cancel(self) -> None: ...


class World(Protocol):
    """What differs between the live web and virtual time."""

    def now(self) -> float:
        """Seconds since 1970, never running backwards."""

    def call_soon(self, callback: Callable[[], None]) -> object:
        """After all that happens at this moment."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer: ...

    def set_out(self, visit: Visit, site: Site, urls: list[str], conditions: list[bytes]) -> None:
        """A robot sets out; it tells the crawler what it finds, and in the end `over`. `conditions`: headers of each page's request; []:
        there are none."""

    def score(self) -> None:
        """Scores are wanted; `rescored` brings them, now or later."""

    def ended(self) -> None:
        """The crawl is over: nothing is under way."""
