"""Generated webs that evolve: pages are born, die and change, each page at its own rates.

    page i dies at rate d_i = d E,           E exponentially distributed with mean 1
    page i changes at rate c_i = c E^2 / 2,  E another such number; changes are a Poisson process
    a site of n pages gets new ones at rate b n

b, d, c = `births_per_day`, `deaths_per_day`, `changes_per_day`, the means over all pages. A page keeps its rates for
life. So a share 1/(1 + d t) of the pages is left after t days: pages with a low death rate survive.

A new page appears beside a living page of its site, which is drawn at random. Both have the same parent and are of the
same kind (dangling, dynamic). The parent links to the new page, and the new page links to others as every page of
`generate` does. When a page dies, the links to it are replaced by newly drawn links, and its nearest living ancestor
adopts its children. Each change of a page replaces each of its links with the probability q = `links_redrawn`, except
the links to its children. Home pages do not die, sites neither open nor close, and the size of a page stays the same.

Where the values come from
- deaths_per_day .0067: 1/(1 + d t) = .55 after four months, when 45 % of the pages were new (Castillo's thesis, 4.3.2).
  With this rate 4.5 % of the pages die in the first week; Ntoulas et al. observed 8 %.
- births_per_day .005: keeps the number of pages about constant over these four months.
- changes_per_day .01: lies between two recordings, the documents of the Python project with .005 a day (701 pages) and
  terms of service with .014 a day (845 pages).
- E^2: makes the squared coefficient of variation of c_i 5; the recordings have 1.0 and 6.7. With these values 45 % of
  the pages do not change in a year; in Ntoulas et al. and in the recorded terms of service half of them do not.
- links_redrawn .25: an arbitrary choice, without a source.

Sources: Ntoulas, Cho, Olston, "What's New on the Web?" (2004); Poisson changes: Brewington and Cybenko, "How dynamic is the
Web?" (2000). This module knows nothing about crawls: which pages are refetched, and when, is decided elsewhere.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError, InvariantError
from trapline.graph.evolve_kernels import adopt, change_days, exponentials, relink
from trapline.graph.exact import drawn, key_of
from trapline.graph.generate import WebModel, check_range, plan_of, reach_of, web_of
from trapline.graph.generate_kernels import DANGLING, DENSE_LINKS, DYNAMIC, FAMILY, LinkRows, WebPlan
from trapline.graph.graph import MOST_PAGES, Graph, grouped
from trapline.graph.page_sizes import page_sizes
from trapline.graph.strings import NumberedUrls

Note = Callable[[str], None]
Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Ids = NDArray[np.int32]
Flags = NDArray[np.uint8]


MOST_DAYS = 100_000


@dataclass(frozen=True)
class EvolutionRates:
    """How fast a web evolves. The rates are means over its pages."""

    births_per_day: float = 0.005
    """new pages per existing page"""
    deaths_per_day: float = 0.0067
    changes_per_day: float = 0.01
    links_redrawn: float = 0.25
    """share of a page's links that one change replaces"""

    def __post_init__(self) -> None:
        for name, most in (("births_per_day", 1), ("deaths_per_day", 1), ("changes_per_day", 10), ("links_redrawn", 1)):
            check_range(name, getattr(self, name), 0, most)


class ChangeTimes(NamedTuple):
    """Moments at which pages change, ordered by page."""

    page: Ids
    day: Floats


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of a web on one day."""

    day: float
    graph: Graph
    name: Longs
    """[pages] a number that a page keeps for life; ascends within a site's tree pages and within its family pages"""
    born_day: Floats
    """[pages] 0 for the pages that existed on day 0"""
    changes_per_day: Floats
    """[pages] the change rate of each page"""
    seed: int

    def changes(self, start_day: float, end_day: float) -> ChangeTimes:
        """Return when the pages of this snapshot change in [start_day, end_day).

        Changes before the birth of a page are left out; changes after its death are not.
        """
        counts, days = _changes(self, start_day, end_day)
        return ChangeTimes(np.repeat(np.arange(len(counts), dtype=np.int32), counts), days)


def evolve(
    model: WebModel,
    days: Sequence[float],
    rates: EvolutionRates | None = None,
    seed: int | None = None,
    note: Note | None = None,
) -> Iterator[Snapshot]:
    """Yield the web of `model` as it is on each of `days`. Day 0 is the web that `model` alone gives.

    Only one snapshot is in memory at a time. `seed` is the seed of the evolution; the default is the model's seed. Equal
    arguments give equal snapshots on every machine. The choice of days influences the evolution: other days give
    another history.
    """
    _check_days(days)
    rates, seed = rates or EvolutionRates(), model.seed if seed is None else seed
    state = _beginning(model, rates, seed)
    for day in days:
        if note:
            note(f"day {day:g}")
        if day > state.day:
            state = _next(state, float(day))
        yield _snapshot(state)


def _check_days(days: Sequence[float]) -> None:
    for before, day in zip([0.0, *days], days, strict=False):
        if not before <= day < MOST_DAYS:
            raise ConfigError(
                f"day {day:g} after day {before:g}; give days that ascend from 0 and are below {MOST_DAYS}"
            )


class _State(NamedTuple):
    day: float
    graph: Graph
    plan: WebPlan
    name: Longs
    number: Longs
    """[pages] number within the site, part of the URL"""
    born_day: Floats
    death_day: Floats
    rate: Floats
    """[pages] changes per day"""
    names: int
    """count of names assigned so far"""
    numbers: Longs
    """[sites] count of numbers assigned so far"""
    model: WebModel
    rates: EvolutionRates
    seed: int


def _beginning(model: WebModel, rates: EvolutionRates, seed: int) -> _State:
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


def _death_days(rates: EvolutionRates, seed: int, first: int, born: Floats) -> Floats:
    own = rates.deaths_per_day * _exponentials(seed, "death rates", first, len(born))
    lives = _exponentials(seed, "lives", first, len(born))
    with np.errstate(over="ignore"):
        return born + np.divide(lives, own, out=np.full(len(born), np.inf), where=own > 0)


def _change_rates(rates: EvolutionRates, seed: int, first: int, count: int) -> Floats:
    own = _exponentials(seed, "change rates", first, count)
    return own * own * (rates.changes_per_day / 2.0)


class _Births(NamedTuple):
    """Pages born since the last snapshot that are alive at this one."""

    site: Ids
    beside: Ids
    """an older page of the site that is alive too"""
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
    # A dead page is encoded as -1 - its site, so that links to it can be replaced by links of the same kind.
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
    """Return the pages born by `day` and alive then, and the counts of names and numbers assigned so far."""
    seed, days = state.seed, day - state.day
    expected = np.diff(state.plan.first) * (state.rates.births_per_day * days)
    counts = (expected + drawn(seed, f"births {state.day!r}", len(expected))).astype(np.int64)
    first, count = state.names, int(counts.sum())
    if first + count > MOST_PAGES:
        raise ConfigError(
            f"more than {MOST_PAGES} pages would be born by day {day:g};"
            " give a smaller --births-per-day, --days or --snapshots"
        )
    site = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    born = state.day + days * drawn(seed, f"birthdays {state.day!r}", count)
    death = _death_days(state.rates, seed, first, born)
    number = np.arange(count) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(state.numbers, counts)
    survives = death > day
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
    alive_births: list[NDArray[Any]] = [values[survives] for values in births]
    return _Births(*alive_births), first + count, state.numbers + counts


def _beside(state: _State, site: Ids, alive: NDArray[np.bool_], chance: Floats) -> Ids:
    """Draw a living page of each site. There always is one: home pages do not die."""
    old = np.flatnonzero(alive)
    counts = np.bincount(state.graph.site[old], minlength=state.model.sites)
    first = np.cumsum(counts) - counts
    return old[first[site] + (chance * counts[site]).astype(np.int64)].astype(np.int32)


def _order(state: _State, old: Longs, births: _Births) -> Longs:
    """Return the order of pages: by site, in it the tree before the families, in these old pages before new ones."""
    site = np.concatenate([state.graph.site[old], births.site])
    kind = np.concatenate([state.plan.flags[old], state.plan.flags[births.beside]]) & FAMILY
    return np.argsort(site.astype(np.int64) * 2 + (kind != 0), kind="stable")


def _plan(state: _State, alive: NDArray[np.bool_], births: _Births, order: Longs, now: Ids) -> WebPlan:
    plan, old, beside = state.plan, np.flatnonzero(alive), births.beside
    above = np.empty(len(alive), dtype=np.int32)
    adopt(plan.parent, alive.astype(np.uint8), above)
    at_home = plan.parent[beside] < 0
    # A page born beside a home page becomes a tree page that has links.
    flags = _joined(plan.flags, old, np.where(at_home, 0, plan.flags[beside]).astype(np.uint8), order)
    parent = _joined(above, old, np.where(at_home, beside, above[beside]), order)
    parent = np.where(parent < 0, -1, now[parent]).astype(np.int32)
    children = np.flatnonzero(parent >= 0).astype(np.int32)
    child_offsets, children = grouped(parent[children], children, len(parent))
    flags[parent[children]] &= np.uint8(255 - DANGLING)
    site, sites = _joined(plan.site, old, births.site, order), state.model.sites
    tree = np.bincount(site[flags & FAMILY == 0], minlength=sites).astype(np.int64)
    first = np.searchsorted(site, np.arange(sites + 1)).astype(np.int64)
    return plan._replace(
        first=first,
        tree=tree,
        reach=reach_of(tree, plan.weights),
        fame_sum=np.cumsum(plan.fame * np.diff(first)),
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
    # Heavy tails may draw many links, so reserve ample room. The system does not commit memory that is never touched.
    room = graph.links + int(max(3 * state.model.links_per_page, DENSE_LINKS) * added) + 2 * count + 64 * 4096
    rows = LinkRows(np.empty(count + 1, np.int64), np.empty(room, np.int32), np.full(count, -1, np.int32))
    key = key_of(state.seed, f"links {state.day!r}")
    made = relink(plan, key, moved.name, graph.offsets, graph.targets, now, before, redrawn, rows)
    if made < 0:
        raise InvariantError(f"more than {room} links drawn for day {moved.day:g} of {state.model}")
    rows.targets.resize(made, refcheck=False)
    return rows.offsets, rows.targets


def _redrawn(snapshot: Snapshot, start: float, end: float, share: float) -> Floats:
    """Return the probability of each page's links to have been replaced: 1 - (1 - q)^changes."""
    counts, _ = _changes(snapshot, start, end)
    kept = np.cumprod(np.concatenate([[1.0], np.full(int(counts.max()), 1.0 - share)]))
    return 1.0 - kept[counts]


def _changes(snapshot: Snapshot, start: float, end: float) -> tuple[Longs, Floats]:
    counts = np.zeros(len(snapshot.name), dtype=np.int64)
    key = key_of(snapshot.seed, "changes")
    arguments = (key, snapshot.name, snapshot.changes_per_day, snapshot.born_day, float(start), float(end), counts)
    days = np.empty(change_days(*arguments, np.empty(0)))
    change_days(*arguments, days)
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
    """URLs of an evolving web: a page keeps its number, and so its URL, for life."""

    def __init__(self, site: Ids, number: Longs, dynamic: Flags, sites: int) -> None:
        super().__init__(site, dynamic, sites)
        self._numbers = number

    def _number(self, page: Any) -> Any:
        return self._numbers[page]
