"""When each page of a web changes, and from when on it is there: data and arithmetic, no clock, no bytes.

Moments are seconds since the web began. A history is as long as a round and then begins anew, so that a web never comes to rest:
the version of a page is the number of its updates so far, in all rounds. A page that is born later keeps the count that it would have.
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
from trapline.testweb.births import births

if TYPE_CHECKING:
    from trapline.graph import Graph
    from trapline.refresh import Trace


@dataclass(frozen=True, eq=False)
class Changes:
    offsets: "array[int]"
    """[pages + 1] where the updates of each page begin in `at_s`"""
    at_s: "array[float]"
    """moments in the first round, ascending for each page, all below `round_s`"""
    round_s: float
    born_s: "array[float]"
    """[pages] from when on it is there; 0: from the beginning"""
    noise: bool = False
    """whether bytes that are no content differ from answer to answer"""

    @property
    def pages(self) -> int:
        return len(self.born_s)

    def version(self, page: int, now_s: float) -> int:
        """How many updates there were, one at this very moment among them."""
        begin, end = self.offsets[page], self.offsets[page + 1]
        rounds, rest_s = divmod(now_s, self.round_s)
        return int(rounds) * (end - begin) + bisect_right(self.at_s, rest_s, begin, end) - begin

    def updated_s(self, page: int, now_s: float) -> float:
        """When the version of this moment came to be."""
        begin, end = self.offsets[page], self.offsets[page + 1]
        if begin == end:
            return self.born_s[page]
        rounds, at = divmod(self.version(page, now_s) - 1, end - begin)
        return max(rounds * self.round_s + self.at_s[begin + at], self.born_s[page])

    def between(self, page: int, begin_s: float, end_s: float) -> Iterator[float]:
        """The page's updates after the one moment, up to the other."""
        first, end = self.offsets[page], self.offsets[page + 1]
        for number in range(self.version(page, begin_s), self.version(page, end_s)):
            rounds, at = divmod(number, end - first)
            yield rounds * self.round_s + self.at_s[first + at]

    def until(self, end_s: float) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
        """All updates of pages that are there: where those of each page begin, and their moments."""
        moments = [list(self.between(page, self.born_s[page], end_s)) for page in range(self.pages)]
        offsets = np.cumsum([0, *map(len, moments)]).astype(np.int64)
        return offsets, np.array([at_s for own in moments for at_s in own])

    @cached_property
    def grows(self) -> bool:
        return any(self.born_s)


def changes_of(
    graph: "Graph", trace: "Trace", *, speed: float = 1.0, noise: bool = False, grows: float = 0.0, seed: int = 0
) -> Changes:
    """The histories of a trace, dealt to the pages of a graph: `speed` seconds of the trace are a second.

    As the simulator deals them (refresh/trace_dealt.py). `grows`: the share of pages that are born later (births.py has when).
    """
    from trapline.refresh.trace_dealt import (
        dealt,
        round_of,
    )  # late: whoever has a trace has it, and a web that is only served does not

    if not speed > 0:
        raise ConfigError(f"changes: a speed of {speed:g}: it must be above 0")
    moments = dealt(trace, graph.pages, seed)
    offsets = np.cumsum([0, *map(len, moments)]).astype(np.int64)
    at_s = np.concatenate(moments) / speed
    changes = Changes(
        offsets=array("q", offsets.tobytes()),
        at_s=array("d", at_s.tobytes()),
        round_s=round_of(trace, speed),
        born_s=array("d", bytes(8 * graph.pages)),
        noise=noise,
    )
    if grows == 0:
        return changes
    return replace(changes, born_s=array("d", births(graph, offsets, at_s, changes.round_s, grows, seed).tobytes()))
