"""What a robot on its visit needs of the world it is in: a clock, timers, connections, and all that its robots.txt needs.

Names and no code: the live web (live.py) has them, visit.py uses them, and neither needs to know the other for that. Step 5 of the
way of a URL.
"""

from collections.abc import Callable
from typing import Protocol

from trapline.crawl.robots_elsewhere import Replies, RobotsElsewhere
from trapline.crawl.sites import Site
from trapline.fetch.connection import Connection, Owner


class VisitWeb(Replies, Protocol):
    rest_s: float  # between two visits, of a site and of its address
    pipelining: bool

    @property
    def elsewhere(self) -> RobotsElsewhere: ...

    def call_soon(self, callback: Callable[[], None]) -> object: ...

    def call_at(self, when: float, callback: Callable[[], None]) -> object: ...

    def request_for(self, site: Site, target: str, condition: bytes = b"") -> bytes:
        """`condition`: whole header lines, or nothing."""

    def connect(self, site: Site, robot: Owner) -> Connection | None:
        """To the first of the site's addresses; None: that one may not be connected to."""

    def take_kept(self, site: Site) -> Connection | None:
        """The connection of the visit before, if it was kept."""

    def keep(self, site: Site, connection: Connection) -> bool:
        """For the next visit, if that may come soon; whether it did so."""

    def drop(self, connection: Connection) -> None:
        """It is not wanted any more, and its owner hears nothing more of it."""

    def gone(self, connection: Connection) -> None:
        """It is lost."""

    def visited(self, site: Site) -> None:
        """A visit to the site is over."""

    def next_address(self, site: Site) -> None:
        """The first of its addresses could not be reached: the next visit tries another."""
