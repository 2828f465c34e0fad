"""A refresher that is driven through a sampled world, event by event, as a crawl would drive it. The tests of live
refresh share it."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tests.naive.refresh import slots
from trapline.frontier import Frontier, Rules
from trapline.refresh import Policy, Refresher, RefreshRules, ReplayConditions, ReplayWorld, Trace, draw_world
from trapline.refresh.core import kernels
from trapline.refresh.core.layout import NORMAL, POINT, SMART, SUPER
from trapline.strategies import pair

STARTED = 1_700_000_000.0
CHANNEL = 0
FAR_S = 10 * 86_400.0
UPDATE, SIGNAL, POINT_COMES, ACCESS, SLOT = range(5)


def open_frontier(sites: int, **rules: float) -> Frontier:
    """A frontier in which each site has its own address. By default no site is delayed."""
    frontier = Frontier(pair("opic", "top-page"), Rules(**{"delay_s": 0.0, "per_connection": 1, **rules}))
    frontier.add_sites(sites, 0.0, groups=np.arange(sites, dtype=np.int32))
    return frontier


def site_a_page(trace: Trace) -> Trace:
    return replace(trace, site=np.arange(trace.pages, dtype=np.int32))


def live_world(trace: Trace, conditions: ReplayConditions, seed: int) -> ReplayWorld:
    """The world as a live crawl sees it: of two signals of a page within a minute only the first arrives, and points
    continue behind the end."""
    world = draw_world(site_a_page(trace), conditions, seed)
    kept, last = np.ones(len(world.signal), bool), np.full(trace.pages, -math.inf)
    for i, (at_s, page) in enumerate(world.signal):
        kept[i] = at_s - last[page] >= 60.0
        last[page] = at_s if kept[i] else last[page]
    spans = []
    for page in range(trace.pages):
        span = world.published[world.point_offsets[page] : world.point_offsets[page + 1]]
        more = np.zeros(int(world.level[page] == SUPER), POINT)
        more["at_s"], more["p"] = trace.horizon_s + FAR_S, 1.0
        spans.append(np.concatenate([_apart(span), more]))
    published = np.concatenate(spans)
    offsets = np.concatenate([[0], np.cumsum([len(span) for span in spans])]).astype(np.int64)
    point = np.zeros(len(published), world.point.dtype)
    point["at_s"], point["page"] = published["at_s"], np.repeat(np.arange(trace.pages), np.diff(offsets))
    point = np.sort(point, order="at_s", kind="stable")
    return replace(world, signal=world.signal[kept], published=published, point_offsets=offsets, point=point)


def _apart(span: np.ndarray) -> np.ndarray:
    kept: list[int] = []
    for i in range(len(span)):
        if span["at_s"][i] > 0.0 and (not kept or span["at_s"][i] - span["at_s"][kept[-1]] >= 60.0):
            kept.append(i)
    return span[kept]


def events(world: ReplayWorld, crawls: int) -> Iterator[tuple[float, int, int]]:
    """All events, in the order of the replayer."""
    happens = [(at_s, SLOT, -1) for at_s in slots(world, crawls)]
    for kind, stream in ((UPDATE, world.update), (SIGNAL, world.signal), (ACCESS, world.access)):
        happens += [(float(at_s), kind, int(page)) for at_s, page in stream]
    yield from sorted(happens, key=lambda event: event[:2])


def rules_of(world: ReplayWorld, crawls: int) -> RefreshRules:
    """The rules by which a replay computes."""
    return RefreshRules(
        cycle_s=world.conditions.cycle_s,
        slots_per_s=crawls / world.trace.horizon_s,
        half_life_s=None,
        trust_memory=math.inf,
    )


def refresher_of(world: ReplayWorld, policy: Policy, crawls: int) -> Refresher:
    """A refresher that all pages have joined. As in a replay, the level of each page is known and future points are published."""
    refresher = Refresher(policy, 0.0, rules_of(world, crawls))
    for page in range(world.trace.pages):
        refresher.join(page, page, 0.0, quality=0.0)
        if world.level[page] != NORMAL:
            row, state = refresher._channels.row(page, CHANNEL, 1.0), refresher.memory.whole
            state.site[page].row = state.page[page].trust = row  # as in a replay, before any signal arrives
            state.page[page].level = SMART
            kernels.settle_all(refresher.memory.handle)
        if world.level[page] == SUPER:
            span = world.published[world.point_offsets[page] : world.point_offsets[page + 1]]
            refresher.publish(page, CHANNEL, [(float(at_s), float(p)) for at_s, p, _ in span], 0.0)
    return refresher


def crawled_live(world: ReplayWorld, policy: Policy, crawls: int) -> list[int]:
    """The pages that a refresher chooses, one per slot."""
    refresher, frontier = refresher_of(world, policy, crawls), open_frontier(world.trace.pages)
    stale, chosen = np.zeros(world.trace.pages, bool), []
    for at_s, kind, page in events(world, crawls):
        if kind == UPDATE:
            stale[page] = True
        elif kind == SIGNAL:
            refresher.signalled(page, CHANNEL, at_s, at_s)
        elif kind == ACCESS:
            refresher.accessed(page, at_s)
        else:
            choice = refresher.choose(frontier, at_s, -math.inf)
            assert choice is not None and len(choice.pages) == 1
            (page,) = choice.pages
            refresher.crawled(page, at_s, bool(stale[page]))
            stale[page] = False
            chosen.append(page)
    return chosen


def values(refresher: Refresher, now: float) -> dict[int, float]:
    """The value of each page that is not being crawled."""
    found = (refresher.explain(int(page), now) for page in refresher.memory.state.page["id"])
    return {
        one["page"]: one["rank_value"]
        for one in found
        if one["place"] not in ("is being crawled", "waits after a failure")
    }
