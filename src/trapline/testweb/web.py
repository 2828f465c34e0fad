"""A web to be served: the pages and links of a graph, with names, addresses, paths and a behaviour for each site.

It is data: no socket, no clock. It holds its own arrays instead of the graph, so that the process that serves it needs neither
the graph's code nor its compiler. On the way of a URL it stands on the far side of step 5.
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
from trapline.testweb.draws import draw, pick
from trapline.testweb.names import addresses, grouped, site_names
from trapline.testweb.paths import Paths, numbered_paths, recorded_paths

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
    port: int = 80
    tls: bool = False

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

    def at(self, port: int, tls: bool = False) -> "Web":
        return replace(self, port=port, tls=tls)

    @cached_property
    def sites_at(self) -> list[dict[str, int]]:
        """[addresses] the sites there, by name."""
        there: list[dict[str, int]] = [{} for _ in self.addresses]
        for site, (name, number) in enumerate(zip(self.names, self.address_of, strict=True)):
            there[number][name] = site
        return there

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
) -> Web:
    """The web of a graph. `sites_per_address`: None: as the graph has it. Its port is set when it is served."""
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
        paths=_paths(graph),
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


def _paths(graph: "Graph") -> Paths:
    from trapline.graph.strings import decoded

    if graph.urls is None:
        return Paths(numbered_paths(graph.home, graph.dynamic), graph.site)
    return Paths(recorded_paths(decoded(graph.urls), graph.site), graph.site)
