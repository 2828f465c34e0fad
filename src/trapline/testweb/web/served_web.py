"""The web to serve: the pages and links of a graph, with names, addresses, paths and a behaviour for each site.

A web is data, without socket or clock; callers pass the time. It holds its own arrays instead of the graph, so that the
server process needs neither the graph's code nor its compiler. On the way of a URL (docs/architecture.md) it is the
server side of step 5, the fetch.
"""

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from ada_url import URL, HostType
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.testweb.web.behaviour import Behaviour, Mix, behaviours, draw, pick
from trapline.testweb.web.changes import PageChanges
from trapline.testweb.web.paths import RESERVED, Paths, numbered_paths, recorded_paths
from trapline.testweb.web.providers import Providers

if TYPE_CHECKING:
    from trapline.graph import Graph
    from trapline.servers.sampled import Servers

# ---- Names and addresses of the sites: one name each, and an address in 127.0.0.0/8.
#
# A site is named by the host of its recorded URL if a hosts file can hold that, but never by an IP address: a crawler would
# connect to the real machine with that address.

MOST_ADDRESSES = 126 * 256 * 254  # 127.1.0.1 to 127.126.255.254

_LABELS = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")


def address(number: int) -> str:
    """Return the IPv4 address with this number.

    >>> address(0), address(254), address(254 * 256)
    ('127.1.0.1', '127.1.1.1', '127.2.0.1')
    """
    rest, last = divmod(number, 254)
    return f"127.{1 + (rest >> 8)}.{rest & 255}.{1 + last}"


def grouped(sites: int, shared: Iterable[int], sites_per_address: int | None) -> list[int]:
    """Return the number of each site's address.

    Each address gets `sites_per_address` sites; if that is None, sites with equal numbers in `shared` share an address.
    """
    if sites_per_address is not None:
        groups: Iterable[int] = (site // sites_per_address for site in range(sites))
    else:
        groups = shared
    numbers: dict[int, int] = {}
    return [numbers.setdefault(group, len(numbers)) for group in groups]


def addresses(count: int) -> list[str]:
    if count > MOST_ADDRESSES:
        raise ConfigError(
            f"{count:,} addresses do not fit into 127.0.0.0/8; put several sites on one address with --sites-per-address"
        )
    return [address(number) for number in range(count)]


def site_names(origins: Sequence[str] | None, sites: int) -> list[str]:
    """Return a unique name for each site. `origins` has the scheme://host[:port] of each site, if they were recorded.

    >>> site_names(["http://a.org", "https://a.org", "http://10.1.2.3", "http://B.org:81"], 4)
    ['a.org', 'a.org.site-1.test', 'site-2.test', 'b.org']
    >>> site_names(None, 2)
    ['site-0.test', 'site-1.test']
    """
    names: list[str] = []
    taken: set[str] = set()
    for site in range(sites):
        own = f"site-{site}.test"
        name = (_host(origins[site]) if origins else None) or own
        while name in taken:
            name = f"{name}.{own}"
        taken.add(name)
        names.append(name)
    return names


def _host(origin: str) -> str | None:
    """Return the host of a URL, if it is a name that a hosts file can hold; else None."""
    try:
        url = URL(f"{origin}/")
    except ValueError:
        return None
    named = url.host_type == HostType.DEFAULT and len(url.hostname) <= 253 and _LABELS.fullmatch(url.hostname)
    return url.hostname if named and url.hostname != "localhost" else None


# ---- web

NAMINGS = ("host", "address")
"""Sites are named by the recorded host or a number, or by their address, so that no name has to be resolved."""


@dataclass(frozen=True, eq=False)
class ServedWeb:
    """The data of a web to serve."""

    seed: int
    names: list[str]
    """[sites]"""
    address_of: list[int]
    """[sites] the number of each site's address"""
    addresses: list[str]
    behaviours: tuple[Behaviour, ...]
    """[sites]"""
    home: list[int]
    """[sites] the home page"""
    site: "array[int]"
    """[pages]"""
    offsets: "array[int]"
    """[pages + 1] where the links of each page begin in `targets`"""
    targets: NDArray[np.int32]
    sizes: "array[int]"
    """[pages] bytes"""
    paths: Paths
    latency_s: "array[float] | None" = None
    """[pages] time from a request to its answer; None: that of the site's behaviour. Other answers always have that"""
    changes: PageChanges | None = None
    providers: Providers | None = None
    port: int = 80
    tls: bool = False
    began: float = 0.0
    """when the web was started, in seconds since 1970; pages change from then on"""

    @property
    def sites(self) -> int:
        return len(self.names)

    @property
    def pages(self) -> int:
        return len(self.paths)

    @cached_property
    def origins(self) -> list[str]:
        """[sites] scheme://name[:port]"""
        scheme, usual = ("https", 443) if self.tls else ("http", 80)
        port = "" if self.port == usual else f":{self.port}"
        return [f"{scheme}://{name}{port}" for name in self.names]

    @property
    def hosts(self) -> dict[str, str]:
        """The address of each host name."""
        return {name: self.addresses[number] for name, number in zip(self.names, self.address_of, strict=True)}

    @property
    def seed_urls(self) -> list[str]:
        """The home page of each site."""
        return [self.url(page) for page in self.home]

    def url(self, page: int) -> str:
        return self.origins[self.site[page]] + self.paths[page]

    def at(self, port: int, tls: bool = False, began: float = 0.0) -> "ServedWeb":
        return replace(self, port=port, tls=tls, began=began)

    def latency(self, site: int, page: int) -> float:
        """Return the latency of an answer of the site. `page` < 0: it is no page."""
        return self.behaviours[site].latency_s if self.latency_s is None or page < 0 else self.latency_s[page]

    def version(self, page: int, now: float) -> int:
        """Return the number of the page's updates so far. Here and below, `now` is in seconds since 1970."""
        return self.changes.version(page, now - self.began) if self.changes else 0

    def updated(self, page: int, now: float) -> float:
        """Return when the current version was made, in seconds since 1970."""
        return self.began + (self.changes.updated_s(page, now - self.began) if self.changes else 0.0)

    def exists(self, page: int, now: float) -> bool:
        return self.changes is None or self.changes.born_s[page] <= now - self.began

    def links(self, page: int, now: float) -> list[int]:
        """Return the pages that this one links to: those that existed when it last changed."""
        targets = self.targets[self.offsets[page] : self.offsets[page + 1]].tolist()
        if self.changes is None or not self.changes.grows:
            return targets
        born_s, updated_s = self.changes.born_s, self.changes.updated_s(page, now - self.began)
        return [target for target in targets if born_s[target] <= updated_s]

    @cached_property
    def constant(self) -> bool:
        """Whether answers depend only on the request line, so that they can be cached."""
        return self.changes is None and all(behaviour.validators == "none" for behaviour in self.behaviours)

    @cached_property
    def sites_at(self) -> list[dict[str, int]]:
        """[addresses] the sites at the address, by name."""
        there: list[dict[str, int]] = [{} for _ in self.addresses]
        for site, (name, number) in enumerate(zip(self.names, self.address_of, strict=True)):
            there[number][name] = site
        return there

    def authority(self, site: int) -> str:
        """Return name[:port] of the site."""
        return self.origins[site].partition("://")[2]

    def level(self, site: int) -> str:
        """Return the level of this site's provider, one of LEVELS."""
        return self.providers.level[site] if self.providers else "normal"

    def pages_of(self, site: int) -> list[int]:
        return self._pages_by_site[site]

    @cached_property
    def _pages_by_site(self) -> list[list[int]]:
        pages: list[list[int]] = [[] for _ in self.names]
        for page, site in enumerate(self.site):
            pages[site].append(page)
        return pages

    def fault(self, page: int) -> str:
        """Return the fault that this page is answered with, one of FAULTS; "" for none."""
        shares = self.behaviours[self.site[page]].faults
        return pick(shares, draw(self.seed, "fault", page)) if shares else ""

    def redirect(self, page: int) -> str:
        """Return the redirect through which this page is linked, one of REDIRECTS; "" if it is linked directly."""
        shares = self.behaviours[self.site[page]].redirects
        return pick(shares, draw(self.seed, "redirect", page)) if shares else ""

    @cached_property
    def redirecting(self) -> bool:
        """Whether any page is linked through redirects. Most webs have none and skip the check of each link."""
        return any(behaviour.redirects for behaviour in self.behaviours)


def build_web(
    graph: "Graph",
    behaving: Behaviour | Mix | Sequence[Behaviour] = Behaviour(),  # noqa: B008  frozen
    *,
    names: str = "host",
    sites_per_address: int | None = None,
    seed: int = 0,
    changes: PageChanges | None = None,
    providers: Providers | None = None,
    servers: "Servers | None" = None,
) -> ServedWeb:
    """Build the web of a graph. Its port and the time of its start are set when it is served.

    `names` is one of NAMINGS. If `sites_per_address` is None, sites share addresses as in the graph. `servers` replace
    what `behaving` says about times, bandwidth and connections, by the numbers that the simulator computes with, and
    pages have the sizes of `servers`.
    """
    address_of = grouped(graph.sites, graph.ips.tolist(), sites_per_address)
    where = addresses(max(address_of) + 1)
    return ServedWeb(
        seed=seed,
        names=_names(graph, names, address_of, where),
        address_of=address_of,
        addresses=where,
        behaviours=_with_servers(_behaviours(behaving, graph.sites, seed), servers),
        home=graph.home.tolist(),
        site=array("i", graph.site.astype(np.int32).tobytes()),
        offsets=array("q", graph.offsets.astype(np.int64).tobytes()),
        targets=np.array(graph.targets, np.int32),
        sizes=array("q", _sizes(graph, seed, servers).astype(np.int64).tobytes()),
        paths=_paths(graph, RESERVED if providers else ()),
        latency_s=array("d", np.broadcast_to(servers.latency_s, graph.pages).tolist()) if servers else None,
        changes=changes,
        providers=providers,
    )


def _names(graph: "Graph", naming: str, address_of: Sequence[int], where: Sequence[str]) -> list[str]:
    if naming == "host":
        recorded = graph.site_names
        return site_names(None if recorded is None else [recorded[site] for site in range(graph.sites)], graph.sites)
    if naming != "address":
        raise ConfigError(f"names is {naming!r}; give host or address")
    if len(where) < graph.sites:
        raise ConfigError(
            f"{graph.sites} sites on {len(where)} addresses cannot be named by address; put one site on each address"
        )
    return [where[number] for number in address_of]


def _behaviours(behaving: Behaviour | Mix | Sequence[Behaviour], sites: int, seed: int) -> tuple[Behaviour, ...]:
    if isinstance(behaving, Behaviour):
        return (behaving,) * sites
    if isinstance(behaving, Mix):
        return behaviours(behaving, sites, seed)
    if len(behaving) != sites:
        raise ConfigError(f"{len(behaving)} behaviours for {sites} sites; give one for each")
    return tuple(behaving)


def _with_servers(behaving: tuple[Behaviour, ...], servers: "Servers | None") -> tuple[Behaviour, ...]:
    if servers is None:
        return behaving
    names = ("robots_s", "connection_s", "speed", "initial_window", "closing_s", "requests", "keep_alive_s")
    columns = [np.broadcast_to(getattr(servers, name), len(behaving)).tolist() for name in names]
    return tuple(
        replace(
            own,
            latency_s=robots_s,
            connection_s=connection_s,
            bandwidth=max(1.0, speed),
            initial_window=window,
            closing_s=closing_s,
            serial=True,
            requests_per_connection=requests,
            http10=requests == 1,  # inferred as in cao 5.1
            keep_alive_s=keep_alive_s,
        )
        for own, robots_s, connection_s, speed, window, closing_s, requests, keep_alive_s in zip(
            behaving, *columns, strict=True
        )
    )


def _sizes(graph: "Graph", seed: int, servers: "Servers | None") -> NDArray[np.int64] | NDArray[np.float64]:
    """Return the sizes of pages: those of the servers, the recorded ones, or sizes drawn as the generator of webs does."""
    if servers is not None:
        return np.broadcast_to(servers.size, graph.pages)
    if graph.sizes is not None:
        return graph.sizes
    from trapline.graph.page_sizes import page_sizes

    return page_sizes(seed, graph.site)


def _paths(graph: "Graph", reserved: Sequence[str]) -> Paths:
    from trapline.graph.strings import decoded

    if graph.urls is None:
        return Paths(numbered_paths(graph.home, graph.dynamic), graph.site)
    return Paths(recorded_paths(decoded(graph.urls), graph.site, reserved), graph.site)
