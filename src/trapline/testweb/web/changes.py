"""Change history of a web: when each page changes, and when it comes into existence. Data and arithmetic; no clock, no bytes.

Times are seconds since the web was started. A history is as long as a round and then repeats, so that a web never stops
changing. The version of a page is the number of its updates so far, in all rounds. The updates before the birth of a page
count too.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.graph import Graph
    from trapline.refresh import Trace

# ---- Births: which pages of a changing web come into existence later, and when.
#
# A time is drawn for each such page. The page is born at the first update after that time of a page that links to it and exists from
# the start. Other pages link to it from their own next update on. So only updates change what a page says, and every birth can be
# discovered through a page that already exists. If no such update is left in the first round, the page exists from the start. Home
# pages always exist from the start.

_BIRTHS = 12  # number of the random stream


def births(
    graph: "Graph", offsets: NDArray[np.int64], at_s: NDArray[np.float64], round_s: float, share: float, seed: int
) -> NDArray[np.float64]:
    """Return the birth of each page, in seconds since the start of the web."""
    rng = np.random.default_rng((seed, _BIRTHS))
    later = rng.random(graph.pages) < share
    later[graph.home] = False
    drawn_s = rng.random(graph.pages) * round_s
    source = np.repeat(np.arange(graph.pages), np.diff(graph.offsets))
    announcing = later[graph.targets] & ~later[source]
    source, target = source[announcing], graph.targets[announcing]
    born_s = np.full(graph.pages, np.inf)
    np.minimum.at(born_s, target, _next_update(offsets, at_s, source, drawn_s[target]))
    return np.where(np.isinf(born_s), 0.0, born_s)


def _next_update(
    offsets: NDArray[np.int64], at_s: NDArray[np.float64], pages: NDArray[np.int64], from_s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the first update of each page at or after its time in `from_s`, in the first round; infinity if there is none."""
    found = np.full(len(pages), np.inf)
    for number, (page, moment) in enumerate(zip(pages.tolist(), from_s.tolist(), strict=True)):
        own = at_s[offsets[page] : offsets[page + 1]]
        at = int(np.searchsorted(own, moment))
        if at < len(own):
            found[number] = own[at]
    return found


# ---- changes


@dataclass(frozen=True, eq=False)
class PageChanges:
    """The times at which the pages of a web change and come into existence."""

    offsets: "array[int]"
    """[pages + 1] where the updates of each page begin in `at_s`"""
    at_s: "array[float]"
    """times of updates in the first round, ascending for each page, all below `round_s`"""
    round_s: float
    born_s: "array[float]"
    """[pages] when the page comes into existence; 0: it exists from the start"""
    noise: bool = False
    """whether bytes that are not content differ from answer to answer"""

    @property
    def pages(self) -> int:
        return len(self.born_s)

    def version(self, page: int, now_s: float) -> int:
        """Return the number of updates up to and including `now_s`."""
        begin, end = self.offsets[page], self.offsets[page + 1]
        rounds, rest_s = divmod(now_s, self.round_s)
        return int(rounds) * (end - begin) + bisect_right(self.at_s, rest_s, begin, end) - begin

    def updated_s(self, page: int, now_s: float) -> float:
        """Return when the version that is current at `now_s` was made."""
        begin, end = self.offsets[page], self.offsets[page + 1]
        if begin == end:
            return self.born_s[page]
        rounds, at = divmod(self.version(page, now_s) - 1, end - begin)
        return max(rounds * self.round_s + self.at_s[begin + at], self.born_s[page])

    def between(self, page: int, begin_s: float, end_s: float) -> Iterator[float]:
        """Yield the times of the page's updates after `begin_s`, up to and including `end_s`."""
        first, end = self.offsets[page], self.offsets[page + 1]
        for number in range(self.version(page, begin_s), self.version(page, end_s)):
            rounds, at = divmod(number, end - first)
            yield rounds * self.round_s + self.at_s[first + at]

    def until(self, end_s: float) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
        """Return the updates of all pages from their birth to `end_s`: the offset of each page's updates, and their times."""
        moments = [list(self.between(page, self.born_s[page], end_s)) for page in range(self.pages)]
        offsets = np.cumsum([0, *map(len, moments)]).astype(np.int64)
        return offsets, np.array([at_s for own in moments for at_s in own])

    @cached_property
    def grows(self) -> bool:
        return any(self.born_s)


def changes_of(
    graph: "Graph", trace: "Trace", *, speed: float = 1.0, noise: bool = False, grows: float = 0.0, seed: int = 0
) -> PageChanges:
    """Assign the histories of a trace to the pages of a graph, as the simulator does (refresh/replay/trace.py).

    `speed` seconds of the trace take one second. `grows` is the share of pages that are born later.
    """
    from trapline.refresh.replay.trace import (  # late: a process that only serves a web must not load this package
        round_of,
        sampled_histories,
    )

    if not speed > 0:
        raise ConfigError(f"changes: speed is {speed:g}; it must be above 0")
    moments = sampled_histories(trace, graph.pages, seed)
    offsets = np.cumsum([0, *map(len, moments)]).astype(np.int64)
    at_s = np.concatenate(moments) / speed
    changes = PageChanges(
        offsets=array("q", offsets.tobytes()),
        at_s=array("d", at_s.tobytes()),
        round_s=round_of(trace, speed),
        born_s=array("d", bytes(8 * graph.pages)),
        noise=noise,
    )
    if grows == 0:
        return changes
    return replace(changes, born_s=array("d", births(graph, offsets, at_s, changes.round_s, grows, seed).tobytes()))
