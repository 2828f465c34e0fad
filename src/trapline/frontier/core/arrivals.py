"""Incoming links: links from pages of other partitions to pages of this partition.

The linking page is unknown here. A stand-in takes its place: a row of the state that belongs to no page. The stand-in gets
the depth of the linking page. In the column that pages hand on (`PageRank.hands_on`) it gets the value of the linking page
divided by the number of its links. A page rank therefore sees a page with a single link. Laws: docs/frontier.md, W1 to W3.
"""

from typing import NamedTuple

import numpy as np

from trapline.compiled.jit import b1, f8, helper, i8, kernel
from trapline.errors import InvariantError
from trapline.frontier.core import blocks
from trapline.frontier.core.core import Core
from trapline.frontier.core.discovery import discover
from trapline.frontier.core.kernels import advance, are_registered
from trapline.frontier.journal import Call
from trapline.frontier.layout import DEEPEST, NEED_ROOM, Array, FrontierState, Pages, StateType, Times, recall

has_room = blocks.has_room


class Arrivals(NamedTuple):
    """Links from other partitions, grouped by the page that they lead to. The four columns have the same length."""

    pages: Array  # ids of pages of this partition
    links: Array  # number of links to the page
    shares: Array  # sum of the shares that these links hand on
    depths: Array  # least depth of the linking pages

    def numbers(self) -> Array:
        """Return all columns as one row, for the log of calls."""
        return np.concatenate([np.asarray(column, np.float64) for column in self])

    @classmethod
    def from_numbers(cls, row: Array) -> "Arrivals":
        """Return the arrivals that `numbers` made the row from."""
        pages, links, shares, depths = np.split(row, 4)
        return cls(pages.astype(np.int32), links.astype(np.int64), shares, depths)


def receive(frontier: Core, arrivals: Arrivals, now: float) -> None:
    """Discover the linked pages, once per link, and log the call."""
    _check(arrivals)
    frontier.make_room(pages=frontier.pages + 1)  # for the stand-in
    links = np.asarray(arrivals.links, np.int64)
    each = np.asarray(arrivals.shares, np.float64) / links
    columns = (np.asarray(arrivals.pages, np.int32), each, np.asarray(arrivals.depths, np.float64))
    pages, shares, depths = (np.repeat(column, links) for column in columns)
    frontier.run_kernel(receive_links, pages, shares, depths, frontier.strategy.page.handed_on, now)
    row = arrivals.numbers()
    frontier.note(Call.RECEIVE, row, len(row), now)


def _check(arrivals: Arrivals) -> None:
    if len({len(column) for column in arrivals}) != 1:
        lengths = ", ".join(str(len(column)) for column in arrivals)
        raise InvariantError(f"receive: the columns have {lengths} values; give all of them the same length")
    if not len(arrivals.pages):
        return
    if np.min(arrivals.links) < 1 or not np.isfinite(arrivals.shares).all():
        raise InvariantError(
            "receive: a page has less than one link, or a share that is not finite; give 1 link or more, and finite shares"
        )
    if not 0 <= np.min(arrivals.depths) <= np.max(arrivals.depths) <= DEEPEST:
        raise InvariantError(f"receive: a depth is not in 0..{DEEPEST}; give the depth of the nearest linking page")


@helper(b1(StateType, Pages, i8, f8, f8, i8))
def receive_link(s: FrontierState, pages: Array, i: int, share: float, depth: float, column: int) -> bool:
    """Process one link to pages[i]. Return False if the pool must grow before the link can be processed."""
    stand_in = s.run[0].pages
    if not has_room(s):
        return False
    s.page[stand_in].depth = int(depth)
    if column >= 0:
        s.columns[stand_in, column] = share
    discover(s, stand_in, pages[i : i + 1], 1)
    s.page[stand_in].depth = 0
    if column >= 0:
        s.columns[stand_in, column] = 0.0
    return True


@kernel(i8(i8, Pages, Times, Times, i8, f8))
def receive_links(handle: int, pages: Array, shares: Array, depths: Array, column: int, now: float) -> int:
    """Process all links; return 0 or NEED_ROOM. An id that is not a registered page is a fault and changes nothing."""
    s: FrontierState = recall(handle)
    run = s.run[0]
    first = max(run.resume - 1, 0)
    if run.resume == 0 and not are_registered(s, pages, pages.size, 0):
        return 0
    advance(s, now)
    run.resume = 0
    for i in range(first, pages.size):
        if not receive_link(s, pages, i, shares[i], depths[i], column):
            run.resume = i + 1
            return NEED_ROOM
    return 0
