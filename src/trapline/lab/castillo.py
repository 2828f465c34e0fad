"""`castillo` and `thesis`: the simulated tables and figures of Castillo, Marin, Rodriguez and Baeza-Yates, "Scheduling
Algorithms for Web Crawling" (2004), and of chapter 4 of Castillo's thesis (2004), which has the same experiments and more.

The papers' crawls are not public. Every web here is ours; the published numbers stand beside the results, and nothing is tuned
towards them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trapline.lab.orders import (
    PERCENTS,
    OrderCrawl,
    Shelf,
    WebSource,
    best_run,
    mean_and_spread,
    mean_curve,
    order_run,
    sites_run,
    speed_run,
)
from trapline.lab.paper import FAILS, HOLDS, PaperChart, PaperClaim, PaperItem, PaperTable, at_least, every, within
from trapline.lab.study import Result, StudyRun

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
ORDERS = (*PUBLISHED, "depth", "random")
# castillo04, table I, and thesis, table 4.2: speed-up of larger-sites-first by bytes per second, for r = 1, 64 and 256.
BANDWIDTHS = (200.0, 2e3, 2e4, 2e5, 2e6, 2e7)
SPEED_UPS = {
    1: (0.2, 0.7, 1.0, 1.0, 1.0, 1.0),
    64: (1.6, 3.8, 27.0, 43.0, 54.3, 54.6),
    256: (3.0, 16.0, 83.3, 114.1, 204.3, 220.1),
}
CONNECTIONS = tuple(SPEED_UPS)
DAYS = 122.0  # the thesis' two crawls were four months apart
_BEST = "upper bound: best pages first"
_SAME = 0.02  # difference of average cumulative PageRank that counts as none; ours
_PART = 0.1  # share of the pages that the crawls of table I fetch


@dataclass(frozen=True, slots=True)
class CastilloWebs:
    orders: Sequence[WebSource]
    """for orders"""
    histories: Sequence[WebSource]
    """the same kind, evolved"""
    speeds: Sequence[WebSource]
    """for speed"""


class Castillo:
    """All runs that the tables and figures need, and the tables and figures made from their results."""

    def __init__(self, webs: CastilloWebs) -> None:
        self._webs, self._shelf = webs, Shelf()
        self._results: Mapping[str, Result] = {}

    # ---- runs

    def runs(self) -> list[StudyRun]:
        return [run for web in self._webs.orders for run in self._of_orders(web)] + [
            run
            for webs, of_web in ((self._webs.histories, self._of_histories), (self._webs.speeds, self._of_speeds))
            for web in webs
            for run in of_web(web)
        ]

    def _of_orders(self, web: WebSource) -> list[StudyRun]:
        crawls = [OrderCrawl(strategy) for strategy in ORDERS]
        crawls += [OrderCrawl(strategy, connections) for strategy in _BY_CONNECTIONS for connections in CONNECTIONS[1:]]
        orders = [order_run(self._shelf, web, crawl) for crawl in crawls]
        return [sites_run(self._shelf, web), best_run(self._shelf, web), *orders]

    def _of_histories(self, web: WebSource) -> list[StudyRun]:
        return [order_run(self._shelf, web, OrderCrawl(strategy)) for strategy in (*HISTORICAL, "opic", "omniscient")]

    def _of_speeds(self, web: WebSource) -> list[StudyRun]:
        crawls = [_reference(), *(crawl for per in _PER for row in _table_one(per).values() for crawl in row.values())]
        return [speed_run(self._shelf, web, crawl) for crawl in (*crawls, *_BATCHES.values())]

    # ---- results

    def judged(self, results: Mapping[str, Result]) -> list[PaperItem]:
        self._results = results
        return [
            self._sites(),
            self._orders(),
            self._table_of_orders(),
            self._by_connections(),
            self._historical(),
            *(self._speed_up(per) for per in _PER),
            self._batches(),
        ]

    def _values(self, crawl: OrderCrawl, number: str, webs: Sequence[WebSource] | None = None) -> list[float]:
        keys = (f"{web.name}; order of {crawl.name}" for web in webs or self._webs.orders)
        return [float(self._results[key][number]) for key in keys]

    def _at(self, strategy: str, percent: int) -> list[float]:
        keys = (f"{web.name}; order of {OrderCrawl(strategy).name}" for web in self._webs.orders)
        return [float(self._results[key]["curve"][percent]) for key in keys]

    def _sites(self) -> PaperItem:
        found = [self._results[f"{web.name}; pages per site"] for web in self._webs.orders]
        largest = [float(one["largest_share"]) for one in found]
        first = found[0]
        middles = [math.sqrt(a * b) for a, b in zip(first["bounds"], first["bounds"][1:], strict=False)]
        claim = PaperClaim(
            "The largest site has at most 0.7 % of the pages",
            "25,000 of 3.5 M pages",
            f"{mean_and_spread([100 * one for one in largest])} %",
            HOLDS if max(largest) <= 0.0071 else FAILS,
            "" if max(largest) <= 0.0071 else "a web of few sites cannot have this cap and differ in the size of sites",
        )
        curve = ([math.log10(x) for x in middles], [math.log10(max(1, n)) for n in first["sites"]])
        chart = PaperChart(
            "sites", "Pages per site", "pages of a site (log10)", "sites (log10)", {self._webs.orders[0].name: curve}
        )
        return PaperItem(
            "fig. 3", "Pages per site", "the web itself; sites in classes by powers of two", [claim], charts=[chart]
        )

    def _orders(self) -> PaperItem:
        curves = {
            strategy: (
                PERCENTS,
                [100 * y for y in mean_curve([self._results[key]["curve"] for key in self._keys(strategy)])],
            )
            for strategy in ORDERS
        }
        best = mean_curve([self._results[f"{web.name}; best pages first"]["curve"] for web in self._webs.orders])
        curves[_BEST] = (PERCENTS, [100 * y for y in best])
        chart = PaperChart(
            "orders",
            "PageRank against pages",
            "pages fetched",
            "PageRank of the pages fetched so far",
            curves,
            "%",
            "%",
            _BEST,
        )
        return PaperItem(
            "fig. 5, t. fig. 4.3-4.5",
            "Cumulative PageRank against pages",
            "r = 1, w = 15 s, k = 1, a page takes a second; means over the webs",
            self._order_claims(),
            charts=[chart],
        )

    def _keys(self, strategy: str) -> list[str]:
        return [f"{web.name}; order of {OrderCrawl(strategy).name}" for web in self._webs.orders]

    def _order_claims(self) -> list[PaperClaim]:
        def lead(one: str, other: str) -> list[float]:
            pairs = zip(
                self._values(OrderCrawl(one), "average"), self._values(OrderCrawl(other), "average"), strict=True
            )
            return [a - b for a, b in pairs]

        def parts(pairs: Sequence[tuple[str, str]]) -> dict[str, PaperClaim]:
            return {f"{one} - {other}": at_least("", "", lead(one, other)) for one, other in pairs}

        late = [b - a for a, b in zip(self._at("omniscient", 80), self._at("larger-sites-first", 80), strict=True)]
        early = [
            self._at("breadth-first", 25)[at]
            - max(self._at(name, 25)[at] for name in ("opic", "batch-pagerank", "larger-sites-first"))
            for at in range(len(self._webs.orders))
        ]
        halves = {
            name: at_least("", "", [x - 0.5 for x in self._at(name, 30)])
            for name in ("batch-pagerank", "larger-sites-first", "opic")
        }
        length = "larger-sites-first"
        return [
            every(
                "Length is better than Batch, Partial and Depth",
                "Length > Batch, Partial, Depth",
                parts([(length, "batch-pagerank"), (length, "partial-pagerank"), (length, "depth")]),
            ),
            every(
                "Backlink and Partial are worse than a random order of all pages, which has .5",
                "below random",
                {
                    name: at_least("", "", [0.5 - x for x in self._values(OrderCrawl(name), "average")])
                    for name in ("backlink-count", "partial-pagerank")
                },
            ),
            at_least("Omniscient is overtaken late: at 80 % of the pages it is below Length", "overtaken", late),
            at_least(
                "Breadth-first is near the best until 20-30 % of the pages: at 25 %, at most .05 below the best of Batch, Length, OPIC",
                "near",
                early,
                -0.05,
            ),
            every(
                "Batch, Length and OPIC get half of the PageRank from 20-30 % of the pages", "half at 20-30 %", halves
            ),
        ]

    def _table_of_orders(self) -> PaperItem:
        rows = []
        for strategy in ORDERS:
            published = PUBLISHED.get(strategy)
            rows.append(
                [
                    strategy,
                    f"{published[0]:.4f}" if published else "-",
                    mean_and_spread(self._values(OrderCrawl(strategy), "average")),
                    f"{published[1]:.4f}" if published else "-",
                    mean_and_spread(self._values(OrderCrawl(strategy), "tau")),
                ]
            )
        ranked = sorted(PUBLISHED, key=lambda name: PUBLISHED[name][0])
        agree = [
            _agreement(ranked, [self._values(OrderCrawl(name), "average")[at] for name in ranked])
            for at in range(len(self._webs.orders))
        ]
        claim = at_least(
            "The strategies are in the published order: share of pairs in the same order, more than half",
            "1",
            [x - 0.5 for x in agree],
            reason="0.5 is what chance gives",
        )
        head = ["strategy", "average, published", "average, ours", "tau, published", "tau, ours"]
        table = PaperTable("Average cumulative PageRank and Kendall's tau", head, rows)
        return PaperItem(
            "t. table 4.1", "Strategies compared", "as fig. 5; means over the webs ± 95 % interval", [claim], [table]
        )

    def _by_connections(self) -> PaperItem:
        changes = {
            strategy: [
                b - a
                for a, b in zip(
                    self._values(OrderCrawl(strategy), "average"),
                    self._values(OrderCrawl(strategy, 256), "average"),
                    strict=True,
                )
            ]
            for strategy in _BY_CONNECTIONS
        }
        rows = [
            [strategy, *(mean_and_spread(self._values(OrderCrawl(strategy, r), "average")) for r in CONNECTIONS)]
            for strategy in _BY_CONNECTIONS
        ]
        claims = [
            within(
                "Length does not depend on r: 1 and 256 differ by at most .02",
                "stable",
                changes["larger-sites-first"],
                _SAME,
            ),
            at_least("Depth improves with r", "improves", changes["depth"]),
        ]
        table = PaperTable("Average cumulative PageRank", ["strategy", *(f"r = {r}" for r in CONNECTIONS)], rows)
        return PaperItem(
            "fig. 6, t. fig. 4.7", "Number of connections", "w = 15 s, k = 1, a page takes a second", claims, [table]
        )

    def _historical(self) -> PaperItem:
        rows, averages = [], {}
        for strategy in (*HISTORICAL, "opic", "omniscient"):
            averages[strategy] = self._values(OrderCrawl(strategy), "average", self._webs.histories)
            published = HISTORICAL.get(strategy)
            rows.append([strategy, f"{published[0]:.4f}" if published else "-", mean_and_spread(averages[strategy])])
        ranked = sorted(HISTORICAL, key=lambda name: HISTORICAL[name][0])
        steps = {
            f"{better} - {worse}": at_least(
                "", "", [a - b for a, b in zip(averages[better], averages[worse], strict=True)]
            )
            for worse, better in pairwise(ranked)
        }
        claim = every("The historical orders are in the published order", "zero < random < parent < omniscient", steps)
        table = PaperTable("Average cumulative PageRank", ["strategy", "published", "ours"], rows)
        setting = f"as fig. 5; a generated web after {DAYS:g} days, history from day 0"
        return PaperItem("t. fig. 4.6, table 4.1", "Historical PageRank", setting, [claim], [table])

    def _speed_up(self, per: str) -> PaperItem:
        table = _table_one(per)
        means: dict[int, list[float]] = {r: [] for r in CONNECTIONS}
        rows = []
        for at, bandwidth in enumerate(BANDWIDTHS):
            row = [f"{bandwidth:,.0f}"]
            for r in CONNECTIONS:
                values = self._speed_ups(table[r][bandwidth])
                means[r].append(sum(values) / len(values))
                row += [f"{SPEED_UPS[r][at]:g}", mean_and_spread(values, 2)]
            rows.append(row)
        head = ["B, bytes/s", *(text for r in CONNECTIONS for text in (f"r = {r}, published", "ours"))]
        reading = "the link is shared by all connections" if per == "link" else "each connection has the bandwidth B"
        charts = [
            PaperChart(
                f"speed-up-{per}",
                f"Speed-up, {reading}",
                "bytes per second (log10)",
                "speed-up",
                {
                    **{f"r = {r}": ([math.log10(b) for b in BANDWIDTHS], means[r]) for r in CONNECTIONS},
                    **{
                        f"r = {r}, published": ([math.log10(b) for b in BANDWIDTHS], SPEED_UPS[r])
                        for r in CONNECTIONS[1:]
                    },
                },
            )
        ]
        grows = {
            f"r = 256 over 64 at {b:,.0f}": at_least(
                "",
                "",
                [a - c for a, c in zip(self._speed_ups(table[256][b]), self._speed_ups(table[64][b]), strict=True)],
            )
            for b in BANDWIDTHS
        }
        claim = every("256 connections are faster than 64 at every bandwidth", "yes", grows)
        setting = (
            f"larger-sites-first, w = 15 s, k = 1, measured servers, the first {_PART:.0%} of the pages; {reading}"
        )
        return PaperItem(
            "table I, t. table 4.2, t. fig. 4.8",
            f"Speed-up, B per {per}",
            setting,
            [claim],
            [PaperTable("Speed-up over one connection on an unlimited link", head, rows)],
            charts,
        )

    def _speed_ups(self, crawl: OrderCrawl) -> list[float]:
        def rates(given: OrderCrawl) -> list[float]:
            return [
                float(self._results[f"{web.name}; speed of {given.name}"]["pages_per_second"])
                for web in self._webs.speeds
            ]

        return [a / b for a, b in zip(rates(crawl), rates(_reference()), strict=True)]

    def _batches(self) -> PaperItem:
        found = {
            name: [self._results[f"{web.name}; speed of {crawl.name}"] for web in self._webs.speeds]
            for name, crawl in _BATCHES.items()
        }
        steps = [100 * (at + 0.5) / 60 for at in range(60)]
        chart = PaperChart(
            "batch-connections",
            "Connections at work during a batch",
            "time of the batch",
            "connections at work",
            {
                name: (steps, [100 * y for y in mean_curve([one["active"] for one in runs])])
                for name, runs in found.items()
            },
            "%",
            "%",
        )
        rows = [
            [name, _PUBLISHED_HOURS[name], mean_and_spread([float(one["hours"]) for one in runs], 2)]
            for name, runs in found.items()
        ]
        gains = {
            f"{bandwidth}": at_least(
                "",
                "",
                [
                    1 - float(b["hours"]) / float(a["hours"])
                    for a, b in zip(found[f"B = {bandwidth}, k = 1"], found[f"B = {bandwidth}, k = 100"], strict=True)
                ],
            )
            for bandwidth in ("2 kB/s", "20 kB/s")
        }
        claims = [
            every("A batch with k = 100 is shorter than with k = 1", "33 to 29 h, 9 to 3 h", gains),
        ]
        table = PaperTable("Hours of one batch", ["crawl", "published, 100,000 pages", "ours"], rows)
        setting = f"larger-sites-first, r = 1000, w = 15 s, B per connection, measured servers; {_PART:.0%} of the pages as a batch"
        return PaperItem("fig. 7-9, t. fig. 4.9-4.11", "One batch", setting, claims, [table], [chart])


_BY_CONNECTIONS = ("larger-sites-first", "depth", "breadth-first")
_PER = ("link", "connection")


def _reference() -> OrderCrawl:
    return OrderCrawl("larger-sites-first", servers="measured", share=_PART)


def _table_one(per: str) -> dict[int, dict[float, OrderCrawl]]:
    return {
        r: {
            b: OrderCrawl("larger-sites-first", r, bandwidth=b, bandwidth_per=per, servers="measured", share=_PART)
            for b in BANDWIDTHS
        }
        for r in CONNECTIONS
    }


_BATCHES = {
    f"B = {text}, k = {k}": OrderCrawl("larger-sites-first", 1000, 15.0, k, b, "connection", "measured", _PART)
    for text, b in (("2 kB/s", 2e3), ("20 kB/s", 2e4))
    for k in (1, 100)
}
_PUBLISHED_HOURS = {
    "B = 2 kB/s, k = 1": "33",
    "B = 2 kB/s, k = 100": "29",
    "B = 20 kB/s, k = 1": "9",
    "B = 20 kB/s, k = 100": "3",
}


def _agreement(ranked: Sequence[str], values: Sequence[float]) -> float:
    """Return the share of pairs whose values are in the order of the names.

    >>> _agreement(["a", "b", "c"], [1.0, 3.0, 2.0])
    0.6666666666666666
    """
    pairs = [(low, high) for low in range(len(ranked)) for high in range(low + 1, len(ranked))]
    return sum(values[low] < values[high] for low, high in pairs) / len(pairs)
