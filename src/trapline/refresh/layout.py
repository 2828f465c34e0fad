"""The memory of refresh: what is known of pages, and where each stands in the queue. Arrays only.

Rules of this file
- `View` is all that a policy sees: what the crawler itself saw (accesses, signals, published points, its own crawls). What is
  true of a page but was not seen is in `replay_layout.py`, which no policy is ever given.
- Records are np.record, so that a field reads `page.crawled_s` in compiled and in plain Python alike.
- Kernels never allocate; Python does, once (`allocate`).
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trapline.frontier.layout import ENTRY, record
from trapline.jit import type_of

Array = npt.NDArray[Any]

# What a provider tells: nothing, updates that happened, or also updates that will.
NORMAL, SMART, SUPER = range(3)
LEVELS = ("normal", "smart", "super")
# Where a page stands: among those worth a look at every decision, or waiting for a moment.
WAITS, HOT = range(2)

CENSUS = 65  # pages are counted by their accesses, those with more than 63 together
GRID = 32  # rates that popularity.py distinguishes
BEST = 32  # values kept to find the floor
CLASSES, BINS = 8, 48  # of gaps between updates: gaps.py

PAGE = record(
    [
        ("crawled_s", "f8"),  # the last crawl
        ("first_signal_s", "f8"),  # of the signals since then, if there are any
        ("last_signal_s", "f8"),  # of all signals; 0 if there was none
        ("watched_s", "f8"),  # between the first crawl and the last
        ("accesses", "i4"),
        ("hits", "i4"),  # accesses since the last crawl
        ("crawls", "i4"),
        ("changes", "i4"),  # crawls that found something new
        ("signals", "i4"),  # since the last crawl
        ("all_signals", "i4"),
        ("point", "i4"),  # the next published point, in View.point
        ("point_end", "i4"),  # behind its last one
        ("points", "i4"),  # how many of them have passed
        ("site", "i4"),
        ("pos", "i4"),  # in the heap of waiting pages or the list of hot ones
        ("value_pos", "i4"),  # in the heap of values
        ("level", "u1"),
        ("changed", "u1"),  # whether the last crawl found something new
        ("place", "u1"),
    ]
)

SITE = record(
    [
        ("prompted", "f8"),  # crawls after exactly one signal,
        ("confirmed", "f8"),  # and those of them that found something new
        ("unprompted_s", "f8"),  # time covered by crawls without any signal
        ("expected", "f8"),  # updates expected in that time, by the rate of signals
        ("surprises", "f8"),  # those of these crawls that found something new all the same
        ("promised", "f8"),  # the probabilities of the points that passed, added up,
        ("kept", "f8"),  # and how many of these points had a signal at their time
        ("signals", "f8"),  # of pages that publish points,
        ("announced", "f8"),  # and those of them that came at the time of a point
    ]
)

POINT = record([("at_s", "f8"), ("p", "f4")])

RUN = record(
    [
        ("value", "i8"),  # addresses of the policy's functions; -1: it has none
        ("on_access", "i8"),
        ("on_signal", "i8"),
        ("on_point", "i8"),
        ("on_crawl", "i8"),
        ("on_cycle", "i8"),
        ("on_revision", "i8"),
        ("still", "b1"),  # values change by events alone
        ("changed", "b1"),  # for on_crawl: whether this crawl found something new
        ("slots_per_s", "f8"),
        ("cycle_s", "f8"),
        ("floor", "f8"),  # pages of this value or more are hot
        ("slots", "i8"),  # so far
        ("accesses", "i8"),
        ("signals", "i8"),
        ("crawls", "i8"),
        ("changes", "i8"),
        ("hot", "i8"),  # how many
        ("waiting", "i8"),
        ("since_rebuild", "i8"),  # slots
        ("since_raise", "i8"),
        ("since_revision", "i8"),  # slots and signals
        ("revision", "i8"),  # at least so many between two revisions; 0: there are none
        ("growth", "f8"),  # and at least this share of all so far
        ("next_census", "i8"),  # accesses at which popularity.py looks again
    ]
)


class View(NamedTuple):
    """What a policy sees."""

    run: Array  # RUN[1]
    page: Array  # PAGE[pages]
    columns: Array  # f8[pages, the policy's own numbers]
    site: Array  # SITE[sites + 1]: the last is all of them together
    point: Array  # POINT: what providers published, by page and time
    option: Array  # f8: the policy's options, in their order
    popular: Array  # f8[2, CENSUS]: pages by their accesses; accesses per second to be expected of such a page
    gaps: Array  # f8[6, CLASSES + 1, BINS]: what policies/gaps.py learned
    totals: Array  # f8[16]: numbers of the policy that belong to no page


class State(NamedTuple):
    """All of it: the view, and the queue."""

    run: Array
    page: Array
    columns: Array
    site: Array
    point: Array
    option: Array
    popular: Array
    gaps: Array
    totals: Array
    waiting: Array  # ENTRY[pages]: heap, earliest first; or by value, if values are still
    hot: Array  # i4[pages]
    value: Array  # ENTRY[pages]: heap of all pages, by their value when they were last looked at
    best: Array  # f8[BEST]
    guess: Array  # f8[CENSUS, GRID]: scratch of popularity.py; its last row holds the shares of rates


def allocate(pages: int, sites: int, points: int, columns: int, options: int) -> State:
    return State(
        run=np.zeros(1, RUN),
        page=np.zeros(pages, PAGE),
        columns=np.zeros((pages, columns), np.float64),
        site=np.zeros(sites + 1, SITE),
        point=np.zeros(points, POINT),
        option=np.zeros(options, np.float64),
        popular=np.zeros((2, CENSUS), np.float64),
        gaps=np.ones((6, CLASSES + 1, BINS), np.float64),
        totals=np.zeros(16, np.float64),
        waiting=np.zeros(pages, ENTRY),
        hot=np.zeros(pages, np.int32),
        value=np.zeros(pages, ENTRY),
        best=np.zeros(BEST, np.float64),
        guess=np.full((CENSUS, GRID), 1.0 / GRID),
    )


_EXAMPLE = allocate(2, 2, 2, 1, 1)
StateType = type_of(_EXAMPLE)
ViewType = type_of(View(*_EXAMPLE[:9]))
Values = type_of(_EXAMPLE.best)
