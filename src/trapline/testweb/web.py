"""A web to be served: the pages and links of a graph, with names, addresses, paths and a behaviour for each site.

It is data: no socket, no clock; whoever asks how a page is says at which moment. It holds its own arrays instead of the graph, so
that the process that serves it needs neither the graph's code nor its compiler. On the way of a URL it stands on the far side of step 5.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.testweb.behaviour import Behaviour, Mix, behaviours
from trapline.testweb.changes import Changes
from trapline.testweb.draws import draw, pick
from trapline.testweb.names import addresses, grouped, site_names
from trapline.testweb.paths import Paths, numbered_paths, recorded_paths
from trapline.testweb.providers import Providers
from trapline.testweb.published import RESERVED

if TYPE_CHECKING:
    from trapline.graph import Graph

NAMINGS = ("host", "address")
"""By the recorded host or a number; or by the site's address, so that nobody has to resolve anything."""


@dataclass(frozen=True, eq=False)
class Web:
    seed: int
    names: list[str]
    """[sites]"""
    address_of: list[int]
    """[sites] the number of each site's address"""
    addresses: list[str]
    behaviours: tuple[Behaviour, ...]
    """[sites]"""
    home: list[int]
    """[sites] a page"""
    site: "array[int]"
    """[pages]"""
    offsets: "array[int]"
    """[pages + 1] where the links of each page begin in `targets`"""
    targets: NDArray[np.int32]
    sizes: "array[int]"
    """[pages] bytes"""
    paths: Paths
    changes: Changes | None = None
    providers: Providers | None = None
    port: int = 80
    tls: bool = False
    began: float = 0.0
    """when it began to be served, in seconds since 1970: from then on pages change"""

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
        """The address of each name."""
        return {name: self.addresses[number] for name, number in zip(self.names, self.address_of, strict=True)}

    @property
    def seed_urls(self) -> list[str]:
        """The home page of each site."""
        return [self.url(page) for page in self.home]

    def url(self, page: int) -> str:
        return self.origins[self.site[page]] + self.paths[page]

    def at(self, port: int, tls: bool = False, began: float = 0.0) -> "Web":
        return replace(self, port=port, tls=tls, began=began)

    def version(self, page: int, now: float) -> int:
        """The number of its updates so far. `now`, here and below: seconds since 1970."""
        return self.changes.version(page, now - self.began) if self.changes else 0

    def updated(self, page: int, now: float) -> float:
        """When this version came to be, in seconds since 1970."""
        return self.began + (self.changes.updated_s(page, now - self.began) if self.changes else 0.0)

    def exists(self, page: int, now: float) -> bool:
        return self.changes is None or self.changes.born_s[page] <= now - self.began

    def links(self, page: int, now: float) -> list[int]:
        """The pages that this one links to, those that were there when it last changed."""
        targets = self.targets[self.offsets[page] : self.offsets[page + 1]].tolist()
        if self.changes is None or not self.changes.grows:
            return targets
        born_s, updated_s = self.changes.born_s, self.changes.updated_s(page, now - self.began)
        return [target for target in targets if born_s[target] <= updated_s]

    @cached_property
    def constant(self) -> bool:
        """Whether what it answers depends on nothing but the request line: then answers can be kept."""
        return self.changes is None and all(behaviour.validators == "none" for behaviour in self.behaviours)

    @cached_property
    def sites_at(self) -> list[dict[str, int]]:
        """[addresses] the sites there, by name."""
        there: list[dict[str, int]] = [{} for _ in self.addresses]
        for site, (name, number) in enumerate(zip(self.names, self.address_of, strict=True)):
            there[number][name] = site
        return there

    def authority(self, site: int) -> str:
        """name[:port]"""
        return self.origins[site].partition("://")[2]

    def level(self, site: int) -> str:
        """The one of LEVELS that this site's provider has."""
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
        """The one of FAULTS that this page is answered with; "": none."""
        shares = self.behaviours[self.site[page]].faults
        return pick(shares, draw(self.seed, "fault", page)) if shares else ""

    def redirect(self, page: int) -> str:
        """The one of REDIRECTS by which this page is linked; "": directly."""
        shares = self.behaviours[self.site[page]].redirects
        return pick(shares, draw(self.seed, "redirect", page)) if shares else ""

    @cached_property
    def redirecting(self) -> bool:
        """Whether any page is linked by redirects: most webs have none, and need not ask for each link."""
        return any(behaviour.redirects for behaviour in self.behaviours)


def build_web(
    graph: "Graph",
    behaving: Behaviour | Mix | Sequence[Behaviour] = Behaviour(),  # noqa: B008  frozen
    *,
    names: str = "host",
    sites_per_address: int | None = None,
    seed: int = 0,
    changes: Changes | None = None,
    providers: Providers | None = None,
) -> Web:
    """The web of a graph. `sites_per_address`: None: as the graph has it. Its port and its beginning are set when it is served."""
    address_of = grouped(graph.sites, graph.ips.tolist(), sites_per_address)
    where = addresses(max(address_of) + 1)
    return Web(
        seed=seed,
        names=_names(graph, names, address_of, where),
        address_of=address_of,
        addresses=where,
        behaviours=_behaviours(behaving, graph.sites, seed),
        home=graph.home.tolist(),
        site=array("i", graph.site.astype(np.int32).tobytes()),
        offsets=array("q", graph.offsets.astype(np.int64).tobytes()),
        targets=np.array(graph.targets, np.int32),
        sizes=array("q", _sizes(graph, seed).astype(np.int64).tobytes()),
        paths=_paths(graph, RESERVED if providers else ()),
        changes=changes,
        providers=providers,
    )


def _names(graph: "Graph", naming: str, address_of: Sequence[int], where: Sequence[str]) -> list[str]:
    if naming == "host":
        recorded = graph.site_names
        return site_names(None if recorded is None else [recorded[site] for site in range(graph.sites)], graph.sites)
    if naming != "address":
        raise ConfigError(f"names: {naming!r} is neither host nor address")
    if len(where) < graph.sites:
        raise ConfigError("sites can be named by their address only if each has its own (one site per address)")
    return [where[number] for number in address_of]


def _behaviours(behaving: Behaviour | Mix | Sequence[Behaviour], sites: int, seed: int) -> tuple[Behaviour, ...]:
    if isinstance(behaving, Behaviour):
        return (behaving,) * sites
    if isinstance(behaving, Mix):
        return behaviours(behaving, sites, seed)
    if len(behaving) != sites:
        raise ConfigError(f"{len(behaving)} behaviours for {sites} sites")
    return tuple(behaving)


def _sizes(graph: "Graph", seed: int) -> NDArray[np.int64]:
    """As recorded, else as the simulator draws them."""
    if graph.sizes is not None:
        return graph.sizes
    from trapline.graph.page_sizes import page_sizes

    return page_sizes(seed, graph.site)


def _paths(graph: "Graph", reserved: Sequence[str]) -> Paths:
    from trapline.graph.strings import decoded

    if graph.urls is None:
        return Paths(numbered_paths(graph.home, graph.dynamic), graph.site)
    return Paths(recorded_paths(decoded(graph.urls), graph.site, reserved), graph.site)
