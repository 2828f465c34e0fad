"""A web graph in memory: pages, their links in document order, and the sites they belong to.

It holds arrays and nothing else: it does not know where they came from (`load`, `generate`), nor in which order a
crawl takes them (`frontier`). On the way of a URL it stands in for steps 1, 5 and 6 when a crawl is simulated.

Links are kept in CSR form: the targets of page p are `targets[offsets[p]:offsets[p + 1]]`, in the order in which they
stand on the page. Parallel links are removed (the first one stays), links of a page to itself are kept.
"""

from collections.abc import Mapping, Sized
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trapline.graph.strings import Strings

MOST_PAGES = 2**31 - 1  # that 32 bits with a sign number

MOST_BYTES = 1 << 40  # of a page; the sum over 2^22 such pages still fits 64 bits


@dataclass(frozen=True, eq=False)
class Graph:
    offsets: NDArray[np.int64]
    """[pages + 1]"""
    targets: NDArray[np.int32]
    """[links]"""
    site: NDArray[np.int32]
    """[pages] the site of each page"""
    home: NDArray[np.int32]
    """[sites] the page with the shortest URL: the default seeds"""
    dynamic: NDArray[np.uint8]
    """[pages] 1 if the URL has a query string"""
    ips: NDArray[np.int32]
    """[sites] the group of sites that share an address"""
    urls: Strings | None = None
    site_names: Strings | None = None
    """scheme://host[:port] of each site"""
    sizes: NDArray[np.int64] | None = None
    """[pages] bytes of each page, where they were recorded; 0 for a page that was not fetched"""
    origin: Mapping[str, object] = field(default_factory=dict)
    """How the graph was made: `format`, and for a generated web its parameters"""

    @property
    def pages(self) -> int:
        return len(self.site)

    @property
    def links(self) -> int:
        return len(self.targets)

    @property
    def sites(self) -> int:
        return len(self.home)

    def targets_of(self, page: int) -> NDArray[np.int32]:
        return self.targets[self.offsets[page] : self.offsets[page + 1]]


def fault(graph: Graph) -> str | None:
    """What makes the arrays unfit for compiled code, which does not check bounds; None if they are sound."""
    return _shape_fault(graph) or _value_fault(graph)


def _shape_fault(graph: Graph) -> str | None:
    pages, sites = graph.pages, graph.sites
    if not pages or not sites:
        return "no pages"
    lengths: list[tuple[str, Sized | None, int]] = [
        ("offsets", graph.offsets, pages + 1),
        ("dynamic", graph.dynamic, pages),
        ("ips", graph.ips, sites),
        ("sizes", graph.sizes, pages),
        ("urls", graph.urls, pages),
        ("site_names", graph.site_names, sites),
    ]
    for name, values, length in lengths:
        if values is not None and len(values) != length:
            return f"{name}: {len(values)} values where {length} are needed"
    return None


def _value_fault(graph: Graph) -> str | None:
    if graph.offsets[0] != 0 or graph.offsets[-1] != graph.links:
        return f"offsets: must go from 0 to {graph.links}"
    falling = np.flatnonzero(graph.offsets[1:] < graph.offsets[:-1])
    if len(falling):
        return f"offsets: value {falling[0] + 1} is smaller than the one before"
    ranges = [
        ("targets", graph.targets, graph.pages),
        ("site", graph.site, graph.sites),
        ("home", graph.home, graph.pages),
        ("ips", graph.ips, graph.sites),
    ]
    for name, values, limit in ranges:
        if len(values) and (values.min() < 0 or values.max() >= limit):
            at = int(np.argmax((values < 0) | (values >= limit)))
            return f"{name}: value {at} is {values[at]}, not in 0..{limit - 1}"
    if graph.sizes is not None and not (graph.sizes.min() >= 0 and graph.sizes.max() <= MOST_BYTES):
        at = int(np.argmax((graph.sizes < 0) | (graph.sizes > MOST_BYTES)))
        return f"sizes: value {at} is {graph.sizes[at]}, not in 0..2^40 bytes"
    return _home_fault(graph)


def _home_fault(graph: Graph) -> str | None:
    strangers = np.flatnonzero(graph.site[graph.home] != np.arange(graph.sites))
    if len(strangers):
        return f"home: page {graph.home[strangers[0]]} is not on site {strangers[0]}"
    return None
