"""The search behind `trapline recommend`: which strategy, r, k and w fetch most PageRank within a budget.

A *setting* is a strategy with r, k and w. A *draw* is a seed: servers, failures and random strategies are sampled with it, and every
setting crawls the same draws. The search is successive halving: all settings crawl one draw, then the better third two, and so on.
The best settings then crawl draws that the search has not seen, because the best of many looks better than it is on the draws by which
it was chosen. This module reads no files and shows nothing.

Source: Jamieson, Talwalkar 2016, Non-stochastic Best Arm Identification and Hyperparameter Optimization (AISTATS). Differs from the
paper: a third is kept and not half, and at least the finalists, although the draws only double. KEPT, FINALISTS and DRAWS are ours:
bench/recommend.py measures what the advice loses with them.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trapline.confidence import Estimate, estimate
from trapline.defaults import CONFIRMING_DRAWS, CONNECTIONS, DELAY_S, PER_CONNECTION, TRIED_PER_CONNECTION
from trapline.errors import ConfigError
from trapline.progress import CalledSteps
from trapline.simulator.arena import Arena
from trapline.simulator.conditions import CrawlConditions
from trapline.simulator.log import fetched
from trapline.simulator.settings import SimulationSettings
from trapline.strategies.base.chosen import Chosen

Floats = NDArray[np.float64]
Number = TypeVar("Number", int, float)

ROUNDS = (1, 2, 4, 8)
"""Draws that a setting has crawled at the end of each round, unless it was dropped before."""
KEPT = 3  # after a round, one setting of three remains
FINALISTS = 5  # settings that crawl the new draws, besides the default and breadth-first
_POINTS = 60  # of a curve
_SMALL_GAIN = 0.001  # share of the PageRank: a tenth of a percentage point
_ALL = 0.999  # share of the PageRank from which a budget is enough for everything


@dataclass(frozen=True, slots=True)
class CrawlBudget:
    time_s: float | None = None
    pages: int | None = None

    def __post_init__(self) -> None:
        if self.time_s is None and self.pages is None:
            raise ConfigError("the budget has no limit; give --time, --pages or both")

    def of_sample(self, share: float) -> "CrawlBudget":
        """Return the budget for a sample that has this share of the pages: a site of which half is known is fetched in half the time.

        >>> CrawlBudget(3600.0, 100).of_sample(0.25)
        CrawlBudget(time_s=900.0, pages=25)
        """
        pages = None if self.pages is None else max(1, round(self.pages * share))
        return CrawlBudget(None if self.time_s is None else self.time_s * share, pages)


@dataclass(frozen=True, slots=True)
class CrawlSetting:
    """A strategy with r, k and w, which are in the conditions."""

    chosen: Chosen
    conditions: CrawlConditions

    @property
    def label(self) -> str:
        rules = self.conditions.rules
        k = rules.per_connection or "as servers allow"
        return f"{self.chosen.name}, r = {self.conditions.connections}, k = {k}, w = {rules.delay_s:g} s"

    def same_crawl(self, sites: int) -> tuple[object, ...]:
        """Return a key that two settings share if they make the same crawl: no site has two connections."""
        strategy = self.chosen.strategy
        connections = min(self.conditions.connections, sites)
        return (strategy.page, strategy.site, connections, self.conditions.rules)


@dataclass(slots=True)
class Trials:
    """The crawls of one setting, one for each draw."""

    setting: CrawlSetting
    shares: list[float] = field(default_factory=list)
    """share of the PageRank of the graph that was fetched within the budget"""
    pages: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    curves: list[Floats] = field(default_factory=list)
    """[points] share fetched at equal steps of the budget"""

    @property
    def mean(self) -> float:
        return float(np.mean(self.shares))

    @property
    def share(self) -> Estimate:
        return estimate(self.shares)

    def gain_over(self, other: "Trials") -> Estimate:
        """Return how much more of the PageRank this setting fetched, compared draw by draw."""
        return estimate([own - others for own, others in zip(self.shares, other.shares, strict=True)])


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The advice, and what was found on draws that the search has not seen."""

    budget: CrawlBudget
    advised: Trials
    default: Trials
    breadth_first: Trials
    best: list[Trials]  # all that were confirmed, best first
    settings: int  # number that the search compared
    crawls: int

    @property
    def keeps_default(self) -> bool:
        return self.advised is self.default

    @property
    def covers_all(self) -> bool:
        return self.default.mean >= _ALL and self.advised.mean >= _ALL


class TrialRunner:
    """Crawls settings on draws, within the budget."""

    def __init__(self, arena: Arena, budget: CrawlBudget, progress: Callable[[int], None]) -> None:
        self._arena, self._budget, self._progress = replace(arena, steps=CalledSteps()), budget, progress
        self._whole = float(arena.pagerank.sum())
        self.crawls = 0
        self._draws: dict[int, Arena] = {}

    def add(self, trials: Trials, draws: Iterable[int]) -> None:
        """Crawl the setting on these draws."""
        for draw in draws:
            self._crawl(trials, draw)
            self.crawls += 1
            self._progress(self.crawls)

    def _crawl(self, trials: Trials, draw: int) -> None:
        setting, seed = trials.setting, self._arena.conditions.seed + draw
        if seed not in self._draws:
            self._draws[seed] = self._arena.sampled(seed)
        budget = self._budget
        conditions = replace(setting.conditions, seed=seed, max_pages=budget.pages, max_seconds=budget.time_s)
        rows = fetched(self._draws[seed].under(conditions).crawl(setting.chosen).log)
        sums = np.cumsum(self._arena.pagerank[rows.page]) / self._whole
        trials.shares.append(float(sums[-1]) if len(sums) else 0.0)
        trials.pages.append(len(sums))
        trials.seconds.append(float(rows.end[-1]) if len(sums) else 0.0)
        trials.curves.append(self._curve(rows.end, sums))

    def _curve(self, ends: Floats, sums: Floats) -> Floats:
        reached = np.concatenate(([0.0], sums))
        if self._budget.time_s is not None:
            fetched_by = np.searchsorted(ends, np.linspace(0.0, self._budget.time_s, _POINTS), side="right")
        else:
            steps = np.linspace(0, self._budget.pages or 0, _POINTS).round().astype(np.int64)
            fetched_by = np.minimum(steps, len(sums))
        return reached[fetched_by]


def recommend(
    arena: Arena,
    budget: CrawlBudget,
    settings: Sequence[CrawlSetting],
    default: CrawlSetting,
    breadth_first: CrawlSetting,
    draws: int = CONFIRMING_DRAWS,
) -> Recommendation:
    """Search among the settings, and compare the best of them with the default and with breadth-first.

    The advice is the winner of the search, unless its gain over the default does not matter on the new draws.
    """
    sites = arena.web.sites
    distinct = list(_by_crawl((default, *settings), sites).values())
    references = (default, breadth_first)
    most = planned_crawls(len(distinct), draws, len(references))
    with arena.steps.counted("searching", "crawls") as progress:
        runner = TrialRunner(arena, budget, lambda done: progress(done, most))
        ranked = [trials.setting for trials in _searched(runner, distinct)]
        finalists = {key: Trials(one) for key, one in _by_crawl((*ranked[:FINALISTS], *references), sites).items()}
        for trials in finalists.values():
            runner.add(trials, range(ROUNDS[-1], ROUNDS[-1] + draws))  # draws that the search has not seen
    usual, first = finalists[default.same_crawl(sites)], finalists[ranked[0].same_crawl(sites)]
    return Recommendation(
        budget,
        advised=first if matters(first.gain_over(usual)) else usual,
        default=usual,
        breadth_first=finalists[breadth_first.same_crawl(sites)],
        best=sorted(finalists.values(), key=lambda trials: -trials.mean),
        settings=len(distinct),
        crawls=runner.crawls,
    )


def _by_crawl(settings: Iterable[CrawlSetting], sites: int) -> dict[tuple[object, ...], CrawlSetting]:
    """Return the settings without those that make the same crawl as an earlier one."""
    found: dict[tuple[object, ...], CrawlSetting] = {}
    for one in settings:
        found.setdefault(one.same_crawl(sites), one)
    return found


def _searched(runner: TrialRunner, settings: Sequence[CrawlSetting]) -> list[Trials]:
    """Return the settings that survived the search, best first."""
    alive, done = [Trials(one) for one in settings], 0
    for draws in ROUNDS:
        for trials in alive:
            runner.add(trials, range(done, draws))
        alive.sort(key=lambda trials: -trials.mean)  # stable: of equal settings, the first given is the best
        alive = _different(alive)
        alive, done = alive[: survivors(len(alive))], draws
    return alive


def _different(ranked: Sequence[Trials]) -> list[Trials]:
    """Return the trials without those that crawled exactly as a better one: on a single site, most site ranks are the same."""
    found: dict[tuple[float, ...], Trials] = {}
    for trials in ranked:
        found.setdefault((*trials.shares, *trials.seconds), trials)
    return list(found.values())


def survivors(settings: int) -> int:
    """Return how many of these settings remain after a round.

    >>> survivors(100), survivors(6)
    (34, 5)
    """
    return max(FINALISTS, -(-settings // KEPT))


def planned_crawls(settings: int, draws: int, references: int) -> int:
    """Return the number of crawls of a search, at most."""
    crawls, alive, done = 0, settings, 0
    for upto in ROUNDS:
        crawls += alive * (upto - done)
        alive, done = min(alive, survivors(alive)), upto
    return crawls + (min(alive, FINALISTS) + references) * draws


def matters(gain: Estimate) -> bool:
    """Return whether to leave the default for this gain: its interval does not contain 0, or its mean is not small.

    >>> matters(Estimate(0.0002, 0.0001)), matters(Estimate(0.0002, 0.0003)), matters(Estimate(0.04, 0.05))
    (True, False, True)
    """
    return gain.is_above_zero or gain.mean > _SMALL_GAIN


# ---- The settings to compare.


def tried_connections(most: int) -> list[int]:
    """Return the numbers of connections to try if a user can open this many: fewer connections follow an order more closely.

    >>> tried_connections(100), tried_connections(3)
    ([100, 10, 1], [3, 1])
    """
    return list(dict.fromkeys(max(1, most // step) for step in (1, 10, 100)))


def nearest_to(usual: Number, given: Sequence[Number]) -> Number:
    """Return the given number that is nearest to the usual one; 0 means unlimited.

    >>> nearest_to(10, [1, 100]), nearest_to(10, [0, 200])
    (1, 200)
    """
    return min(given, key=lambda one: abs((one or math.inf) - usual))


@dataclass(frozen=True, slots=True)
class TriedConditions:
    """The conditions under which every strategy is tried: the combinations of r, k and w."""

    every: list[CrawlConditions]
    default: CrawlConditions
    """with the default r, k and w, or the nearest to them that the user allows"""

    @classmethod
    def of(cls, budget: CrawlBudget, connections: Sequence[int], given: Mapping[str, Any]) -> "TriedConditions":
        """Return the conditions for one number of connections, the most to open, or for a list of numbers.

        `given`: other settings of simulated crawls by name. `delay` and `per_connection` are sequences.
        """
        pages, delays = given["per_connection"], given["delay"]
        if given.get("protocol") == "http/1.0":
            if pages not in (TRIED_PER_CONNECTION, (1,)):
                raise ConfigError(
                    "--per-connection has no effect with --protocol http/1.0: a crawl then fetches one page per visit; omit it"
                )
            pages = (1,)
        default = nearest_to(CONNECTIONS, connections), nearest_to(PER_CONNECTION, pages), nearest_to(DELAY_S, delays)
        if budget.time_s is None and pages == TRIED_PER_CONNECTION:
            # Without a limit of time, one page per visit would nearly always win, and nobody could wait for it.
            pages = (PER_CONNECTION,)
        if budget.time_s is not None and len(connections) == 1:
            connections = tried_connections(connections[0])
        every = [_conditions(given, *values) for values in product(connections, pages, delays)]
        return cls(every, _conditions(given, *default))

    def setting(self, chosen: Chosen) -> CrawlSetting:
        return CrawlSetting(chosen, self.default)

    def settings(self, every: Sequence[Chosen]) -> list[CrawlSetting]:
        return [CrawlSetting(chosen, conditions) for chosen, conditions in product(every, self.every)]


def _conditions(given: Mapping[str, Any], connections: int, per_connection: int, delay: float) -> CrawlConditions:
    values = {"connections": connections, "per_connection": per_connection, "delay": delay}
    return SimulationSettings(**{**given, **values}).conditions()


def live_only(every: Iterable[Chosen]) -> list[Chosen]:
    """Return the strategies that a live crawl can have: those that do not know the PageRank of pages before they are fetched."""
    return [chosen for chosen in every if not needs_future(chosen)]


def needs_future(chosen: Chosen) -> bool:
    return "pagerank" in chosen.strategy.page.inputs
