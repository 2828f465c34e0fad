"""Crawl orders in `castillo` and `thesis`: cumulative PageRank against pages, the table of strategies, the number of connections,
and historical PageRank. Every page takes a second, so that only the order counts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trapline.lab.paper import (
    PaperChart,
    PaperClaim,
    PaperItem,
    PaperPart,
    PaperTable,
    Results,
    at_least,
    because,
    differences,
    every,
    within,
)
from trapline.lab.simulated import (
    PERCENTS,
    OrderCrawl,
    best_key,
    best_run,
    history_key,
    history_run,
    mean_and_spread,
    mean_curve,
    order_key,
    order_run,
)
from trapline.lab.webs import WebCache, WebSource

# thesis, table 4.1: average cumulative PageRank and Kendall's tau, means over four collections; historical orders on one pair.
PUBLISHED = {
    "backlink-count": (0.4952, 0.0157),
    "partial-pagerank": (0.5221, 0.0236),
    "breadth-first": (0.6425, 0.1293),
    "batch-pagerank": (0.6341, 0.1961),
    "opic": (0.6709, 0.2229),
    "larger-sites-first": (0.6749, 0.2498),
    "omniscient": (0.7427, 0.6504),
}
HISTORICAL = {
    "historical-pagerank-zero": (0.6758, 0.3573),
    "historical-pagerank-random": (0.6977, 0.3689),
    "historical-pagerank-parent": (0.7074, 0.3520),
    "historical-pagerank-omniscient": (0.7731, 0.6385),
}
CASTILLO = ("omniscient", "larger-sites-first", "batch-pagerank", "partial-pagerank", "depth")
THESIS = (*PUBLISHED, "random")
CONNECTIONS = (1, 64, 256)
DAYS = 122.0  # the thesis' two crawls were four months apart
LENGTH = "larger-sites-first"
_BEST = "upper bound: best pages first"
_SAME = 0.02  # difference of average cumulative PageRank that counts as none; ours
_NEAR = 0.05  # the same for shares of PageRank; ours
_SETTING = "r = 1, w = 15 s, k = 1, a page takes a second"


@dataclass(frozen=True, slots=True)
class OrderNumbers:
    """The numbers of crawl orders, one per web."""

    results: Results
    webs: Sequence[WebSource]

    def of(self, crawl: OrderCrawl, number: str) -> list[float]:
        return [float(self.results[order_key(web, crawl)][number]) for web in self.webs]

    def averages(self, strategy: str) -> list[float]:
        return self.of(OrderCrawl(strategy), "average")

    def at(self, strategy: str, percent: int) -> list[float]:
        """Return the share of the PageRank that a crawl has after a percentage of the pages."""
        return [float(self.results[order_key(web, OrderCrawl(strategy))]["curve"][percent]) for web in self.webs]

    def lead(self, one: str, other: str) -> PaperClaim:
        """Judge whether a strategy has a larger average than another one."""
        return at_least("", "", differences(self.averages(one), self.averages(other)))

    def curve(self, crawl: OrderCrawl) -> tuple[Sequence[float], list[float]]:
        return PERCENTS, _percent([self.results[order_key(web, crawl)]["curve"] for web in self.webs])


def _percent(curves: Sequence[Sequence[float]]) -> list[float]:
    return [100 * y for y in mean_curve(curves)]


def _pagerank_chart(name: str, curves: dict[str, tuple[Sequence[float], list[float]]], best: str = "") -> PaperChart:
    share = "PageRank of the pages fetched so far"
    return PaperChart(name, "PageRank against pages", "pages fetched", share, curves, "%", "%", best)


# ---- cumulative PageRank: fig. 5 and t. fig. 4.3-4.5


def cumulative_pagerank(
    name: str,
    strategies: Sequence[str],
    judge: Callable[[OrderNumbers], list[PaperClaim]],
    cache: WebCache,
    webs: Sequence[WebSource],
) -> PaperPart:
    orders = [order_run(cache, web, OrderCrawl(strategy)) for web in webs for strategy in strategies]

    def items(results: Results) -> list[PaperItem]:
        numbers = OrderNumbers(results, webs)
        curves = {strategy: numbers.curve(OrderCrawl(strategy)) for strategy in strategies}
        curves[_BEST] = PERCENTS, _percent([results[best_key(web)]["curve"] for web in webs])
        chart = _pagerank_chart("orders", curves, _BEST)
        setting = f"{_SETTING}; means over the webs"
        return [PaperItem(name, "Cumulative PageRank against pages", setting, judge(numbers), charts=[chart])]

    return PaperPart([*orders, *(best_run(cache, web) for web in webs)], items)


def castillo_claims(numbers: OrderNumbers) -> list[PaperClaim]:
    others = {"Batch": "batch-pagerank", "Partial": "partial-pagerank", "Depth": "depth"}
    leads = {f"over {name}": numbers.lead(LENGTH, strategy) for name, strategy in others.items()}
    text = "Length is better than Batch, Partial and Depth: difference of the average cumulative PageRank"
    late = differences(numbers.at(LENGTH, 80), numbers.at("omniscient", 80))
    overtaken = "Optimal is overtaken late: at 80 % of the pages, Length has more PageRank"
    return [
        because(every(text, "Length > Batch, Partial, Depth", leads), _CAP),
        because(at_least(overtaken, "overtaken", late), _NOT_GREEDY),
    ]


_CAP = "larger-sites-first is better on generated webs without a cap on the size of sites"
_NOT_GREEDY = "on these webs the order by PageRank stays ahead; why is open"
_NOT_STUCK = (
    "nor are they on recorded graphs (docs/strategies.md), and link farms and calendars do not change that; why is open"
)


def thesis_claims(numbers: OrderNumbers) -> list[PaperClaim]:
    stuck, good = ("backlink-count", "partial-pagerank"), ("batch-pagerank", LENGTH, "opic")
    diagonal = {name: at_least("", "", [0.5 - x for x in numbers.averages(name)]) for name in stuck}
    below = {name: numbers.lead("random", name) for name in stuck}
    best = {f"over {name}": numbers.lead("omniscient", name) for name in THESIS if name != "omniscient"}
    end = [(b - a) / 0.2 - 1 for a, b in zip(numbers.at("omniscient", 80), numbers.at("omniscient", 100), strict=True)]
    early = [max(values) for values in zip(*(numbers.at(name, 25) for name in good), strict=True)]
    halves = {name: at_least("", "", numbers.at(name, 30), 0.5) for name in good}
    flat = "it leaves pages of low PageRank to the end, so that it gains less than the diagonal there"
    texts = {
        "diagonal": "Backlink-count and partial-pagerank are worse than a random order of all pages, whose average is .5",
        "below": "They are worse than the strategy random, which follows links too",
        "end": "Omniscient ends close to random: slope of its last 20 % less that of the diagonal, at most .2",
        "early": "Breadth-first is close to the best at 25 % of the pages: at most .05 below batch, larger-sites-first, OPIC",
        "halves": "Batch, larger-sites-first and OPIC have half of the PageRank at 30 % of the pages: share",
    }
    return [
        because(every(texts["diagonal"], "below random", diagonal), _NOT_STUCK),
        because(every(texts["below"], "below random", below), _NOT_STUCK),
        every("Omniscient has the best average", "the best", best),
        because(within(texts["end"], "close to random", end, 0.2), flat),
        at_least(texts["early"], "close", differences(numbers.at("breadth-first", 25), early), -_NEAR),
        because(every(texts["halves"], "half at 20-30 %", halves), _CAP),
    ]


# ---- t. table 4.1

_HEAD = ("strategy", "average, published", "average, ours", "tau, published", "tau, ours")


def strategy_table(name: str, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    def items(results: Results) -> list[PaperItem]:
        numbers = OrderNumbers(results, webs)
        rows = [_strategy_row(numbers, strategy, PUBLISHED) for strategy in THESIS]
        ranked = sorted(PUBLISHED, key=lambda strategy: PUBLISHED[strategy][0])
        agreed = [
            agreement(values) for values in zip(*(numbers.averages(strategy) for strategy in ranked), strict=True)
        ]
        text = "The strategies are in the published order: share of pairs in the same order; chance gives .5"
        claim = at_least(text, "1", agreed, 0.5)
        table = PaperTable("Average cumulative PageRank and Kendall's tau, means ± 95 % interval", _HEAD, rows)
        note = "The published means are over four collections; those of historical strategies are in fig. 4.6."
        return [PaperItem(name, "Strategies compared", _SETTING, [claim], [table], notes=[note])]

    return PaperPart([order_run(cache, web, OrderCrawl(strategy)) for web in webs for strategy in THESIS], items)


def _strategy_row(numbers: OrderNumbers, strategy: str, published: Mapping[str, tuple[float, float]]) -> list[str]:
    average, tau = (f"{x:.4f}" for x in published[strategy]) if strategy in published else ("-", "-")
    ours = [mean_and_spread(numbers.of(OrderCrawl(strategy), number)) for number in ("average", "tau")]
    return [strategy, average, ours[0], tau, ours[1]]


def agreement(values: Sequence[float]) -> float:
    """Return the share of pairs that ascend.

    >>> agreement([1.0, 3.0, 2.0])
    0.6666666666666666
    """
    pairs = [(low, high) for low in range(len(values)) for high in range(low + 1, len(values))]
    return sum(values[low] < values[high] for low, high in pairs) / len(pairs)


# ---- number of connections: fig. 6 and t. fig. 4.7


def connections(name: str, other: str, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    """Return the part on larger-sites-first and another strategy with 1, 64 and 256 connections."""
    strategies = (LENGTH, other)
    crawls = {(strategy, r): OrderCrawl(strategy, r) for strategy in strategies for r in CONNECTIONS}

    def items(results: Results) -> list[PaperItem]:
        numbers = OrderNumbers(results, webs)
        averages = {key: numbers.of(crawl, "average") for key, crawl in crawls.items()}
        gains = {s: differences(averages[s, CONNECTIONS[-1]], averages[s, 1]) for s in strategies}
        rows = [[s, *(mean_and_spread(averages[s, r]) for r in CONNECTIONS)] for s in strategies]
        text = "Larger-sites-first does not depend on r: the averages with 1 and 256 connections differ by at most .02"
        claims = [
            within(text, "stable", gains[LENGTH], _SAME),
            at_least(f"{other.capitalize()} improves with r", "improves", gains[other]),
        ]
        table = PaperTable("Average cumulative PageRank", ["strategy", *(f"r = {r}" for r in CONNECTIONS)], rows)
        curves = {f"{s}, r = {r}": numbers.curve(crawl) for (s, r), crawl in crawls.items()}
        setting = "w = 15 s, k = 1, a page takes a second"
        chart = _pagerank_chart("connections", curves)
        return [PaperItem(name, "Number of connections", setting, claims, [table], [chart])]

    return PaperPart([order_run(cache, web, crawl) for web in webs for crawl in crawls.values()], items)


# ---- historical PageRank: t. fig. 4.6


def historical(name: str, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    strategies = (*HISTORICAL, "opic", "omniscient")
    runs = [order_run(cache, web, OrderCrawl(strategy)) for web in webs for strategy in strategies]

    def items(results: Results) -> list[PaperItem]:
        numbers = OrderNumbers(results, webs)
        rows = [_strategy_row(numbers, strategy, HISTORICAL) for strategy in strategies]
        ranked = sorted(HISTORICAL, key=lambda strategy: HISTORICAL[strategy][0])
        steps = {f"{high} over {low}": numbers.lead(high, low) for low, high in pairwise(ranked)}
        over_opic = {strategy: numbers.lead(strategy, "opic") for strategy in HISTORICAL}
        claims = [
            every("The historical orders are in the published order", "zero < random < parent < omniscient", steps),
            every("Old PageRank does no harm: each historical order is better than OPIC", "not detrimental", over_opic),
        ]
        table = PaperTable("Average cumulative PageRank and Kendall's tau", _HEAD, rows)
        chart = _pagerank_chart("historical", {s: numbers.curve(OrderCrawl(s)) for s in strategies})
        found = [results[history_key(web)] for web in webs]
        new, old = (mean_and_spread([100 * float(one[key]) for one in found], 1) for key in ("new", "old_pagerank"))
        note = f"New pages: {new} % (published: 45 %); PageRank of the old pages: {old} % (published: 72 %)."
        setting = f"{_SETTING}; a generated web after {DAYS:g} days, with the PageRank of day 0"
        return [PaperItem(name, "Historical PageRank", setting, claims, [table], [chart], [note])]

    return PaperPart([*runs, *(history_run(cache, web) for web in webs)], items)
