"""Sites and batches in `castillo` and `thesis`: the pages per site of the web and of a batch, and the connections at work while a
batch is fetched.
"""

import math
from collections.abc import Sequence
from itertools import zip_longest

from trapline.lab.paper import PaperChart, PaperItem, PaperPart, PaperTable, Results, at_least, every
from trapline.lab.simulated import (
    BINS,
    OrderCrawl,
    batch_key,
    batch_run,
    mean_and_spread,
    mean_curve,
    sites_key,
    sites_run,
)
from trapline.lab.webs import WebCache, WebSource

LARGEST = 0.0072  # share of the largest site: 25,000 of 3.5 M pages
BANDWIDTHS = {"2 kB/s": 2e3, "20 kB/s": 2e4}
# hours of a batch of 100,000 pages, with k = 1 and with k = 100
HOURS = {"2 kB/s": (33, 29), "20 kB/s": (9, 3)}
PAGES_PER_CONNECTION = (1, 100)
BATCHES = 35  # 3.5 M pages in batches of 100,000


def pages_per_site(name: str, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    def items(results: Results) -> list[PaperItem]:
        found = [results[sites_key(web)] for web in webs]
        spare = [LARGEST - float(one["largest_share"]) for one in found]
        few = "" if min(spare) > 0 else "a web of few sites cannot have this cap and differ in the size of sites"
        text = "The largest site has at most 0.7 % of the pages: how much less, as a share of the pages"
        claim = at_least(text, "25,000 of 3.5 M", spare, reason=few)
        chart = _sites_chart("sites", "Pages per site", {"the web": [one["sites"] for one in found]})
        setting = "the webs themselves; sites in classes by powers of two, mean number"
        return [PaperItem(name, "Pages per site", setting, [claim], charts=[chart])]

    return PaperPart([sites_run(cache, web) for web in webs], items)


def _sites_chart(name: str, title: str, counts: dict[str, list[list[int]]]) -> PaperChart:
    """Return the chart of numbers of sites in classes by powers of two. `counts`: by curve, a list for each web."""
    curves = {}
    for curve, of_webs in counts.items():
        means = [sum(values) / len(of_webs) for values in zip_longest(*of_webs, fillvalue=0)]
        shown = [(power, mean) for power, mean in enumerate(means) if mean >= 1]
        curves[curve] = ([float(power) for power, _ in shown], [math.log10(mean) for _, mean in shown])
    top_x, top_y = (max(1, math.ceil(max(max(side) for side in sides))) for sides in zip(*curves.values(), strict=True))
    x_names = [f"{2**power:,}" if power % 3 == 0 else "" for power in range(top_x + 1)]
    y_names = [f"{10**power:,}" for power in range(top_y + 1)]
    x_label = "pages of a site, at least this and less than twice as many"
    return PaperChart(name, title, x_label, "sites", curves, x_names=x_names, y_names=y_names)


# ---- one batch: fig. 7-9 and t. fig. 4.9-4.11


def batches(name: str, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    crawls = {
        (text, k): OrderCrawl("larger-sites-first", 1000, 15.0, k, b, "connection", "measured", batches=BATCHES)
        for text, b in BANDWIDTHS.items()
        for k in PAGES_PER_CONNECTION
    }
    one, many = PAGES_PER_CONNECTION

    def items(results: Results) -> list[PaperItem]:
        found = {key: [results[batch_key(web, crawl)] for web in webs] for key, crawl in crawls.items()}
        hours = {key: [float(run["hours"]) for run in runs] for key, runs in found.items()}
        saved = {
            text: at_least("", "", [1 - b / a for a, b in zip(hours[text, one], hours[text, many], strict=True)])
            for text in BANDWIDTHS
        }
        idle = {
            f"B = {text}, k = {k}": at_least("", "", [0.5 - sum(run["active"]) / BINS for run in runs])
            for (text, k), runs in found.items()
        }
        claims = [
            every("A batch with k = 100 takes less time than with k = 1: share saved", "33 to 29 h; 9 to 3 h", saved),
            every(
                "Most connections are idle most of the time: mean share at work, below one half", "most are idle", idle
            ),
        ]
        rows = [
            [f"B = {text}, k = {k}", f"{HOURS[text][at]}", mean_and_spread(hours[text, k], 2)]
            for text in BANDWIDTHS
            for at, k in enumerate(PAGES_PER_CONNECTION)
        ]
        table = PaperTable("Hours of one batch", ["crawl", "published, 100,000 pages", "ours"], rows)
        sizes = {"a batch in the middle": [run["sites"] for run in found["20 kB/s", one]]}
        charts = [_sites_chart("batch-sites", "Pages per site of a batch", sizes), _active_chart(found)]
        setting = f"larger-sites-first, r = 1000, w = 15 s, B per connection, measured servers; {BATCHES} batches, the one in the middle"
        return [PaperItem(name, "One batch", setting, claims, [table], charts)]

    return PaperPart([batch_run(cache, web, crawl) for web in webs for crawl in crawls.values()], items)


def _active_chart(found: dict[tuple[str, int], list[dict[str, list[float]]]]) -> PaperChart:
    x = [100 * (at + 0.5) / BINS for at in range(BINS)]
    curves = {
        f"B = {text}, k = {k}": (x, [100 * y for y in mean_curve([run["active"] for run in runs])])
        for (text, k), runs in found.items()
    }
    title, of_time = "Connections at work during a batch", "time of the batch"
    return PaperChart("batch-connections", title, of_time, "connections at work", curves, "%", "%")
