"""How well simulated crawls predict live ones in `thesis` (fig. 4.15): the order of the pages, and quality over time.

The order is that of the live crawls of the other figures (`real_crawls.py`). For quality over time, simulator and test web have the same
servers, with slow start, serial server time and a cost of closing (`lab/live_servers.py`).
"""

from collections.abc import Sequence

import numpy as np

from trapline.lab.castillo.real_crawls import LENGTH, SETTING, live_results, live_run
from trapline.lab.live_servers import LiveSetting, compared
from trapline.lab.paper import (
    PaperChart,
    PaperItem,
    PaperPart,
    PaperTable,
    Results,
    at_least,
    differences,
    within,
)
from trapline.lab.simulated import PERCENTS, mean_and_spread, mean_curve
from trapline.lab.study import Result, StudyRun
from trapline.lab.webs import WebCache, WebSource
from trapline.servers.model import MODELS

_AGREES = 0.05  # difference of simulated and live quality that counts as agreement


# ---- order: PageRank against pages


def order(name: str, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    def items(results: Results) -> list[PaperItem]:
        found = live_results(results, webs, LENGTH)
        gaps = [differences(one["curve"][10:], one["simulated"][10:]) for one in found]
        above, apart = [float(np.mean(gap)) for gap in gaps], [max(map(abs, gap)) for gap in gaps]
        near = "They differ by at most .05 of the PageRank after the first tenth of the pages: largest difference"
        claims = [
            at_least(
                "The live crawl is slightly above the simulated one, on average over the pages", "slightly above", above
            ),
            within(near, "consistent", apart, _AGREES),
        ]
        curves = {
            label: (PERCENTS, [100 * y for y in mean_curve([one[key] for one in found])])
            for label, key in (("live", "curve"), ("simulated", "simulated"))
        }
        share = "PageRank of the pages fetched so far"
        chart = PaperChart("live", "Live and simulated crawl", "pages fetched", share, curves, "%", "%")
        setting = f"{LENGTH}; {SETTING}; simulated with the same latencies"
        return [PaperItem(name, "Live and simulated crawl", setting, claims, charts=[chart])]

    return PaperPart([live_run(cache, web, LENGTH, seed) for seed, web in enumerate(webs, 1)], items)


# ---- quality over time

CONNECTIONS, DELAY_S, PER_CONNECTION, MODEL = 32, 2.0, 10, "measured-tcp"
SHARE = 0.6  # a whole crawl waits at its end for the few sites with the most pages
MAX_TRANSFER_S = 4.0  # larger pages are made smaller
_STEPS = 5_000_000  # duration of a live crawl, in pages of a simulated one


def _time_key(source: WebSource, seed: int) -> str:
    rules = f"r = {CONNECTIONS}, w = {DELAY_S:g}, k = {PER_CONNECTION}, {SHARE:.0%} of the pages"
    servers = f"{MODEL} servers, transfers up to {MAX_TRANSFER_S:g} s, seed {seed}"
    return f"{source.name}; simulated and live {LENGTH}, {rules}, {servers}"


def _time_run(cache: WebCache, source: WebSource, seed: int) -> StudyRun:
    def compute() -> Result:
        graph, most = cache.load(source).graph, int(SHARE * source.pages)
        both = compared(
            LiveSetting(
                graph,
                MODELS[MODEL],
                strategy=LENGTH,
                connections=CONNECTIONS,
                delay_s=DELAY_S,
                per_connection=PER_CONNECTION,
                max_pages=most,
                max_transfer_s=MAX_TRANSFER_S,
                seed=seed,
            )
        )
        return {
            "simulated": both.plain.simulated,
            "live": both.plain.live,
            "largest": both.plain.largest_error,
            "mean": both.plain.mean_error,
            "own_s": both.own_s,
            "largest_with_own_time": both.with_own_time.largest_error,
        }  # fmt: skip

    return StudyRun(_time_key(source, seed), _STEPS, compute, source.name, is_timed=True)


def over_time(name: str, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    title = "PageRank over time, live and simulated"

    def items(results: Results) -> list[PaperItem]:
        found = [results[_time_key(web, seed)] for seed, web in enumerate(webs, 1)]

        def of(number: str) -> list[float]:
            return [float(one[number]) for one in found]

        after, ours = "after the first tenth of the crawl", "ours: 5 %"
        claims = [
            within(f"PageRank over time differs by at most 5 % {after}: mean difference", ours, of("mean"), _AGREES),
            within(f"It differs by at most 5 % at every moment {after}", ours, of("largest"), _AGREES,
                   "the crawler and the machine add some milliseconds to each page"),
            within("With these milliseconds added to each simulated page, it differs by at most 5 % at every moment", ours,
                   of("largest_with_own_time"), _AGREES),
        ]  # fmt: skip
        percents = [float(at) for at in range(101)]
        curves = {
            how: (percents, [100 * y for y in mean_curve([one[how] for one in found])]) for how in ("live", "simulated")
        }
        chart = PaperChart("live-time", title, "time of the live crawl",
                           "PageRank of the pages fetched so far", curves, "%", "%")  # fmt: skip
        rows = [
            ["mean difference, %", mean_and_spread([100 * x for x in of("mean")], 1)],
            ["largest difference, %", mean_and_spread([100 * x for x in of("largest")], 1)],
            ["time that a page takes longer live, ms", mean_and_spread([1000 * x for x in of("own_s")], 1)],
            [
                "largest difference with this time, %",
                mean_and_spread([100 * x for x in of("largest_with_own_time")], 1),
            ],
        ]
        table = PaperTable("Simulated minus live", ["", "ours"], rows)
        rules = f"r = {CONNECTIONS}, w = {DELAY_S:g} s, k = {PER_CONNECTION}"
        servers = f"{MODEL} servers, no page takes more than {MAX_TRANSFER_S:g} s to transfer"
        setting = f"{LENGTH}; {rules}, {servers}; the first {SHARE:.0%} of the pages"
        return [PaperItem(name, title, setting, claims, [table], [chart])]

    return PaperPart([_time_run(cache, web, seed) for seed, web in enumerate(webs, 1)], items)
