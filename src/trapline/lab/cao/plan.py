"""`cao`: the figures of Cao, Jiang and Singh on two-level crawl scheduling by performance and quality.

The paper's crawls are not public. Whole crawls end in a long tail of slow sites, where every strategy waits for the same servers, so
the moments at which strategies are compared are fractions of the time in which breadth-first fetches 90 % of the pages.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trapline.frontier import Rules
from trapline.lab.cao.protocols import live_protocols, simulated_protocols
from trapline.lab.cao.throughput import fast_servers, requests_per_connection
from trapline.lab.paper import (
    PaperChart,
    PaperClaim,
    PaperItem,
    PaperPart,
    PaperPlan,
    PaperTable,
    Results,
    at_least,
    differences,
    every,
)
from trapline.lab.simulated import PERCENTS, at_percents, mean_and_spread, mean_curve
from trapline.lab.study import Result, StudyRun
from trapline.lab.webs import Floats, KnownWeb, WebCache, WebSource
from trapline.servers.sampled import modelled_servers
from trapline.simulator import SimulatedCrawl, simulate
from trapline.simulator.log import fetched
from trapline.simulator.metrics import average_cumulative_pagerank, cumulative
from trapline.strategies import load_strategy
from trapline.strategies.base.inputs import inputs_for, quality_values

TITLE = "Cao, Jiang and Singh: Scheduling Web Crawl for Better Performance and Quality"
STRATEGIES = ("breadth-first", "performance", "quality", "crawl-ability")
CONNECTIONS = 64
_TAIL = 90  # percent of the pages after which the tail of slow sites begins; ours
_HALF, _THIRD = 1 / 2, 1 / 3


@dataclass(frozen=True, slots=True)
class CaoWebs:
    simulated: Sequence[WebSource]
    live: Sequence[WebSource]
    """small ones, for protocols"""
    probed: WebSource
    """for requests per connection: every site has more than 200 pages, so that one connection can serve 100"""
    fast: WebSource
    """for throughput with fast servers"""
    fast_pages: int
    """pages that each crawl of fast servers fetches"""
    seeds: Sequence[int]
    """of the servers in live crawls"""


def cao(webs: CaoWebs) -> PaperPlan:
    cache, names = WebCache(), [*(web.name for web in (*webs.simulated, *webs.live)), webs.probed.name, webs.fast.name]
    parts = [
        requests_per_connection("fig. 3", cache, webs.probed, webs.seeds),
        simulated_protocols("fig. 4", cache, webs.simulated),
        live_protocols("fig. 4, live", cache, webs.live),
        fast_servers("fig. 5", cache, webs.fast, webs.fast_pages, webs.seeds),
        _figure("fig. 6", "pagerank", cache, webs.simulated),
        _figure("fig. 7", "zipf", cache, webs.simulated),
    ]
    return PaperPlan("cao", TITLE, parts, names)


# ---- runs


@dataclass(frozen=True, slots=True)
class CaoCrawl:
    strategy: str
    quality: str

    @property
    def name(self) -> str:
        return f"{self.strategy}, quality by {self.quality}, r = {CONNECTIONS}, w = 0, k as servers allow, measured servers"


def crawl_key(source: WebSource, given: CaoCrawl, seed: int) -> str:
    return f"{source.name}; {given.name}, seed {seed}"


def crawl_run(cache: WebCache, source: WebSource, given: CaoCrawl, seed: int) -> StudyRun:
    """Return the run of one crawl: times and qualities at each percent of its pages."""

    def compute() -> Result:
        web = cache.load(source)
        quality = quality_values(given.quality, web.graph, web.pagerank, seed)
        assert quality is not None
        log = fetched(_crawled(web, given, quality, seed).log)
        times = np.interp(
            np.array(PERCENTS) / 100, np.arange(len(log.end) + 1) / len(log.end), np.concatenate(([0.0], log.end))
        )
        return {
            "seconds": [round(float(time), 3) for time in times],
            "quality": at_percents(cumulative(log.page, quality)),
            "average": average_cumulative_pagerank(log.page, quality),
        }

    return StudyRun(crawl_key(source, given, seed), source.pages, compute, source.name)


def _crawled(web: KnownWeb, given: CaoCrawl, quality: Floats, seed: int) -> SimulatedCrawl:
    strategy = load_strategy(given.strategy)
    return simulate(
        web.graph,
        strategy,
        Rules(delay_s=0.0, per_connection=0, lease_s=float("inf")),
        connections=min(CONNECTIONS, web.graph.sites),
        servers=modelled_servers(web.graph, seed=seed),
        inputs=inputs_for(strategy, web.graph, web.pagerank, quality, None, seed),
        seed=seed,
    )


# ---- fig. 6 and 7


@dataclass(frozen=True, slots=True)
class QualityNumbers:
    """The numbers of crawls with one kind of quality, one per web."""

    results: Results
    webs: Sequence[WebSource]
    quality: str

    def of(self, strategy: str) -> list[Result]:
        given = CaoCrawl(strategy, self.quality)
        return [self.results[crawl_key(web, given, seed)] for seed, web in enumerate(self.webs, 1)]

    def averages(self, strategy: str) -> list[float]:
        return [float(one["average"]) for one in self.of(strategy)]

    def pages_at(self, strategy: str, fraction: float) -> list[float]:
        """Return the share of the pages that a crawl has fetched at a fraction of breadth-first's time."""
        moments = [fraction * float(one["seconds"][_TAIL]) for one in self.of("breadth-first")]
        pairs = zip(self.of(strategy), moments, strict=True)
        return [float(np.interp(moment, one["seconds"], PERCENTS)) / 100 for one, moment in pairs]

    def quality_at(self, strategy: str, fraction: float) -> list[float]:
        pairs = zip(self.of(strategy), self.pages_at(strategy, fraction), strict=True)
        return [float(np.interp(100 * pages, PERCENTS, one["quality"])) for one, pages in pairs]


def _figure(name: str, quality: str, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    runs = [
        crawl_run(cache, web, CaoCrawl(strategy, quality), seed)
        for seed, web in enumerate(webs, 1)
        for strategy in STRATEGIES
    ]
    shown, judge = ("PageRank", _claims_6) if quality == "pagerank" else ("Zipf quality", _claims_7)

    def items(results: Results) -> list[PaperItem]:
        numbers = QualityNumbers(results, webs, quality)
        setting = f"r = {CONNECTIONS}, w = 0, k as servers allow, measured servers; times are relative to breadth-first's for 90 %"
        title = f"Performance and quality, by {shown}"
        return [PaperItem(name, title, setting, judge(numbers), [_table(numbers)], _charts(numbers, shown))]

    return PaperPart(runs, items)


def _table(numbers: QualityNumbers) -> PaperTable:
    columns = {
        "pages at 1/2": lambda strategy: numbers.pages_at(strategy, _HALF),
        "quality at 1/3": lambda strategy: numbers.quality_at(strategy, _THIRD),
        "quality at 1/2": lambda strategy: numbers.quality_at(strategy, _HALF),
        "average over pages": numbers.averages,
    }
    rows = [[strategy, *(mean_and_spread(values(strategy)) for values in columns.values())] for strategy in STRATEGIES]
    return PaperTable("Shares of all pages and of their quality", ["strategy", *columns], rows)


def _charts(numbers: QualityNumbers, shown: str) -> list[PaperChart]:
    name, steps = numbers.quality, [at / 40 for at in range(61)]
    pages = {s: (steps, [100 * _mean(numbers.pages_at(s, step)) for step in steps]) for s in STRATEGIES}
    in_time = {s: (steps, [100 * _mean(numbers.quality_at(s, step)) for step in steps]) for s in STRATEGIES}
    curves = {s: mean_curve([one["quality"] for one in numbers.of(s)]) for s in STRATEGIES}
    by_page = {s: (PERCENTS, [100 * y for y in curve]) for s, curve in curves.items()}
    of_time = "time (of that in which breadth-first fetches 90 %)"
    return [
        PaperChart(f"{name}-pages-time", "Pages against time", of_time, "pages fetched", pages, y_unit="%"),
        PaperChart(f"{name}-quality-pages", f"{shown} against pages", "pages fetched", shown, by_page, "%", "%"),
        PaperChart(f"{name}-quality-time", f"{shown} against time", of_time, shown, in_time, y_unit="%"),
    ]


def _claims_6(numbers: QualityNumbers) -> list[PaperClaim]:
    gain = _ratio(numbers.pages_at("performance", _HALF), numbers.pages_at("breadth-first", _HALF))
    quality_gain = _ratio(numbers.quality_at("performance", _HALF), numbers.quality_at("breadth-first", _HALF))
    best = {
        f"crawl-ability over {other}": at_least(
            "", "", differences(numbers.quality_at("crawl-ability", _HALF), numbers.quality_at(other, _HALF))
        )
        for other in ("quality", "performance", "breadth-first")
    }
    both = ("quality", "crawl-ability")
    early = {s: at_least("", "", [float(one["quality"][50]) for one in numbers.of(s)], 0.8) for s in both}
    soon = {s: at_least("", "", numbers.quality_at(s, _THIRD), 0.8) for s in both}
    return [
        at_least("6a: performance fetches more pages than breadth-first by the midpoint", "+50 %", gain),
        at_least("6a: it fetches half as many pages more", "+50 %", gain, 0.5),
        every("6b: quality and crawl-ability have 80 % of the quality before half of the pages", "> 80 %", early),
        every("6c: crawl-ability has the most quality at the midpoint", "best; quality next", best),
        every("6c: quality and crawl-ability have 80 % of the quality in a third of the time", "> 80 %", soon),
        at_least("6c: performance has half as much quality more than breadth-first at the midpoint", "+50 %", quality_gain, 0.5),
    ]  # fmt: skip


def _claims_7(numbers: QualityNumbers) -> list[PaperClaim]:
    per_page = differences(numbers.averages("crawl-ability"), numbers.averages("quality"))
    in_time = differences(numbers.quality_at("performance", _HALF), numbers.quality_at("quality", _HALF))
    third, half = (numbers.quality_at("crawl-ability", moment) for moment in (_THIRD, _HALF))
    return [
        at_least("7b: crawl-ability collects quality in fewer pages than quality does (average over the pages)", "better", per_page),
        at_least("7c: crawl-ability has 60 % of the quality in a third of the time", "> 60 %", third, 0.6),
        at_least("7c: crawl-ability has 80 % of the quality before the midpoint", "80 %", half, 0.8),
        at_least("7c: performance has more quality than quality at the midpoint", "better", in_time),
    ]  # fmt: skip


def _ratio(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [a / b - 1 for a, b in zip(one, other, strict=True)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
