"""The replayer: it replays a world against a policy with a given capacity, and returns how fresh the pages were.

It is the Python side of the compiled loop (loop.py).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.array_handles import Pin
from trapline.compiled.jit import ready
from trapline.errors import ConfigError
from trapline.frontier.layout import FrontierState as FrontierState
from trapline.frontier.layout import allocate as allocate_frontier
from trapline.progress import CountCallback
from trapline.refresh.core.layout import IDLE, RefreshState, Sizes, allocate
from trapline.refresh.core.membership import LEAST_REVISION
from trapline.refresh.policy import Policy
from trapline.refresh.replay.loop import CURSOR, Streams, begin, finish, replay_on
from trapline.refresh.replay.replay_world import ReplayWorld
from trapline.refresh.replay.truth import ACCESSES, BINARY, BINARY_S, EQ3, EQ3_S, Truth, make_truth

_AT_ONCE = 1 << 18  # events between two reports of progress: a tenth of a second


@dataclass(frozen=True, slots=True)
class ReplayFreshness:
    """Freshness in one replay, after the warm-up.

    `binary`: the share of accesses that found a fresh copy. `eq3`: the mean of F by Eq. 3 over the accesses. `..._time`: the
    same as averages over time, with pages weighted by their accesses.
    """

    binary: float
    eq3: float
    binary_time: float
    eq3_time: float
    crawls: int
    useful: int
    """number of crawls that found something new"""
    chosen: NDArray[np.int32]


def replay_world(
    world: ReplayWorld,
    policy: Policy,
    capacity: float,
    progress: CountCallback | None = None,
    keep_chosen: bool = False,
) -> ReplayFreshness:
    """Replay a world against a policy. `capacity`: crawls per update of the trace, in evenly spaced slots. `progress`:
    receives the slots done and their total."""
    slots = round(capacity * world.trace.updates)
    if slots < 1:
        raise ConfigError(
            f"a capacity of {capacity:g} fetches per update gives less than one fetch for the trace; give a larger capacity"
        )
    ready()
    given, horizon_s = world.conditions, world.trace.horizon_s
    state = make_state(world, policy, slots / horizon_s)
    truth = make_truth(world.shares, given.cycle_s, given.warm_up * horizon_s, given.measure, given.last_modified)
    streams = _streams(world, slots, keep_chosen)
    _run(state, truth, streams, progress)
    return _freshness(truth, state, streams, horizon_s * (1.0 - given.warm_up))


def make_state(world: ReplayWorld, policy: Policy, slots_per_s: float) -> RefreshState:
    """Return the state at the beginning of a replay."""
    trace = world.trace
    size = Sizes(
        trace.pages,
        max(1, len(policy.kept)),
        max(1, len(policy.options)),
        rows=trace.sites + 1,
        points=max(1, len(world.published)),
        queued=1 if policy.still else trace.pages,
        blocks=trace.pages,
    )
    state = allocate(size)
    run = state.run[0]
    run.slots_per_s, run.cycle_s = slots_per_s, world.conditions.cycle_s
    run.revision = max(LEAST_REVISION, round(policy.revision * trace.pages)) if policy.revision else 0
    run.growth = policy.growth
    state.site["place"], state.site["members"] = IDLE, trace.pages
    state.page["trust"], state.page["level"] = trace.site + 1, world.level
    state.page["point"], state.page["point_end"] = world.point_offsets[:-1], world.point_offsets[1:]
    state.point[: len(world.published)] = world.published
    state.point["row"][: len(world.published)] = np.repeat(trace.site + 1, np.diff(world.point_offsets))
    policy.bind(state.run, state.option)
    return state


def _open_frontier() -> FrontierState:
    """Return a frontier with one site that may always be visited: a replay has no politeness."""
    frontier = allocate_frontier(1, 1, 1, 1, 1, 1, 1)
    for name in ("visit", "budget"):
        frontier.site[name] = -1
    frontier.group["visit"] = -1
    return frontier


def _streams(world: ReplayWorld, slots: int, keep_chosen: bool) -> Streams:
    cursor = np.zeros(1, CURSOR)
    cursor[0].slots, cursor[0].horizon_s = slots, world.trace.horizon_s
    chosen = np.zeros(slots if keep_chosen else 0, np.int32)
    return Streams(world.update, world.signal, world.point, world.access, cursor, chosen)


def _run(state: RefreshState, truth: Truth, streams: Streams, progress: CountCallback | None) -> None:
    pin, frontier = Pin(state), _open_frontier()
    open_frontier = Pin(frontier)
    begin(pin.handle)
    total = int(streams.cursor[0].slots)
    while replay_on(pin.handle, open_frontier.handle, truth, streams, _AT_ONCE) == _AT_ONCE:
        if progress is not None:
            progress(int(streams.cursor[0].slot), total)
    finish(truth, float(streams.cursor[0].horizon_s))


def _freshness(truth: Truth, state: RefreshState, streams: Streams, measured_s: float) -> ReplayFreshness:
    totals, run = truth.totals, state.run[0]
    accesses = max(totals[ACCESSES], 1.0)
    return ReplayFreshness(
        binary=float(totals[BINARY] / accesses),
        eq3=float(totals[EQ3] / accesses),
        binary_time=float(totals[BINARY_S] / measured_s),
        eq3_time=float(totals[EQ3_S] / measured_s),
        crawls=int(run.crawls),
        useful=int(run.changes),
        chosen=streams.chosen,
    )
