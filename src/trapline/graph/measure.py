"""Measures of a graph: the numbers that `trapline graph info` prints and that compare generated webs with recorded ones."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.jit import kernel
from trapline.graph.graph import Graph

Longs = NDArray[np.int64]
Ids = NDArray[np.int32]
Flags = NDArray[np.uint8]
Floats = NDArray[np.float64]

_INSIDE, _SELF, _TO_HOME, _OUTSIDE_TO_HOME = range(4)


@dataclass(frozen=True)
class Degrees:
    """Distribution of in-degrees or out-degrees."""

    mean: float
    median: int
    p90: int
    p99: int
    max: int


@dataclass(frozen=True)
class Measures:
    """The measures of one graph. Shares are fractions of 1; the line below each says of what."""

    pages: int
    links: int
    sites: int
    ips: int
    self_links: int
    links_per_page: float
    in_degree: Degrees
    out_degree: Degrees
    intra_site_share: float
    """share of links that stay within their site"""
    home_link_share: float
    """share of the pages with links that link to the home page of their site"""
    outside_home_share: float
    """share of the links between sites that lead to a home page"""
    links_to_home_share: float
    """share of all links that lead to a home page"""
    dangling_share: float
    dynamic_share: float
    reachable_share: float
    """share of pages that can be reached from the home pages"""
    depth_mean: float
    """mean over reachable pages, in clicks from the nearest home page"""
    depth_max: int
    deep_share: float
    """share of reachable pages that are more than 8 clicks away"""
    largest_site_share: float
    """share of pages that are on the largest site"""
    single_page_sites_share: float
    size_exponent: float | None
    """power law of pages per site, by Hill's estimate; None with fewer than 20 sites"""
    degree_exponent: float | None
    """power law of links to a page, by Hill's estimate; None if fewer than 400 pages are linked to"""
    linked_once_share: float
    """share of pages with exactly one link to them"""
    top_links_share: float
    """share of links that lead to the hundredth of pages with the highest in-degree"""
    outside_linked_share: float
    """share of pages that another site links to"""
    bytes_mean: float | None
    bytes_median: int | None


@dataclass(frozen=True)
class RankMeasures:
    """How a value per page, such as PageRank, is distributed over the pages and sites of a graph."""

    locality: float | None
    """within-site correlation, see `locality`"""
    home_share: float
    """share of the sum of values that home pages hold"""
    top_tenth_share: float
    """share of the sum of values that the best tenth of pages holds"""


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64[::1], uint8[::1], int64[::1])")
def _count_links(
    offsets: Longs, targets: Ids, site: Ids, home: Ids, in_degree: Longs, known: Flags, counts: Longs
) -> None:
    for page in range(len(site)):
        own = site[page]
        for link in range(offsets[page], offsets[page + 1]):
            target = targets[link]
            in_degree[target] += 1
            counts[1] += target == page
            if site[target] == own:
                counts[0] += 1
                counts[2] += target == home[own]
            else:
                known[target] = 1
                counts[3] += target == home[site[target]]


@kernel("int64(int64[::1], int32[::1], int32[::1], int32[::1], int32[::1])")
def _walk(offsets: Longs, targets: Ids, seeds: Ids, depth: Ids, queue: Ids) -> int:
    """Walk breadth-first from all seeds at once; return the number of pages reached.

    depth: -1 for every page on entry, clicks on return.
    """
    end = 0
    for index in range(len(seeds)):
        if depth[seeds[index]] < 0:
            depth[seeds[index]] = 0
            queue[end] = seeds[index]
            end += 1
    at = 0
    while at < end:
        page = queue[at]
        at += 1
        for link in range(offsets[page], offsets[page + 1]):
            target = targets[link]
            if depth[target] < 0:
                depth[target] = depth[page] + 1
                queue[end] = target
                end += 1
    return end


def depths(graph: Graph, seeds: Ids | None = None) -> Ids:
    """Return the clicks from the nearest seed (default: all home pages) for each page; -1 for unreachable pages."""
    depth = np.full(graph.pages, -1, dtype=np.int32)
    start = graph.home if seeds is None else np.ascontiguousarray(seeds, dtype=np.int32)
    _walk(graph.offsets, graph.targets, start, depth, np.empty(graph.pages, dtype=np.int32))
    return depth


def measure(graph: Graph) -> Measures:
    in_degree, counts = np.zeros(graph.pages, dtype=np.int64), np.zeros(4, dtype=np.int64)
    known = np.zeros(graph.pages, dtype=np.uint8)
    _count_links(graph.offsets, graph.targets, graph.site, graph.home, in_degree, known, counts)
    out_degree, site_sizes = np.diff(graph.offsets), np.bincount(graph.site, minlength=graph.sites)
    depth = depths(graph)
    reached = depth[depth >= 0]
    return Measures(
        pages=graph.pages,
        links=graph.links,
        sites=graph.sites,
        ips=len(np.unique(graph.ips)),
        self_links=int(counts[_SELF]),
        links_per_page=graph.links / graph.pages,
        in_degree=_degrees(in_degree),
        out_degree=_degrees(out_degree),
        intra_site_share=_share(counts[_INSIDE], graph.links),
        home_link_share=_share(counts[_TO_HOME], np.count_nonzero(out_degree)),
        outside_home_share=_share(counts[_OUTSIDE_TO_HOME], graph.links - counts[_INSIDE]),
        links_to_home_share=_share(counts[_TO_HOME] + counts[_OUTSIDE_TO_HOME], graph.links),
        dangling_share=float(np.mean(out_degree == 0)),
        dynamic_share=float(np.mean(graph.dynamic != 0)),
        reachable_share=len(reached) / graph.pages,
        depth_mean=float(reached.mean()),
        depth_max=int(reached.max()),
        deep_share=float(np.mean(reached > 8)),
        largest_site_share=float(site_sizes.max()) / graph.pages,
        single_page_sites_share=float(np.mean(site_sizes == 1)),
        size_exponent=_hill(site_sizes, max(10, graph.sites // 10)),
        degree_exponent=_hill(in_degree, 200),
        linked_once_share=float(np.mean(in_degree == 1)),
        top_links_share=_top_share(in_degree, 100),
        outside_linked_share=float(np.mean(known)),
        bytes_mean=None if graph.sizes is None else float(graph.sizes.mean()),
        bytes_median=None if graph.sizes is None else int(np.quantile(graph.sizes, 0.5, method="lower")),
    )


def measure_ranks(graph: Graph, values: Floats) -> RankMeasures:
    """Measure how `values`, one non-negative number for each page, are distributed."""
    return RankMeasures(
        locality=locality(graph.site, values),
        home_share=float(values[graph.home].sum() / values.sum()),
        top_tenth_share=_top_share(values, 10),
    )


def locality(site: Ids, values: Floats) -> float | None:
    """Return the correlation of the ranks of two pages of one site.

    0 means that sites do not matter, 1 that all pages of a site are equal. It is the intraclass correlation of a one-way
    analysis of variance over the places of the pages when they are ordered by value (equal values share their mean
    place). None if there is one site, if all sites have one page, or if all values are equal. Cao et al. name it "server
    locality" and leave open how to measure it. Source: Donner, "A review of inference procedures for the intraclass
    correlation coefficient in the one-way random effects model" (1986).
    """
    place = _places(values)
    pages, sizes = len(site), np.bincount(site)
    sites, means = len(sizes), np.bincount(site, place) / np.maximum(sizes, 1)
    within = float(((place - means[site]) ** 2).sum())
    between = float((sizes * (means - place.mean()) ** 2).sum())
    if sites in (1, pages) or within + between == 0:
        return None
    between, within = between / (sites - 1), within / (pages - sites)
    usual_size = (pages - float((sizes.astype(np.float64) ** 2).sum()) / pages) / (sites - 1)
    return (between - within) / (between + (usual_size - 1) * within)


def _places(values: Floats) -> Floats:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[which]


def _top_share(values: Longs | Floats, part: int) -> float:
    """Return the share of the sum that the largest values hold: one value in `part`, at least one."""
    top = max(len(values) // part, 1)
    total = values.sum()
    return float(np.partition(values, -top)[-top:].sum() / total) if total else 0.0


def _share(part: int | np.int64, whole: int | np.int64) -> float:
    return int(part) / int(whole) if whole else 0.0


def _degrees(degree: Longs) -> Degrees:
    median, p90, p99 = (int(v) for v in np.quantile(degree, [0.5, 0.9, 0.99], method="lower"))
    return Degrees(float(degree.mean()), median, p90, p99, int(degree.max()))


def _hill(values: Longs, largest: int) -> float | None:
    """Return the exponent of the power law that the `largest` top values follow: 1 + 1/mean(ln(value / threshold))."""
    positive = np.sort(values[values > 0])[::-1]
    if len(positive) < 2 * largest:
        return None
    logs = np.log(positive[:largest] / positive[largest])
    return float(1.0 + 1.0 / logs.mean()) if logs.any() else None
