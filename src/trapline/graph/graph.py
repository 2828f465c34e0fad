"""A web graph in memory: pages, their links in document order, and the sites they belong to.

A graph holds arrays and nothing else. It does not know where they come from (`load`, `generate`), nor in which order a
crawl fetches pages (`frontier`). In a simulated crawl it replaces steps 1, 2, 5, 6 and 7 of the way of a URL
(docs/architecture.md).

Links are stored in CSR form: the targets of page p are `targets[offsets[p]:offsets[p + 1]]`, in document order. Parallel
links are removed (the first one stays); links of a page to itself are kept.
"""

from collections.abc import Mapping, Sized
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.jit import kernel
from trapline.graph.strings import Strings

# ---- Links from edge arrays to CSR, by counting sort: linear time, one scatter, no comparison.
#
# Rows keep the order of their edges, because the order of links on a page decides which page is discovered first.

Offsets = NDArray[np.int64]
Ids = NDArray[np.int32]


@kernel("void(int32[::1], int64[::1])")
def _count(rows: Ids, counts: Offsets) -> None:
    for edge in range(len(rows)):
        counts[rows[edge] + 1] += 1


@kernel("void(int32[::1], int32[::1], int64[::1], int32[::1])")
def _scatter(rows: Ids, values: Ids, cursor: Offsets, out: Ids) -> None:
    for edge in range(len(rows)):
        row = rows[edge]
        out[cursor[row]] = values[edge]
        cursor[row] += 1


@kernel("int64(int64[::1], int32[::1], int32[::1])")
def _drop_parallel(offsets: Offsets, targets: Ids, last_row: Ids) -> int:
    """Keep the first of equal links in each row, compacting `targets` in place; return how many links stay."""
    kept, start = 0, 0
    for row in range(len(offsets) - 1):
        end = offsets[row + 1]
        for link in range(start, end):
            target = targets[link]
            if last_row[target] != row:
                last_row[target] = row
                targets[kept] = target
                kept += 1
        start = end
        offsets[row + 1] = kept
    return kept


def _offsets(rows: Ids, count: int) -> Offsets:
    offsets = np.zeros(count + 1, dtype=np.int64)
    _count(rows, offsets)
    np.cumsum(offsets, out=offsets)
    return offsets


def grouped(rows: Ids, values: Ids, count: int) -> tuple[Offsets, Ids]:
    """Group the values by row 0..count-1, keeping their order; return offsets and values."""
    offsets = _offsets(rows, count)
    out = np.empty(len(values), dtype=np.int32)
    _scatter(rows, values, offsets[:-1].copy(), out)
    return offsets, out


def without_parallel(offsets: Offsets, targets: Ids) -> tuple[Offsets, Ids]:
    """Remove parallel links from the rows, in place."""
    last_row = np.full(len(offsets) - 1, -1, dtype=np.int32)
    kept = _drop_parallel(offsets, targets, last_row)
    return offsets, targets if kept == len(targets) else targets[:kept].copy()


def csr_from_edges(sources: Ids, targets: Ids, pages: int) -> tuple[Offsets, Ids]:
    """Return offsets and targets of the links sources[i] -> targets[i] without parallel ones. Ids must be in 0..pages-1."""
    return without_parallel(*grouped(sources, targets, pages))


# ---- graph

MOST_PAGES = 2**31 - 1  # page ids are signed 32-bit integers

MOST_BYTES = 1 << 40  # of a page; the sum over 2^22 such pages still fits 64 bits


@dataclass(frozen=True, eq=False)
class Graph:
    """Pages, links and sites as arrays; page and site ids are array indices."""

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
    """[pages] bytes of each page, if they were recorded; 0 for a page that was not fetched"""
    quality: NDArray[np.float64] | None = None
    """[pages] the score of the content of each page, if a crawl measured it; -1 for a page without a score"""
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
    """Return why the arrays are unfit for compiled code, which does not check bounds; None if they are valid."""
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
        ("quality", graph.quality, pages),
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
    if graph.quality is not None and not np.isfinite(graph.quality).all():
        return f"quality: value {int(np.argmin(np.isfinite(graph.quality)))} is not a finite number"
    return _home_fault(graph)


def _home_fault(graph: Graph) -> str | None:
    wrong = np.flatnonzero(graph.site[graph.home] != np.arange(graph.sites))
    if len(wrong):
        return f"home: page {graph.home[wrong[0]]} is not on site {wrong[0]}"
    return None
