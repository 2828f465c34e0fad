"""The compiled loop of a simulated parallel crawl: all partitions crawl one step, then exchange links, and so on.

The loop is one kernel. It returns to Python if a partition needs more memory, if Python wants to see the links that are
about to be sent, and from time to time, because Ctrl-C does not reach compiled code. Called again, it continues where it
stopped: `LOOP` records the phase of the step, and the partition and link that come next.

crawl.py defines what a step is. tests/naive/partitions.py is the same loop in plain Python.
"""

from typing import NamedTuple

import numpy as np

from trapline.compiled.array_handles import Pinned, recaller
from trapline.compiled.jit import b1, helper, i8, kernel, prefetch, type_of, void
from trapline.frontier.core.arrivals import receive_link
from trapline.frontier.core.discovery import discover, look_far
from trapline.frontier.core.kernels import advance
from trapline.frontier.layout import (
    DRAINED,
    FETCHED,
    NEED_ROOM,
    UNKNOWN,
    Array,
    FrontierState,
    Numbers,
    StateType,
    recall,
    record,
)
from trapline.parallel.simulated.url_exchange import (
    LRU,
    NOBODY,
    WAYS,
    OutboxArrays,
    OutboxType,
    PageOwners,
    add_link,
    empty_outbox,
    new_outbox,
)
from trapline.simulator.connections import SimulatedWorld, example_world
from trapline.simulator.driver import PAUSED, SLICE, crawl_on

# Answers of `run_partitions`, in addition to NEED_ROOM, DRAINED and PAUSED.
NEED_LOG, NEED_OUTBOX, SENDING, FAULT, GOAL = range(-20, -25, -1)
# Phases of a step: partitions crawl, collect links to pages of others, then take these pages over or send the links.
CHOOSE, CRAWL, COLLECT, TAKE, SEND = range(5)
# Values of `exchange`: what partitions exchange. With PAGES, they take over pages of others (cross-over mode).
NOTHING, PAGES, LINKS = range(3)
# Prefetch distances, in entries of an outbox.
FAR, NEAR = 12, 6

PARTITION = record(
    [
        ("next", "f8"),  # time of its next possible event; infinity: it waits for links of others
        ("idle", "i8"),
        ("busy", "i8"),  # it crawls in this step
        ("due", "i8"),  # it sends at the end of this step
        ("sent_at", "i8"),  # number of pages fetched when it last sent links
        ("collected", "i8"),  # rows of its log whose links are in the outbox
        ("crossed", "i8"),  # entries of its outbox that cross-over has examined
        ("addressed", "i8"),  # the last sending in which it got links
    ]
)

LOOP = record(
    [
        # settings
        ("step_s", "f8"),
        ("most", "i8"),  # number of pages after which the crawl ends
        ("exchange", "i8"),  # NOTHING, PAGES or LINKS
        ("every_pages", "i8"),
        ("crossing_pages", "i8"),
        ("column", "i8"),  # the column of the page rank that links hand on; -1: none
        ("show", "i8"),  # 1: return SENDING before a partition sends
        # progress
        ("phase", "i8"),
        ("end", "f8"),  # of the step
        ("at", "i8"),  # the partition that comes next in this phase
        ("entry", "i8"),  # the entry of its outbox that is sent next; in cross-over mode: the number of pages taken
        ("link", "i8"),  # the link of this entry that is sent next
        ("shown", "i8"),  # 1: Python has seen what this partition sends
        ("which", "i8"),  # the partition that the answer is about
        ("need", "i8"),  # number of links that need room in the outbox
        ("fetched", "i8"),
        ("steps", "i8"),  # steps of single partitions since the last return to Python
        ("pause_at", "i8"),  # number of fetched pages at which to return to Python
        # traffic
        ("urls", "i8"),
        ("messages", "i8"),
        ("exchanges", "i8"),
        ("sendings", "i8"),  # from 1: 0 marks a partition that was never addressed
        ("left", "i8"),  # 1: a link of this sending has left its partition
    ]
)


class PartitionState(NamedTuple):
    """The whole state of one partition, except its frontier."""

    world: SimulatedWorld
    outbox: OutboxArrays
    pages: Array  # int32: number in the whole graph, by page of its view; empty: the numbers are the same


class LoopState(NamedTuple):
    """What the partitions share."""

    run: Array  # LOOP[1]
    partition: Array  # PARTITION[partitions]
    offsets: Array  # of the whole graph
    targets: Array
    owners: PageOwners
    number: Array  # int32[pages]: number of each page in the view of its owner; empty: the numbers are the same
    page: Array  # int32[1]: the page that a link leads to


def _example() -> LoopState:
    whole = np.zeros(1, np.int32)
    owners = PageOwners(whole, whole, np.zeros(1, np.int64), np.zeros((1, 1), np.uint8))
    return LoopState(
        np.zeros(1, LOOP), np.zeros(1, PARTITION), np.zeros(1, np.int64), whole, owners, whole, np.zeros(1, np.int32)
    )


LoopType, OwnersType = type_of(_example()), type_of(_example().owners)
PartitionType = Pinned(
    PartitionState(example_world(), new_outbox(WAYS, LRU, np.zeros(0, np.int64)), np.zeros(0, np.int32))
)
recall_partition = recaller(PartitionType)


# ---- partitions crawl


@helper(b1(LoopType))
def begin_step(g: LoopState) -> bool:
    """Choose the end of the next step, and the partitions that crawl in it. False: nothing is left to do."""
    r = g.run[0]
    now = np.inf
    for number in range(g.partition.size):
        now = min(now, g.partition[number].next)
    if now == np.inf:
        return False
    r.end = (np.floor(now / r.step_s) + 1.0) * r.step_s
    for number in range(g.partition.size):
        one = g.partition[number]
        one.busy = one.next <= r.end
        r.steps += one.busy
    return True


@helper(i8(i8, i8, LoopType))
def crawl_step(frontier: int, partition: int, g: LoopState) -> int:
    """Let a partition crawl to the end of the step. Return 0, or what it needs before another call."""
    r = g.run[0]
    one = g.partition[r.at]
    s: FrontierState = recall(frontier)
    w: SimulatedWorld = recall_partition(partition).world
    c = w.clock[0]
    c.until = r.end
    before = c.fetched
    answer = crawl_on(s, w)
    r.fetched += c.fetched - before
    if s.run[0].fault:
        return FAULT
    if answer == NEED_ROOM:
        return NEED_ROOM
    if answer == 0:  # all rows of the log are written
        return NEED_LOG
    one.idle = answer != PAUSED
    one.next = c.next if answer == PAUSED else np.inf
    c.now = max(c.now, r.end)
    return 0


@helper(void(i8, i8, LoopType))
def wake(number: int, partition: int, g: LoopState) -> None:
    """Let a partition continue at the end of the step, and not before, because something new has arrived."""
    one = g.partition[number]
    c = recall_partition(partition).world.clock[0]
    one.idle = 0
    one.next = g.run[0].end
    c.now = max(c.now, g.run[0].end)


# ---- links go into outboxes


@helper(void(i8, OwnersType))
def assign(unit: int, owners: PageOwners) -> None:
    """Assign a unit to the partition that has the fewest units; at a tie, to the first of them."""
    least = 0
    for one in range(1, owners.units_of.size):
        if owners.units_of[one] < owners.units_of[least]:
            least = one
    owners.owner[unit] = least
    owners.units_of[least] += 1


@helper(i8(OwnersType, i8, i8))
def owner_of(owners: PageOwners, page: int, asker: int) -> int:
    """Return the owner of a page. With a coordinator, partition `asker` asks about its unit, and a new unit is assigned."""
    unit = owners.unit[page] if owners.unit.size > 0 else page
    if owners.requested.size > 0:
        owners.requested[asker, unit] = 1
        if owners.owner[unit] == NOBODY:
            assign(unit, owners)
    return owners.owner[unit]


@helper(void(StateType, PartitionType, LoopType, i8, i8))
def collect_page(s: FrontierState, p: PartitionState, g: LoopState, page: int, whole: int) -> None:
    """Put the links of a fetched page to pages of other partitions into the outbox; with a coordinator all links, because
    it was not known which pages are own when the page was fetched. `whole`: the number of the page in the graph."""
    r = g.run[0]
    first, last = g.offsets[whole], g.offsets[whole + 1]
    share = s.columns[page, r.column] / (last - first) if r.column >= 0 and last > first else 0.0
    depth = s.page[page].depth
    by_coordinator = g.owners.requested.size > 0
    for at in range(first, last):
        prefetch(g.owners.owner, g.targets[at])
    for at in range(first, last):
        target = int(g.targets[at])  # without compilation, ids are 32 bits wide
        owner = owner_of(g.owners, target, r.at)
        if by_coordinator or owner != r.at:
            add_link(p.outbox, target, owner, share, depth)


@helper(i8(i8, i8, LoopType))
def collect_links(frontier: int, partition: int, g: LoopState) -> int:
    """Collect the links of the pages that a partition has fetched in this step. Return 0 or NEED_OUTBOX."""
    r = g.run[0]
    one = g.partition[r.at]
    s: FrontierState = recall(frontier)
    p: PartitionState = recall_partition(partition)
    log = p.world.log
    while one.collected < p.world.clock[0].rows:
        page = log.page[one.collected]
        if log.result[one.collected] == FETCHED:
            whole = p.pages[page] if p.pages.size > 0 else page
            r.need = g.offsets[whole + 1] - g.offsets[whole]
            if p.outbox.tally[0].entries + r.need > p.outbox.entry.size:
                return NEED_OUTBOX
            collect_page(s, p, g, page, whole)
        one.collected += 1
    fetched = p.world.clock[0].fetched
    one.due = p.outbox.tally[0].entries > 0 and (one.idle or fetched - one.sent_at >= r.every_pages)
    return 0


# ---- links leave outboxes


@helper(i8(i8, i8, LoopType))
def cross_over(frontier: int, partition: int, g: LoopState) -> int:
    """Let a partition that has no own pages left take pages of others, in the order in which it found them. Return 0 or
    NEED_ROOM."""
    r = g.run[0]
    one = g.partition[r.at]
    s: FrontierState = recall(frontier)
    outbox = recall_partition(partition).outbox
    while one.idle and r.entry < r.crossing_pages and one.crossed < outbox.tally[0].entries:
        g.page[0] = outbox.entry[one.crossed].key
        if s.state[g.page[0]] == UNKNOWN:
            advance(s, r.end)
            if not discover(s, -1, g.page, 1):
                return NEED_ROOM
            r.entry += 1
        one.crossed += 1
    if r.entry > 0:
        wake(r.at, partition, g)
    return 0


@helper(i8(i8, LoopType, OutboxType))
def send_entry(frontier: int, g: LoopState, outbox: OutboxArrays) -> int:
    """Send the links of one entry to the owner of the page. Return 0, or NEED_ROOM before another call, or FAULT."""
    r = g.run[0]
    entry = outbox.entry[r.entry]
    s: FrontierState = recall(frontier)
    g.page[0] = g.number[entry.key] if g.number.size > 0 else entry.key
    advance(s, r.end)
    share = entry.share / entry.links
    while r.link < entry.links:
        if not receive_link(s, g.page, 0, share, float(entry.depth), r.column):
            return NEED_ROOM
        r.link += 1
    r.link = 0
    return FAULT if s.run[0].fault else 0


@helper(void(LoopType, i8))
def count_entry(g: LoopState, owner: int) -> None:
    """Count an entry as sent. All entries that one partition sends to another at the same time are one message."""
    r = g.run[0]
    to = g.partition[owner]
    if owner != r.at:
        r.urls += 1
        if to.addressed != r.sendings:
            to.addressed = r.sendings
            r.messages += 1
            r.left = 1


@helper(void(Numbers, LoopType, OutboxType))
def look_ahead(frontiers: Array, g: LoopState, outbox: OutboxArrays) -> None:
    """Prefetch what later entries will need. Every such read is a cache miss; prefetched early, the misses overlap."""
    far, near = g.run[0].entry + FAR, g.run[0].entry + NEAR
    if far < outbox.tally[0].entries and g.number.size > 0:
        prefetch(g.number, outbox.entry[far].key)
    if near < outbox.tally[0].entries:
        entry = outbox.entry[near]
        look_far(recall(frontiers[entry.owner]), g.number[entry.key] if g.number.size > 0 else entry.key)


@helper(i8(Numbers, Numbers, LoopType))
def send_links(frontiers: Array, partitions: Array, g: LoopState) -> int:
    """Send all links in the outbox of a partition. Return 0, or what `send_entry` returns; `which` is then the owner."""
    r = g.run[0]
    outbox = recall_partition(partitions[r.at]).outbox
    while r.entry < outbox.tally[0].entries:
        look_ahead(frontiers, g, outbox)
        owner = outbox.entry[r.entry].owner
        answer = send_entry(frontiers[owner], g, outbox)
        if answer != 0:
            r.which = owner
            return answer
        count_entry(g, owner)
        wake(owner, partitions[owner], g)
        r.entry += 1
    r.exchanges += r.left
    r.left = 0
    r.sendings += 1
    g.partition[r.at].sent_at = recall_partition(partitions[r.at]).world.clock[0].fetched
    empty_outbox(outbox)
    return 0


# ---- the loop


@helper(i8(Numbers, Numbers, LoopType))
def act(frontiers: Array, partitions: Array, g: LoopState) -> int:
    """Let partition `at` do its part of the present phase. Return 0, or why it cannot."""
    r = g.run[0]
    one = g.partition[r.at]
    r.which = r.at
    if not one.busy:
        return 0
    frontier, partition = frontiers[r.at], partitions[r.at]
    if r.phase == CRAWL:
        return crawl_step(frontier, partition, g)
    if r.phase == COLLECT:
        return collect_links(frontier, partition, g)
    if r.phase == TAKE:
        return cross_over(frontier, partition, g)
    if not one.due:
        return 0
    if r.show and not r.shown:
        r.shown = 1
        return SENDING
    return send_links(frontiers, partitions, g)


@helper(i8(i8, i8))
def phase_after(phase: int, exchange: int) -> int:
    """Return the phase that follows. After the last one, a new step begins."""
    if phase == CRAWL and exchange != NOTHING:
        return COLLECT
    if phase == COLLECT:
        return TAKE if exchange == PAGES else SEND
    return CHOOSE


@kernel(i8(Numbers, Numbers, LoopType))
def run_partitions(frontiers: Array, partitions: Array, g: LoopState) -> int:
    """Crawl, and return why the loop ended: DRAINED, GOAL (`most` pages are fetched), PAUSED (call again), SENDING
    (partition `which` is about to send), FAULT (of the strategy), NEED_ROOM, NEED_LOG or NEED_OUTBOX (partition `which`
    needs memory)."""
    r = g.run[0]
    while True:
        if r.phase == CHOOSE:
            if r.fetched >= r.most:
                return GOAL
            if r.fetched >= r.pause_at or r.steps > SLICE:
                r.pause_at = r.fetched + SLICE
                r.steps = 0
                return PAUSED
            if not begin_step(g):
                return DRAINED
            r.phase = CRAWL
        while r.at < g.partition.size:
            answer = act(frontiers, partitions, g)
            if answer != 0:
                return answer
            r.entry = 0
            r.shown = 0
            r.at += 1
        r.at = 0
        r.phase = CHOOSE if r.fetched >= r.most else phase_after(r.phase, r.exchange)
