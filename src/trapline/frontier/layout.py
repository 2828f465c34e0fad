"""The frontier's memory: a tuple of eleven arrays, and the meaning of each field.

Rules of this file
- The page state is an array of its own, apart from the page record, because for most links the state is all that is read.
- Records are np.record, so that a field is written `site.ready_at` in compiled and in plain Python code.
- Kernels never allocate. They answer NEED_ROOM, Python grows the arrays (`Core.run_kernel`), and the kernel is called again.
- Ids are int32. The limits of one partition are 2^31 pages, sites, serials and pool entries.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trapline.compiled.array_handles import Pinned, recaller
from trapline.compiled.jit import type_of

# Page states. The order matters: the rank of a page in a state below FETCHED may still change.
UNKNOWN, WAITING, LEASED, FETCHED, GONE = range(5)
# Results of a page in a visit, besides FETCHED.
FAILED, REFUSED = 5, 6
# A further page state: fetched before, and leased by a visit that fetches it again. Its number is different from those of the results.
REVISITED = 7
# Kinds of site queue.
FIFO, HEAP, NEXT_VISIT = range(3)
# Bits that say which values of a queue changed, and which values a site rank reads.
READS_WAITING, READS_BEST, READS_PLANNED, READS_SUM, READS_OLDEST = 1, 2, 4, 8, 16
# Places of a site (`site.place`, `site.backlog`) and of a group (`group.place`: OUT, COMPETES or DELAYED). COMPETES: among the ready sites
# of its group, the open backlogs or the ready groups. DELAYED: its delay has not passed.
OUT, COMPETES, DELAYED, UNRESOLVED = range(4)
# Why a site is delayed (`site.delay_rule`): its delay, a back-off, or a time that the server (Retry-After) or the driver gave.
BY_DELAY, BY_BACKOFF, BY_ORDER = range(3)
# Rows of FrontierState.heap. core/visits.py maintains EXPIRING, core/batch.py maintains BACKLOGS, core/ready_sites.py maintains the others.
READY, DELAYED_GROUPS, DELAYED_SITES, BACKLOGS, EXPIRING = range(5)
# Answers of kernels; 0 and more are counts.
DRAINED, WAIT, NEED_ROOM, ENDED, RESCORE = -1, -2, -3, -4, -5
# Faults that a kernel records in run.fault and Python raises.
PAGE_RANK_FAULT, SITE_RANK_FAULT, PAGE_FAULT, REVISIT_FAULT = 1, 2, 3, 4
# A link to a page of another partition: it counts as a link of its page, and leads to no page here.
ELSEWHERE = -1
QUALITY_UNKNOWN = -1.0  # in the input `fetched_quality`: the page was not fetched, or its quality is not known yet
AS_RULES = -1  # in place of a site's own delay, k or budget: the site has none, and the common rules apply
# Bits of page.marks (not `flags`, which is an attribute of numpy's own).
DYNAMIC, CHOSEN = 1, 2

LEVELS_PLAIN, LEVELS_BATCH = 1, 2
FRONT, BACKLOG = 0, 1
MOST_PER_VISIT = 1000
MOST_SERIAL = 2**31 - 2**20  # limit of serials and of turns: a call that begins below it cannot exceed int32
DEEPEST = 32767
FREE_LISTS = 48  # the first entries of the pool are the heads of the free lists, indexed by log2 of the block size
# So that the 1,000 ranks of a visit, each doubled by ten failed tries, fit the whole part of the exact sum.
RANK_LIMIT = 2.0**42

Array = npt.NDArray[Any]
Record = Any  # one row of a record array: its fields are attributes, compiled or not


def record(fields: list[tuple[str, str]]) -> np.dtype[Any]:
    """Return an aligned np.record type with these fields."""
    hidden = [name for name, _ in fields if hasattr(np.record, name)]
    assert not hidden, f"these field names are attributes of np.record: {hidden}; choose other names"
    return np.dtype((np.record, np.dtype(fields, align=True)))


# An entry of any heap: largest key first, then smallest serial. `id` is the id of a page, site or group, or the slot of a visit.
ENTRY = record([("key", "f8"), ("serial", "i4"), ("id", "i4")])

PAGE = record(
    [
        ("serial", "i4"),
        ("site", "i4"),
        ("pos", "i4"),  # position in its heap or visit; in a fifo queue the id of the next page
        ("depth", "i2"),
        ("tries", "u1"),
        ("marks", "u1"),
    ]
)

SITE = record(
    [
        ("ready_at", "f8"),
        ("connection_s", "f8"),
        ("response_s", "f8"),
        ("delay_s", "f8"),  # the site's own delay; NaN: the rules apply
        ("group", "i4"),
        ("pos", "i4"),  # position in its group's heap or in DELAYED_SITES
        ("place", "i4"),
        ("visit", "i4"),  # slot of the visit under way, or -1
        ("known", "i4"),  # number of discovered pages
        ("taken", "i4"),  # number of pages LEASED, FETCHED or REVISITED
        ("budget", "i4"),  # the site's own limit of `taken`; AS_RULES: none
        ("per_connection", "i4"),  # the site's own k; AS_RULES: none
        ("requests", "i4"),  # requests per connection that the server announced or was seen to allow
        ("failures", "i4"),  # number of failed visits in a row
        ("delay_rule", "i4"),  # BY_*: the source of ready_at, for explain.py
        ("connections", "i4"),  # number of measurements in connection_s
        ("responses", "i4"),  # number of measurements in response_s
        ("backlog", "i4"),  # place of the backlog
        ("backlog_pos", "i4"),  # position in BACKLOGS
        ("turn", "i4"),  # running number that the site took when it was last placed with pages to fetch
    ]
)

QUEUE = record(
    [
        ("best_key", "f8"),
        ("waiting", "i4"),
        ("best_serial", "i4"),
        ("planned", "i4"),  # number of pages of the next visit: min(limit, waiting)
        ("limit", "i4"),  # P, the largest number of pages that a visit may take
        # Block of the heap in the pool; in a next-visit queue the heap of the pages after the next visit
        ("block", "i4"),
        ("log2", "i4"),  # log2 of the block's size; -1: no block
        ("head", "i4"),  # first and last page of a fifo queue
        ("tail", "i4"),
        ("next_block", "i4"),  # block of the next visit, worst page first
        ("next_log2", "i4"),
        ("quality_sum", "f8"),  # sum of the keys of the next visit
        ("whole", "i8"),  # the same sum, exact: whole + fraction * 2^-62
        ("fraction", "i8"),
        ("oldest_serial", "i4"),  # smallest serial of the waiting pages, if the site rank reads it
        # Block of the heap by serial, which exists if the order by rank does not give the oldest page
        ("age_block", "i4"),
        ("age_log2", "i4"),
    ]
)

GROUP = record(
    [
        ("ready_at", "f8"),
        ("block", "i4"),
        ("log2", "i4"),
        ("members", "i4"),  # number of its ready sites
        ("pos", "i4"),  # position in READY or DELAYED_GROUPS
        ("place", "i4"),
        ("visit", "i4"),  # slot of the visit under way, or -1
    ]
)

VISIT = record(
    [
        ("id", "i8"),
        ("expires_at", "f8"),
        ("site", "i4"),
        ("block", "i4"),  # block of the leased pages, best first
        ("log2", "i4"),
        ("pages", "i4"),  # number of leased pages
        ("pos", "i4"),  # position in EXPIRING
        ("failed", "i4"),  # number of failed pages, plus 1 if the site failed
        ("fetched", "i4"),
        ("revisit", "i4"),  # 1: a revisit, which fetches fetched pages again
        ("free", "i4"),  # the next free slot, while this one is free
    ]
)

RUN = record(
    [
        ("now", "f8"),
        # rules
        ("delay_s", "f8"),
        ("ip_delay_s", "f8"),
        ("small_site_delay_s", "f8"),
        ("lease_s", "f8"),
        ("backoff_s", "f8"),
        ("backoff_most_s", "f8"),
        ("alpha", "f8"),
        ("pipeline_gain", "f8"),
        ("first_connection_s", "f8"),
        ("first_response_s", "f8"),
        ("small_site_pages", "i8"),
        ("per_connection", "i8"),
        ("retries", "i8"),
        ("pages_per_site", "i8"),
        ("depth_static", "i8"),
        ("depth_dynamic", "i8"),
        ("batch", "i8"),
        ("batch_ahead", "i8"),
        ("batch_least_active", "i8"),
        ("rescore", "i8"),
        ("median", "i8"),  # 1: the estimates are medians
        # the strategy
        ("page_rank", "i8"),
        ("site_rank", "i8"),
        ("queue", "i8"),
        ("reads", "i8"),
        ("constant", "i8"),
        ("scores", "i8"),  # 1: the page rank uses scores
        ("batched", "i8"),
        ("learns", "i8"),  # 1: the page rank learns from fetched pages (core/learning.py)
        ("ages", "i8"),  # 1: the queues keep a heap of their pages by serial too
        ("seed", "i8"),
        # totals for the means over measured sites
        ("connection_total", "f8"),
        ("response_total", "f8"),
        ("connection_sites", "i8"),
        ("response_sites", "i8"),
        # counters
        ("pages", "i8"),
        ("sites", "i8"),
        ("groups", "i8"),
        ("serial", "i8"),
        ("visits", "i8"),  # number of visits ever begun
        ("active", "i8"),  # number of visits under way
        ("revisits", "i8"),  # number of revisits under way
        ("free_visit", "i8"),  # first free slot of the visit table, or -1
        ("ready", "i8"),
        ("delayed_groups", "i8"),
        ("delayed_sites", "i8"),
        ("ready_sites", "i8"),
        ("unresolved", "i8"),
        ("open_backlogs", "i8"),
        ("chosen", "i8"),
        ("fetched", "i8"),  # number of pages FETCHED or REVISITED
        ("gone", "i8"),
        ("turns", "i8"),  # number of turns given to sites
        ("rescored", "i8"),  # number of times that scores were set
        ("scored", "i8"),  # number of pages fetched or gone when scores were last set
        ("rescore_at", "i8"),  # number of fetched pages at which scores are due again
        ("pool", "i8"),  # number of entries of the pool handed out
        ("reserve", "i8"),  # number of entries that must be free before a page may join a queue: see core/blocks.py
        # After NEED_ROOM: 1 + the index of the link, page or site to continue with; in `next` 1: a batch is being chosen
        ("resume", "i8"),
        ("fault", "i8"),
        ("fault_item", "i8"),  # page or site of the fault
    ]
)


class FrontierState(NamedTuple):
    """The whole state of the frontier. A snapshot consists of these arrays."""

    run: Array  # RUN[1]
    state: Array  # uint8[pages]
    page: Array  # PAGE[pages]
    columns: Array  # float64[pages, c]: inputs and measures of the page rank
    age: Array  # int32[pages], or [1] if unused: position in the heap by serial
    site: Array  # SITE[sites]
    queue: Array  # QUEUE[sites, levels]
    group: Array  # GROUP[groups]
    visit: Array  # VISIT[slots]
    pool: Array  # ENTRY: blocks of page heaps, site heaps and visits
    heap: Array  # ENTRY[5, items]: the heaps that exist once: READY, DELAYED_GROUPS, ...


class RankView(NamedTuple):
    """The part of the state that a rank sees. It is small, because a call by address copies it, and ranks are called for every link."""

    run: Array
    page: Array
    columns: Array


def allocate(pages: int, sites: int, groups: int, slots: int, pool: int, columns: int, levels: int) -> FrontierState:
    """Return zeroed arrays. The operating system provides their memory only when it is used."""
    items = max(sites, groups, slots)
    return FrontierState(
        run=np.zeros(1, RUN),
        state=np.zeros(pages, np.uint8),
        page=np.zeros(pages, PAGE),
        columns=np.zeros((pages, columns), np.float64),
        age=np.zeros(1, np.int32),
        site=np.zeros(sites, SITE),
        queue=np.zeros((sites, levels), QUEUE),
        group=np.zeros(groups, GROUP),
        visit=np.zeros(slots, VISIT),
        pool=np.zeros(pool, ENTRY),
        heap=np.zeros((5, items), ENTRY),
    )


def resized(array: Array, size: int, used: int) -> Array:
    """Return a copy with `size` rows that keeps the first `used` rows; the others are zero."""
    grown = np.zeros((size, *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown


_EXAMPLE = allocate(2, 2, 2, 2, 2, 1, 1)
DTYPES = {name: array.dtype for name, array in _EXAMPLE._asdict().items()}
StateType = Pinned(_EXAMPLE)
ViewType = type_of(RankView(_EXAMPLE.run, _EXAMPLE.page, _EXAMPLE.columns))
# Finds the state by the handle that Python passes to a kernel: see compiled/array_handles.py
recall = recaller(StateType)
Entries = type_of(_EXAMPLE.pool)
Positions = type_of(_EXAMPLE.page["pos"])
SiteRecord = type_of(_EXAMPLE.site).dtype
QueueRecord = type_of(_EXAMPLE.queue).dtype
Pages = type_of(np.zeros(1, np.int32))
Numbers = type_of(np.zeros(1, np.int64))
Times = type_of(np.zeros(1, np.float64))
