"""The memory of refresh: what is known of pages, and where each stands in the queue. Arrays only.

Rules of this file
- `View` is all that a policy sees: what the crawler itself saw (accesses, signals, published points, its own crawls). What is
  true of a page but was not seen is in `truth.py`, which no policy is ever given.
- Records are np.record, so that a field reads `page.crawled_s` in compiled and in plain Python alike.
- Kernels never allocate; Python does: a replay once (`allocate`), a live crawl as it grows (memory.py).
- Whatever a page needs only in a live crawl has its place here too, so that both have one layout and one set of kernels.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trapline.frontier.layout import ENTRY, record
from trapline.jit import type_of
from trapline.pinned import Pinned, narrower, recaller

Array = npt.NDArray[Any]

# What a provider tells: nothing, updates that happened, or also updates that will.
NORMAL, SMART, SUPER = range(3)
LEVELS = ("normal", "smart", "super")
# Where a page stands: waiting for a moment; among those looked at at every decision; in the queue of its site alone; chosen, and not
# heard of yet; out until its wait after a failure is over.
WAITS, HOT, PARKED, CHOSEN, AWAY = range(5)
# Bits of page.marks: its signal is followed to see whether its channel tells the truth again; one point passed since the last crawl, or
# more; a point that counts lies ahead.
AUDITED, ONE_POINT, MORE_POINTS, PROMISED = 1, 2, 4, 8
# Where a site stands (rows of State.sites): it may be visited as far as is known; it may not; it has nothing to visit.
OPEN, SHUT, IDLE = range(3)

CENSUS = 65  # pages are counted by their accesses, those with more than 63 together
GRID = 32  # rates that popularity.py distinguishes
BEST = 32  # values kept to find the floor
BINS = 48  # of gaps between updates: gaps.py
# More than this nothing is believed, not even signals and points that were always right: values divide by what is left.
CERTAIN = 0.9999
# A signal or point of this probability or less is never believed more, and alone it changes no page's level. As points have it: in
# single precision 0.05 is a little more.
UNVERIFIED = float(np.float32(0.05))

PAGE = record(  # what values are made of comes first: 64 bytes
    [
        ("crawled_s", "f8"),  # the last crawl
        ("first_signal_s", "f8"),  # of the signals since then, if there are any
        ("last_signal_s", "f8"),  # of all signals; 0 if there was none
        ("accesses", "i4"),
        ("signals", "i4"),  # since the last crawl
        ("all_signals", "i4"),
        ("trust", "i4"),  # whom its signals are from, in View.trust
        ("joined", "i4"),  # the second of its first fetch: crawls have watched it from then to `crawled_s`
        ("point", "i4"),  # the next published point, in View.point
        ("point_end", "i4"),  # behind its last one
        ("site", "i4"),  # whose queue it is in: of a replay there is one for all
        ("value_pos", "i4"),  # in the queue of its site
        ("level", "u1"),
        ("place", "u1"),
        ("marks", "u1"),
        ("failures", "u1"),  # since the last crawl
        ("hits", "i4"),  # accesses since the last crawl
        ("crawls", "i4"),
        ("changes", "i4"),  # crawls that found something new
        ("points", "i4"),  # how many published points have passed
        ("pos", "i4"),  # in the heap of waiting pages or the list of hot ones; while AWAY the second of its return
        ("timer", "i4"),  # in the heap of timers; -1: it has none
        ("id", "i4"),  # the frontier's number
        ("quality", "f4"),  # stands in for accesses where there are none
    ]
)

# Of a site and a channel, of a channel, or of all of them together (row 0). In a replay a site has one row.
TRUST = record(
    [
        ("prompted", "f8"),  # crawls after exactly one signal,
        ("confirmed", "f8"),  # and those of them that found something new
        (
            "expected",
            "f8",
        ),  # updates expected in the time covered by crawls without any signal, by the rate of true signals
        ("surprises", "f8"),  # those of these crawls that found something new all the same
        ("promised", "f8"),  # the probabilities of the points that passed, added up,
        ("kept", "f8"),  # and how many of these points had a signal at their time
        ("signals", "f8"),  # of pages that publish points,
        ("announced", "f8"),  # and those of them that came at the time of a point
        ("beliefs", "f8"),  # crawls after signals,
        ("believed", "f8"),  # and what a policy believed of the signals' truth after them, added up
        (
            "keeps",
            "f8",
        ),  # what is left of all these numbers when one more outcome is added to them; 1: nothing is forgotten
        ("most", "f8"),  # more than this a signal is not believed
        ("heard", "i8"),  # signals, whatever became of them
        ("parent", "i4"),  # the row it is shrunk to
        ("site", "i4"),  # -1: of a channel, or of all
        ("channel", "i4"),
        ("unverified", "i4"),
    ]
)

# The queue of a site's pages, by their value when they were last looked at: a heap in a block of State.value.
SITE = record(
    [
        ("block", "i4"),
        ("log2", "i4"),  # of the block's size; -1: none yet
        ("members", "i4"),  # its pages, queued or not
        ("pages", "i4"),  # those in the queue
        ("pos", "i4"),
        ("looks", "i4"),  # at its pages by chance, so far
        ("row", "i4"),  # of the channel that tells its updates; 0: none does
        ("place", "i4"),
    ]
)

POINT = record([("at_s", "f8"), ("p", "f4"), ("row", "i4")])  # row: who said it, in View.trust

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
        ("hears", "b1"),  # values change by what providers tell
        ("changed", "b1"),  # for on_crawl: whether this crawl found something new
        ("age_s", "f8"),  # and how long before it the page last changed, as its server says; infinity: it does not say
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
        ("since_revision", "i8"),  # slots, and signals if they are heard
        ("revision", "i8"),  # at least so many between two revisions; 0: there are none
        ("growth", "f8"),  # and at least this share of all so far
        ("next_census", "i8"),  # accesses at which popularity.py looks again
        ("open", "i8"),  # sites
        ("shut", "i8"),
        ("pool", "i8"),  # entries of State.value handed out
        # of a live crawl only
        ("live", "b1"),
        ("started", "f8"),  # on the frontier's clock: our moment 0
        ("measures", "b1"),  # slots_per_s is what was measured
        ("now", "f8"),  # the last moment heard of
        ("price", "f8"),  # what a slot was worth, recently
        ("quality", "f8"),  # of all pages together
        ("half_life_s", "f8"),  # of accesses; 0: none is forgotten
        ("halved_s", "f8"),  # when their counts were last halved
        ("forgotten_s", "f8"),  # the counts of accesses are as of a time that began so late
        ("window_s", "f8"),  # the beginning of the time in which slots are counted,
        ("window", "i8"),  # and how many there were
        ("cycle", "i8"),  # the next to begin
        ("timers", "i8"),
        ("point_pool", "i8"),  # entries of State.point in use or passed
        ("rows", "i8"),  # of trust
        ("settled_pages", "i8"),  # how many there were when all values were last computed
        ("share", "f8"),  # of the pages: `revision` follows them
    ]
)


class View(NamedTuple):
    """What a policy sees."""

    run: Array  # RUN[1]
    page: Array  # PAGE[pages]
    columns: Array  # f8[pages, the policy's own numbers]
    trust: Array  # TRUST[rows]: the first is all of them together
    point: Array  # POINT: what providers published; the points of a page lie together, by time
    option: Array  # f8: the policy's options, in their order
    popular: Array  # f8[2, CENSUS]: pages by their accesses; accesses per second to be expected of such a page
    gaps: Array  # f8[6, BINS]: what policies/gaps.py learned
    totals: Array  # f8[16]: numbers of the policy that belong to no page


class State(NamedTuple):
    """All of it: the view, and the queue."""

    run: Array
    page: Array
    columns: Array
    trust: Array
    point: Array
    option: Array
    popular: Array
    gaps: Array
    totals: Array
    waiting: (
        Array  # ENTRY[pages]: heap of pages by the moment they wait for, earliest first; unused if values are still
    )
    hot: Array  # i4[pages]
    value: Array  # ENTRY: the queues of all sites, in blocks
    free: Array  # i4[32]: the first free block of State.value of each size
    site: Array  # SITE[sites]
    sites: Array  # ENTRY[2, sites]: heaps of the open sites by their first page, and of the shut ones by when they open
    timer: Array  # ENTRY: heap of pages by their next point or return, earliest first
    best: Array  # f8[BEST]
    guess: Array  # f8[CENSUS, GRID]: scratch of popularity.py; its last row holds the shares of rates


class Sizes(NamedTuple):
    """How many of each there is room for."""

    pages: int
    columns: int
    options: int
    rows: int = 1
    points: int = 1
    sites: int = 1
    timers: int = 1
    queued: int = 1  # pages that wait or are hot: none if values are still
    blocks: int = 1  # entries of the queues


def allocate(size: Sizes) -> State:
    """Zeroed arrays; the memory is touched (and so taken) only as it is used."""
    state = State(
        run=np.zeros(1, RUN),
        page=np.zeros(size.pages, PAGE),
        columns=np.zeros((size.pages, size.columns), np.float64),
        trust=np.zeros(size.rows, TRUST),
        point=np.zeros(size.points, POINT),
        option=np.zeros(size.options, np.float64),
        popular=np.zeros((2, CENSUS), np.float64),
        gaps=np.ones((6, BINS), np.float64),
        totals=np.zeros(16, np.float64),
        waiting=np.zeros(size.queued, ENTRY),
        hot=np.zeros(size.queued, np.int32),
        value=np.zeros(size.blocks, ENTRY),
        free=np.full(32, -1, np.int32),
        site=np.zeros(size.sites, SITE),
        sites=np.zeros((2, size.sites), ENTRY),
        timer=np.zeros(size.timers, ENTRY),
        best=np.zeros(BEST, np.float64),
        guess=np.full((CENSUS, GRID), 1.0 / GRID),
    )
    state.trust["keeps"], state.trust["most"] = 1.0, CERTAIN
    return state


_EXAMPLE = allocate(Sizes(2, 1, 1))
DTYPES = {name: array.dtype for name, array in _EXAMPLE._asdict().items()}
StateType, ViewType = Pinned(_EXAMPLE), Pinned(View(*_EXAMPLE[: len(View._fields)]))
view_of = narrower(StateType, ViewType)
recall = recaller(StateType)  # kernels called from Python get a handle of the state: see pinned.py
Values = type_of(_EXAMPLE.best)
