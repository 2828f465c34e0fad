"""Who owns which part of the web while a crawl runs: a table, fixed from the start or filled as the crawl meets new parts.

A *unit* is what is owned as one piece: a site, or a page. With *dynamic* assignment a coordinator gives a unit that nobody has met
before to the partition that has the fewest, and a partition asks it once about each unit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.frontier.layout import Array, Pages
from trapline.graph import Graph
from trapline.jit import i8, kernel, type_of

Ids = NDArray[np.int32]
Longs = type_of(np.zeros(1, np.int64))
NOBODY = -1


class Ownership(NamedTuple):
    unit: Ids
    """[pages]"""
    owner: Ids
    """[units]"""
    units_of: NDArray[np.int64]
    """[partitions] how many each has, where a coordinator counts"""
    asked: NDArray[np.uint8]
    """[partitions, units] 1: the partition has asked who owns the unit; no rows: nobody need ask"""

    def give_out(self, pages: Ids) -> None:
        """The units of these pages, to each partition in turn."""
        units = np.unique(self.unit[pages])
        self.owner[units] = np.arange(len(units)) % len(self.units_of)
        self.units_of[:] = np.bincount(self.owner[units], minlength=len(self.units_of))

    def of_pages(self) -> Ids:
        owner: Ids = self.owner[self.unit]
        return owner


def fixed(owner: Ids) -> Ownership:
    """Of each page, from the start."""
    return Ownership(np.arange(len(owner), dtype=np.int32), owner, np.zeros(0, np.int64), np.zeros((0, 0), np.uint8))


def by_coordinator(graph: Graph, partitions: int, grain: str) -> Ownership:
    units = graph.sites if grain == "site" else graph.pages
    unit = graph.site if grain == "site" else np.arange(graph.pages, dtype=np.int32)
    return Ownership(
        unit, np.full(units, NOBODY, np.int32), np.zeros(partitions, np.int64), np.zeros((partitions, units), np.uint8)
    )


@kernel(i8(Pages, Pages, Longs, Pages, Pages))
def links_to_others(pages: Array, process: Array, offsets: Array, targets: Array, owner: Array) -> int:
    """On `pages`, each fetched by the partition `process`; `owner`: of every page of the graph. What nobody owns is not another's."""
    found = 0
    for row in range(pages.size):
        for at in range(offsets[pages[row]], offsets[pages[row] + 1]):
            one = owner[targets[at]]
            found += one != NOBODY and one != process[row]
    return found
