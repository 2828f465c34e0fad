"""The compiled loop of the replayer: updates, signals, published points, accesses and crawl slots in order of time.

It alone holds both sides: the truth (truth.py) and what the crawler knows (evidence.py, queue.py). Of a crawl one bit crosses over,
whether there was anything new; where servers are taken to say when a page last changed, its age too. At the same moment the order is
cycle, update, signal, point, access, slot: a crawl sees what an update of the same second did.
"""

import math
from typing import NamedTuple

import numpy as np

from trapline.frontier.layout import Array, record
from trapline.frontier.layout import State as FrontierState
from trapline.frontier.layout import StateType as FrontierType
from trapline.frontier.layout import recall as recall_frontier
from trapline.jit import f8, helper, i8, kernel, type_of, void
from trapline.refresh import truth as true
from trapline.refresh.choosing import choose_page, count_slot
from trapline.refresh.evidence import ask, note_access, note_crawl, note_point, note_signal
from trapline.refresh.layout import State, StateType, recall
from trapline.refresh.places import enqueue
from trapline.refresh.queue import heed, rebuild, settle
from trapline.refresh.truth import Truth, TruthType

CYCLE, UPDATE, SIGNAL, POINT, ACCESS, SLOT, END = range(7)

EVENT = record([("at_s", "f8"), ("page", "i4")])
# How many of each kind have happened, and how many slots there will be.
CURSOR = record(
    [
        ("cycle", "i8"),
        ("update", "i8"),
        ("signal", "i8"),
        ("point", "i8"),
        ("access", "i8"),
        ("slot", "i8"),
        ("slots", "i8"),
        ("horizon_s", "f8"),
    ]
)


class Streams(NamedTuple):
    """What happens, each by time. A signal or point is only of pages whose providers send them."""

    update: Array  # EVENT
    signal: Array
    point: Array
    access: Array
    cursor: Array  # CURSOR[1]
    chosen: Array  # i4: the page of each slot, if anyone wants to know; else empty


_NO_EVENTS = np.zeros(1, EVENT)
StreamsType = type_of(
    Streams(_NO_EVENTS, _NO_EVENTS, _NO_EVENTS, _NO_EVENTS, np.zeros(1, CURSOR), np.zeros(1, np.int32))
)
_Events = type_of(_NO_EVENTS)


@helper(f8(_Events, i8))
def _at(events: Array, i: int) -> float:
    return events[i].at_s if i < len(events) else math.inf


@helper(f8(StreamsType))
def _slot_at(streams: Streams) -> float:
    """Slots are evenly spaced, the first half a step from the beginning."""
    c = streams.cursor[0]
    return (c.slot + 0.5) * c.horizon_s / c.slots if c.slot < c.slots else math.inf


@helper(i8(StateType, StreamsType))
def _next(s: State, streams: Streams) -> int:
    """The kind of what happens next."""
    c = streams.cursor[0]
    kind, at_s = END, c.horizon_s
    for other, other_s in (
        (SLOT, _slot_at(streams)),
        (ACCESS, _at(streams.access, c.access)),
        (POINT, _at(streams.point, c.point)),
        (SIGNAL, _at(streams.signal, c.signal)),
        (UPDATE, _at(streams.update, c.update)),
    ):
        if other_s <= at_s:
            kind, at_s = other, other_s
    if s.run[0].on_cycle >= 0 and c.cycle * s.run[0].cycle_s <= at_s:
        return CYCLE
    return kind


@helper(void(StateType, FrontierType, TruthType, StreamsType))
def _crawl(s: State, f: FrontierState, truth: Truth, streams: Streams) -> None:
    c = streams.cursor[0]
    now = _slot_at(streams)
    count_slot(s, now)
    page = choose_page(s, f, now)
    if c.slot < len(streams.chosen):
        streams.chosen[c.slot] = page
    changed = true.copy_page(truth, page, now)
    note_crawl(s, page, now, changed, true.shown_age_s(truth, page, now))
    settle(s, page, now)
    c.slot += 1


@helper(void(StateType, StreamsType))
def _hear(s: State, streams: Streams) -> None:
    c = streams.cursor[0]
    event = streams.signal[c.signal]
    note_signal(s, event.page, event.at_s)
    heed(s, event.page, event.at_s)
    c.signal += 1


@helper(void(StateType, StreamsType))
def _pass_point(s: State, streams: Streams) -> None:
    c = streams.cursor[0]
    event = streams.point[c.point]
    note_point(s, event.page, event.at_s)
    heed(s, event.page, event.at_s)
    c.point += 1


@helper(void(StateType, TruthType, StreamsType))
def _serve(s: State, truth: Truth, streams: Streams) -> None:
    c = streams.cursor[0]
    event = streams.access[c.access]
    true.access(truth, event.page, event.at_s)
    note_access(s, event.page, event.at_s)
    settle(s, event.page, event.at_s)
    c.access += 1


@helper(void(TruthType, StreamsType))
def _update(truth: Truth, streams: Streams) -> None:
    c = streams.cursor[0]
    event = streams.update[c.update]
    true.update(truth, event.page, event.at_s)
    c.update += 1


@helper(void(StateType, StreamsType))
def _begin_cycle(s: State, streams: Streams) -> None:
    c = streams.cursor[0]
    ask(s, s.run[0].on_cycle, -1, c.cycle * s.run[0].cycle_s)
    c.cycle += 1


@kernel(i8(i8, i8, TruthType, StreamsType, i8))
def replay_on(handle: int, frontier: int, truth: Truth, streams: Streams, most: int) -> int:
    """Let at most so many things happen; how many did. Fewer: the end is reached. `frontier`: the handle of one that forbids nothing."""
    s: State = recall(handle)
    f: FrontierState = recall_frontier(frontier)
    for done in range(most):
        kind = _next(s, streams)
        if kind == UPDATE:
            _update(truth, streams)
        elif kind == SIGNAL:
            _hear(s, streams)
        elif kind == POINT:
            _pass_point(s, streams)
        elif kind == ACCESS:
            _serve(s, truth, streams)
        elif kind == SLOT:
            _crawl(s, f, truth, streams)
        elif kind == CYCLE:
            _begin_cycle(s, streams)
        else:
            return done
    return most


@kernel(void(i8))
def begin(handle: int) -> None:
    """Every page was crawled at 0, and all are in one queue."""
    s: State = recall(handle)
    for page in range(len(s.page)):
        enqueue(s, page, 0.0)
    s.popular[0, 0] = len(s.page)
    rebuild(s, 0.0)


@kernel(void(TruthType, f8))
def finish(truth: Truth, horizon_s: float) -> None:
    """Freshness over time up to the end."""
    for page in range(len(truth.page)):
        true.integrate(truth, page, horizon_s)
