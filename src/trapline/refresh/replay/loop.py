"""The compiled loop of the replayer: it processes updates, signals, published points, accesses and crawl slots in time order.

Only this module has both sides: the truth (truth.py) and the evidence (refresh/core/evidence.py, refresh/core/queue.py). A
crawl passes one bit from the truth to the evidence: whether there was anything new. If servers state when a page last
changed, it passes that age too. The order of events at the same time is cycle, update, signal, point, access, slot, so that a
crawl sees an update of the same second.
"""

import math
from typing import NamedTuple

import numpy as np

from trapline.compiled.jit import f8, helper, i8, kernel, type_of, void
from trapline.frontier.layout import Array, record
from trapline.frontier.layout import FrontierState as FrontierState
from trapline.frontier.layout import StateType as FrontierType
from trapline.frontier.layout import recall as recall_frontier
from trapline.refresh.core.choosing import choose_page, count_slot
from trapline.refresh.core.evidence import ask, note_access, note_crawl, note_point, note_signal
from trapline.refresh.core.layout import RefreshState, StateType, recall
from trapline.refresh.core.queue import enqueue, heed, rebuild, settle
from trapline.refresh.replay import truth as true
from trapline.refresh.replay.truth import Truth, TruthType

CYCLE, UPDATE, SIGNAL, POINT, ACCESS, SLOT, END = range(7)

EVENT = record([("at_s", "f8"), ("page", "i4")])
# Number of events of each kind so far, number of slots in all, and the end.
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
    """The events of each kind, sorted by time. Signals and points are only for pages whose providers send them."""

    update: Array  # EVENT
    signal: Array
    point: Array
    access: Array
    cursor: Array  # CURSOR[1]
    chosen: Array  # i4: receives the page of each slot; empty if the caller does not need it


_NO_EVENTS = np.zeros(1, EVENT)
StreamsType = type_of(
    Streams(_NO_EVENTS, _NO_EVENTS, _NO_EVENTS, _NO_EVENTS, np.zeros(1, CURSOR), np.zeros(1, np.int32))
)
_Events = type_of(_NO_EVENTS)


@helper(f8(_Events, i8))
def _at(events: Array, i: int) -> float:
    """Return the time of event i; infinity after the last event."""
    return events[i].at_s if i < len(events) else math.inf


@helper(f8(StreamsType))
def _slot_at(streams: Streams) -> float:
    """Return the time of the next slot. Slots are evenly spaced; the first is half a step after the beginning."""
    c = streams.cursor[0]
    return (c.slot + 0.5) * c.horizon_s / c.slots if c.slot < c.slots else math.inf


@helper(i8(StateType, StreamsType))
def _next(s: RefreshState, streams: Streams) -> int:
    """Return the kind of the next event."""
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
def _crawl(s: RefreshState, f: FrontierState, truth: Truth, streams: Streams) -> None:
    """Process a slot: choose a page and crawl it."""
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
def _take_signal(s: RefreshState, streams: Streams) -> None:
    c = streams.cursor[0]
    event = streams.signal[c.signal]
    note_signal(s, event.page, event.at_s)
    heed(s, event.page, event.at_s)
    c.signal += 1


@helper(void(StateType, StreamsType))
def _pass_point(s: RefreshState, streams: Streams) -> None:
    c = streams.cursor[0]
    event = streams.point[c.point]
    note_point(s, event.page, event.at_s)
    heed(s, event.page, event.at_s)
    c.point += 1


@helper(void(StateType, TruthType, StreamsType))
def _serve(s: RefreshState, truth: Truth, streams: Streams) -> None:
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
def _begin_cycle(s: RefreshState, streams: Streams) -> None:
    c = streams.cursor[0]
    ask(s, s.run[0].on_cycle, -1, c.cycle * s.run[0].cycle_s)
    c.cycle += 1


@kernel(i8(i8, i8, TruthType, StreamsType, i8))
def replay_on(handle: int, frontier: int, truth: Truth, streams: Streams, most: int) -> int:
    """Process at most `most` events and return their number; fewer at the end. `frontier`: the handle of one that allows every visit."""
    s: RefreshState = recall(handle)
    f: FrontierState = recall_frontier(frontier)
    for done in range(most):
        kind = _next(s, streams)
        if kind == UPDATE:
            _update(truth, streams)
        elif kind == SIGNAL:
            _take_signal(s, streams)
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
    """Put all pages into one queue. Every page counts as crawled at time 0."""
    s: RefreshState = recall(handle)
    for page in range(len(s.page)):
        enqueue(s, page, 0.0)
    s.popular[0, 0] = len(s.page)
    rebuild(s, 0.0)


@kernel(void(TruthType, f8))
def finish(truth: Truth, horizon_s: float) -> None:
    """Integrate the freshness of every page up to the end."""
    for page in range(len(truth.page)):
        true.integrate(truth, page, horizon_s)
