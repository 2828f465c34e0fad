"""Which pages of a changing web are born later, and when: with an update of a page that links to them.

A moment is drawn for each such page. It is born with the first update, from that moment on, of a page that links to it and is there
from the beginning; other pages link to it from their own next updates on. So nothing but updates changes what a page says, and every
birth is told by a page that can be known. Where no such update is left in the first round, the page is there from the beginning; home pages
always are.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from trapline.graph import Graph

_BIRTHS = 12  # stream of chance


def births(
    graph: "Graph", offsets: NDArray[np.int64], at_s: NDArray[np.float64], round_s: float, share: float, seed: int
) -> NDArray[np.float64]:
    """[pages] seconds since the web began."""
    rng = np.random.default_rng((seed, _BIRTHS))
    later = rng.random(graph.pages) < share
    later[graph.home] = False
    drawn_s = rng.random(graph.pages) * round_s
    source = np.repeat(np.arange(graph.pages), np.diff(graph.offsets))
    telling = later[graph.targets] & ~later[source]
    source, target = source[telling], graph.targets[telling]
    born_s = np.full(graph.pages, np.inf)
    np.minimum.at(born_s, target, _next_update(offsets, at_s, source, drawn_s[target]))
    return np.where(np.isinf(born_s), 0.0, born_s)


def _next_update(
    offsets: NDArray[np.int64], at_s: NDArray[np.float64], pages: NDArray[np.int64], from_s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Of each page from its moment on, in the first round; infinity: none is left."""
    found = np.full(len(pages), np.inf)
    for number, (page, moment) in enumerate(zip(pages.tolist(), from_s.tolist(), strict=True)):
        own = at_s[offsets[page] : offsets[page + 1]]
        at = int(np.searchsorted(own, moment))
        if at < len(own):
            found[number] = own[at]
    return found
