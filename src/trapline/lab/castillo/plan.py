"""`castillo` and `thesis`: Castillo, Marin, Rodriguez and Baeza-Yates, "Scheduling Algorithms for Web Crawling" (2004), and chapter 4
of Castillo's thesis "Effective Web Crawling" (2004), which repeats these experiments and has more.

The papers' crawls are not public. Every web here is ours; the published numbers stand beside the results, and nothing is tuned
towards them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trapline.lab.castillo.batches import batches, pages_per_site
from trapline.lab.castillo.orders import (
    CASTILLO,
    THESIS,
    castillo_claims,
    connections,
    cumulative_pagerank,
    historical,
    strategy_table,
    thesis_claims,
)
from trapline.lab.castillo.prediction import order, over_time
from trapline.lab.castillo.real_crawls import RealCrawlNames, real_crawl, two_strategies
from trapline.lab.castillo.speed import READINGS, page_time, speed_up
from trapline.lab.paper import PaperPlan
from trapline.lab.webs import WebCache, WebSource

CASTILLO_TITLE = "Castillo, Marin, Rodriguez and Baeza-Yates: Scheduling Algorithms for Web Crawling"
THESIS_TITLE = "Castillo: Effective Web Crawling, chapter 4"


@dataclass(frozen=True, slots=True)
class CastilloWebs:
    orders: Sequence[WebSource]
    """for orders"""
    histories: Sequence[WebSource]
    """the same kind, evolved"""
    speeds: Sequence[WebSource]
    """for speed"""
    live: Sequence[WebSource]
    """small ones, for live crawls"""
    timed: Sequence[WebSource]
    """smaller ones, for live crawls of servers as slow as real ones"""


def castillo(webs: CastilloWebs) -> PaperPlan:
    cache = WebCache()
    parts = [
        pages_per_site("fig. 3", cache, webs.orders),
        cumulative_pagerank("fig. 5", CASTILLO, castillo_claims, cache, webs.orders),
        connections("fig. 6", "depth", cache, webs.orders),
        *(speed_up("table I", per, cache, webs.speeds) for per in READINGS),
        batches("fig. 7-9", cache, webs.speeds),
        real_crawl(RealCrawlNames("fig. 10, table II", "fig. 11", "fig. 12"), cache, webs.live),
    ]
    return PaperPlan("castillo", CASTILLO_TITLE, parts, _names(webs.orders, webs.speeds, webs.live))


def thesis(webs: CastilloWebs) -> PaperPlan:
    cache = WebCache()
    parts = [
        page_time("fig. 4.2", cache, webs.speeds),
        cumulative_pagerank("fig. 4.3-4.5", THESIS, thesis_claims, cache, webs.orders),
        strategy_table("table 4.1", cache, webs.orders),
        historical("fig. 4.6", cache, webs.histories),
        connections("fig. 4.7", "breadth-first", cache, webs.orders),
        *(speed_up("table 4.2, fig. 4.8", per, cache, webs.speeds) for per in READINGS),
        batches("fig. 4.9-4.11", cache, webs.speeds),
        real_crawl(RealCrawlNames("fig. 4.12", "fig. 4.13", "fig. 4.14"), cache, webs.live),
        order("fig. 4.15", cache, webs.live),
        over_time("fig. 4.15, over time", cache, webs.timed),
        two_strategies("fig. 4.16", cache, webs.live),
    ]
    return PaperPlan(
        "thesis", THESIS_TITLE, parts, _names(webs.orders, webs.histories, webs.speeds, webs.live, webs.timed)
    )


def _names(*groups: Sequence[WebSource]) -> list[str]:
    return [web.name for group in groups for web in group]
