"""Compares the advice of `trapline recommend` with all alternatives, run in full: python bench/recommend.py [GRAPH ...]

For each graph the budget is the time in which the default crawl fetches a third of the pages. The regret is the PageRank that the best
setting fetches minus what the advice fetches, in per cent of the best, on draws that `recommend` has not seen. The best is the best of
all settings on these draws, so chance makes the regret look larger than it is, not smaller. Without GRAPH: four recorded graphs, if the
environment variable TRAPLINE_DATA names the folder that has them, otherwise the sample python-docs and three generated webs.
"""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trapline.api.simulation import chosen_strategies
from trapline.cli.terminal.progress import compile_crawl, compile_ranks
from trapline.confidence import estimate
from trapline.defaults import CONFIRMING_DRAWS, CONNECTIONS, DELAY_S, STRATEGY, TRIED_PER_CONNECTION
from trapline.graph import Graph, generate, load_graph
from trapline.samples import located
from trapline.simulator.arena import Arena, arena_of
from trapline.simulator.recommendation import (
    ROUNDS,
    CrawlBudget,
    CrawlSetting,
    Recommendation,
    TrialRunner,
    Trials,
    TriedConditions,
    live_only,
    recommend,
)
from trapline.units import duration

RECORDED = ("uci-ics-crawl", "ku-crawl-2021b", "cs-stanford", "hollins")
GENERATED = {
    "20,000 pages, 300 sites": (20_000, 300),
    "20,000 pages, 20 sites": (20_000, 20),
    "5,000 pages": (5_000, 60),
}
NEW_DRAWS = 5
_SEEN = ROUNDS[-1] + CONFIRMING_DRAWS  # draws that `recommend` uses
_SHARE = 1 / 3


class Row(NamedTuple):
    name: str
    budget: str
    advice: str
    settings: int
    gain: str  # over the default, as `recommend` says it
    regret: str
    default_regret: str
    breadth_first_regret: str
    seconds: str  # of `recommend`, and of all alternatives in full


def graphs() -> Iterator[tuple[str, Graph]]:
    if sys.argv[1:]:
        yield from ((Path(path).name, load_graph(located(path))) for path in sys.argv[1:])
    elif folder := os.environ.get("TRAPLINE_DATA"):
        yield from ((name, load_graph(Path(folder) / name)) for name in RECORDED)
    else:
        yield "python-docs", load_graph(located("python-docs"))
        yield from ((name, generate(*sizes, seed=3)) for name, sizes in GENERATED.items())


def third_of_the_pages(arena: Arena, default: CrawlSetting) -> CrawlBudget:
    trials = Trials(default)
    TrialRunner(arena, CrawlBudget(pages=round(arena.web.pages * _SHARE)), lambda _: None).add(trials, [0])
    return CrawlBudget(time_s=float(f"{trials.seconds[0]:.2g}"))


def row(name: str, web: Graph) -> Row:
    given = {"delay": (DELAY_S,), "per_connection": TRIED_PER_CONNECTION}
    plans = TriedConditions.of(CrawlBudget(time_s=1.0), (CONNECTIONS,), given)
    arena = arena_of(web, plans.default)
    strategies = live_only(chosen_strategies(None, plans.default))
    compile_ranks(strategies)
    every = plans.settings(strategies)
    default, first = (
        next(one for one in every if is_default(one, which, plans)) for which in (STRATEGY, "breadth-first")
    )
    budget = third_of_the_pages(arena, default)
    started = time.perf_counter()
    found = recommend(arena, budget, every, default, first)
    advised_s = time.perf_counter() - started
    return judged(name, arena, found, every, advised_s)


def is_default(one: CrawlSetting, name: str, plans: TriedConditions) -> bool:
    return one.chosen.name == name and one.conditions == plans.default


def judged(name: str, arena: Arena, found: Recommendation, every: list[CrawlSetting], advised_s: float) -> Row:
    started = time.perf_counter()
    runner = TrialRunner(arena, found.budget, lambda _: None)
    crawled = {one.same_crawl(arena.web.sites): Trials(one) for one in every}
    for trials in crawled.values():
        runner.add(trials, range(_SEEN, _SEEN + NEW_DRAWS))
    full_s = time.perf_counter() - started
    best = max(crawled.values(), key=lambda trials: trials.mean)

    def regret(other: Trials) -> str:
        own = crawled[other.setting.same_crawl(arena.web.sites)]
        lost = estimate((100 * (np.array(best.shares) - own.shares) / best.mean).tolist())
        return f"{lost.mean:.2f} ± {lost.ci or 0.0:.2f}"

    gain = found.advised.gain_over(found.default)
    return Row(
        f"{name} ({arena.web.pages:,} pages, {arena.web.sites:,} sites)",
        duration(found.budget.time_s or 0.0),
        found.advised.setting.label,
        found.settings,
        f"{gain.mean * 100:+.2f} ± {(gain.ci or 0.0) * 100:.2f}",
        regret(found.advised),
        regret(found.default),
        regret(found.breadth_first),
        f"{advised_s:.0f} / {full_s:.0f} s, best: {best.setting.label}",
    )


def main() -> None:
    compile_crawl()
    print("| graph | budget | advice | settings | gain over the default, points | regret of the advice, % | of the default, % "
          "| of breadth-first, % | run time of the advice / of all settings on 5 draws |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for name, web in graphs():
        print("| " + " | ".join(map(str, row(name, web))) + " |", flush=True)


if __name__ == "__main__":
    main()
