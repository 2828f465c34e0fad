"""The memory of refresh: arrays of the evidence about pages and of their places in the queues.

Rules of this file
- A policy sees `PolicyView` only: what the crawler itself observed (accesses, signals, published points, its own crawls).
  What is true of a page and was not observed is in `refresh/replay/truth.py`, which no policy gets.
- Records are np.record, so that a field is written `page.crawled_s` in compiled and in plain Python code.
- Kernels never allocate. Python does: once in a replay (`allocate`), as it grows in a live crawl (refresh/live/memory.py).
- Fields that only a live crawl needs are here too, so that live crawl and replay share one layout and one set of kernels.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trapline.compiled.array_handles import Pinned, narrower, recaller
from trapline.compiled.jit import type_of
from trapline.frontier.layout import ENTRY, record

Array = npt.NDArray[Any]

# Levels of providers. A normal one sends nothing, a smart one signals updates that happened, a super one also publishes future updates.
NORMAL, SMART, SUPER = range(3)
LEVELS = ("normal", "smart", "super")
# Places of a page. WAITS: waits for a time. HOT: evaluated at every decision. PARKED: only in the queue of its site. CHOSEN: chosen, and
# its result is not known yet. AWAY: out of the queues until its wait after a failure is over.
WAITS, HOT, PARKED, CHOSEN, AWAY = range(5)
# Bits of page.marks. AUDITED: its signal is followed to test whether a struck-out channel has become true. ONE_POINT, MORE_POINTS: one
# or several points have passed since the last crawl. PROMISED: a point that counts lies ahead.
AUDITED, ONE_POINT, MORE_POINTS, PROMISED = 1, 2, 4, 8
# Places of a site (OPEN and SHUT: rows of RefreshState.sites). OPEN: as far as is known, it may be visited. SHUT: it may not. IDLE: it
# has no page to crawl.
OPEN, SHUT, IDLE = range(3)

ACCESS_CLASSES = 65  # classes of pages by their number of accesses; the last class has all pages with 64 or more
GRID = 32  # number of rates that evidence.py distinguishes
BEST = 32  # number of values kept to find the floor
BINS = 48  # number of bins for gaps between updates: refresh/policies/gaps.py
# Upper limit of all beliefs, even in signals and points that were always right: values divide by the remainder.
CERTAIN = 0.9999
# A signal or point of at most this probability is never believed more, and alone it does not change the level of a page. In single
# precision, as in the record of a point, 0.05 is a little more than 0.05.
UNVERIFIED = float(np.float32(0.05))

PAGE = record(  # the fields that values are computed from come first: 64 bytes
    [
        ("crawled_s", "f8"),  # time of the last crawl
        ("first_signal_s", "f8"),  # time of the first signal since the last crawl, if there is one
        ("last_signal_s", "f8"),  # time of the last signal; 0 if there was none
        ("accesses", "i4"),
        ("signals", "i4"),  # number of signals since the last crawl
        ("all_signals", "i4"),
        ("trust", "i4"),  # row of PolicyView.trust that its signals come from
        ("joined", "i4"),  # time of the first fetch, in whole seconds: crawls cover the time from then to `crawled_s`
        ("point", "i4"),  # index of the next published point in PolicyView.point
        ("point_end", "i4"),  # index after its last point
        ("site", "i4"),  # site whose queue it is in; a replay has one site
        ("value_pos", "i4"),  # position in the queue of its site
        ("level", "u1"),
        ("place", "u1"),
        ("marks", "u1"),
        ("failures", "u1"),  # number of failures since the last crawl
        ("hits", "i4"),  # number of accesses since the last crawl
        ("crawls", "i4"),
        ("changes", "i4"),  # number of crawls that found something new
        ("points", "i4"),  # number of published points that have passed
        # Position in the heap of waiting pages or in the list of hot pages; while AWAY the second of its return
        ("pos", "i4"),
        ("timer", "i4"),  # position in the heap of timers; -1: it has no timer
        ("id", "i4"),  # the frontier's page id
        ("quality", "f4"),  # replaces accesses while there are none
    ]
)

# A row of trust: for a channel of a site, for a channel at all sites, or for all (row 0). In a replay a site has one row.
TRUST = record(
    [
        ("prompted", "f8"),  # number of crawls after exactly one signal
        ("confirmed", "f8"),  # number of these crawls that found something new
        # Updates expected in the time covered by crawls without a signal, by the rate of true signals
        ("expected", "f8"),
        ("surprises", "f8"),  # number of these crawls that found something new
        ("promised", "f8"),  # sum of the probabilities of the points that passed
        ("kept", "f8"),  # number of these points that had a signal at their time
        ("signals", "f8"),  # number of signals of pages that publish points
        ("announced", "f8"),  # number of these signals that came at the time of a point
        ("beliefs", "f8"),  # number of crawls after signals
        ("believed", "f8"),  # sum over these crawls of the share of true signals that the policy believed in afterwards
        # Factor by which all these numbers are multiplied when an outcome is added; 1: nothing is forgotten
        ("keeps", "f8"),
        ("most", "f8"),  # upper limit of the precision
        ("received", "i8"),  # number of all signals, counted or ignored
        ("parent", "i4"),  # row that this row is shrunk to
        ("site", "i4"),  # -1: row of a channel, or of all
        ("channel", "i4"),
        ("unverified", "i4"),
    ]
)

# The queue of a site's pages, by their values at their last evaluation: a heap in a block of RefreshState.value.
SITE = record(
    [
        ("block", "i4"),
        ("log2", "i4"),  # log2 of the block's size; -1: no block yet
        ("members", "i4"),  # number of its pages, queued or not
        ("pages", "i4"),  # number of its queued pages
        ("pos", "i4"),
        ("looks", "i4"),  # number of random looks at its pages so far
        ("row", "i4"),  # row of the trusted channel that signals its updates; 0: no channel does
        ("place", "i4"),
    ]
)

POINT = record([("at_s", "f8"), ("p", "f4"), ("row", "i4")])  # row: the publisher, in PolicyView.trust

RUN = record(
    [
        ("value", "i8"),  # addresses of the policy's functions; -1: it does not have the function
        ("on_access", "i8"),
        ("on_signal", "i8"),
        ("on_point", "i8"),
        ("on_crawl", "i8"),
        ("on_cycle", "i8"),
        ("on_revision", "i8"),
        ("still", "b1"),  # values change only with events
        ("uses_signals", "b1"),  # signals and points change values
        ("changed", "b1"),  # for on_crawl: whether this crawl found something new
        # For on_crawl: time since the page last changed, as its server states; infinity: it does not state it
        ("age_s", "f8"),
        ("slots_per_s", "f8"),
        ("cycle_s", "f8"),
        ("floor", "f8"),  # pages of this value or more are hot
        ("slots", "i8"),  # number of slots so far
        ("accesses", "i8"),
        ("signals", "i8"),
        ("crawls", "i8"),
        ("changes", "i8"),
        ("hot", "i8"),  # number of hot pages
        ("waiting", "i8"),  # number of waiting pages
        ("since_rebuild", "i8"),  # number of slots since the last rebuild
        ("since_raise", "i8"),  # number of slots since the floor was last raised
        ("since_revision", "i8"),  # number of slots since the last revision, plus signals if the policy uses them
        ("revision", "i8"),  # least number of slots and signals between two revisions; 0: there are no revisions
        ("growth", "f8"),  # and at least this share of all slots and signals so far
        ("next_popularity_update", "i8"),  # number of accesses at which evidence.py learns the popularity again
        ("open", "i8"),  # number of open sites
        ("shut", "i8"),  # number of shut sites
        ("pool", "i8"),  # number of entries of RefreshState.value handed out
        # in a live crawl only
        ("live", "b1"),
        ("started", "f8"),  # time 0 of the refresher, on the frontier's clock
        ("measures", "b1"),  # slots_per_s is measured
        ("now", "f8"),  # time of the last event
        ("price", "f8"),  # moving average of the values of the chosen pages
        ("quality", "f8"),  # sum over all pages
        ("half_life_s", "f8"),  # half-life of accesses; 0: none is forgotten
        ("halved_s", "f8"),  # when the counts of accesses were last halved
        ("forgotten_s", "f8"),  # beginning of the time that the counts of accesses cover
        ("window_s", "f8"),  # beginning of the window in which slots are counted
        ("window", "i8"),  # number of slots in the window
        ("cycle", "i8"),  # the next cycle to begin
        ("timers", "i8"),
        ("point_pool", "i8"),  # number of entries of RefreshState.point in use or passed
        ("rows", "i8"),  # number of rows of trust
        ("settled_pages", "i8"),  # number of pages when all values were last computed
        ("share", "f8"),  # `revision` as a share of the number of pages
    ]
)


class PolicyView(NamedTuple):
    """The part of the state that a policy sees."""

    run: Array  # RUN[1]
    page: Array  # PAGE[pages]
    columns: Array  # f8[pages, the policy's own numbers]
    trust: Array  # TRUST[rows]: row 0 is for all
    point: Array  # POINT: published points; those of a page are contiguous and sorted by time
    option: Array  # f8: the policy's options, in their order
    popular: (
        Array  # f8[2, ACCESS_CLASSES]: number of pages by their accesses; expected accesses per second of such a page
    )
    gaps: Array  # f8[6, BINS]: see refresh/policies/gaps.py
    totals: Array  # f8[16]: numbers of the policy that belong to no page


class RefreshState(NamedTuple):
    """The whole state: the policy's view, and the queues."""

    run: Array
    page: Array
    columns: Array
    trust: Array
    point: Array
    option: Array
    popular: Array
    gaps: Array
    totals: Array
    waiting: Array  # ENTRY[pages]: heap of pages by the time they wait for, earliest first; unused if values are still
    hot: Array  # i4[pages]
    value: Array  # ENTRY: the queues of all sites, in blocks
    free: Array  # i4[32]: the first free block of `value` of each size
    site: Array  # SITE[sites]
    sites: Array  # ENTRY[2, sites]: heap of the open sites by their best page; heap of the shut sites by when they open
    timer: Array  # ENTRY: heap of pages by their next point or return, earliest first
    best: Array  # f8[BEST]
    guess: Array  # f8[ACCESS_CLASSES, GRID]: scratch space of evidence.py; its last row holds the shares of the rates


class Sizes(NamedTuple):
    """Sizes of the arrays: how many items of each kind there is room for."""

    pages: int
    columns: int
    options: int
    rows: int = 1
    points: int = 1
    sites: int = 1
    timers: int = 1
    queued: int = 1  # pages that wait or are hot; not needed if values are still
    blocks: int = 1  # entries of the queues of all sites


def allocate(size: Sizes) -> RefreshState:
    """Return new arrays, most of them zeroed. The operating system provides the memory of zeroed arrays only when it is used."""
    state = RefreshState(
        run=np.zeros(1, RUN),
        page=np.zeros(size.pages, PAGE),
        columns=np.zeros((size.pages, size.columns), np.float64),
        trust=np.zeros(size.rows, TRUST),
        point=np.zeros(size.points, POINT),
        option=np.zeros(size.options, np.float64),
        popular=np.zeros((2, ACCESS_CLASSES), np.float64),
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
        guess=np.full((ACCESS_CLASSES, GRID), 1.0 / GRID),
    )
    state.trust["keeps"], state.trust["most"] = 1.0, CERTAIN
    return state


_EXAMPLE = allocate(Sizes(2, 1, 1))
DTYPES = {name: array.dtype for name, array in _EXAMPLE._asdict().items()}
StateType, ViewType = Pinned(_EXAMPLE), Pinned(PolicyView(*_EXAMPLE[: len(PolicyView._fields)]))
view_of = narrower(StateType, ViewType)
# Finds the state by the handle that Python passes to a kernel: see compiled/array_handles.py
recall = recaller(StateType)
Values = type_of(_EXAMPLE.best)
