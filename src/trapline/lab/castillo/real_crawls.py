"""The crawls of the real web in `castillo` and `thesis`, as live crawls of small webs on loopback (`lab/live.py`).

The papers' crawl took eight days; here an eighth of the time of a crawl is called a day. Delays and latencies are a few hundredths of
a second, so that a crawl takes seconds.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from trapline.frontier import Rules
from trapline.graph.measure import depths
from trapline.lab.live import LiveConditions, LiveLog, crawl_live
from trapline.lab.paper import (
    PaperChart,
    PaperClaim,
    PaperItem,
    PaperPart,
    PaperTable,
    Results,
    at_least,
    differences,
    within,
)
from trapline.lab.simulated import PERCENTS, at_percents, mean_and_spread, mean_curve
from trapline.lab.study import Result, StudyRun
from trapline.lab.webs import Floats, KnownWeb, WebCache, WebSource
from trapline.simulator import constant_servers, simulate
from trapline.simulator.breakdown import pagerank_by_depth, pagerank_by_group
from trapline.simulator.log import fetched
from trapline.simulator.metrics import cumulative, tau_b
from trapline.strategies import load_strategy
from trapline.testweb import Behaviour, Mix, ServedWeb, build_web

DAYS = 8
CONNECTIONS, DELAY_S, LATENCY_S, LATENCY_SPREAD = 64, 0.03, 0.02, 0.5
LENGTH, BREADTH = "larger-sites-first", "breadth-first"
SHALLOW = 4  # clicks from a home page: "3-4 clicks away the correlation is very low"
LEVELS = 2 * SHALLOW + 1  # depths that are shown, from home pages on
_STEPS = 1_500_000  # duration of a live crawl, in pages of a simulated one
SETTING = (
    f"live crawl of a web on loopback; r = {CONNECTIONS}, w = {DELAY_S:g} s, k = 1, latency {LATENCY_S:g} s (median; "
    f"spread {LATENCY_SPREAD:g} between sites)"
)


# ---- runs


def live_key(source: WebSource, strategy: str, seed: int) -> str:
    servers = f"latency {LATENCY_S:g}, spread {LATENCY_SPREAD:g}, seed {seed}"
    return f"{source.name}; {_crawl(strategy).name}, {servers}; {DAYS} days"


def live_results(results: Results, webs: Sequence[WebSource], strategy: str) -> list[Result]:
    return [results[live_key(web, strategy, seed)] for seed, web in enumerate(webs, 1)]


def _crawl(strategy: str) -> LiveConditions:
    return LiveConditions(strategy, CONNECTIONS, DELAY_S)


def live_run(cache: WebCache, source: WebSource, strategy: str, seed: int) -> StudyRun:
    """Return the run of a live crawl and of the same crawl simulated."""

    def compute() -> Result:
        web = cache.load(source)
        served = build_web(web.graph, Mix(Behaviour(latency_s=LATENCY_S), latency_spread=LATENCY_SPREAD), seed=seed)
        log = crawl_live(served, _crawl(strategy))
        simulated = cumulative(_simulated(web, served, strategy), web.pagerank)
        return {
            **_by_day(log, web.pagerank),
            **_by_depth(log, web),
            "curve": at_percents(cumulative(log.page, web.pagerank)),
            "simulated": at_percents(simulated),
            "seconds": _seconds(log),
            "requests": log.requests,
            "sites": len(np.unique(log.site)),
            "bytes": int(log.size.sum()),
        }

    return StudyRun(live_key(source, strategy, seed), _STEPS, compute, source.name, is_timed=True)


def _by_day(log: LiveLog, pagerank: Floats) -> Result:
    """Return the shares of pages and PageRank fetched by the end of each day, relative to all that the crawl fetched, and the average
    PageRank of the pages of each day.

    The measure is `pagerank_by_group`. `pagerank_by_period` has it for round periods of time instead of days.
    """
    day = np.minimum((log.end_s / log.end_s[-1] * DAYS).astype(np.int64), DAYS - 1)
    pages, shares, average = pagerank_by_group(day, DAYS, log.page, pagerank)
    return {
        "pages": (np.cumsum(pages) / sum(pages)).tolist(),
        "pagerank": (np.cumsum(shares) / sum(shares)).tolist(),
        "average": average,
    }


def _by_depth(log: LiveLog, web: KnownWeb) -> Result:
    """Return the average PageRank of the first levels, and the correlation of PageRank and depth near home pages and beyond."""
    clicks = depths(web.graph)
    depth, rank = clicks[log.page], web.pagerank[log.page]
    averages = pagerank_by_depth(log.page, web.pagerank, clicks).average_pagerank
    near, far = (depth >= 1) & (depth < SHALLOW), depth >= SHALLOW
    return {
        "by_depth": averages[:LEVELS],
        "tau_near": _tau(depth[near], rank[near]),
        "tau_far": _tau(depth[far], rank[far]),
    }


def _tau(depth: np.ndarray, rank: Floats) -> float:
    return tau_b(depth, rank) if len(np.unique(depth)) > 1 else 0.0


def _seconds(log: LiveLog) -> list[float]:
    """Return the time at each percent of the pages."""
    shares = np.arange(len(log.end_s) + 1) / len(log.end_s)
    times = np.interp(np.array(PERCENTS) / 100, shares, np.concatenate(([0.0], log.end_s)))
    return [round(float(time), 4) for time in times]


def _simulated(web: KnownWeb, served: ServedWeb, strategy: str) -> np.ndarray:
    """Return the order of the same crawl in simulated time, with the latencies that the servers have."""
    latency = np.array([behaviour.latency_s for behaviour in served.behaviours])
    crawl = simulate(
        web.graph,
        load_strategy(strategy),
        Rules(delay_s=DELAY_S, per_connection=1, lease_s=float("inf")),
        connections=min(CONNECTIONS, web.graph.sites),
        servers=replace(constant_servers(1.0), latency_s=latency[web.graph.site]),
    )
    return fetched(crawl.log).page


# ---- fig. 10-12, table II, and t. fig. 4.12-4.14


class RealCrawlNames(NamedTuple):
    """The names of the items in a paper."""

    by_day: str
    average: str
    by_depth: str


def real_crawl(names: RealCrawlNames, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    def items(results: Results) -> list[PaperItem]:
        found = live_results(results, webs, LENGTH)
        setting = f"{LENGTH}; {SETTING}; a day is 1/{DAYS} of the crawl"
        return [
            PaperItem(names.by_day, "Pages and PageRank by day", setting, _day_claims(found), [_table_two(found)], [_day_chart(found)]),
            PaperItem(names.average, "Average PageRank of the pages of a day", setting, [_falls(found)], charts=[_average_chart(found)]),
            PaperItem(names.by_depth, "Average PageRank by depth", setting, _depth_claims(found), charts=[_depth_chart(found)]),
        ]  # fmt: skip

    return PaperPart([live_run(cache, web, LENGTH, seed) for seed, web in enumerate(webs, 1)], items)


def _day_claims(found: Sequence[Result]) -> list[PaperClaim]:
    ahead = [min(b - a for a, b in zip(one["pages"][:-1], one["pagerank"][:-1], strict=True)) for one in found]
    half, most = ([float(one["curve"][percent]) for one in found] for percent in (50, 80))
    return [
        at_least(
            "The share of PageRank is above the share of pages at the end of every day but the last", "yes", ahead
        ),
        at_least("Half of the pages have 80 % of the PageRank", "about 80 %, day 2", half, 0.8),
        at_least("80 % of the pages have 95 % of the PageRank", "> 95 %, day 4", most, 0.95),
    ]


def _table_two(found: Sequence[Result]) -> PaperTable:
    fetched_pages = [float(one["requests"]) for one in found]
    rows = [
        ["pages requested", "3 M", mean_and_spread(fetched_pages, 0)],
        ["MB", "57,000", mean_and_spread([one["bytes"] / 1e6 for one in found], 1)],
        ["sites", "53,196", mean_and_spread([float(one["sites"]) for one in found], 0)],
    ]
    return PaperTable("The crawl (table II)", ["", "published", "ours"], rows)


def _day_chart(found: Sequence[Result]) -> PaperChart:
    days = list(range(DAYS + 1))
    curves = {
        name: (days, [0.0, *(100 * y for y in mean_curve([one[key] for one in found]))])
        for name, key in (("pages", "pages"), ("PageRank", "pagerank"))
    }
    published = {
        "pages, published": ([2, 4], [50.0, 80.0]),
        "PageRank, published": ([2, 4], [80.0, 95.0]),
    }
    return PaperChart("days", "Pages and PageRank by day", "day", "share fetched", {**curves, **published}, y_unit="%")


def _falls(found: Sequence[Result]) -> PaperClaim:
    first, last = ([float(one["average"][at] or 0.0) for one in found] for at in (0, -1))
    text = "The average PageRank falls: the first day's is above the last day's, in multiples of the mean of all pages"
    return at_least(text, "falls", differences(first, last))


def _average_chart(found: Sequence[Result]) -> PaperChart:
    days, y = _averages([one["average"] for one in found])
    of_mean = "average PageRank (mean of all pages = 1)"
    curve = [day + 1 for day in days], y
    return PaperChart("average", "Average PageRank of the pages of a day", "day", of_mean, {LENGTH: curve})


def _averages(curves: Sequence[Sequence[float | None]]) -> tuple[list[int], list[float]]:
    """Return the groups in which every crawl has pages, and the mean of their averages over the crawls."""
    groups = [group for group, values in enumerate(zip(*curves, strict=False)) if None not in values]
    return groups, mean_curve([[float(curve[group] or 0.0) for group in groups] for curve in curves])


def _depth_claims(found: Sequence[Result]) -> list[PaperClaim]:
    near, far = ([float(one[key]) for one in found] for key in ("tau_near", "tau_far"))
    home = [float(one["by_depth"][0]) for one in found]
    return [
        at_least("PageRank falls in the first levels below the home page: minus Kendall's tau with depth", "inverse", [-x for x in near]),
        within(f"From {SHALLOW} clicks on there is no correlation: Kendall's tau is at most 0.1", "very low", far, 0.1),
        at_least("Home pages have a low PageRank: below the mean of all pages, in multiples of it", "low", [1 - x for x in home]),
    ]  # fmt: skip


def _depth_chart(found: Sequence[Result]) -> PaperChart:
    curve = _averages([one["by_depth"] for one in found])
    of_mean = "average PageRank (mean of all pages = 1)"
    return PaperChart("depth", "Average PageRank by depth", "clicks from a home page", of_mean, {LENGTH: curve})


# ---- t. fig. 4.16: two strategies over time


def two_strategies(name: str, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    runs = [live_run(cache, web, s, seed) for seed, web in enumerate(webs, 1) for s in (LENGTH, BREADTH)]

    def items(results: Results) -> list[PaperItem]:
        found = {s: live_results(results, webs, s) for s in (LENGTH, BREADTH)}
        whole = [float(one["seconds"][-1]) for one in found[BREADTH]]

        def pages(strategy: str, moment: float) -> list[float]:
            pairs = zip(found[strategy], whole, strict=True)
            return [float(np.interp(moment * total, one["seconds"], PERCENTS)) for one, total in pairs]

        def pagerank(strategy: str, moment: float) -> list[float]:
            pairs = zip(found[strategy], pages(strategy, moment), strict=True)
            return [100 * float(np.interp(at, PERCENTS, one["curve"])) for one, at in pairs]

        claims = [
            at_least(
                f"Larger-sites-first has more {what} at half of breadth-first's time, in percent of all",
                "faster",
                differences(of(LENGTH, 0.5), of(BREADTH, 0.5)),
            )
            for what, of in (("pages", pages), ("PageRank", pagerank))
        ]
        steps = [at / 40 for at in range(49)]
        curves = {
            f"{strategy}, {what}": (steps, [float(np.mean(of(strategy, step))) for step in steps])
            for strategy in (LENGTH, BREADTH)
            for what, of in (("pages", pages), ("PageRank", pagerank))
        }
        of_time = "time (of breadth-first's whole crawl)"
        chart = PaperChart(
            "two-strategies", "Pages and PageRank against time", of_time, "share fetched", curves, y_unit="%"
        )
        note = "The thesis has w = 15 s for sites of fewer than 100 pages and w = 5 s for others; here w is the same for all sites."
        return [PaperItem(name, "Two strategies against time", SETTING, claims, charts=[chart], notes=[note])]

    return PaperPart(runs, items)
