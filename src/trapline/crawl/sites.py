"""The sites of a crawl: what the loop knows of each beyond what the frontier does. Names, addresses, robots.txt, connection.

Who fills it: known.py (a URL of a new site), live.py (addresses), visit.py (robots.txt, the open connection). The frontier's
site ids are indexes here.
"""

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from trapline.fetch.urls import host_port

if TYPE_CHECKING:
    from trapline.fetch.connection import Connection
    from trapline.fetch.robots import Robots
    from trapline.fetch.throttle import Throttle

UNRESOLVED = -1


class Site:
    """One scheme, host and port. Small, because a crawl of the web knows millions."""

    __slots__ = (
        "addresses",
        "addresses_until",
        "connection",
        "id",
        "origin",
        "pause_s",
        "pipelining",
        "rest",
        "returned",
        "robots",
        "robots_failures",
        "robots_unreachable_since",
        "robots_until",
        "throttle",
    )

    def __init__(self, site_id: int, origin: str) -> None:
        self.id = site_id
        self.origin = origin
        self.addresses: tuple[str, ...] = ()  # the first is the one to connect to
        self.addresses_until = 0.0  # by the loop's clock
        self.robots: Robots | None = None  # None: not asked yet
        self.robots_until = 0.0
        self.robots_failures = 0  # times in a row that it was on another site, and not there yet
        # When the unbroken run of answers began that left its rules open, by the wall clock.
        self.robots_unreachable_since = math.inf
        self.pause_s = 0.0  # inside a visit; with the site's Crawl-delay once that is known
        self.pipelining = True  # until the server breaks it
        self.connection: Connection | None = None  # kept open between two visits
        self.returned: int | None = None  # the page before whose answer the server last broke off
        self.rest = b""  # of its requests, behind the target
        self.throttle: Throttle | None = None

    @property
    def host(self) -> str:
        return host_port(self.origin)[1]

    @property
    def port(self) -> int:
        return host_port(self.origin)[2]

    @property
    def secure(self) -> bool:
        return self.origin.startswith("https:")


class Sites:
    """All sites, by id and by origin; and the numbers of the addresses they are on."""

    def __init__(self, pause_s: float) -> None:
        self._pause_s = pause_s
        self._all: list[Site] = []
        self._by_origin: dict[str, Site] = {}
        self._groups: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, site_id: int) -> Site:
        return self._all[site_id]

    def __iter__(self) -> Iterator[Site]:
        return iter(self._all)

    def named(self, origin: str) -> Site | None:
        return self._by_origin.get(origin)

    def add(self, origin: str) -> Site:
        site = Site(len(self._all), origin)
        site.pause_s = self._pause_s
        self._all.append(site)
        self._by_origin[origin] = site
        return site

    def group(self, address: str) -> tuple[int, bool]:
        """The number of an address, given out densely, and whether it is new."""
        known = self._groups.get(address)
        if known is not None:
            return known, False
        self._groups[address] = number = len(self._groups)
        return number, True

    def restore_groups(self, addresses: Iterable[str]) -> None:
        self._groups = {address: number for number, address in enumerate(addresses)}
