"""The world of a crawler: protocols for what differs between the live web (live.py) and virtual time (tests)."""

from collections.abc import Callable
from typing import Protocol

from trapline.crawler.discovery.sites import Site
from trapline.crawler.robots.cross_site import Replies, RobotsElsewhere
from trapline.fetch.http.connection import Connection, Owner
from trapline.frontier import Visit


class Timer(Protocol):
    def cancel(self) -> None: ...


class World(Protocol):
    """What differs between the live web and virtual time."""

    def now(self) -> float:
        """Seconds since 1970, never running backwards."""

    def call_soon(self, callback: Callable[[], None]) -> object:
        """Call `callback` after everything else that happens at this moment."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer: ...

    def begin_visit(self, visit: Visit, site: Site, urls: list[str], conditions: list[bytes]) -> None:
        """Begin a visit. It reports its results to the crawler, and in the end calls `Crawler.over`. `conditions`: for each
        page, headers that make its request conditional; []: there are none."""

    def score(self) -> None:
        """Compute scores and pass them to `Crawler.rescored`, now or later."""

    def ended(self) -> None:
        """Note that the crawl has ended and no visit is under way."""


# ---- What a visit needs from its world: a clock, timers, connections, and all that its robots.txt needs (step 5 in
# docs/architecture.md).
#
# A protocol without code: live.py implements it and crawler/visits/visit.py uses it, so that visits need not know live.py.


class VisitWeb(Replies, Protocol):
    longest_delay_s: float  # the longer of the delays between two visits to a site and to an address
    pipelining: bool
    filters_types: bool  # whether bodies of some media types are not read

    @property
    def elsewhere(self) -> RobotsElsewhere: ...

    def call_soon(self, callback: Callable[[], None]) -> object: ...

    def call_at(self, when: float, callback: Callable[[], None]) -> object: ...

    def request_for(self, site: Site, target: str, condition: bytes = b"") -> bytes:
        """Return the bytes of a request. `condition`: complete header lines, or nothing."""

    def connect(self, site: Site, owner: Owner) -> Connection | None:
        """Open a connection to the first of the site's addresses. Return None if the guard refuses that address."""

    def take_kept(self, site: Site) -> Connection | None:
        """Return the connection of the previous visit if it was kept, else None."""

    def keep(self, site: Site, connection: Connection) -> bool:
        """Keep the connection for the next visit if that may come soon. Return whether it is kept."""

    def proxy_answered(self, site: Site, status: int) -> None:
        """Note the status of an answer, which may be that of a proxy that demands credentials."""

    def drop(self, connection: Connection) -> None:
        """Close a connection that is no longer wanted. Its owner gets no further events from it."""

    def gone(self, connection: Connection) -> None:
        """Forget a connection that was lost."""

    def visited(self, site: Site) -> None:
        """Note that a visit to the site has ended."""

    def next_address(self, site: Site) -> None:
        """Let the next visit try another address: the first one could not be reached."""
