"""Generated webs that evolve: pages are born, die and change, each at a rate of its own.

    page i dies at rate d_i = d E,           E exponentially distributed with mean 1
    page i changes at rate c_i = c E^2 / 2,  E another such number; changes are a Poisson process
    a site of n pages gets new ones at rate b n

b, d, c = `births_per_day`, `deaths_per_day`, `changes_per_day`, the means over all pages. The rates of a page stay its own
for life. So a share 1/(1 + d t) of the pages is left after t days: those that live long are the ones that die slowly.

A new page appears beside a living page of its site, drawn at random: it has the same page above it and is of the same
kind (dangling, dynamic). It is linked from the page above and links to others as any page of `generate` does. When a
page dies, links to it are replaced by links drawn anew, and the next living page above takes over its children. A page
that changed has had each of its links, those to its children excepted, replaced with the chance q = `links_redrawn` at
each change. Home pages do not die, sites neither open nor close, and sizes stay.

Where the values come from
- deaths_per_day .0067: 1/(1 + d t) = .55 after four months, when 45 % of the pages were new (Castillo's thesis, 4.3.2).
  In the first week 4.5 % of the pages go; Ntoulas et al. saw 8 %.
- births_per_day .005: keeps the number of pages about constant over these four months.
- changes_per_day .01: between two recordings, the documents of the Python project with .005 a day (701 pages) and terms
  of service with .014 (845 pages).
- E^2: the squared coefficient of variation of c_i is then 5; recorded 1.0 and 6.7. With these values 45 % of the pages
  do not change in a year; half of them in Ntoulas et al. and in the recorded terms of service.
- links_redrawn .25: no source, a choice.

Sources: Ntoulas, Cho, Olston, "What's New on the Web?" (2004); Poisson changes: Brewington and Cybenko, "How dynamic is the
Web?" (2000). It knows nothing of crawls: who fetches what again, and when, is decided elsewhere.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError, InvariantError
from trapline.graph.csr import grouped
from trapline.graph.evolve_kernels import adopt, change_days, exponentials, relink
from trapline.graph.exact import drawn, key_of
from trapline.graph.generate import WebModel, plan_of, reach_of, web_of
from trapline.graph.generate_kernels import DANGLING, DYNAMIC, FAMILY, Plan, Rows
from trapline.graph.graph import MOST_PAGES, Graph
from trapline.graph.page_sizes import page_sizes
from trapline.graph.strings import NumberedUrls
from trapline.jit import ready

Note = Callable[[str], None]
Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Ids = NDArray[np.int32]
Flags = NDArray[np.uint8]


@dataclass(frozen=True)
class Rates:
    """How fast a web evolves: means over its pages."""

    births_per_day: float = 0.005
    """new pages per page"""
    deaths_per_day: float = 0.0067
    changes_per_day: float = 0.01
    links_redrawn: float = 0.25
    """share of the links of a page that a change replaces"""

    def __post_init__(self) -> None:
        for name, most in (("births_per_day", 1), ("deaths_per_day", 1), ("changes_per_day", 10), ("links_redrawn", 1)):
            value = getattr(self, name)
            if not 0 <= value <= most:
                raise ConfigError(f"{name} is {value}, must be in 0..{most}")


class Changes(NamedTuple):
    """Moments at which pages changed, in the order of pages."""

    page: Ids
    day: Floats


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A web as it is on one day."""

    day: float
    graph: Graph
    name: Longs
    """[pages] a number that a page keeps for life, ascending within the pages of a site's tree and of its families"""
    born_day: Floats
    """[pages] 0 for all that were there on day 0"""
    changes_per_day: Floats
    """[pages] the rate of each page"""
    seed: int

    def changes(self, start_day: float, end_day: float) -> Changes:
        """When its pages change in [start_day, end_day), before their death or after it, but not before their birth."""
        counts, days = _changes(self, start_day, end_day)
        return Changes(np.repeat(np.arange(len(counts), dtype=np.int32), counts), days)


def evolve(
    model: WebModel,
    days: Sequence[float],
    rates: Rates | None = None,
    seed: int | None = None,
    note: Note | None = None,
) -> Iterator[Snapshot]:
    """The web of `model` (which is that of day 0) as it is on these days; one snapshot is in memory at a time.

    `seed` is that of the evolution, by default the model's. Equal arguments give equal snapshots on every machine; the
    days at which snapshots are taken have a part in what happens.
    """
    _check_days(days)
    ready()
    rates, seed = rates or Rates(), model.seed if seed is None else seed
    state = _beginning(model, rates, seed)
    for day in days:
        if note:
            note(f"day {day:g}")
        if day > state.day:
            state = _next(state, float(day))
        yield _snapshot(state)


def _check_days(days: Sequence[float]) -> None:
    for before, day in zip([0.0, *days], days, strict=False):
        if not before <= day < 1e5:
            raise ConfigError(f"days: {day:g} after {before:g}; must ascend from 0 and be below 100000")


class _State(NamedTuple):
    day: float
    graph: Graph
    plan: Plan
    name: Longs
    number: Longs
    """[pages] within the site: what the URL is made of"""
    born_day: Floats
    death_day: Floats
    rate: Floats
    names: int
    """given so far"""
    numbers: Longs
    """[sites] given so far"""
    model: WebModel
    rates: Rates
    seed: int


def _beginning(model: WebModel, rates: Rates, seed: int) -> _State:
    plan = plan_of(model)
    count = model.pages
    names = np.arange(count, dtype=np.int64)
    sizes = np.diff(plan.first)
    born = np.zeros(count)
    life = _death_days(rates, seed, 0, born)
    life[plan.first[:-1]] = np.inf
    number = names - np.repeat(plan.first[:-1], sizes)
    rate = _change_rates(rates, seed, 0, count)
    graph = web_of(model, plan)
    return _State(0.0, graph, plan, names, number, born, life, rate, count, sizes, model, rates, seed)


def _exponentials(seed: int, purpose: str, first: int, count: int) -> Floats:
    out = np.empty(count)
    exponentials(key_of(seed, purpose), first, out)
    return out


def _death_days(rates: Rates, seed: int, first: int, born: Floats) -> Floats:
    own = rates.deaths_per_day * _exponentials(seed, "death rates", first, len(born))
    lives = _exponentials(seed, "lives", first, len(born))
    with np.errstate(over="ignore"):
        return born + np.divide(lives, own, out=np.full(len(born), np.inf), where=own > 0)


def _change_rates(rates: Rates, seed: int, first: int, count: int) -> Floats:
    own = _exponentials(seed, "change rates", first, count)
    return own * own * (rates.changes_per_day / 2.0)


class _Births(NamedTuple):
    """The pages born since the last snapshot that are alive at this one."""

    site: Ids
    beside: Ids
    """an old page of the site that is alive too"""
    name: Longs
    number: Longs
    born_day: Floats
    death_day: Floats
    rate: Floats
    size: Longs


def _next(state: _State, day: float) -> _State:
    alive = state.death_day > day
    births, names, numbers = _births(state, day, alive)
    old = np.flatnonzero(alive)
    order = _order(state, old, births)
    before = _joined(np.arange(len(alive), dtype=np.int32), old, np.full(len(births.site), -1, np.int32), order)
    # The dead tell their site, so that links to them can be replaced by others of the kind.
    now = -1 - state.graph.site
    now[before[before >= 0]] = np.flatnonzero(before >= 0)
    moved = state._replace(
        day=day,
        plan=_plan(state, alive, births, order, now),
        name=_joined(state.name, old, births.name, order),
        number=_joined(state.number, old, births.number, order),
        born_day=_joined(state.born_day, old, births.born_day, order),
        death_day=_joined(state.death_day, old, births.death_day, order),
        rate=_joined(state.rate, old, births.rate, order),
        names=names,
        numbers=numbers,
    )
    offsets, targets = _relink(state, moved, now, before)
    sizes = None if state.graph.sizes is None else _joined(state.graph.sizes, old, births.size, order)
    return moved._replace(graph=_graph(moved, offsets, targets, sizes))


def _joined(values: NDArray[Any], old: Longs, added: NDArray[Any], order: Longs) -> NDArray[Any]:
    return np.concatenate([values[old], added])[order]


def _births(state: _State, day: float, alive: NDArray[np.bool_]) -> tuple[_Births, int, Longs]:
    """Those alive at `day`, and the names and numbers given so far."""
    seed, days = state.seed, day - state.day
    expected = np.diff(state.plan.first) * (state.rates.births_per_day * days)
    counts = (expected + drawn(seed, f"births {state.day!r}", len(expected))).astype(np.int64)
    site = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    first, count = state.names, len(site)
    if first + count > MOST_PAGES:
        raise ConfigError(f"more than {MOST_PAGES} pages would be born by day {day:g}")
    born = state.day + days * drawn(seed, f"birthdays {state.day!r}", count)
    death = _death_days(state.rates, seed, first, born)
    number = np.arange(count) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(state.numbers, counts)
    there = death > day
    births = _Births(
        site,
        _beside(state, site, alive, drawn(seed, f"places {state.day!r}", count)),
        first + np.arange(count, dtype=np.int64),
        number,
        born,
        death,
        _change_rates(state.rates, seed, first, count),
        page_sizes(state.model.seed, site, first),
    )
    alive_births: list[NDArray[Any]] = [values[there] for values in births]
    return _Births(*alive_births), first + count, state.numbers + counts


def _beside(state: _State, site: Ids, alive: NDArray[np.bool_], chance: Floats) -> Ids:
    """A living page of each site; its home page is one."""
    old = np.flatnonzero(alive)
    counts = np.bincount(state.graph.site[old], minlength=state.model.sites)
    first = np.cumsum(counts) - counts
    return old[first[site] + (chance * counts[site]).astype(np.int64)].astype(np.int32)


def _order(state: _State, old: Longs, births: _Births) -> Longs:
    """By site, the tree before the families, the old before the new."""
    site = np.concatenate([state.graph.site[old], births.site])
    kind = np.concatenate([state.plan.flags[old], state.plan.flags[births.beside]]) & FAMILY
    return np.argsort(site.astype(np.int64) * 2 + (kind != 0), kind="stable")


def _plan(state: _State, alive: NDArray[np.bool_], births: _Births, order: Longs, now: Ids) -> Plan:
    plan, old, beside = state.plan, np.flatnonzero(alive), births.beside
    above = np.empty(len(alive), dtype=np.int32)
    adopt(plan.parent, alive.astype(np.uint8), above)
    at_home = plan.parent[beside] < 0
    # Beside a home page stands a page of the tree with links.
    flags = _joined(plan.flags, old, np.where(at_home, 0, plan.flags[beside]).astype(np.uint8), order)
    parent = _joined(above, old, np.where(at_home, beside, above[beside]), order)
    parent = np.where(parent < 0, -1, now[parent]).astype(np.int32)
    children = np.flatnonzero(parent >= 0).astype(np.int32)
    child_offsets, children = grouped(parent[children], children, len(parent))
    flags[parent[children]] &= np.uint8(255 - DANGLING)
    site, sites = _joined(plan.site, old, births.site, order), state.model.sites
    tree = np.bincount(site[flags & FAMILY == 0], minlength=sites).astype(np.int64)
    return plan._replace(
        first=np.searchsorted(site, np.arange(sites + 1)).astype(np.int64),
        tree=tree,
        reach=reach_of(tree, plan.weights),
        site=site,
        parent=parent,
        flags=flags,
        child_offsets=child_offsets,
        children=children,
    )


def _relink(state: _State, moved: _State, now: Ids, before: Ids) -> tuple[Longs, Ids]:
    graph, plan, count = state.graph, moved.plan, len(before)
    redrawn = _redrawn(_snapshot(moved), state.day, moved.day, state.rates.links_redrawn)
    added = int(np.count_nonzero(before < 0))
    # Room for what heavy tails may draw; what is not used stays untouched memory.
    room = graph.links + int(3 * state.model.links_per_page * added) + 2 * count + 64 * 4096
    rows = Rows(np.empty(count + 1, np.int64), np.empty(room, np.int32), np.full(count, -1, np.int32))
    key = key_of(state.seed, f"links {state.day!r}")
    made = relink(plan, key, moved.name, graph.offsets, graph.targets, now, before, redrawn, rows)
    if made < 0:
        raise InvariantError(f"more than {room} links drawn for day {moved.day:g} of {state.model}")
    rows.targets.resize(made, refcheck=False)
    return rows.offsets, rows.targets


def _redrawn(snapshot: Snapshot, start: float, end: float, share: float) -> Floats:
    """1 - (1 - q)^changes."""
    counts, _ = _changes(snapshot, start, end)
    kept = np.cumprod(np.concatenate([[1.0], np.full(int(counts.max()), 1.0 - share)]))
    return 1.0 - kept[counts]


def _changes(snapshot: Snapshot, start: float, end: float) -> tuple[Longs, Floats]:
    counts = np.zeros(len(snapshot.name), dtype=np.int64)
    key = key_of(snapshot.seed, "changes")
    who = (key, snapshot.name, snapshot.changes_per_day, snapshot.born_day, float(start), float(end), counts)
    days = np.empty(change_days(*who, np.empty(0)))
    change_days(*who, days)
    return counts, days


def _graph(state: _State, offsets: Longs, targets: Ids, sizes: Longs | None) -> Graph:
    plan = state.plan
    dynamic = ((plan.flags & DYNAMIC) != 0).astype(np.uint8)
    return replace(
        state.graph,
        offsets=offsets,
        targets=targets,
        site=plan.site,
        home=plan.first[:-1].astype(np.int32),
        dynamic=dynamic,
        urls=EvolvedUrls(plan.site, state.number, dynamic, state.model.sites),
        sizes=sizes,
    )


def _snapshot(state: _State) -> Snapshot:
    origin = {**state.graph.origin, "day": state.day, "evolution": {"seed": state.seed, **asdict(state.rates)}}
    graph = replace(state.graph, origin=origin)
    return Snapshot(state.day, graph, state.name, state.born_day, state.rate, state.seed)


class EvolvedUrls(NumberedUrls):
    """A page keeps its number for life."""

    def __init__(self, site: Ids, number: Longs, dynamic: Flags, sites: int) -> None:
        super().__init__(site, dynamic, sites)
        self._numbers = number

    def _number(self, page: Any) -> Any:
        return self._numbers[page]
