"""Links that pages of another partition have to pages of ours: what came of them there, told here.

A stand-in takes the place of the page that has the link: a row of the state that belongs to no page. It has the depth of
that page, and in the column that pages hand on (`PageRank.hands_on`) what it had divided by its links, so that ranks see the
only link of a page. Laws W*.
"""

from typing import NamedTuple

import numpy as np

from trapline.errors import InvariantError
from trapline.frontier import blocks
from trapline.frontier.core import Core
from trapline.frontier.discovery import discover
from trapline.frontier.journal import Call
from trapline.frontier.kernels import advance, are_registered
from trapline.frontier.layout import DEEPEST, NEED_ROOM, Array, Pages, State, StateType, Times, recall
from trapline.jit import b1, f8, helper, i8, kernel

has_room = blocks.has_room


class Arrivals(NamedTuple):
    """Links from elsewhere, those to one page together."""

    pages: Array  # our ids
    links: Array  # how many
    shares: Array  # what they handed on, all together
    depths: Array  # of the page that was nearest to a seed

    def numbers(self) -> Array:
        """As one row, for the log of calls."""
        return np.concatenate([np.asarray(column, np.float64) for column in self])

    @classmethod
    def from_numbers(cls, row: Array) -> "Arrivals":
        pages, links, shares, depths = np.split(row, 4)
        return cls(pages.astype(np.int32), links.astype(np.int64), shares, depths)


def receive(frontier: Core, arrivals: Arrivals, now: float) -> None:
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
        raise InvariantError(f"receive: columns of {', '.join(str(len(column)) for column in arrivals)} values")
    if not len(arrivals.pages):
        return
    if np.min(arrivals.links) < 1 or not np.isfinite(arrivals.shares).all():
        raise InvariantError("receive: a page with less than one link, or a share that is no number")
    if not 0 <= np.min(arrivals.depths) <= np.max(arrivals.depths) <= DEEPEST:
        raise InvariantError(f"receive: a depth that is not in 0..{DEEPEST}")


@helper(b1(StateType, Pages, i8, f8, f8, i8))
def receive_link(s: State, pages: Array, i: int, share: float, depth: float, column: int) -> bool:
    """One link to pages[i]. False: the pool must grow, then again."""
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
    """0 or NEED_ROOM. A page that is none is a fault and changes nothing."""
    s: State = recall(handle)
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
