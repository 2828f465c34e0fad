"""The sites of a crawl: what the loop knows of each besides the frontier. Origin, addresses, robots.txt, connection.

link_resolver.py adds new sites. site_resolver.py sets the addresses, crawler/robots/ the rules, and crawler/engine/live.py
the kept connection. The frontier's site ids are indexes here.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from trapline.crawler.discovery.scope import is_among
from trapline.crawler.discovery.site_settings import SiteSettings, SiteTables, is_named, settings_of
from trapline.fetch.urls import host_port

if TYPE_CHECKING:
    from trapline.fetch.http.connection import Connection
    from trapline.fetch.http.private_headers import PrivateHeaders
    from trapline.fetch.http.throttle import Throttle
    from trapline.fetch.robots.parser import Robots

UNRESOLVED = -1


class Site:
    """One scheme, host and port. The objects are small, because a crawl of the web knows millions of sites."""

    __slots__ = (
        "addresses",
        "addresses_until",
        "connection",
        "id",
        "is_extra_next",
        "obeys_robots",
        "origin",
        "pause_s",
        "pipelining",
        "private_headers",
        "request_headers",
        "returned",
        "robots",
        "robots_failures",
        "robots_unreachable_since",
        "robots_until",
        "settings",
        "throttle",
    )

    def __init__(self, site_id: int, origin: str) -> None:
        self.id = site_id
        self.origin = origin
        self.addresses: tuple[str, ...] = ()  # the first is the one to connect to
        self.addresses_until = 0.0  # by the loop's clock
        self.obeys_robots = True  # whether the rules of its robots.txt hold
        self.robots: Robots | None = None  # None: not fetched yet
        self.robots_until = 0.0  # when `robots` expires
        self.robots_failures = 0  # consecutive times that it redirected to another site and was not available there yet
        # The beginning of the current series of answers without usable rules, by the wall clock.
        self.robots_unreachable_since = math.inf
        self.pause_s = 0.0  # between two pages of a visit; includes the site's Crawl-delay once that is known
        self.pipelining = True  # until the server breaks it
        self.connection: Connection | None = None  # kept open between two visits
        self.returned: int | None = None  # the page before whose answer the server last closed the connection
        # If a visit makes one request: whether the next one is for something else than a page (crawler/visits/visit_requests.py).
        self.is_extra_next = True
        self.request_headers = b""  # the part of its requests that follows the target
        self.private_headers: PrivateHeaders | None = None  # sent besides, and never recorded
        self.settings: SiteSettings | None = None  # its own; None: those of the crawl
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
    """All sites, by id and by origin, and the numbers of their addresses."""

    def __init__(self, pause_s: float, tables: SiteTables | None = None, without_robots: tuple[str, ...] = ()) -> None:
        """`tables`: settings of single sites. `without_robots`: hosts, with their subdomains, whose robots.txt does not hold."""
        self._pause_s, self._tables, self._without_robots = pause_s, tables, without_robots
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
        if self._tables:
            site.settings = settings_of(self._tables, site.host)
            site.pause_s = self.usual_pause_s(site)
        if self._without_robots:
            site.obeys_robots = not is_among(site.host, self._without_robots)
        self._all.append(site)
        self._by_origin[origin] = site
        return site

    def of_name(self, name: str) -> list[Site]:
        """Return the sites of a host, or of the hosts below *.domain. Most are sorted out by the text of their origins, which is quick."""
        text = name.removeprefix("*.")
        return [site for site in self._all if text in site.origin and is_named(name, site.host)]

    def _of_names(self, names: Sequence[str]) -> list[Site]:
        if len(names) == 1:
            return self.of_name(names[0])
        hosts, domains = set(names), [name for name in names if name.startswith("*.")]
        return [site for site in self._all if site.host in hosts or any(is_named(one, site.host) for one in domains)]

    def change_tables(self, tables: SiteTables, names: Sequence[str]) -> list[Site]:
        """Give the sites of these names, and those found later, the settings of these tables. Return those known now."""
        self._tables = tables
        changed = self._of_names(names)
        for site in changed:
            site.settings = settings_of(tables, site.host)
        return changed

    @property
    def has_tables(self) -> bool:
        """Whether some sites have settings of their own."""
        return bool(self._tables)

    def usual_pause_s(self, site: Site) -> float:
        """Return the pause between two pages of a visit to the site, if its robots.txt demands none."""
        own = site.settings.pause_s if site.settings is not None else None
        return self._pause_s if own is None else own

    def group(self, address: str) -> tuple[int, bool]:
        """Return the number of an address, and whether it is new. Numbers are consecutive."""
        known = self._groups.get(address)
        if known is not None:
            return known, False
        self._groups[address] = number = len(self._groups)
        return number, True

    def restore_groups(self, addresses: Iterable[str]) -> None:
        self._groups = {address: number for number, address in enumerate(addresses)}
