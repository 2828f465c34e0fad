"""The frontier's memory: one tuple of eleven arrays, and what each field is for.

Rules of this file
- Page state is apart from the page record, because most links lead to pages that need no more than a look at it.
- Records are np.record, so that a field reads `site.ready_at` in compiled and in plain Python alike.
- Kernels never allocate. They answer NEED_ROOM, Python calls `grow`, and the kernel is called again.
- Ids are int32: 2^31 pages, sites, joinings and pool entries are the limits of one partition.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trapline.jit import type_of
from trapline.pinned import Pinned, recaller

# Page life. The order matters: whatever is below FETCHED may still change its rank.
UNKNOWN, WAITING, LEASED, FETCHED, GONE = range(5)
# What came of a page in a visit.
FAILED, REFUSED = 5, 6
# Page life again: had, and in a visit that fetches it again. Apart from the results, so that no number is both.
REVISITED = 7
# Kinds of site queue.
FIFO, HEAP, NEXT_VISIT = range(3)
# What of a queue changed, and what a site rank reads.
READS_WAITING, READS_BEST, READS_PLANNED, READS_SUM, READS_OLDEST = 1, 2, 4, 8, 16
# Where a site stands (`site.place`, `site.backlog`), and a group (`group.place`: OUT, CONTEST or RESTING).
OUT, CONTEST, RESTING, UNRESOLVED = range(4)
# Why a site rests (`site.rest_rule`).
BY_DELAY, BY_BACKOFF, BY_ORDER = range(3)
# Rows of State.heap. Who fills and empties each: contest.py, but EXPIRING visits.py and BACKLOGS batch.py.
READY, RESTING_GROUPS, RESTING_SITES, BACKLOGS, EXPIRING = range(5)
# Answers of kernels; 0 and more are counts.
DRAINED, WAIT, NEED_ROOM, ENDED, RESCORE = -1, -2, -3, -4, -5
# Faults that a kernel notes in run.fault and Python raises.
PAGE_RANK_FAULT, SITE_RANK_FAULT, PAGE_FAULT, REVISIT_FAULT = 1, 2, 3, 4
# A link that leads to another partition: it counts as a link of its page, and leads to no page here.
ELSEWHERE = -1
AS_RULES = -1  # instead of a site's own delay, k or budget: it has none, and the rules hold
# Bits of page.marks (numpy keeps the name `flags` for itself).
DYNAMIC, CHOSEN = 1, 2

LEVELS_PLAIN, LEVELS_BATCH = 1, 2
FRONT, BACKLOG = 0, 1
MOST_PER_VISIT = 1000
MOST_SERIAL = 2**31 - 2**20  # of joinings and of turns: a call that began below it cannot go beyond int32
DEEPEST = 32767
FREE_LISTS = 48  # the first entries of the pool hold the heads of the free lists, by log2 of the block's size
RANK_LIMIT = 2.0**42  # so that a visit's 1,000 ranks, doubled by ten failed tries, fit the whole part of the exact sum

Array = npt.NDArray[Any]
Record = Any  # one row of a record array: its fields are attributes, compiled or not


def record(fields: list[tuple[str, str]]) -> np.dtype[Any]:
    hidden = [name for name, _ in fields if hasattr(np.record, name)]
    assert not hidden, f"numpy has attributes of its own by these names: {hidden}"
    return np.dtype((np.record, np.dtype(fields, align=True)))


# An entry of any heap: largest key first, then smallest serial. `id` is that of a page, site, group or visit.
ENTRY = record([("key", "f8"), ("serial", "i4"), ("id", "i4")])

PAGE = record(
    [
        ("serial", "i4"),
        ("site", "i4"),
        ("pos", "i4"),  # place in its heap or visit; in a fifo queue the page after it
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
        ("delay_s", "f8"),  # its own; NaN: by the rules
        ("group", "i4"),
        ("pos", "i4"),  # in its group's heap or among the resting sites
        ("place", "i4"),
        ("visit", "i4"),  # slot of the visit under way, or -1
        ("known", "i4"),  # pages that are or were more than UNKNOWN
        ("taken", "i4"),  # pages LEASED, FETCHED or REVISITED
        ("budget", "i4"),  # its own limit of `taken`; AS_RULES: none
        ("per_connection", "i4"),  # its own k; AS_RULES: none
        ("requests", "i4"),  # requests per connection that the server was seen to allow
        ("failures", "i4"),  # visits in a row with a failed page
        ("rest_rule", "i4"),  # BY_*: what its ready_at comes from, for people who ask
        ("connections", "i4"),  # measurements behind connection_s
        ("responses", "i4"),
        ("backlog", "i4"),
        ("backlog_pos", "i4"),
        ("turn", "i4"),  # the number it took when it was last placed and competed
    ]
)

QUEUE = record(
    [
        ("best_key", "f8"),
        ("waiting", "i4"),
        ("best_serial", "i4"),
        ("planned", "i4"),  # pages of the next visit: min(limit, waiting)
        ("limit", "i4"),  # P, the most a visit may take
        ("block", "i4"),  # in the pool: the heap; of a next-visit queue the pages after the next visit
        ("log2", "i4"),  # of the block's size; -1: no block
        ("head", "i4"),  # fifo
        ("tail", "i4"),
        ("next_block", "i4"),  # the next visit, worst page first
        ("next_log2", "i4"),
        ("quality_sum", "f8"),
        ("whole", "i8"),  # the exact sum behind it: whole + fraction * 2^-62
        ("fraction", "i8"),
        ("oldest_serial", "i4"),  # the smallest serial that waits, if the site rank reads it
        ("age_block", "i4"),  # the waiting pages by serial, if their order by rank does not tell
        ("age_log2", "i4"),
    ]
)

GROUP = record(
    [
        ("ready_at", "f8"),
        ("block", "i4"),
        ("log2", "i4"),
        ("members", "i4"),  # its sites in the contest
        ("pos", "i4"),
        ("place", "i4"),
        ("visit", "i4"),
    ]
)

VISIT = record(
    [
        ("id", "i8"),
        ("expires_at", "f8"),
        ("site", "i4"),
        ("block", "i4"),  # the leased pages, best first, as entries of the pool
        ("log2", "i4"),
        ("pages", "i4"),
        ("pos", "i4"),
        ("failed", "i4"),
        ("fetched", "i4"),
        ("revisit", "i4"),  # 1: its pages were had before, and are fetched again
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
        ("median", "i8"),  # the estimates are medians
        # the strategy
        ("page_rank", "i8"),
        ("site_rank", "i8"),
        ("queue", "i8"),
        ("reads", "i8"),
        ("constant", "i8"),
        ("scores", "i8"),  # the page rank has scores
        ("batched", "i8"),
        ("ages", "i8"),  # the queues keep their pages by serial too
        ("seed", "i8"),
        # the means over measured sites
        ("connection_total", "f8"),
        ("response_total", "f8"),
        ("connection_sites", "i8"),
        ("response_sites", "i8"),
        # counters
        ("pages", "i8"),
        ("sites", "i8"),
        ("groups", "i8"),
        ("serial", "i8"),
        ("visits", "i8"),  # ever begun
        ("active", "i8"),  # under way
        ("revisits", "i8"),  # those of them that fetch pages again
        ("free_visit", "i8"),
        ("ready", "i8"),
        ("resting_groups", "i8"),
        ("resting_sites", "i8"),
        ("contest", "i8"),
        ("unresolved", "i8"),
        ("open_backlogs", "i8"),
        ("chosen", "i8"),
        ("fetched", "i8"),  # pages FETCHED or REVISITED
        ("gone", "i8"),
        ("turns", "i8"),  # given out
        ("rescored", "i8"),  # how often scores came
        ("scored", "i8"),  # pages fetched or gone when they last came
        ("rescore_at", "i8"),  # pages fetched when they are due again
        ("pool", "i8"),  # entries of the pool handed out
        ("reserve", "i8"),  # entries that must be free before a page may join: see blocks.py
        ("resume", "i8"),  # after NEED_ROOM: 1 + the link or page to go on with; 1: the batch is being chosen
        ("fault", "i8"),
        ("fault_item", "i8"),
    ]
)


class State(NamedTuple):
    """Everything the frontier knows. Snapshots are these arrays and nothing else."""

    run: Array  # RUN[1]
    state: Array  # uint8[pages]
    page: Array  # PAGE[pages]
    columns: Array  # float64[pages, c]: what the page rank keeps for itself
    age: Array  # int32[pages], or [1] if unused: place in the heap by serial
    site: Array  # SITE[sites]
    queue: Array  # QUEUE[sites, levels]
    group: Array  # GROUP[groups]
    visit: Array  # VISIT[slots]
    pool: Array  # ENTRY: blocks of page heaps, site heaps and visits
    heap: Array  # ENTRY[5, items]: the heaps of which there is one


class View(NamedTuple):
    """What a rank sees of the state: a call by address copies what it is given, and ranks are called for every link."""

    run: Array
    page: Array
    columns: Array


def allocate(pages: int, sites: int, groups: int, slots: int, pool: int, columns: int, levels: int) -> State:
    """Zeroed arrays; the memory is touched (and so taken) only as it is used."""
    items = max(sites, groups, slots)
    return State(
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
    """A copy with room for `size` rows, the first `used` of them kept."""
    grown = np.zeros((size, *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown


_EXAMPLE = allocate(2, 2, 2, 2, 2, 1, 1)
DTYPES = {name: array.dtype for name, array in _EXAMPLE._asdict().items()}
StateType = Pinned(_EXAMPLE)
ViewType = type_of(View(_EXAMPLE.run, _EXAMPLE.page, _EXAMPLE.columns))
recall = recaller(StateType)  # kernels called from Python get a handle of the state: see pinned.py
Entries = type_of(_EXAMPLE.pool)
Positions = type_of(_EXAMPLE.page["pos"])
SiteRecord = type_of(_EXAMPLE.site).dtype
QueueRecord = type_of(_EXAMPLE.queue).dtype
Pages = type_of(np.zeros(1, np.int32))
Numbers = type_of(np.zeros(1, np.int64))
Times = type_of(np.zeros(1, np.float64))
