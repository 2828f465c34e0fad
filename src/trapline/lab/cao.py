"""`cao`: the simulated figures of Cao et al. on two-level crawl scheduling by performance and quality.

The paper's crawls are not public. Whole crawls end in a long tail of slow sites, where every strategy waits for the same servers, so
the moments at which strategies are compared are fractions of the time in which breadth-first fetches 90 % of the pages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trapline.frontier import Rules
from trapline.lab.orders import PERCENTS, Floats, KnownWeb, Shelf, WebSource, at_percents, mean_and_spread, mean_curve
from trapline.lab.paper import PaperChart, PaperClaim, PaperItem, PaperTable, at_least, every
from trapline.lab.study import Result, StudyRun
from trapline.simulate import Crawl, simulate
from trapline.simulate.log import fetched
from trapline.simulate.metrics import average_cumulative_pagerank, cumulative
from trapline.simulate.modelled import modelled_servers
from trapline.strategies import load_strategy
from trapline.strategies.base.inputs import inputs_for, quality_values

STRATEGIES = ("breadth-first", "performance", "quality", "crawl-ability")
QUALITIES = ("pagerank", "zipf")
CONNECTIONS = 64
_TAIL = 90  # percent of the pages after which the tail of slow sites begins; ours
_HALF, _THIRD = 1 / 2, 1 / 3


@dataclass(frozen=True, slots=True)
class CaoCrawl:
    strategy: str
    quality: str

    @property
    def name(self) -> str:
        return f"{self.strategy}, quality by {self.quality}, r = {CONNECTIONS}, w = 0, k as servers allow, measured servers"


def crawl_run(shelf: Shelf, source: WebSource, given: CaoCrawl, seed: int) -> StudyRun:
    """Return the run of one crawl: times and qualities at each percent of its pages."""

    def compute() -> Result:
        web = shelf.web(source)
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

    return StudyRun(f"{source.name}; {given.name}", source.pages, compute)


def _crawled(web: KnownWeb, given: CaoCrawl, quality: Floats, seed: int) -> Crawl:
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


class Cao:
    """All runs that the figures need, and the figures made from their results."""

    def __init__(self, webs: Sequence[WebSource]) -> None:
        self._webs, self._shelf = webs, Shelf()
        self._results: Mapping[str, Result] = {}

    def runs(self) -> list[StudyRun]:
        crawls = [CaoCrawl(strategy, quality) for quality in QUALITIES for strategy in STRATEGIES]
        return [crawl_run(self._shelf, web, crawl, seed) for seed, web in enumerate(self._webs, 1) for crawl in crawls]

    def judged(self, results: Mapping[str, Result]) -> list[PaperItem]:
        self._results = results
        return [self._figure("fig. 6", "pagerank", self._claims_6()), self._figure("fig. 7", "zipf", self._claims_7())]

    # ---- numbers, one per web

    def _of(self, strategy: str, quality: str) -> list[Result]:
        return [self._results[f"{web.name}; {CaoCrawl(strategy, quality).name}"] for web in self._webs]

    def _moments(self, quality: str, fraction: float) -> list[float]:
        return [fraction * float(one["seconds"][_TAIL]) for one in self._of("breadth-first", quality)]

    def _pages_at(self, strategy: str, quality: str, fraction: float) -> list[float]:
        """Return the share of the pages that a crawl has fetched at a fraction of breadth-first's time."""
        pairs = zip(self._of(strategy, quality), self._moments(quality, fraction), strict=True)
        return [float(np.interp(moment, one["seconds"], PERCENTS)) / 100 for one, moment in pairs]

    def _quality_at(self, strategy: str, quality: str, fraction: float) -> list[float]:
        pairs = zip(self._of(strategy, quality), self._pages_at(strategy, quality, fraction), strict=True)
        return [float(np.interp(100 * pages, PERCENTS, one["quality"])) for one, pages in pairs]

    # ---- claims

    def _claims_6(self) -> list[PaperClaim]:
        name = "pagerank"
        gain = _ratio(self._pages_at("performance", name, _HALF), self._pages_at("breadth-first", name, _HALF))
        quality_gain = _ratio(
            self._quality_at("performance", name, _HALF), self._quality_at("breadth-first", name, _HALF)
        )
        best = {
            f"crawl-ability - {other}": at_least(
                "", "", _minus(self._quality_at("crawl-ability", name, _HALF), self._quality_at(other, name, _HALF))
            )
            for other in ("quality", "performance", "breadth-first")
        }
        return [
            at_least("6a: performance fetches more pages than breadth-first by the midpoint", "+50 %", gain),
            at_least("6a: it fetches half as many pages more", "+50 %", gain, 0.5),
            self._above(
                "6b: quality and crawl-ability have 80 % of the quality before half of the pages", name, 50, 0.8
            ),
            every("6c: crawl-ability has the most quality at the midpoint", "best; quality next", best),
            self._above_in_time(
                "6c: quality and crawl-ability have 80 % of the quality in a third of the time", name, _THIRD, 0.8
            ),
            at_least(
                "6c: performance has half as much quality more than breadth-first at the midpoint",
                "+50 %",
                quality_gain,
                0.5,
            ),
        ]

    def _claims_7(self) -> list[PaperClaim]:
        name = "zipf"
        averages = {strategy: [float(one["average"]) for one in self._of(strategy, name)] for strategy in STRATEGIES}
        per_page = _minus(averages["crawl-ability"], averages["quality"])
        in_time = _minus(self._quality_at("performance", name, _HALF), self._quality_at("quality", name, _HALF))
        third = [value - 0.6 for value in self._quality_at("crawl-ability", name, _THIRD)]
        half = [value - 0.8 for value in self._quality_at("crawl-ability", name, _HALF)]
        return [
            at_least(
                "7b: crawl-ability collects quality in fewer pages than quality does (average over the pages)",
                "better",
                per_page,
            ),
            at_least("7c: crawl-ability has 60 % of the quality in a third of the time", "> 60 %", third),
            at_least("7c: crawl-ability has 80 % of the quality before the midpoint", "80 %", half),
            at_least("7c: performance has more quality than quality at the midpoint", "better", in_time),
        ]

    def _above(self, text: str, quality: str, percent: int, least: float) -> PaperClaim:
        parts = {
            strategy: at_least("", "", [float(one["quality"][percent]) - least for one in self._of(strategy, quality)])
            for strategy in ("quality", "crawl-ability")
        }
        return every(text, f"> {least:.0%}", parts)

    def _above_in_time(self, text: str, quality: str, fraction: float, least: float) -> PaperClaim:
        parts = {
            strategy: at_least("", "", [value - least for value in self._quality_at(strategy, quality, fraction)])
            for strategy in ("quality", "crawl-ability")
        }
        return every(text, f"> {least:.0%}", parts)

    # ---- charts

    def _figure(self, name: str, quality: str, claims: Sequence[PaperClaim]) -> PaperItem:
        shown = "PageRank" if quality == "pagerank" else "Zipf quality"
        steps = [at / 40 for at in range(61)]
        pages = {s: (steps, [100 * _mean(self._pages_at(s, quality, step)) for step in steps]) for s in STRATEGIES}
        in_time = {s: (steps, [100 * _mean(self._quality_at(s, quality, step)) for step in steps]) for s in STRATEGIES}
        by_page = {
            s: (PERCENTS, [100 * y for y in mean_curve([one["quality"] for one in self._of(s, quality)])])
            for s in STRATEGIES
        }
        of_time = "time (of that in which breadth-first fetches 90 %)"
        charts = [
            PaperChart(f"{quality}-pages-time", "Pages against time", of_time, "pages fetched", pages, y_unit="%"),
            PaperChart(f"{quality}-quality-pages", f"{shown} against pages", "pages fetched", shown, by_page, "%", "%"),
            PaperChart(f"{quality}-quality-time", f"{shown} against time", of_time, shown, in_time, y_unit="%"),
        ]
        rows = [
            [
                strategy,
                mean_and_spread(self._pages_at(strategy, quality, _HALF)),
                mean_and_spread(self._quality_at(strategy, quality, _THIRD)),
                mean_and_spread(self._quality_at(strategy, quality, _HALF)),
                mean_and_spread([float(one["average"]) for one in self._of(strategy, quality)]),
            ]
            for strategy in STRATEGIES
        ]
        head = ["strategy", "pages at 1/2", "quality at 1/3", "quality at 1/2", "average over pages"]
        setting = f"r = {CONNECTIONS}, w = 0, k as servers allow, measured servers; times are relative to breadth-first's for 90 %"
        return PaperItem(
            name,
            f"Performance and quality, by {shown}",
            setting,
            claims,
            [PaperTable("Shares of all pages and of their quality", head, rows)],
            charts,
        )


def _minus(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [a - b for a, b in zip(one, other, strict=True)]


def _ratio(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [a / b - 1 for a, b in zip(one, other, strict=True)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
