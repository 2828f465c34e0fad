"""Experiment 3 of `cho`: the number of URLs that partitions send to each other per page, by partition function, number of
replicated URLs, and filter.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from trapline.lab.cho.crawled_web import Setting
from trapline.lab.cho.measures import PUBLISHED, ChoStudy, Curve, Measure, Measured, item, ratio, sent, sent_at_once
from trapline.lab.paper import PaperClaim, PaperItem, Values, at_least, close, differences, every, more

SITE, URL, ANALYTIC = "site-hash", "url-hash", "links x (1 - 1/n)"
BATCHED = "site-hash, a batch per step"
# Shares of all pages that are replicated. The paper replicated 10,000 to 100,000 of 40 M pages (published, to the best of our knowledge).
REPLICATED = {"1/4000": 4000, "1/1000": 1000, "1/400": 400, "1/100": 100, "1/10": 10}
_LIKE_PAPER = ("1/4000", "1/400")
# The paper: replication saves "roughly 40-50 %"; BUbiNG (Boldi et al. 2018): its filter removes over 90 % of repeats
CUT, FILTERED = 0.4, 0.9
FILTERS = {"1/1024": 1024, "1/64": 64, "1/16": 16}  # entries of the filter, as a share of a partition's pages
_LEAST_FILTER = 8  # least number of entries
PARTITIONS, PART = 8, 5  # partitions for replication and filters; filters are tested on the first fifth of a crawl


def experiment(study: ChoStudy) -> PaperItem:
    """Run the experiment."""
    functions = _functions(study)
    replicated, filters = _replicated(study), _filters(study)
    names = {float(at): name for at, name in enumerate(["none", *REPLICATED])}
    filter_names = {float(at): name for at, name in enumerate(["none", *FILTERS, "all"])}
    charts = [
        Measured("3a", "Links to pages of others", "partitions", "URLs sent per page", functions),
        Measured("3b", "Popular URLs known everywhere", "share of pages replicated", "URLs sent per page", replicated, names),
        Measured("3c", f"Filters of URLs sent, {PARTITIONS} partitions", "entries, as a share of a partition's pages",
              "URLs sent per page", filters, filter_names),
    ]  # fmt: skip
    verdicts = [*_of_functions(functions), *_of_replication(replicated), *_of_filters(filters)]
    return item(3, "URLs exchanged", study, charts, verdicts, _notes(study))


def _functions(study: ChoStudy) -> dict[str, Curve]:
    several = [n for n in study.scale.partitions if n > 1]
    exchange = {n: Setting("exchange", n) for n in several}
    by_url = {n: Setting("exchange", n, kind=URL) for n in study.scale.some_partitions}
    return {
        SITE: {float(n): study.values(one, sent_at_once) for n, one in exchange.items()},
        BATCHED: {float(n): study.values(one, sent) for n, one in exchange.items()},
        URL: {float(n): study.values(one, sent_at_once) for n, one in by_url.items()},
        ANALYTIC: {float(n): study.values(one, _links_elsewhere(n)) for n, one in by_url.items()},
    }


def _links_elsewhere(n: int) -> Measure:
    """Return a measure: the expected links per page to another partition, if links lead to all partitions with equal probability."""
    return lambda found: found.links_per_page * (1.0 - 1.0 / n)


def _replicated(study: ChoStudy) -> dict[str, Curve]:
    """Return the URLs sent by share of replicated pages (x is its place in the list). Shares of less than a page are skipped."""
    numbers = {at: study.pages // share for at, share in enumerate(REPLICATED.values(), 1) if share <= study.pages}

    def curve(n: int) -> Curve:
        settings = {at: Setting("exchange", n, replicated=number) for at, number in ({0: 0} | numbers).items()}
        return {float(at): study.values(one, sent_at_once) for at, one in settings.items()}

    return {f"{n} partitions": curve(n) for n in (PARTITIONS, 64)}


def _filter_sizes(study: ChoStudy) -> list[int]:
    own = study.pages // PARTITIONS
    return [0, *(max(_LEAST_FILTER, own // share) for share in FILTERS.values()), 2 * study.pages]


def _filters(study: ChoStudy) -> dict[str, Curve]:
    """Return the URLs sent by size of the filter (x is its place in the list). Of equal sizes only the last is used."""
    sizes = {size: at for at, size in enumerate(_filter_sizes(study))}

    def curve(policy: str) -> Curve:
        most = study.pages // PART
        settings = {
            at: Setting("exchange", PARTITIONS, most=most, filter_size=size, filter_policy=policy)
            for size, at in sizes.items()
        }
        return {float(at): study.values(one, sent) for at, one in settings.items()}

    return {policy: curve(policy) for policy in ("lru", "popular")}


def _of_functions(curves: dict[str, Curve]) -> list[PaperClaim]:
    site, url, analytic = curves[SITE], curves[URL], curves[ANALYTIC]
    ones = [1.0] * len(site[64.0])
    fewer = {f"{n:g} partitions": more(url[n], site[n]) for n in url}
    rises = {f"{a:g} to {b:g}": more(site[b], site[a]) for a, b in pairwise(site)}
    exact = {f"{n:g} partitions": close(ratio(url[n], analytic[n]), ones, 0.05) for n in url}
    return [
        every("Site-hash sends fewer URLs than url-hash", "fewer", fewer),
        every("More partitions send more URLs", "more", rises),
        at_least("Site-hash sends less than 1 URL per page, with 64 partitions too", f"< 1 ({PUBLISHED})", differences(ones, site[64.0])),
        every("Url-hash sends links per page x (1 - 1/n), within 5 %", "links x (1 - 1/n)", exact),
    ]  # fmt: skip


def _of_replication(curves: Mapping[str, Curve]) -> list[PaperClaim]:
    """Judge replication, for the shares of at least a page, where any URL is sent."""
    curves = {name: curve for name, curve in curves.items() if min(curve[0.0]) > 0.0}
    (few, least), (many, most) = (
        (share, {name: _cut(curve, share) for name, curve in curves.items() if _place(share) in curve})
        for share in _LIKE_PAPER
    )
    little, much = ({name: at_least("", "", cut, CUT) for name, cut in cuts.items()} for cuts in (least, most))
    slower = {name: more([10.0 * value for value in cut], most[name]) for name, cut in least.items()}
    claims = [
        (f"Replicating {few} of the pages saves {CUT:.0%} or more", f"40-50 %, 10,000 URLs ({PUBLISHED})", little),
        (f"Replicating {many} of the pages saves {CUT:.0%} or more", f"40-50 %, 100,000 URLs ({PUBLISHED})", much),
        ("Ten times as many replicated URLs save less than ten times as much", "less", slower),
    ]
    return [every(text, published, parts) for text, published, parts in claims if parts]


def _place(share: str) -> float:
    return float(list(REPLICATED).index(share) + 1)


def _cut(curve: Curve, share: str) -> Values:
    """Return the share of the URLs sent that replication saves."""
    return [1.0 - value for value in ratio(curve[_place(share)], curve[0.0])]


def _of_filters(curves: Mapping[str, Curve]) -> list[PaperClaim]:
    """Judge the filters, where any URL would be sent again."""
    claims = []
    for name, curve in curves.items():
        repeats = differences(curve[0.0], curve[float(len(FILTERS) + 1)])
        if min(repeats) > 0.0:
            removed = ratio(differences(curve[0.0], curve[float(len(FILTERS))]), repeats)
            text = f"A filter ({name}) of 1/16 of a partition's pages removes over {FILTERED:.0%} of the repeats"
            claims.append(at_least(text, "> 90 % (BUbiNG)", removed, FILTERED))
    return claims


def _notes(study: ChoStudy) -> list[str]:
    graph = study.web.graph
    inside = graph.site[np.repeat(np.arange(graph.pages), np.diff(graph.offsets))] == graph.site[graph.targets]
    return [
        f"{graph.links / graph.pages:.1f} links a page, {float(inside.mean()) if graph.links else 0.0:.0%} of them within the site.",
        "In 3a and 3b every link is sent when it is found; in 3c and with a batch per step, each URL once per batch.",
        "The replicated pages are those with most links in the graph itself, as in the paper; an earlier crawl would know them less well.",
        "Repeats are the URLs that a filter that forgets nothing would not send again.",
        *_left_out(study),
    ]


def _left_out(study: ChoStudy) -> list[str]:
    less = [name for name, share in REPLICATED.items() if share > study.pages]
    sizes = dict(zip(FILTERS, _filter_sizes(study)[1:], strict=False))
    same = [name for (name, size), (_, larger_size) in pairwise(sizes.items()) if size == larger_size]
    said = {
        "Not run: replication of {} of the pages, which is less than a page.": less,
        f"Not run: filters of {{}} of a partition's pages; the smallest filter has {_LEAST_FILTER} entries.": same,
    }
    return [text.format(" and ".join(names)) for text, names in said.items() if names]
